"""Cases of options that meet: what is given by component, fits that go on, and copies of them.

Each option alone has its tests. Here priors by component, tails, fixed values and orders meet
pruned components, warm starts, checkpoints, paths and copies.
"""

import copy
import pickle
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import clone

import skvmf
from skvmf.model_selection import ComponentPath

from . import changes
from .changes import Changeable, on_grid
from .common import Case, Subject, promises_in
from .data import Data, Weights
from .runs import Refused, refusing
from .subjects import assert_finite, assert_same, has_moved, public

FIRST = {  # what fixed values are given as
    "means": "means_init",
    "concentrations": "concentrations_init",
    "covariances": "precisions_init",
    "scale_matrices": "scale_matrices_init",
    "weights": "weights_init",
}
ATTRIBUTES = {
    "weights": "weights_",
    "concentrations": "concentrations_",
    "covariances": "covariances_",
    "scale_matrices": "scale_matrices_",
}
BY_COMPONENT = ["weights_", "means_", "concentrations_", "degrees_of_freedom_"]


@dataclass(frozen=True)
class CompositionCase(Case):
    """A mixture that begins at given parameters, of which some are fixed."""

    estimator: str
    params: dict = field(default_factory=dict)
    fixed: tuple = ()
    by_component: tuple = ()  # parameters that have a value for each component
    data: Data = Data("clusters", 60, 3)
    weights: Weights | None = None
    known: float = 0.0  # share of the rows whose component is given
    seed: int = 0

    def subject(self):
        return CompositionSubject(self)

    @property
    def promises(self):
        return [*promises_in(changes.__name__), *super().promises]


class CompositionSubject(Changeable, Subject):
    """The fitted mixture, and its parameters by component."""

    K = 4

    def __init__(self, case):
        self.case, self.X = case, case.data.make()
        self.weights = None if case.weights is None else case.weights.make(case.data.n)
        rng = np.random.default_rng(case.seed)
        rows = self.X[rng.choice(len(self.X), self.K, replace=False)].astype(float)
        given = {"means_init": rows}
        for name in case.fixed:
            given[FIRST[name]] = self.first(name, rng, rows)
        for name in case.by_component:
            given[name] = self.numbers(name, rng)
        self.given = given
        self.params = {"n_components": self.K, "max_iter": 20, "random_state": 0} | case.params
        self.params |= {"fixed": case.fixed} if case.fixed else {}
        gaps = np.linalg.norm(self.X[:, None].astype(float) - rows, axis=2)
        known = np.where(rng.random(len(self.X)) < case.known, gaps.argmin(axis=1), -1)
        self.rest = {"sample_weight": self.weights}
        self.rest |= {"known_labels": known} if case.known else {}
        self.mixture = self.estimator = self.fit(self.new())

    def first(self, name, rng, rows):
        if name == "means":
            return rows
        if name == "weights":
            return rng.dirichlet(np.full(self.K, 5.0))
        if name == "concentrations":
            return rng.uniform(5, 50, self.K)
        kind, d = self.case.params.get("covariance_type", "full"), self.X.shape[1]
        sizes = rng.uniform(0.5, 2, self.K)
        shapes = {
            "spherical": sizes,
            "diag": np.outer(sizes, np.ones(d)),
            "tied": np.eye(d),
            "full": sizes[:, None, None] * np.eye(d),
        }
        return shapes[kind]

    def numbers(self, name, rng):
        if name == "degrees_of_freedom":
            return rng.uniform(1, 30, self.K)
        return rng.choice([0.5, 1.0, 2.0, -1.0], self.K)

    def new(self, given=None, **params):
        given = self.given if given is None else given
        return getattr(skvmf, self.case.estimator)(**(self.params | given | params))

    def fit(self, mixture):
        return refusing(mixture.fit, self.X, **self.rest)

    def state(self, mixture):
        return public(mixture)

    def stages(self, change, grid=None, **params):
        """A fit, and one that goes on with two components more."""
        X = on_grid(self.X, grid)
        mixture = change.estimator(self.new(**params))
        yield change.state(refusing(mixture.fit, change.rows(X), **self.rest), X, self.weights)
        if self.case.by_component:
            return
        mixture.set_params(warm_start=True, fixed=(), n_components=self.K + 2)
        mixture.set_params(**{name: None for name in self.given if name.endswith("_init")})
        yield change.state(refusing(mixture.fit, change.rows(X), **self.rest), X, self.weights)


