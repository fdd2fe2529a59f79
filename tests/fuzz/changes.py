"""Features in other units, moved, and in another order: the same fits, told in another way.

Units of powers of two change no bit of a fit. Other units, shifts and orders of features round: the
fit is the same to rounding where no decision is near a tie. The units of features alone matter to
spherical covariances, to directions, and to `reg_covar`, which is added in all units alike: there
all features get the same unit.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

import skvmf

from .runs import Refused
from .subjects import CLOSE, public

# Attributes, by how they follow the features. Others do not.
LIKE_ROWS = {"means_", "background_bounds_"}
LIKE_GAPS = {"differences_"}
LIKE_SQUARES = {"covariances_", "scale_matrices_"}
DERIVED = {"precisions_", "precisions_cholesky_"}  # inverses, which are not those of scaled ones
BOUNDS = {"lower_bound_", "lower_bounds_"}
ANSWERS = ("predict", "predict_proba", "score_samples")
LOGARITHMS = {"score_samples", *BOUNDS}
COMPARED = {"weights_", "background_weight_", "lower_bound_", "score_samples"}
# Squares of numbers between these, and of their rounding, are in the range of floats; rows of such
# numbers, in any unit, are taken as they are, for a copy of unit length would be rounded.
RANGE = {"float64": (1e-60, 1e60), "float32": (1e-5, 1e5)}
LEAST_SQUARE = 1e-120
LEAST_WEIGHT = 1e-120  # for the largest: times a square of up to 1e120 it is no spread beside one
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Change:
    """Rows times `factors`, moved by `shifts`, with their features in an `order`, each (d,)."""

    factors: np.ndarray
    shifts: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, d, factors=1.0, shifts=0.0, order=None):
        order = np.arange(d) if order is None else order
        return cls(np.broadcast_to(factors, d), np.broadcast_to(shifts, d), order)

    @property
    def reorders(self):
        return bool((np.diff(self.order) < 0).any())

    def rows(self, X):
        if sparse.issparse(X):  # of directions, which get one unit
            changed = X.copy()
            changed.data = changed.data * X.dtype.type(self.factors[0])
            return changed[:, self.order] if self.reorders else changed
        factors, shifts = self.factors.astype(X.dtype), self.shifts.astype(X.dtype)
        changed = X * factors + shifts
        return changed[:, self.order] if self.reorders else changed

    def estimator(self, mixture):
        """Return the same mixture, not fitted, for the changed rows."""
        params, changed = mixture.get_params(), {}
        kind, feature = params.get("covariance_type"), params.get("ordering_feature")
        if params.get("means_init") is not None:
            changed["means_init"] = self.rows(np.asarray(params["means_init"], dtype=float))
        for name in {"precisions_init", "scale_matrices_init"} & set(params):
            if params[name] is None and {"covariances", "scale_matrices"} & set(params["fixed"]):
                params[name] = identity(params["n_components"], len(self.factors), kind)
            if params[name] is not None:
                factors = 1 / self.factors if name == "precisions_init" else self.factors
                changed[name] = squares(params[name], factors, self.order, kind)
        if feature is not None:
            changed["ordering_feature"] = int(np.flatnonzero(self.order == feature)[0])
            changed["clearance"] = params["clearance"] * self.factors[feature]
        if "reg_covar" in params:
            changed["reg_covar"] = params["reg_covar"] * self.factors[0] ** 2
        return mixture.set_params(**changed)

    def state(self, mixture, X, weights=None):
        """Return what a mixture of changed rows has learnt, and says of them, as if of rows X."""
        changed = self.rows(X)
        state = public(mixture) | {name: getattr(mixture, name)(changed) for name in ANSWERS}
        factors = self.factors
        if isinstance(mixture, skvmf.VonMisesFisherMixture):  # on the sphere nothing has a unit
            factors = np.ones(len(factors))
        dense = X.toarray() if sparse.issparse(X) else X
        logs = ~np.isnan(dense) @ np.log(factors)
        state["score_samples"] = state["score_samples"] + logs
        if weights is not None:  # the largest first, so that no sum is infinite
            weights = np.asarray(weights, dtype=float) / np.max(weights)
        for name in BOUNDS & set(state):  # batches have none
            state[name] = np.asarray(state[name]) + np.average(logs, weights=weights)
        state = {name: value for name, value in state.items() if value is not None}
        kind = getattr(mixture._fitted.family, "covariance_type", None)
        back, factors = np.argsort(self.order), 1 / factors
        for name in LIKE_SQUARES & set(state):
            state[name] = squares(state[name], factors[self.order], back, kind)
        for name in LIKE_ROWS & set(state):
            state[name] = (state[name][:, back] - self.shifts) * factors
        for name in LIKE_GAPS & set(state):
            state[name] = state[name][:, back] * factors
        if "scale_differences_" in state:
            feature = self.order[mixture.ordering_feature]
            state["scale_differences_"] = state["scale_differences_"] * factors[feature]
        return {name: value for name, value in state.items() if name not in DERIVED}


def identity(K, d, covariance_type):
    """Return what fixed shapes are in the rows' own units if none are given."""
    shapes = {"spherical": np.ones(K), "diag": np.ones((K, d)), "tied": np.eye(d)}
    return shapes.get(covariance_type, np.tile(np.eye(d), (K, 1, 1)))


