"""Cases of streams, and what a mixture promises after every batch."""

import pickle
from dataclasses import dataclass, field, replace

import dask
import numpy as np
from sklearn.base import clone

import skvmf

from ..hooks import few_rows_in_blocks
from .common import Case, Subject
from .data import Data, Weights, resolve
from .runs import Refused, refusing
from .subjects import assert_finite, assert_same, public
from .uses import LAZY, in_chunks


@dataclass(frozen=True)
class StreamCase(Case):
    """Batches of rows, all of the width of the first."""

    estimator: str
    params: dict = field(default_factory=dict)
    batches: tuple[Data, ...] = (Data(),)
    weights: Weights | None = None

    def subject(self):
        return StreamSubject(self)


class StreamSubject(Subject):
    """A mixture after all batches; those that it refuses are left out."""

    def __init__(self, case):
        self.case, first = case, case.batches[0]
        self.batches = []
        for data in case.batches:
            weights = None if case.weights is None else case.weights.make(data.n)
            self.batches.append((replace(data, d=first.d).make(), weights))
        self.params = resolve({"random_state": 0} | case.params, first.whole())
        self.mixture = self.estimator = self.new()
        refusing(self.mixture.partial_fit, self.batches[0][0], sample_weight=self.batches[0][1])
        self.taken = self.batches[:1]
        for X, weights in self.batches[1:]:
            before = self.state(self.mixture)
            try:
                refusing(self.mixture.partial_fit, X, sample_weight=weights)
            except Refused:
                assert_same(before, self.state(self.mixture))
            else:
                assert_finite(public(self.mixture))
                self.taken.append((X, weights))

    def new(self, **params):
        return getattr(skvmf, self.case.estimator)(**(self.params | params))

    @staticmethod
    def state(mixture):
        """All that a batch changes: what is seen, and what is remembered."""
        statistics = mixture._running_statistics
        moments = () if statistics is None else statistics.moments
        return public(mixture) | {f"moment {i}": moment for i, moment in enumerate(moments)}

    def fit(self, mixture):
        """Stream all batches that are taken."""
        return self.streamed(self.taken, mixture)

    def inputs(self):
        for data, (X, _) in zip(self.case.batches, self.batches, strict=True):
            yield X, replace(data, d=self.case.batches[0].d).make()

    def streamed(self, batches, mixture=None):
        mixture = self.new() if mixture is None else mixture
        for X, weights in batches:
            refusing(mixture.partial_fit, X, sample_weight=weights)
        return mixture


def weights_are_a_distribution(subject):
    mixture = subject.mixture
    total = mixture.weights_.sum() + mixture.background_weight_
    np.testing.assert_allclose(total, 1, rtol=1e-9)
    assert mixture.n_steps_ == len(subject.taken)


def predictions_are_finite(subject):
    for X, _ in subject.batches:
        assert_finite(
            {
                "predict_proba": subject.mixture.predict_proba(X),
                "score_samples": subject.mixture.score_samples(X),
            }
        )


def the_weight_of_all_rows_is_seen(subject):
    on_sphere = subject.case.estimator == "VonMisesFisherMixture"  # where zero rows do not count
    if subject.case.weights is None and not on_sphere:
        n_rows = sum(X.shape[0] for X, _ in subject.taken)
        np.testing.assert_allclose(subject.mixture.weight_seen_, n_rows)


def pickles_go_on(subject):
    half = len(subject.taken) // 2
    begun = pickle.loads(pickle.dumps(subject.streamed(subject.taken[:half])))
    ended = subject.streamed(subject.taken[half:], begun)
    assert_same(subject.state(subject.mixture), subject.state(ended))


def dask_batches_are_batches_in_memory(subject):
    if any(data.layout == "csc" for data in subject.case.batches):
        return
    lazy = [(in_chunks(X, len(subject.batches)), weights) for X, weights in subject.taken]
    with few_rows_in_blocks(), dask.config.set(scheduler="synchronous"):
        states = [subject.state(subject.streamed(batches)) for batches in (subject.taken, lazy)]
    mine, other = ({k: v for k, v in state.items() if k not in LAZY} for state in states)
    assert_same(mine, other)


def a_fit_begins_afresh(subject):  # the last, for it changes the mixture
    if subject.params.get("warm_start"):
        return
    X, weights = subject.batches[0]
    expected = refusing(subject.new().fit, X, sample_weight=weights)
    fitted = refusing(clone(subject.mixture).fit, X, sample_weight=weights)
    assert_same(public(expected), public(fitted))
    assert_same(public(expected), public(subject.mixture.fit(X, sample_weight=weights)))
