"""Units in strict order."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from torch.autograd import gradcheck
from torch.nn import Linear, ReLU, Sequential

from reproduction.instruments.layers import OrderedUnits, relative_units


@pytest.fixture(autouse=True)
def seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def network():
    """Layers whose units are well apart along the first input, in some order."""
    net = Sequential(Linear(3, 8), ReLU(), Linear(8, 2)).double()
    with torch.no_grad():
        net[0].weight[:, 0] = torch.linspace(-2, 2, 8, dtype=torch.float64)[torch.randperm(8)]
    return net


def test_the_function_stays_the_same():
    net, x = network(), 3 * torch.randn(50, 3, dtype=torch.float64)
    before = net(x)
    relative_units(net[0], net[2], clearance=1e-3)
    torch.testing.assert_close(net(x), before, rtol=1e-12, atol=1e-12)
    assert (net[0].weight[:, 0].diff() >= 1e-3).all()


def test_gaps_grow_to_the_clearance_and_no_further():
    ordered = OrderedUnits(0.01)
    weight = torch.tensor([[-1.0, 7], [0.5, 8], [0.5, 9], [0.505, 0]], dtype=torch.float64)
    least = 0.01 + 1e-4 * 0.01  # the start of a delta
    expected = weight.clone()
    expected[:, 0] = torch.tensor([-1, 1.5, least, least], dtype=torch.float64).cumsum(0)
    result = ordered(ordered.right_inverse(weight))
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("clearance", [0.01, 0.3])
def test_order_holds_while_training(clearance):
    """Towards a target that wants all units the same."""
    net = network()
    relative_units(net[0], net[2], clearance=clearance)
    adam = torch.optim.Adam(net.parameters(), lr=0.05)
    x = torch.randn(100, 3, dtype=torch.float64)
    target = torch.tanh(x.sum(1, keepdim=True)).expand(-1, 2)
    losses = []
    for _ in range(200):
        loss = (net(x) - target).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        assert (net[0].weight[:, 0].diff() >= clearance - 1e-12).all()
    assert losses[-1] < 0.5 * losses[0]


def test_derivatives():
    raw = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(OrderedUnits(0.1), raw)