def squares(values, factors, order, covariance_type):
    """Return matrices of features that are multiplied, and then in another order."""
    values = np.asarray(values, dtype=float)
    if covariance_type == "spherical":
        return values * factors[0] ** 2
    if covariance_type == "diag":
        return (values * factors**2)[:, order]
    return (values * np.outer(factors, factors))[..., order, :][..., order]


class Changeable:
    """A subject of rows, which may be described in another way.

    It has its `params`, and `stages`: a generator of states as a change describes them, of which
    the first are those of the smallest steps.
    """

    @property
    def data(self):
        """The rows, or those that come first."""
        return self.case.data

    @property
    def n_components(self):
        return self.params["n_components"]

    @property
    def on_sphere(self):
        return self.case.estimator == "VonMisesFisherMixture"

    @property
    def is_spherical(self):
        return self.params.get("covariance_type") == "spherical"

    @property
    def is_smooth(self):
        """Whether rounding stays rounding: no hard choices, no component on few points.

        Where rows of one component are of very different sizes its covariance is singular but
        for rounding, and the last digit of a sum decides whether it passes for one. Where half of
        the values are missing some rows have none: they are equal where a start fills them. Sums
        about first means far from all rows lose the digits of variances. If `reg_covar` is
        far above the spread of the rows (30 times) all weights fit about as well.
        """
        data = self.data
        if self.params.get("reg_covar", 0) ** 0.5 > 30 * data.scale:
            return False
        first = self.case.params.get("means_init")
        if first is not None and first.shift > 1e3 * data.scale:
            return False
        soft = self.params.get("temperature", 1) > 1e-2 and data.missing < 0.5
        spread = data.kind in ("normal", "clusters") and abs(data.offset) <= 1e3 * data.scale
        return soft and spread and self.least_rows > 3 * data.d * self.most_components

    @property
    def most_components(self):
        return self.n_components

    @property
    def least_rows(self):
        """How many rows count where fewest do."""
        return min(X.shape[0] for X in self.rows_of_fits())

    def rows_of_fits(self):
        """Return arrays of rows that count."""
        counts = slice(None) if self.weights is None else has_weight(self.weights)
        return [self.X if sparse.issparse(self.X) else self.X[counts]]

    def stages(self, change, grid=None, **params):
        raise NotImplementedError


def has_weight(weights):
    """Return where rows count; others are so light that they add nothing to a spread."""
    weights = np.asarray(weights, dtype=float)
    return weights > LEAST_WEIGHT * weights.max()


def on_grid(X, grid):
    """Return rows of few digits, so that sums with powers of two are exact."""
    return X if grid is None else np.round(X / grid).astype(X.dtype) * X.dtype.type(grid)


# What is promised of these.


def units_of_powers_of_two_change_no_bit(subject):
    """Beside a tolerance that is larger than the rounding of bounds, which have another size."""
    if subject.is_spherical:
        return  # whose log-densities are in the rows' own unit
    of_shapes = subject.params.get("reg_covar", 1.0)
    if 0 < of_shapes < LEAST_SQUARE or not all(map(in_range, subject.rows_of_fits())):
        raise Refused("a feature has no spread, or its square is not in the range of floats")
    rng, d = np.random.default_rng(subject.data.seed), subject.data.d
    options = {"tol": max(subject.params.get("tol", 1e-3), 1e-9)}
    changes_no_bit(subject, Change.of(d, 2.0 ** rng.integers(-20, 21)), **options)
    if not subject.on_sphere:
        options["reg_covar"] = 0.0  # which has one unit
        changes_no_bit(subject, Change.of(d, 2.0 ** rng.integers(-9, 10, d)), **options)


