"""Cases of paths over numbers of components, and what a path promises."""

from dataclasses import dataclass, field

import dask
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster import hierarchy

import skvmf
from skvmf.model_selection import ComponentPath
from skvmf.plotting import ComponentPathDisplay

from ..hooks import few_rows_in_blocks
from . import changes
from .changes import Changeable, on_grid
from .common import Case, Subject, promises_in
from .data import Data, Weights, resolve
from .runs import Refused, refusing
from .subjects import assert_finite, assert_same, public
from .uses import LAZY, in_chunks


@dataclass(frozen=True)
class PathCase(Case):
    """A path of an estimator: its parameters, and those of the estimator."""

    estimator: str
    path: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)
    data: Data = Data()
    weights: Weights | None = None

    def subject(self):
        return PathSubject(self)

    @property
    def promises(self):
        return [*promises_in(changes.__name__), *super().promises]


class PathSubject(Changeable, Subject):
    """A fitted path with its data."""

    def __init__(self, case):
        self.case, self.X = case, case.data.make()
        self.weights = None if case.weights is None else case.weights.make(case.data.n)
        self.options = {"max_components": 4, "random_state": 0} | case.path
        params = {"n_components": self.options["max_components"], "random_state": 0} | case.params
        self.params = resolve(params, case.data.whole())
        self.path = self.estimator = self.fit(self.new())

    def new(self):
        return ComponentPath(getattr(skvmf, self.case.estimator)(**self.params), **self.options)

    def fit(self, path, X=None):
        return refusing(path.fit, self.X if X is None else X, sample_weight=self.weights)

    def state(self, path):
        return found(path)

    def stages(self, change, grid=None, **params):
        path, X = self.new(), on_grid(self.X, grid)
        path.set_params(estimator=change.estimator(path.estimator.set_params(**params)))
        refusing(path.fit, change.rows(X), sample_weight=self.weights)
        if path.refit:
            tree = {"tree": path.linkage_[:, :2], "leaf_labels_": path.leaf_labels_}
            yield change.state(path.best_estimator_, X, self.weights) | tree

    def inputs(self):
        yield self.X, self.case.data.make()


def found(path):
    """Return the fitted attributes of a path and of its best estimator, by name."""
    attributes = public(path)
    best = attributes.pop("best_estimator_", None)
    results = attributes.pop("results_")
    attributes |= {f"results {name}": values for name, values in results.items()}
    if best is not None:
        attributes |= {f"best {name}": value for name, value in public(best).items()}
    return attributes


def finite_in_finite_out(subject):
    assert_finite(found(subject.path))


def results_are_of_fewer_and_fewer_components(subject):
    path, results = subject.path, subject.path.results_
    K = results["n_components"]
    assert (np.diff(K) > 0).all()
    assert K[-1] <= subject.options["max_components"]
    assert all(values.shape == K.shape for values in results.values())
    assert path.best_index_ == np.argmin(results["criterion"])
    assert path.best_n_components_ == K[path.best_index_] == len(path.best_nodes_)
    assert (np.diff(results["n_parameters"]) >= 0).all()


def the_tree_is_a_tree(subject):
    path, n_leaves = subject.path, subject.options["max_components"]
    assert path.linkage_.shape == (n_leaves - 1, 4)
    if n_leaves > 1:
        assert hierarchy.is_valid_linkage(path.linkage_)
    finer = path.cut(n_leaves)
    for n in range(n_leaves - 1, 0, -1):
        coarser = path.cut(n)
        pairs = np.unique(np.column_stack([finer, coarser]), axis=0)
        assert len(pairs) == len(np.unique(finer)), "a cluster is divided by a coarser cut"
        assert coarser.max() < n
        finer = coarser


def the_best_mixture_predicts(subject):
    path = subject.path
    if subject.new().refit:
        assert path.best_estimator_.n_components == path.best_n_components_
        np.testing.assert_array_equal(path.predict(subject.X), path.labels_)
        assert np.isfinite(path.score_samples(subject.X)).all()


def dask_rows_are_rows_in_memory(subject):
    """Labels may differ where rounding of a matrix product decides."""
    if subject.case.data.layout == "csc":
        return
    lazy = in_chunks(subject.X, subject.case.data.seed)
    with few_rows_in_blocks(), dask.config.set(scheduler="synchronous"):
        answers = [found(subject.fit(subject.new(), X)) for X in (subject.X, lazy)]
    drop = {*LAZY, *(f"best {name}" for name in LAZY), "leaf_labels_"}
    mine, other = ({k: v for k, v in answer.items() if k not in drop} for answer in answers)
    assert_same(mine, other)


def pictures_are_drawn(subject):
    try:
        for kind in ("criterion", "dendrogram"):
            if kind == "criterion" or len(subject.path.linkage_):
                display = ComponentPathDisplay.from_estimator(subject.path, kind=kind)
                display.figure_.canvas.draw()
    finally:
        plt.close("all")


def a_refused_fit_changes_nothing(subject):
    path, before = subject.path, found(subject.path)
    broken = subject.case.data.dense()
    broken[-1, -1] = np.inf
    try:
        refusing(path.fit, broken, sample_weight=subject.weights)
    except Refused:
        assert_same(before, found(path))
    else:
        raise AssertionError("an infinite value was fitted")
