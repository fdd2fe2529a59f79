"""Assertions that every mixture must pass."""

import numpy as np


def assert_bound_never_falls(mixture):
    """Each step of a fit raised the lower bound, to rounding."""
    bounds = np.array(mixture.lower_bounds_)
    assert np.isfinite(bounds).all()
    falls = -np.diff(bounds)
    assert (falls <= 1e-12 * np.maximum(1, np.abs(bounds[1:]))).all(), falls.max()


def assert_finite(mixture, X):
    """A fit and all it says of X are finite."""
    for name, value in vars(mixture).items():
        if name.endswith("_") and not name.startswith("_") and isinstance(value, np.ndarray):
            assert value.dtype.kind != "f" or np.isfinite(value).all(), name
    assert np.isfinite(mixture.lower_bound_)
    assert np.isfinite(mixture.score_samples(X)).all()
    assert np.isfinite(mixture.score(X))
    resp = mixture.predict_proba(X)
    np.testing.assert_allclose(resp.sum(axis=1), 1, rtol=1e-5)
    chosen = np.take_along_axis(resp, mixture.predict(X)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, resp.max(axis=1), rtol=1e-6)


def assert_same_bits(first, second):
    """All fitted attributes, and what a stream would go on from, are the same."""
    first, second = vars(first), vars(second)
    assert set(first) == set(second)
    for name in first:
        if name.endswith("_") and not name.startswith("_"):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    moments = [each["_running_statistics"].moments for each in (first, second)]
    for one, other in zip(*moments, strict=True):
        np.testing.assert_array_equal(one, other)
