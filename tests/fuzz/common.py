"""What every estimator promises, and what its cases and subjects have in common."""

import pickle
import sys
from inspect import isfunction, signature

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from ..hooks import few_rows_in_blocks, few_sentences_in_blocks
from .subjects import arrays, assert_same


class Case:
    """Its promises are those of all estimators, and the functions of a subject beside it."""

    def code(self):
        return f"from tests.fuzz import *\n\ncheck({self!r})"

    @property
    def promises(self):
        return [*promises_in(__name__), *promises_in(type(self).__module__)]


class Subject:
    """It has its fitted `estimator`, and the methods below."""

    def new(self):
        """Return an estimator that is not fitted."""
        raise NotImplementedError

    def fit(self, estimator):
        """Fit an estimator, and return it."""
        raise NotImplementedError

    def state(self, estimator):
        """Return all that an estimator has learnt, and what it says, by name."""
        raise NotImplementedError

    def inputs(self):
        """Return pairs of what was given, and of the same made anew."""
        return []


def promises_in(name):
    """Return the functions of a `subject`, in the order in which they stand in a module."""
    own = [f for f in vars(sys.modules[name]).values() if getattr(f, "__module__", "") == name]
    return [f for f in own if isfunction(f) and list(signature(f).parameters) == ["subject"]]


def inputs_stay_as_they_were(subject):
    for given, fresh in subject.inputs():
        for other, mine in zip(arrays(given), arrays(fresh), strict=True):
            np.testing.assert_array_equal(other, mine)


def pickles_say_the_same(subject):
    copy = pickle.loads(pickle.dumps(subject.estimator))
    assert_same(subject.state(subject.estimator), subject.state(copy))


def clones_fit_the_same(subject):
    copy = subject.fit(clone(subject.estimator))
    assert_same(subject.state(subject.estimator), subject.state(copy))


def threads_do_not_matter(subject):
    """Where blocks are small, so that there are several."""
    states = []
    for n_threads in (1, 2, 3):
        with few_rows_in_blocks(), few_sentences_in_blocks(), threadpool_limits(n_threads):
            states.append(subject.state(subject.fit(subject.new())))
    assert_same(states[0], states[1])
    assert_same(states[0], states[2])