def other_units_round(subject):
    rng, d = np.random.default_rng(subject.data.seed), subject.data.d
    changes_rounding(subject, Change.of(d, 10.0 ** rng.uniform(-6, 6)))
    if not subject.on_sphere and not subject.is_spherical:
        changes_rounding(subject, Change.of(d, 10.0 ** rng.uniform(-3, 3, d)), reg_covar=0.0)


def shifts_round(subject):
    """By powers of two, which are exact for rows of few digits."""
    data = subject.data
    if subject.on_sphere:
        return  # whose centre is zero
    rng, digits = np.random.default_rng(data.seed), {"float64": 16, "float32": 6}[data.dtype]
    unit = 2.0 ** np.round(np.log2(data.scale))
    shifts = unit * rng.choice([-1, 1], data.d) * 2.0 ** rng.integers(0, digits + 1, data.d)
    changes_rounding(subject, Change.of(data.d, shifts=shifts), grid=unit / 2.0**digits)


def orders_of_features_round(subject):
    d = subject.data.d
    order = np.random.default_rng(subject.data.seed).permutation(d)
    changes_rounding(subject, Change.of(d, order=order))


def in_range(X):
    """Whether units keep the bits of rows; a constant feature has none that starts divide by."""
    least, most = RANGE[X.dtype.name]
    sizes = np.abs(X.data if sparse.issparse(X) else X)
    sizes = sizes[sizes > 0]  # without what is missing
    if (sizes < least).any() or (sizes > most).any():
        return False
    return sparse.issparse(X) or bool((np.fmax.reduce(X) > np.fmin.reduce(X)).all())


def told(subject, change, **options):
    """Return states of a subject whose rows are changed, and why it goes no further, if so."""
    states, stages = [], subject.stages(change, **options)
    try:
        while (state := next(stages, None)) is not None:
            states.append(state)
    except Refused as refusal:
        return states, str(refusal)
    return states, None


def both_told(subject, change, **options):
    """Yield each state twice: of the rows, and of the changed rows."""
    nothing = Change.of(subject.data.d)
    (mine, why), (others, other_why) = (
        told(subject, each, **options) for each in (nothing, change)
    )
    assert len(mine) == len(others), f"{len(mine)} stages, {why}; then {len(others)}, {other_why}"
    yield from zip(mine, others, strict=True)


def changes_no_bit(subject, change, **options):
    slack = CLOSE[subject.data.dtype]
    for mine, other in both_told(subject, change, **options):
        for name, value in mine.items():
            if name in LOGARITHMS:
                shifted = np.abs(np.log(change.factors)).sum()
                atol = slack * max(1.0, shifted, np.abs(value).max(initial=0))
                np.testing.assert_allclose(other[name], value, atol=atol, err_msg=name)
            elif np.asarray(value).dtype.kind == "f":  # but for subnormal numbers, of fewer digits
                np.testing.assert_allclose(value, other[name], rtol=0, atol=TINY, err_msg=name)
            else:
                np.testing.assert_array_equal(value, other[name], err_msg=name)


def changes_rounding(subject, change, **options):
    """Components may have other numbers where merges cost the same but for rounding."""
    if not subject.is_smooth or not all(map(in_range, subject.rows_of_fits())):
        raise Refused("rounding decides where rows are few, equal, or assigned to one component")
    rtol = {"float64": 1e-5, "float32": 1e-2}[subject.data.dtype]
    for mine, other in both_told(subject, change, **options):
        n_rows = min(mine["weights_"].min(), other["weights_"].min()) * subject.least_rows
        if 0 < n_rows < 3 * subject.data.d:
            raise Refused("rounding decides how singular the covariance of so few rows is")
        if not (mine["weights_"].all() and other["weights_"].all()):
            raise Refused("rounding decides when a component that shrinks to few rows leaves")
        for state in (mine, other):
            state["weights_"] = np.sort(state["weights_"])
        for name in COMPARED & set(mine):
            atol = rtol * max(1.0, np.abs(mine[name]).max())
            np.testing.assert_allclose(other[name], mine[name], rtol=0, atol=atol, err_msg=name)
