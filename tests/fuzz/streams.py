"""Cases of streams, and what a mixture promises after every batch."""

import pickle
from dataclasses import dataclass, field, replace

import dask
import numpy as np
from sklearn.base import clone

import skvmf

from ..hooks import few_rows_in_blocks
from . import changes
from .changes import Changeable, has_weight, on_grid
from .common import Case, Subject, promises_in
from .data import Data, Known, Weights, resolve
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
    known: Known | None = None

    def subject(self):
        return StreamSubject(self)

    @property
    def promises(self):
        return [*promises_in(changes.__name__), *super().promises]


class StreamSubject(Changeable, Subject):
    """A mixture after all batches; those that it refuses are left out."""

    def __init__(self, case):
        self.case, first = case, case.batches[0]
        self.params = resolve({"random_state": 0} | case.params, first.whole())
        self.batches = []
        for data in case.batches:
            data = replace(data, d=first.d)
            rest = {"sample_weight": None if case.weights is None else case.weights.make(data.n)}
            if case.known is not None:
                background = self.params.get("background", False)
                known = case.known.make(data.dense(), self.n_components, background)
                rest["known_labels"] = known
            self.batches.append((data.make(), rest))
        self.mixture = self.estimator = self.new()
        refusing(self.mixture.partial_fit, self.batches[0][0], **self.batches[0][1])
        self.taken = self.batches[:1]
        for X, rest in self.batches[1:]:
            before = self.state(self.mixture)
            try:
                refusing(self.mixture.partial_fit, X, **rest)
            except Refused:
                assert_same(before, self.state(self.mixture))
            else:
                assert_finite(public(self.mixture))
                self.taken.append((X, rest))

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
        for X, rest in batches:
            refusing(mixture.partial_fit, X, **rest)
        return mixture

    @property
    def data(self):
        narrow = any(data.dtype == "float32" for data in self.case.batches)
        return replace(self.case.batches[0], dtype="float32" if narrow else "float64")

    @property
    def is_smooth(self):
        """Whether no batch holds what others do not."""
        likes = {(data.kind, data.scale, data.offset) for data in self.case.batches}
        return super().is_smooth and len(likes) == 1

    def rows_of_fits(self):
        rows = []
        for X, rest in self.taken:
            weights = rest["sample_weight"]
            rows.append(
                X if weights is None or X.ndim != 2 else X[np.flatnonzero(has_weight(weights))]
            )
        return rows

    def stages(self, change, grid=None, **params):
        mixture = change.estimator(self.new(**params))
        for X, rest in self.taken:
            rows = on_grid(X, grid)
            refusing(mixture.partial_fit, change.rows(rows), **rest)
            yield change.state(mixture, rows, rest["sample_weight"])


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
    lazy = [(in_chunks(X, len(subject.batches)), rest) for X, rest in subject.taken]
    with few_rows_in_blocks(), dask.config.set(scheduler="synchronous"):
        states = [subject.state(subject.streamed(batches)) for batches in (subject.taken, lazy)]
    mine, other = ({k: v for k, v in state.items() if k not in LAZY} for state in states)
    assert_same(mine, other)


def a_fit_begins_afresh(subject):  # the last, for it changes the mixture
    if subject.params.get("warm_start"):
        return
    X, rest = subject.batches[0]
    expected = refusing(subject.new().fit, X, **rest)
    fitted = refusing(clone(subject.mixture).fit, X, **rest)
    assert_same(public(expected), public(fitted))
    assert_same(public(expected), public(subject.mixture.fit(X, **rest)))
