"""Other fits of the same kind, to rows drawn with replacement, and what they say of the others."""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._engine.em import predictions
from .._engine.em.calibration import Judged
from .._engine.em.matching import in_order_of, matched_by_rows
from .._engine.em.posterior import FenchelYoungPosterior
from .._engine.rows.copies import heaviest_row
from .._engine.rows.parallel import limited_blas
from .._sklearn import num_samples, safe_indexing
from .._typing import Array, MatrixLike, RandomState, warn
from ..distributions._arguments import check_count, checked_generator
from ._checks import checked_known_labels
from ._rows import in_memory, is_lazy, weights_of

# Rows that are compared after each fit: enough for one number, with some megabytes of
# memberships.
_MAX_ENTRIES = 2**20
_MIN_ROWS = 500
_MAX_ROWS = 2_000
# As in the tables of Guo et al., "On calibration of modern neural networks", ICML 2017.
N_BINS = 15
# Of the labels of the same rows so many agree at least: truncated steps may round a row
# differently than predictions do.
_AGREEMENT = 0.99


def is_softmax(posterior: FenchelYoungPosterior) -> bool:
    """Return whether memberships have no exact zeros."""
    return posterior.temperature > 0 and not posterior.tsallis


def probabilities_of_labels(mixture: Any, X: MatrixLike) -> Array | None:
    """Return the memberships of rows in `labels_`, 0 for -1; None if they are not the fit's rows.

    Labels alone tell whether they are.
    """
    labels_of_fit = mixture.labels_
    rows = mixture._new_rows(X)
    labels, probabilities = predictions.labels_and_probabilities(mixture._calibrated(), rows)
    if labels.shape != labels_of_fit.shape or is_lazy(labels_of_fit):
        return None
    # Rows that limits on sizes, or the rounding of truncated steps, put into other components.
    others = np.flatnonzero(labels != labels_of_fit)
    if len(others) > (1 - _AGREEMENT) * len(labels):
        return None
    if len(others) > 0:
        proba = mixture.predict_proba(safe_indexing(X, others))
        own = proba[np.arange(len(others)), labels_of_fit[others]]
        probabilities[others] = np.where(labels_of_fit[others] < 0, 0, own)
    return probabilities


def refuse_uncalibrated(mixture: Any, X: MatrixLike) -> None:
    """Refuse rows and mixtures that have no temperature of memberships."""
    mixture._check_ready()
    if not is_softmax(mixture._posterior()):
        raise ValueError(
            f"entmax_alpha={mixture.entmax_alpha} and temperature={mixture.temperature} give "
            "memberships that are exactly 0, and no temperature turns these into others. Fit with "
            "entmax_alpha=1 and temperature=1 for memberships to calibrate."
        )
    if is_lazy(X):
        raise TypeError(
            "X is a Dask array, and these fits need rows in memory. Give a random sample of "
            "the rows, such as X[indices].compute() with 300 indices for each component or more: "
            "one number needs no more."
        )
    given = np.shape(mixture.init_params)
    if given and given[0] != num_samples(X):
        raise ValueError(
            f"init_params has the components of {given[0]} rows, and X has {num_samples(X)}, so "
            "other fits have no start: call mixture.set_params(init_params='merging', "
            "max_iter=100) before calibrate, as for the mixture_ of a ClusterTracker."
        )


def log_odds(mixture: Any, X: MatrixLike) -> Array:
    """Return log-densities and log-weights (n, K), then the background's, at the fit's temperature.

    Their softmax is the memberships before calibration. Rows without a direction or a density have
    -inf everywhere.
    """
    with limited_blas():
        joint = predictions.log_joint(mixture._fitted, mixture._new_rows(X))
    joint /= mixture._posterior().temperature
    return joint


def judged_of(
    mixture: Any, other: Any, X: MatrixLike, rows: Array, weights: Array, indices: Array
) -> list[Judged]:
    """Return what a mixture says of some rows, and another, whose components `indices` match.

    The list is empty if no rows have a density, or memberships have exact zeros.
    """
    if len(rows) == 0 or not is_softmax(mixture._posterior()):
        return []
    rows = some_of(rows, mixture._fitted.n_components)
    X = safe_indexing(X, rows)
    own = log_odds(mixture, X)
    others = log_odds(other, X)
    known = np.isfinite(own.max(axis=1)) & np.isfinite(others.max(axis=1))
    if not known.any():
        return []
    memberships = in_order_of(indices, softmax(others[known], axis=1))
    return [Judged(_bounded(own[known]), memberships, weights[rows[known]])]


