"""What the promises of all estimators are checked with."""

import numpy as np
from scipy import sparse

from .runs import Refused, refusing

CLOSE = {"float64": 1e-9, "float32": 1e-4}  # by dtype of the rows


def public(estimator):
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(estimator, name) for name in names}


def arrays(X):
    """Return what rows or counts are stored in."""
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]


def has_moved(mixture):
    """Whether a component was moved to the least likely row, of which there may be many."""
    return mixture._fitted.params.moved_or_pruned.any()


def assert_finite(values):
    for name, value in values.items():
        if np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), f"{name} is not finite: {value}"


def assert_same(first, second):
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def assert_refused_or_fitted(subject, mistakes):
    """See that what is refused changes nothing; where it is no mistake, it is fitted anew.

    Mistakes are arguments of the estimator's `fit`, and parameters that are others meanwhile.
    """
    estimator = subject.estimator
    before, params = subject.state(estimator), estimator.get_params(deep=False)
    for arguments, changed in mistakes:
        estimator.set_params(**changed)
        try:
            refusing(estimator.fit, *arguments)
        except Refused:
            estimator.set_params(**params)
            assert_same(before, subject.state(estimator))
        else:
            estimator.set_params(**params)
            before = subject.state(subject.fit(estimator))
