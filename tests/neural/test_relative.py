"""Units in strict order, and distances to where a layer is singular."""

import copy
import functools
import io
import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from torch.autograd import gradcheck
from torch.nn import Linear, ReLU, Sequential, Tanh
from torch.nn.utils import parametrize

from reproduction.instruments.layers import singularity_distances
from skvmf.neural import OrderedUnits, relative_units


@pytest.fixture(autouse=True)
def seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def network(activation, *, units=8, inputs=3, bias=True):
    """Layers whose units are well apart along every input, in some order."""
    net = Sequential(Linear(inputs, units, bias=bias), activation(), Linear(units, 2)).double()
    with torch.no_grad():
        for column in net[0].weight.T:
            sizes = torch.linspace(0.5, 4, units, dtype=torch.float64)[torch.randperm(units)]
            column[:] = sizes * torch.where(torch.rand(units) < 0.5, -1, 1)
    return net


def in_order(weight, *, index, clearance, odd):
    """Gaps of at least the clearance, up to the rounding of sums."""
    column = weight.detach()[:, index]
    gaps = column.diff()
    if odd:
        gaps = torch.cat([column[:1], gaps])
    rounding = 4 * torch.finfo(column.dtype).eps * column.abs().max()
    return bool((gaps >= clearance - rounding).all() and (gaps > 0).all())