def judged_rows(
    mixture: Any,
    X: MatrixLike,
    n_resamples: int,
    sample_weight: ArrayLike | None,
    known_labels: ArrayLike | None,
    random_state: RandomState,
) -> list[Judged]:
    """Return what fits to drawn rows, or known labels, say of rows that were not drawn."""
    refuse_uncalibrated(mixture, X)
    check_count(n_resamples, "n_resamples")
    weights = weights_of(sample_weight, X)
    known = None
    if known_labels is not None:
        known = classes_of_rows(mixture, X, known_labels)
        if known is None:
            raise ValueError(
                "known_labels has no known row, so there is nothing to judge by: leave it out, and "
                "other fits judge."
            )
    elif mixture._skvmf_has_known_labels:
        warn(
            "The mixture was fitted with known labels, and fits without them judge its "
            "memberships. Give known_labels.",
            UserWarning,
        )
    rng = checked_generator(random_state)
    K = mixture._fitted.n_components
    counted = np.flatnonzero(weights > 0)
    if len(counted) < 2 * K:
        raise ValueError(
            f"X has {len(counted)} rows with a weight, and some of them are left out of each fit: "
            f"give at least {2 * K} for {K} components."
        )
    labels = mixture.predict(X)
    judged: list[Judged] = []
    for _ in range(int(n_resamples)):
        n_draws = _drawn(rng, len(counted), K)
        drawn = counted[n_draws > 0]
        others = counted[n_draws == 0]
        weights_of_drawn = n_draws[n_draws > 0] * weights[drawn]
        seed = int(rng.integers(2**31 - 1))
        again = _fitted_again(mixture, X, drawn, weights_of_drawn, known, seed)
        if known is None:
            indices = matched_by_rows(labels[drawn], again.labels_, weights_of_drawn, K)
            judged += judged_of(mixture, again, X, others, weights, indices)
        else:
            judged += judged_by_labels(again, X, drawn, others, weights, known)
    if not judged:
        raise ValueError("No row with a density was left out of a fit to judge by: give more rows.")
    return judged


def classes_of_rows(mixture: Any, X: MatrixLike, known_labels: ArrayLike) -> Array | None:
    """Return known labels as fits have them, -1 where unknown; None if no row's is known."""
    rows = mixture._new_rows(X)
    return checked_known_labels(in_memory(known_labels), rows, mixture, begins=False)


def some_of(rows: Array, n_components: int) -> Array:
    """Return the numbers of rows to compare, from all over the data."""
    n = int(np.clip(_MAX_ENTRIES // n_components, _MIN_ROWS, _MAX_ROWS))
    return rows if len(rows) <= n else rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]


def _drawn(rng: np.random.Generator, n_rows: int, least: int) -> Array:
    """Return how often each row is drawn with replacement, at least so many of them at all."""
    while True:
        n_draws = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        if np.count_nonzero(n_draws) >= least:
            return n_draws


def _fitted_again(
    mixture: Any, X: MatrixLike, rows: Array, weights: Array, known: Array | None, seed: int
) -> Any:
    """Return a mixture with the same parameters, fitted to some rows from a new start."""
    K = mixture._fitted.n_components
    again = clone(mixture)
    # The file is that of the given mixture, which may be of more components now.
    own = {"n_components": K, "warm_start": False, "checkpoint": None, "verbose": 0}
    for name, value in (own | {"random_state": seed}).items():
        setattr(again, name, value)
    if np.ndim(again.init_params) > 0:
        again.init_params = np.asarray(again.init_params)[rows]  # a given partition
    X = safe_indexing(X, rows)
    again.size_limits = limits_of_drawn(mixture, X, weights)
    known_labels = None
    if known is not None:
        known_labels = np.where(known[rows] == K, -2, known[rows])
    with warnings.catch_warnings():
        # Of few steps and lost components: these are like those of the fit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return again.fit(X, sample_weight=weights, known_labels=known_labels)


def limits_of_drawn(mixture: Any, X: MatrixLike, weights: Array) -> tuple[Any, Any] | None:
    """Return limits on sizes that other fits can keep, whose rows were drawn with replacement.

    They are multiples of the mean, which is that of the rows here. A row that was drawn more often
    than the upper limit has rows would not fit: the limit is then its weight.
    """
    if mixture.size_limits is None:
        return None
    K = mixture._fitted.n_components
    rows = mixture._new_rows(X, weights)
    mean = rows.total_weight * rows.weight_unit / K
    mean_of_fit = mixture.weight_seen_ / K if mixture.weight_seen_ > 0 else mean
    least, most = (
        limit / mean_of_fit if isinstance(limit, Integral) else limit
        for limit in mixture.size_limits
    )
    if most is not None:
        most = max(most, heaviest_row(rows) * rows.weight_unit / mean)
    return least, most


def judged_by_labels(
    again: Any, X: MatrixLike, drawn: Array, others: Array, weights: Array, known: Array
) -> list[Judged]:
    """Return what a fit to drawn rows says of some others with known labels; empty without any.

    Components are numbered as classes are, and that of the background is the last.
    """
    # A class without a known row among those drawn is not that of a component.
    rows = others[(known[others] >= 0) & np.isin(known[others], known[drawn])]
    if len(rows) == 0 or not is_softmax(again._posterior()):
        return []
    rows = some_of(rows, again._fitted.n_components)
    own = log_odds(again, safe_indexing(X, rows))
    has_density = np.isfinite(own.max(axis=1))
    if not has_density.any():
        return []
    own = own[has_density]
    rows = rows[has_density]
    memberships = np.zeros_like(own)
    memberships[np.arange(len(rows)), known[rows]] = 1
    return [Judged(_bounded(own), memberships, weights[rows])]


def _bounded(log_odds: Array) -> Array:
    """Return log-odds whose differences are finite, also to components without weight."""
    largest = log_odds.max(axis=1, keepdims=True)
    return np.maximum(log_odds - largest, -1e300)
