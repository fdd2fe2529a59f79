"""A fit that is refused, fails or is interrupted leaves the earlier one as it was."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from .checks import assert_same
from .conftest import of_each_class

pytestmark = of_each_class
X = load_digits().data[:100] / 16
OTHER = X[:, :20]
SPOILED = X.copy()
SPOILED[3, 5] = -1.0  # no value of a pixel, and no count
EMPTY_HANDED = {"early_stopping": True, "validation_fraction": 0.999}
FAILURES = {
    "not finite": ({}, np.full((5, 20), np.nan)),
    "out of range": ({}, SPOILED[:, :20]),
    "no rows": ({}, OTHER[:0]),
    "one column": ({}, OTHER[:, 0]),
    "sizes": ({"hidden_layer_sizes": (0,)}, OTHER),
    "parameters": ({"batch_size": -1}, OTHER),
    "nothing to train on": (EMPTY_HANDED, OTHER),
    "diverged": ({"learning_rate": 1e20}, OTHER),
    "diverged with rows held out": ({"learning_rate": 1e20, "early_stopping": True}, OTHER),
    "diverged late": ({"learning_rate": 1e20, "max_epochs": 1, "batch_size": 500}, OTHER),
}


def as_frame(rows):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rows, columns=[f"pixel {i}" for i in range(rows.shape[1])])


@pytest.fixture(scope="module")
def frame():
    return as_frame(X)


@pytest.fixture(scope="module")
def fits():
    return {}


@pytest.fixture
def assert_as_before(new, frame, fits):
    """Return a function: a model is what one is that was fitted to the frame and no more."""

    def assert_as_before(model, **options):
        key = str(new(**options).get_params())
        if key not in fits:
            twins = (new(**options).fit(frame) for _ in range(2))
            fits[key] = next(twins), next(twins).partial_fit(frame)
        assert_twins(model, *fits[key], frame)

    return assert_as_before


def assert_twins(model, twin, later, rows):
    """All that a model says is what a twin says, and what it learns is what a later one has."""
    assert set(vars(model)) == set(vars(twin))
    assert model.n_features_in_ == twin.n_features_in_
    assert_array_equal(model.feature_names_in_, twin.feature_names_in_)
    assert (model.n_epochs_, model.losses_) == (twin.n_epochs_, twin.losses_)
    assert model.validation_losses_ == twin.validation_losses_
    assert_same(model, twin)
    assert model.score(rows) == twin.score(rows)
    coordinates = model.transform(rows)
    assert_array_equal(coordinates, twin.transform(rows))
    assert_array_equal(model.inverse_transform(coordinates), twin.inverse_transform(coordinates))
    assert_array_equal(model.sample(3), twin.sample(3))
    assert_same(model.partial_fit(rows), later)
    assert model.losses_ == later.losses_


def interrupting(model, after):
    """The same model, whose batches are interrupted by the user."""
    original, calls = type(model)._batch, []

    def batch(rows, device):
        calls.append(len(rows))
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(model, rows, device)

    model._batch = batch
    return model


@pytest.mark.parametrize(("options", "rows"), FAILURES.values(), ids=FAILURES)
def test_a_failed_fit(new, frame, assert_as_before, options, rows):
    model = new().fit(frame)
    parameters = model.get_params()
    diverged = r"diverged.*smaller learning_rate \(now 1e\+20\)"
    message = diverged if "learning_rate" in options else None
    with pytest.raises((ValueError, TypeError), match=message):
        model.set_params(**options).fit(rows)
    assert_as_before(model.set_params(**parameters))


@pytest.mark.parametrize("rows", [SPOILED, X[:, :20], X[:0], np.full((2, 64), np.nan)])
def test_a_refused_partial_fit(new, frame, assert_as_before, rows):
    model = new().fit(frame)
    with pytest.raises(ValueError, match=r"Negative|from 0 to 1|feature names|minimum of 1|NaN"):
        model.partial_fit(as_frame(rows))
    assert_as_before(model)


@pytest.mark.parametrize("batch_size", [20, 500])
def test_a_partial_fit_that_diverged(new, frame, assert_as_before, batch_size):
    """Also where its very last step is the one too far."""
    model = new(batch_size=batch_size).fit(frame)
    with pytest.raises(ValueError, match="diverged"):
        model.set_params(learning_rate=1e20).partial_fit(frame)
    assert_as_before(model.set_params(learning_rate=1e-3), batch_size=batch_size)


@pytest.mark.parametrize(
    ("method", "options", "after"),
    [  # at the first batch, in the middle and at the last batch
        *[("fit", {"early_stopping": stop}, n) for stop, n in [(False, 0), (False, 5), (True, 3)]],
        *[("partial_fit", {"batch_size": 20}, n) for n in (2, 5)],
    ],
)
def test_an_interrupted_fit(new, frame, assert_as_before, method, options, after):
    model = new(**options).fit(frame)
    with pytest.raises(KeyboardInterrupt):
        getattr(interrupting(model, after), method)(OTHER if method == "fit" else frame)
    del model._batch
    assert_as_before(model, **options)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_first_fit_that_failed_is_none(new, method):
    model = new(learning_rate=1e20)
    parameters = set(vars(model))
    for rows in (SPOILED, X[:0], X):
        with pytest.raises(ValueError, match=r"Negative|from 0 to 1|minimum of 1|diverged"):
            getattr(model, method)(rows)
        assert set(vars(model)) == parameters
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(KeyboardInterrupt):
        getattr(interrupting(model, 1).set_params(learning_rate=1e-3), method)(X)
    del model._batch
    assert set(vars(model)) == parameters
    assert_same(getattr(model, method)(X), getattr(new(), method)(X))