@pytest.mark.parametrize(("activation", "odd"), [(ReLU, False), (Tanh, False), (Tanh, True)])
@pytest.mark.parametrize("index", [0, 2, -1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("units", [1, 8])
def test_the_function_stays_the_same(activation, odd, index, bias, units):
    net = network(activation, units=units, bias=bias)
    x = 3 * torch.randn(50, 3, dtype=torch.float64)
    before = net(x)
    options = dict(input_index=index, clearance=1e-3, odd=odd)
    assert relative_units(net[0], net[2], **options) is net[0]
    torch.testing.assert_close(net(x), before, rtol=1e-12, atol=1e-12)
    assert in_order(net[0].weight, index=index, clearance=1e-3, odd=odd)
    if units == 1:
        assert singularity_distances(net[0]).closest is None


@pytest.mark.parametrize("odd", [False, True])
def test_gaps_grow_to_the_clearance_and_no_further(odd):
    layer = Linear(1, 4, bias=False).double()
    with torch.no_grad():
        layer.weight[:, 0] = torch.tensor([0.5, 0.5, -1.0, 0.505], dtype=torch.float64)
    relative_units(layer, clearance=0.01, odd=odd)
    least = 0.01 + 1e-4 * 0.01  # the start of a delta
    steps = [0.5, least, least, 0.495] if odd else [-1, 1.5, least, least]
    expected = torch.tensor(steps, dtype=torch.float64).cumsum(0)
    torch.testing.assert_close(layer.weight.detach()[:, 0], expected, rtol=0, atol=1e-14)
    layer.weight.sum().backward()
    assert (layer.parametrizations.weight.original.grad != 0).all()


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clearance", [0.01, 0.3])
def test_order_holds_while_training(odd, dtype, clearance):
    """Towards a target that wants all units the same."""
    net = network(Tanh, units=6).to(dtype)
    relative_units(net[0], net[2], input_index=1, clearance=clearance, odd=odd)
    raw = net[0].parametrizations.weight.original.detach().clone()
    adam = torch.optim.Adam(net.parameters(), lr=0.05)
    x = torch.randn(100, 3, dtype=dtype)
    target = torch.tanh(x.sum(1, keepdim=True)).expand(-1, 2)
    losses = []
    for _ in range(200):
        loss = (net(x) - target).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        assert in_order(net[0].weight, index=1, clearance=clearance, odd=odd)
    assert losses[-1] < 0.5 * losses[0]
    assert (net[0].parametrizations.weight.original != raw).all()
    overlap = singularity_distances(net[0], net[2], odd=odd).overlap
    assert overlap[~torch.eye(6, dtype=bool)].min() > 0.999 * clearance  # sums are in float32


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [-1e4, -1.0, 0.0, 1.0, 1e4])
def test_order_is_strict_where_weights_outgrow_the_clearance(dtype, size, odd):
    """As by training: neighbours are one float apart."""
    ordered = OrderedUnits(clearance=1e-7, odd=odd)
    raw = torch.zeros(9, 2, dtype=dtype)
    raw[0] = abs(size) ** 0.5 if odd else size
    raw[5] = 1e-4
    weight = ordered(raw.requires_grad_())
    column = weight.detach()[:, 0]
    assert (column.diff() > 0).all()
    assert not odd or column[0] > 0
    steps = raw.detach().double()[:, 0].square() + 1e-7
    sums = (steps if odd else torch.cat([torch.tensor([size]), steps[1:]])).cumsum(0)
    rounding = 10 * (torch.finfo(dtype).eps * sums.abs().max() + torch.finfo(dtype).tiny)
    assert (column.double() - sums).abs().max() <= rounding
    weight[-1, 0].backward()
    assert raw.grad[:, 1].eq(0).all()
    expected = 2 * raw.detach()[:, 0]
    torch.testing.assert_close(
        raw.grad[:, 0], expected if odd else expected.index_fill(0, torch.tensor(0), 1)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("share", [1e-50, 1e-3, 0.5])
def test_a_clearance_below_the_rounding_is_refused(dtype, share):
    net = network(ReLU).to(dtype)
    before = copy.deepcopy(net.state_dict())
    rounding = torch.finfo(dtype).eps * net[0].weight[:, 1].abs().max().item()
    with pytest.raises(ValueError, match=rf"is lost in the rounding of {dtype} weights of up to"):
        relative_units(net[0], net[2], input_index=1, clearance=share * rounding)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    relative_units(net[0], net[2], input_index=1, clearance=2 * rounding)
    with pytest.raises(ValueError, match="is lost in the rounding"):
        net[0].weight = 10 * net[0].weight.detach()


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("index", [0, 1, -1])
def test_derivatives(odd, index):
    ordered = OrderedUnits(index, clearance=0.1, odd=odd)
    raw = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(ordered, raw)
    weight = ordered(raw).detach()
    others = [i for i in range(3) if i != index % 3]
    assert torch.equal(weight[:, others], raw[:, others])
    assert in_order(weight, index=index, clearance=0.1, odd=odd)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("index", [0, -1])
def test_right_inverse(odd, index):
    ordered = OrderedUnits(index, clearance=0.1, odd=odd)
    weight = torch.randn(6, 2, dtype=torch.float64)
    weight[:, index] = torch.tensor([0.2, 0.4, 0.6, 1.5, 1.7, 9.0])
    result = ordered(ordered.right_inverse(weight))
    torch.testing.assert_close(result, weight, rtol=1e-13, atol=0)
    raw = torch.rand(6, 2, dtype=torch.float64) + 0.1
    torch.testing.assert_close(ordered.right_inverse(ordered(raw)), raw, rtol=1e-12, atol=0)


def test_state_dict():
    net, other = network(Tanh), network(Tanh)
    for one in (net, other):
        relative_units(one[0], one[2], odd=True)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other[0].weight, net[0].weight)
    assert torch.equal(copy.deepcopy(net)[0].weight, net[0].weight)
    weight = net[0].weight.detach().clone()
    parametrize.remove_parametrizations(net[0], "weight")
    assert torch.equal(net[0].weight, weight)


def test_weights_may_be_assigned_in_order_only():
    layer, given = relative_units(Linear(2, 3)), torch.tensor([[-1.0, 9], [0.0, 8], [5.0, 7]])
    layer.weight = given.clone()
    torch.testing.assert_close(layer.weight.detach(), given)
    with pytest.raises(ValueError, match=r"sorted by their weights of input 0: relative_units"):
        layer.weight = given.flip(0)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_distances_by_brute_force(odd, bias):
    net = network(Tanh, units=6, bias=bias)
    with torch.no_grad():
        net[0].weight[4] = -net[0].weight[1] + 1e-3
        if bias:
            net[0].bias[4] = -net[0].bias[1]
        net[2].weight[:, 3] = 1e-6
    units = net[0].weight.detach()
    if bias:
        units = torch.cat([units, net[0].bias.detach()[:, None]], dim=1)
    overlap = (units[:, None] - units).norm(dim=2)
    if odd:
        overlap = torch.minimum(overlap, (units[:, None] + units).norm(dim=2)).fill_diagonal_(0)
    result = singularity_distances(net[0], net[2], odd=odd)
    torch.testing.assert_close(result.overlap, overlap, rtol=0, atol=1e-14)
    assert result.closest == min(
        itertools.combinations(range(6), 2), key=lambda pair: overlap[pair]
    )
    assert (result.closest == (1, 4)) == odd
    lengths = net[0].weight.norm(dim=1)
    torch.testing.assert_close(singularity_distances(net[0]).elimination, lengths)
    expected = torch.minimum(lengths, net[2].weight.norm(dim=0))
    torch.testing.assert_close(result.elimination, expected)
    assert result.elimination.argmin() == 3
    assert not result.overlap.requires_grad


def test_distances_keep_their_digits():
    """Units of size one whose difference is much smaller than its square's rounding."""
    layer = Linear(40, 30, bias=False).double()
    with torch.no_grad():
        layer.weight[7] = layer.weight[3]
        layer.weight[7, 0] += 1e-12
    result = singularity_distances(layer)
    assert abs(result.overlap[3, 7] / 1e-12 - 1) < 1e-3
    assert result.closest == (3, 7)


@pytest.mark.parametrize("clearance", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_clearance_is_refused(clearance):
    layer = Linear(2, 3)
    before = layer.weight.clone()
    for refuse in (OrderedUnits, functools.partial(relative_units, layer)):
        with pytest.raises(ValueError, match="clearance must be positive"):
            refuse(clearance=clearance)
    assert torch.equal(layer.weight, before)


def test_bad_layers_are_refused():
    layer = Linear(3, 3)
    before = layer.weight.clone()
    for index in (3, -4):
        with pytest.raises(ValueError, match=f"has 3 inputs, and no input {index}"):
            relative_units(layer, input_index=index)
    with pytest.raises(ValueError, match="following must be another layer"):
        relative_units(layer, layer)
    assert torch.equal(layer.weight, before)
    relative_units(layer)
    with pytest.raises(ValueError, match="parametrized already"):
        relative_units(layer)


def test_other_modules_are_refused():
    layer = Linear(2, 3)
    before = layer.weight.clone()
    for pair in [(torch.nn.Conv1d(3, 3, 1), None), (layer, Tanh()), (Sequential(layer), layer)]:
        with pytest.raises(TypeError, match=r"must be a torch.nn.Linear, not a (Conv|Tanh|Seq)"):
            relative_units(*pair)
    with pytest.raises(ValueError, match="following takes 4 values, and the layer has 3"):
        relative_units(layer, Linear(4, 1))
    assert torch.equal(layer.weight, before)


def test_layers_are_ordered_from_the_first_on():
    net = Sequential(Linear(3, 8), ReLU(), Linear(8, 5), ReLU(), Linear(5, 2)).double()
    swapped, x = copy.deepcopy(net), torch.randn(50, 3, dtype=torch.float64)
    before = net(x)
    relative_units(net[0], net[2], clearance=1e-9)
    relative_units(net[2], net[4], clearance=1e-9)
    torch.testing.assert_close(net(x), before, rtol=0, atol=1e-6)
    relative_units(swapped[2], swapped[4], clearance=1e-9)
    with pytest.raises(ValueError, match="begin with the first layer"):
        relative_units(swapped[0], swapped[2], clearance=1e-9)
    torch.testing.assert_close(swapped(x), before, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_dependence_is_the_least_of_least_squares_over_pairs(bias):
    layer = Linear(5, 6, bias=bias).double()
    units = torch.cat([layer.weight, *([layer.bias[:, None]] if bias else [])], dim=1).detach()
    result = singularity_distances(layer).dependence
    for k in range(6):
        pairs = itertools.combinations([i for i in range(6) if i != k], 2)
        columns = [units[list(pair)].T for pair in pairs]
        unit = units[k][:, None]
        rests = [float((A @ torch.linalg.lstsq(A, unit).solution - unit).norm()) for A in columns]
        assert float(result[k]) == pytest.approx(min(rests), rel=1e-10)
