"""What the promises of all estimators are checked with."""

import sys
from inspect import isfunction, signature

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from ..hooks import few_rows_in_blocks, few_sentences_in_blocks
from .runs import Refused, refusing

CLOSE = {"float64": 1e-9, "float32": 1e-4}  # by dtype of the rows


class Case:
    """What cases have in common: their promises are the functions of a subject beside them."""

    def code(self):
        return f"from tests.fuzz import *\n\ncheck({self!r})"

    @property
    def promises(self):
        return promises_in(sys.modules[type(self).__module__])


def promises_in(module):
    """Return the functions of a `subject`, in the order in which they stand in a module."""
    own = [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
    return [f for f in own if isfunction(f) and list(signature(f).parameters) == ["subject"]]


def public(estimator):
    """Return the fitted attributes."""
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(estimator, name) for name in names}


def arrays(X):
    """Return what rows or counts are stored in."""
    return [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]


def has_moved(mixture):
    """Whether a component was moved to the least likely row, of which there may be many."""
    return mixture._fitted.params.reseeded.any()


def assert_finite(values):
    for name, value in values.items():
        if np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), f"{name} is not finite: {value}"


def assert_same(first, second):
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def assert_same_on_threads(answer):
    """See that an answer has the same bits for any number of threads, where blocks are small."""
    found = []
    for n_threads in (1, 2, 3):
        small = few_rows_in_blocks(), few_sentences_in_blocks()
        with small[0], small[1], threadpool_limits(n_threads, user_api="blas"):
            found.append(answer())
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def assert_refused_or_fitted(estimator, mistakes, fit, state):
    """See that what is refused changes nothing; where it is no mistake `fit` fits anew.

    Mistakes are arguments of the estimator's `fit`, and parameters that are others meanwhile.
    """
    before, params = state(), estimator.get_params(deep=False)
    for arguments, changed in mistakes:
        estimator.set_params(**changed)
        try:
            refusing(estimator.fit, *arguments)
        except Refused:
            estimator.set_params(**params)
            assert_same(before, state())
        else:
            estimator.set_params(**params)
            refusing(fit)
            before = state()