def close(first, second, name):
    scale = np.abs(first).max() or 1.0
    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-6 * scale, err_msg=name)


def numbers_move_with_their_components(subject):
    """Components that are given in another order are the same ones, in that order."""
    if subject.case.data.kind not in ("clusters", "normal") or subject.case.data.n < 60:
        raise Refused("ties go to the first, and rounding decides where rows are few")
    order = np.random.default_rng(subject.case.seed).permutation(subject.K)
    tied = subject.params.get("covariance_type") == "tied"
    if subject.params.get("order") == "scales" and (tied or "precisions_init" not in subject.given):
        raise Refused("components of equal widths are in the order of the given means")
    given = {
        name: value if tied and name in ("precisions_init", "scale_matrices_init") else value[order]
        for name, value in subject.given.items()
    }
    first = subject.fit(subject.new(max_iter=2, tol=0))
    rest = dict(subject.rest)
    if "known_labels" in rest and not hasattr(first, "order"):  # else of the sorted components
        rest["known_labels"] = np.append(np.argsort(order), -1)[rest["known_labels"]]
    other = refusing(subject.new(given, max_iter=2, tol=0).fit, subject.X, **rest)
    if has_moved(first) or has_moved(other):
        raise Refused("a component was moved to the least likely row, of which there may be many")
    shapes = getattr(first, "scale_matrices_", getattr(first, "covariances_", np.eye(1)))
    matrices = subject.params.get("covariance_type", "full") in ("full", "tied")
    if matrices and np.linalg.cond(shapes).max() > 1e10:
        raise Refused("rows of a component lie in a subspace but for rounding")
    if getattr(first, "order", None) is not None:  # components are sorted
        order = np.arange(subject.K)
    for name in BY_COMPONENT:
        if hasattr(first, name):
            close(getattr(first, name)[order], getattr(other, name), name)
    close(np.array(first.lower_bound_), np.array(other.lower_bound_), "lower_bound_")


def fixed_values_stay(subject):
    for name in subject.case.fixed:
        fitted = getattr(subject.mixture, ATTRIBUTES.get(name, "means_"))
        given = subject.given[FIRST[name]]
        if name == "means" and subject.case.estimator == "VonMisesFisherMixture":
            fitted = subject.mixture.mean_directions_
            given = given / np.linalg.norm(given, axis=1)[:, None]
        if name == "covariances":
            kind = subject.params.get("covariance_type", "full")
            given = np.linalg.inv(given) if kind in ("full", "tied") else 1 / given
        if np.ndim(given) == 0 or np.shape(given)[0] != subject.K:
            np.testing.assert_allclose(fitted, given, rtol=1e-9)
            continue
        for k in np.flatnonzero(subject.mixture.weights_):
            gaps = np.abs(given - fitted[k]).reshape(subject.K, -1).max(axis=1)
            assert gaps.min() <= 1e-9 * np.abs(given).max(), f"{name} of component {k} changed"


def a_warm_start_goes_on(subject):
    """The bound of a fit that continues is not below that of the fit before."""
    mixture = subject.fit(subject.new(warm_start=True))
    before, alive = mixture.lower_bound_, np.count_nonzero(mixture.weights_)
    mixture.fit(subject.X, **subject.rest)
    if np.count_nonzero(mixture.weights_) == alive:
        assert mixture.lower_bounds_[0] >= before - 1e-7 * max(1, abs(before))
    again = copy.copy(mixture).fit(subject.X, **subject.rest)
    assert np.count_nonzero(again.weights_) <= subject.K


