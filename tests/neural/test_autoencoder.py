"""What both autoencoders do in the same way: training, scikit-learn's manners, bad input."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from .checks import assert_same
from .conftest import of_each_class

X = load_digits().data[:100] / 16  # exact in float32, and neither negative nor above one


def test_free_energy_falls(new):
    model = new(max_epochs=12, learning_rate=0.02).fit(X)
    assert model.n_epochs_ == len(model.losses_) == 12
    assert model.validation_losses_ == []
    assert all(isinstance(loss, float) for loss in model.losses_)
    assert model.losses_[-1] < 0.9 * model.losses_[0]
    assert model.score(X) > new(max_epochs=0).fit(X).score(X)


def test_posterior(new):
    model = new().fit(X)
    posterior = model.posterior(X[:9])
    assert posterior.batch_shape == (9, 3)
    assert_array_equal(posterior.mean.numpy(), model.transform(X[:9]))
    assert not posterior.loc.requires_grad
    draws = posterior.sample((2000,))
    assert posterior.support.check(draws).all()
    spread = (draws.std(0) / posterior.stddev).numpy()
    assert_allclose(spread, 1, atol=0.15)


def test_same_seed_same_result_and_torch_is_left_alone(new):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    a = new().fit(X)
    a.score(X), a.transform(X), a.sample(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    b = new().fit(X)
    assert_same(a, b)
    assert a.losses_ == b.losses_
    assert a.score(X) == b.score(X)
    assert_array_equal(a.sample(4), b.sample(4))
    assert_array_equal(a.sample(4), a.sample(4))
    other = new(random_state=1).fit(X)
    assert not np.array_equal(other.transform(X), a.transform(X))
    assert_same(new(random_state=np.random.RandomState(0)).fit(X), a)
    assert new(random_state=None).fit(X).n_epochs_ == 3


@of_each_class
def test_a_callers_modes_are_no_matter(new):
    expected = new(early_stopping=True).fit(X)
    coordinates, further = expected.transform(X), expected.partial_fit(X)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            model = new(early_stopping=True).fit(X)
            assert_array_equal(model.transform(X), coordinates)
            assert_same(new().partial_fit(X), new(max_epochs=1).fit(X))
        assert_same(model.partial_fit(X), further)


def test_fits_in_threads_are_those_one_after_another(new):
    models = [new(random_state=seed) for seed in range(3)]
    expected = [clone(model).fit(X) for model in models]
    before = torch.get_rng_state()
    with ThreadPoolExecutor(2) as threads:
        fitted = list(threads.map(lambda model: model.fit(X), models))
    for one, other in zip(fitted, expected, strict=True):
        assert_same(one, other)
        assert one.score(X) == other.score(X)
    assert torch.equal(torch.get_rng_state(), before)


def narrowed(model):
    """The same model with posteriors of no width: draws are their centers."""
    model = deepcopy(model)
    with torch.no_grad():
        model.network_.encoder[-1].bias[3:] -= 30
    return model


def test_score_is_minus_the_mean_free_energy(new):
    """With one draw; taken apart where draws are known."""
    with_divergence, without = narrowed(new(beta=0.7).fit(X)), narrowed(new(beta=0.7).fit(X))
    without.set_params(beta=0)
    posterior = without.posterior(X)
    _inputs, target = without._batch(X, "cpu")
    with torch.no_grad():
        scores = without.network_.decoder(posterior.loc)
        reconstruction = without._loss()(scores, target)
        divergence = posterior.fenchel_young_divergence().sum(-1)
    assert_allclose(without.score(X), -reconstruction.mean(), rtol=1e-5)
    expected = -(reconstruction + 0.7 * divergence).mean()
    assert_allclose(with_divergence.score(X), expected, rtol=1e-5)


def test_a_step_follows_the_gradient_of_the_mean_free_energy(new):
    model = narrowed(new(max_epochs=0, batch_size=1000).fit(X))
    network = deepcopy(model.network_)
    energies = network.free_energies(*model._batch(X, "cpu"), model._loss(), model.beta)
    energies.mean().backward()
    model.partial_fit(X)
    assert_allclose(model.losses_, [energies.mean().item()], rtol=1e-5)
    for moved, start in zip(model.network_.parameters(), network.parameters(), strict=True):
        assert_allclose(moved.grad, start.grad, rtol=1e-3, atol=1e-5)


def test_partial_fit_is_an_epoch_of_fit(new):
    model = new(max_epochs=3)
    for epoch in range(1, 4):
        assert model.partial_fit(X) is model
        assert model.n_epochs_ == epoch
    fitted = new(max_epochs=3).fit(X)
    assert_same(model, fitted)
    assert model.losses_ == fitted.losses_
    assert model.score(X) == fitted.score(X)
    assert_same(new(max_epochs=2).fit(X).partial_fit(X), fitted)


def test_early_stopping_keeps_the_best_network_and_stops(new):
    options = dict(learning_rate=0.1, early_stopping=True, validation_fraction=0.2)
    model = new(max_epochs=200, n_epochs_no_change=3, **options).fit(X)
    best = int(np.argmin(model.validation_losses_)) + 1
    assert model.n_epochs_ == len(model.validation_losses_) == best + 3 < 200
    assert_same(model, new(max_epochs=best, n_epochs_no_change=3, **options).fit(X))
    never = new(max_epochs=5, n_epochs_no_change=5, **options).fit(X)
    assert never.n_epochs_ == 5


def test_held_out_rows_are_not_trained_on(new):
    marked = X.copy()
    marked[:, 0] = np.arange(100) / 100  # says which row it is
    model, seen = new(max_epochs=1, early_stopping=True, validation_fraction=0.3), []
    batch = type(model)._batch

    def spy(self, rows, device):
        seen.append(rows[:, 0])
        return batch(self, rows, device)

    model._batch = spy.__get__(model)
    model.fit(marked)
    trained, held_out = np.concatenate(seen[:2]), seen[2]  # 70 rows in two batches
    assert len(held_out) == 30
    assert_array_equal(np.sort([*trained, *held_out]), marked[:, 0])


def test_pickles_copies_and_clones(new):
    model = new(max_epochs=2).fit(X)
    for same in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert_same(same, model)
        assert same.score(X) == model.score(X)
        assert_array_equal(same.transform(X), model.transform(X))
        assert_array_equal(same.sample(3), model.sample(3))
        assert same.losses_ == model.losses_
        same.partial_fit(X)
        assert same.n_epochs_ == 3
        assert model.n_epochs_ == 2
    a, b = (pickle.loads(pickle.dumps(model)).partial_fit(X) for _ in range(2))
    assert_same(a, b)
    fresh = clone(model)
    assert not hasattr(fresh, "network_")
    assert_same(fresh.fit(X), model)
    without_moments = new(max_epochs=0).fit(X)
    assert len(pickle.dumps(model)) < 1.1 * len(pickle.dumps(without_moments))
    unfitted = pickle.loads(pickle.dumps(new()))
    assert unfitted.get_params() == new().get_params()


@of_each_class
def test_other_arrays_of_the_same_numbers(new):
    far, locked, model = np.zeros((200, 128)), X.copy(), new().fit(X)
    far[::2, ::2], locked.flags.writeable = X, False
    equal = [X.astype(np.float32), X.tolist(), np.asfortranarray(X), far[::2, ::2], locked]
    for same in [*equal, X[::-1].copy()[::-1], X.astype(">f8")]:
        assert_same(new().fit(same), model)
        assert_array_equal(model.transform(same), model.transform(X))
        assert model.score(same) == model.score(X)
    coordinates = model.transform(X)
    locked = coordinates.copy()
    locked.flags.writeable = False
    leaf = torch.tensor(coordinates, requires_grad=True)
    for same in (coordinates.astype(np.float64), coordinates.tolist(), locked, leaf):
        assert_array_equal(model.inverse_transform(same), model.inverse_transform(coordinates))


@of_each_class
def test_other_dtypes(new):
    binary = X > 0.5
    expected = new().fit(binary.astype(np.float64))
    for dtype in (bool, np.int8, np.int64, np.uint8, np.float16):
        model = new().fit(binary.astype(dtype))
        assert_same(model, expected)
        assert model.transform(binary.astype(dtype)).dtype == np.float32


def assert_sound(model, rows):
    """All that a fitted model gives for rows is finite."""
    assert np.isfinite(model.transform(rows)).all()
    assert np.isfinite(model.score(rows))
    assert np.isfinite(model.inverse_transform(model.transform(rows))).all()
    assert np.isfinite(model.sample(3)).all()
    assert np.isfinite(model.losses_).all()


STRANGE = {
    "one": X[:1],
    "five": X[:5],
    "ones": np.ones((9, 4)),
    "zeros": np.zeros((9, 4)),
    "nothing": np.zeros((1, 1)),
    "one number": np.ones((1, 1)),
    "eye": np.eye(30),
    "tiny": np.full((9, 4), 1e-30),
    "subnormal": np.full((9, 4), 5e-324),
    "constant columns": X[:30, :30],
}


@pytest.mark.parametrize("rows", STRANGE.values(), ids=STRANGE)
def test_strange_rows(new, rows):
    """Fewer rows than a batch, constant features, nothing at all."""
    assert_sound(new(max_epochs=5, learning_rate=0.01).fit(rows), rows)
    assert_sound(new().partial_fit(rows), rows)


def test_the_least_of_everything(new):
    none = new(max_epochs=0).fit(X)
    assert (none.n_epochs_, none.losses_) == (0, [])
    assert_sound(none, X)
    assert_sound(new(max_epochs=0, early_stopping=True).fit(X), X)
    model = new(n_components=1, hidden_layer_sizes=(1,), batch_size=1, n_epochs_no_change=1)
    assert_sound(model.set_params(early_stopping=True, beta=0).fit(X[:3, :1]), X[:3, :1])
    assert model.transform(X[:3, :1]).shape == (3, 1)


@of_each_class
@pytest.mark.parametrize("sizes", [(), (5,), [7, 5, 3], np.array([6, 4])])
def test_hidden_layers(new, sizes):
    model = new(hidden_layer_sizes=sizes).fit(X)
    units = [layer.out_features for layer in model.network_.encoder[::2]]
    assert units == [*sizes, 6]
    assert_sound(model, X)


@of_each_class
@pytest.mark.parametrize("sizes", [(0,), (-3,), (2.5,), ("a",), [[3]], (5, None)])
def test_bad_hidden_layers_are_refused(new, sizes):
    model = new(hidden_layer_sizes=sizes)
    with pytest.raises(ValueError, match="hidden_layer_sizes must hold positive integers"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


BAD_PARAMETERS = [
    *[("n_components", 0), ("n_components", 2.5), ("beta", -1.0), ("beta", np.nan)],
    *[("entmax_alpha", 0.5), ("batch_size", 0), ("learning_rate", 0.0), ("max_epochs", -1)],
    *[("hidden_layer_sizes", sizes) for sizes in (5, "five", None)],
    *[("validation_fraction", 0.0), ("validation_fraction", 1.0), ("early_stopping", "yes")],
    *[("n_epochs_no_change", 0), ("verbose", "very"), ("verbose_interval", 0)],
    ("random_state", "seed"),
]


@of_each_class
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused(new, name, value, method):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        getattr(new().set_params(**{name: value}), method)(X)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 4)), "X has 4 columns, but .* has 3 latent coordinates"),
        ([[np.nan, 0, 0]], "X contains NaN"),
        (np.zeros(3), "Reshape your data"),
    ],
)
def test_bad_coordinates_are_refused(new, rows, message):
    with pytest.raises(ValueError, match=message):
        new(max_epochs=0).fit(X).inverse_transform(rows)


@pytest.mark.parametrize(("n", "held_out", "fraction"), [(1, 1, 0.1), (3, 3, 0.9)])
def test_one_row_cannot_be_held_out(new, n, held_out, fraction):
    model = new(early_stopping=True, validation_fraction=fraction)
    message = f"holds out {held_out} of n_samples={n}: nothing is left"
    with pytest.raises(ValueError, match=message):
        model.fit(X[:n])
    assert_sound(new(early_stopping=True).fit(X[:2]), X)


@of_each_class
@pytest.mark.parametrize("n_samples", [0, -1, 2.0, True, None])
def test_bad_numbers_of_samples_are_refused(new, n_samples):
    with pytest.raises(ValueError, match="n_samples must be a positive integer"):
        new(max_epochs=0).fit(X).sample(n_samples)
