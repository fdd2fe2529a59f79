"""Cases of random steps: whatever is done with a mixture, twins of it stay twins.

One twin comes from a pickle before each step. Others take the steps on rows that are described in
another way.
"""

import pickle
from dataclasses import dataclass, field

import numpy as np

import skvmf
from skvmf.inspection import renumber_components

from . import changes
from .changes import Change, Changeable, has_weight, on_grid
from .common import Case, Subject, promises_in
from .data import Data, Known, Weights, resolve
from .runs import Refused, refusing
from .subjects import assert_finite, assert_same, public


@dataclass(frozen=True)
class StepsCase(Case):
    """A mixture, and what is done with it, by name; see `STEPS`."""

    estimator: str
    params: dict = field(default_factory=dict)
    data: Data = Data("normal", 60)
    weights: Weights | None = None
    known: Known | None = None
    steps: tuple[str, ...] = ("fit",)

    def subject(self):
        return StepsSubject(self)

    @property
    def promises(self):
        return [*promises_in(changes.__name__), *promises_in(__name__)]


class StepsSubject(Changeable, Subject):
    """Rows, and the steps that a mixture of them takes."""

    def __init__(self, case):
        self.case, self.X = case, case.data.make()
        self.weights = None if case.weights is None else case.weights.make(case.data.n)
        self.params = resolve({"random_state": 0} | case.params, case.data.whole())
        self.known = None
        if case.known is not None:
            background = self.params.get("background", False)
            self.known = case.known.make(case.data.dense(), self.n_components, background)
        if told_why := changes.told(self, Change.of(case.data.d))[1]:
            raise Refused(told_why)

    def new(self, **params):
        return getattr(skvmf, self.case.estimator)(**(self.params | params))

    @property
    def most_components(self):
        return self.n_components + self.case.steps.count("grow")

    def rows_of_fits(self):
        """Return the rows that count of each part that a step takes; units may be of a few."""
        parts = {PART[name].stop: PART[name] for name in self.case.steps}.values()
        if self.weights is None:
            return [self.X[part] for part in parts]
        return [self.X[part][has_weight(self.weights[part])] for part in parts]

    def stages(self, change, grid=None, twins=False, **params):
        X = on_grid(self.X, grid)
        mixture = change.estimator(self.new(**params))
        for name in self.case.steps:
            before = pickle.dumps(mixture)
            weights = None if self.weights is None else self.weights[PART[name]]
            rest = {"sample_weight": weights}
            if self.known is not None:
                rest["known_labels"] = self.known[PART[name]]
            rows = X[PART[name]]
            mixture = STEPS[name](mixture, change.rows(rows), rest)
            if twins:
                twin = STEPS[name](pickle.loads(before), change.rows(rows), rest)
                assert_same(public(mixture), public(twin))
                assert_finite(public(mixture))
            yield change.state(mixture, rows, weights)


def fit(mixture, X, rest):
    return refusing(mixture.fit, X, **rest)


def batch(mixture, X, rest):
    return refusing(mixture.partial_fit, X, **rest)


def warm_start(mixture, X, rest):
    return refusing(mixture.set_params(warm_start=True).fit, X, **rest)


def grow(mixture, X, rest):
    """Go on with one component more, which nothing is given for."""
    changed = {name: None for name in mixture.get_params() if name.endswith("_init")}
    changed |= {"n_components": mixture.n_components + 1, "warm_start": True, "fixed": ()}
    changed["n_init"] = mixture.n_init
    return refusing(mixture.set_params(**changed).fit, X, **rest)


def renumber(mixture, X, rest):
    """Renumber the components by those of half of the rows, where they keep numbers."""
    if not hasattr(mixture, "weights_"):
        fit(mixture, X, rest)
    if isinstance(mixture, skvmf.RelativeGMM):
        return mixture
    reference = pickle.loads(pickle.dumps(mixture)).set_params(warm_start=True)
    fit(reference, X[::2], {name: v if v is None else v[::2] for name, v in rest.items()})
    renumbered = refusing(renumber_components, reference, mixture)
    return refusing(renumbered.partial_fit, X, **rest)


STEPS = {
    "fit": fit,
    "batch": batch,
    "small batch": batch,
    "warm start": warm_start,
    "grow": grow,
    "renumber": renumber,
}
PART = dict.fromkeys(STEPS, slice(None)) | {"small batch": slice(7)}


def pickled_twins_stay_twins(subject):
    changes.told(subject, Change.of(subject.data.d), twins=True)


def mixtures_have_weights(subject):
    for state in changes.told(subject, Change.of(subject.data.d))[0]:
        total = state["weights_"].sum() + state["background_weight_"]
        np.testing.assert_allclose(total, 1, rtol=1e-9)