def more_components_go_on(subject):
    """Components keep their numbers where a warm start adds some."""
    K = subject.K
    mixture = subject.fit(subject.new(warm_start=True, fixed=(), max_iter=5))
    no_longer = {name: None for name in subject.given if name.endswith("_init")}  # of K components
    mixture.set_params(n_components=K + 2, max_iter=0, **no_longer)
    means = mixture.means_
    subject.fit(mixture)
    assert_finite(public(mixture))
    kept = mixture.weights_[:K] > 0
    if getattr(mixture, "order", None) is None and not has_moved(mixture):  # else they are sorted
        close(means[kept], mixture.means_[:K][kept], "means_")


def a_checkpoint_changes_nothing(subject):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "checkpoint")
        first, again = (subject.fit(subject.new(checkpoint=path)) for _ in range(2))
        assert_same(public(subject.mixture), public(first))
        assert_same(public(subject.mixture), public(again))


def warm_starts_differ_beside_a_checkpoint(subject):
    """Fits that begin with different parameters do not take each other's checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "checkpoint")
        results = {}
        for checkpoint in (None, path):
            for seed in (0, 1):
                mixture = copy.copy(subject.mixture).set_params(max_iter=1, means_init=None)
                moved = subject.X + (0.1 if seed else 0.0)
                mixture.set_params(warm_start=True, fixed=())
                refusing(mixture.fit, moved, sample_weight=subject.weights)
                mixture.set_params(checkpoint=checkpoint, max_iter=3)
                try:
                    mixture.fit(subject.X, sample_weight=subject.weights)
                except ValueError as error:
                    if "is of another fit" not in str(error):
                        raise
                    continue  # it says so
                results.setdefault(seed, []).append(public(mixture))
        for fits in results.values():
            for one in fits[1:]:
                assert_same(fits[0], one)


OTHERS = {
    "covariance_type": ["diag", "full"],
    "degrees_of_freedom": ["tied", "estimated"],
    "concentration_type": ["tied", "free"],
    "ordering_feature": [1, 0],
    "order": ["scales", "means"],
    "n_components": [7, 7],
    "background": [True, False],
}


def copies_know_the_fit_and_not_the_parameters(subject):
    """Whatever describes a fit stays as it is after `set_params`, in copies and pickles, too."""
    mixture = copy.copy(subject.mixture)
    before = public(mixture)
    params = mixture.get_params()
    changed = {
        name: values[0] if not np.array_equal(params[name], values[0]) else values[1]
        for name, values in OTHERS.items()
        if name in params
    }
    mixture.set_params(**changed)
    for other in (mixture, copy.copy(mixture), pickle.loads(pickle.dumps(mixture))):
        assert_same(before, public(other))


def a_path_keeps_what_is_given(subject):
    """The best mixture of a path is a fit of the estimator, with its fixed values and tails."""
    params = {k: v for k, v in subject.params.items() if k not in ("n_components", "fixed")}
    if subject.case.by_component or subject.case.fixed:
        raise Refused("a path starts by itself")
    mixture = getattr(skvmf, subject.case.estimator)(**params)
    path = ComponentPath(clone(mixture), max_components=4, min_components=4)
    refusing(path.fit, subject.X, sample_weight=subject.weights)
    best = path.best_estimator_
    for name, value in clone(mixture).get_params().items():
        if name not in ("n_components", "warm_start", "checkpoint", "init_params"):
            np.testing.assert_array_equal(best.get_params()[name], value, err_msg=name)
    if np.count_nonzero(best.weights_) == 4:
        again = copy.copy(best).set_params(warm_start=True)
        again.fit(subject.X, sample_weight=subject.weights)
        bound = best.lower_bound_
        assert again.lower_bounds_[0] >= bound - 1e-7 * max(1, abs(bound))
