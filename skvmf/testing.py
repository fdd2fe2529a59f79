"""Checks of families of components, for tests of whoever writes one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from ._engine.em.mixture import Mixture, Point
from ._engine.em.posterior import FenchelYoungPosterior
from ._engine.families.family import AnyFamily, Family
from ._engine.families.responsibilities import DenseResponsibilities, HardResponsibilities
from ._engine.families.statistics import Statistics
from ._engine.rows.blocks import DenseBlock
from ._engine.rows.sources import RowSource, make_rows
from ._engine.search.starts import make_start
from ._typing import Array, MatrixLike

__all__ = ["check_family"]

# Steps for given responsibilities: families of the package, the slowest of which estimates degrees
# of freedom, are so close to their fixed point that nothing beside it gains.
_FIXED_POINT_STEPS = 100
# How much more or less a row counts, in standard deviations. Where a second moment is 10 % too
# large, components beside then gain 7e-4 a row or more; where it is 2 % too large, 3e-5.
_SMALL_MOVE = 0.03
# Of a row, in nats: right families gain nothing, less 2e-7 at best.
_LARGEST_GAIN = 1e-6


def check_family(family: AnyFamily, X: MatrixLike | None = None) -> None:
    """Check that a family of components does what fits expect of it.

    It checks on dense rows that

    - moments of a block are the sums of those of its rows, weighted by responsibilities;
    - of a family with ``unit_rows``, the lengths of rows change nothing, and rows of zeros add
      nothing;
    - scores of float32 rows are close to those of float64 rows;
    - steps of EM never lower the bound, for soft, sparse and hard responsibilities, and leave
      statistics and components without rows as they are;
    - where steps for given responsibilities end, components a little beside do not fit better:
      an M-step with a wrong factor ends elsewhere;
    - sampled rows have finite scores, and a re-seeded component does not change the others;
    - merges lose the same in any order, if there are merges, and the simple components of a
      proposal peak where they are put.

    Compare log-densities, and the losses of merges, with references of your own.

    Parameters
    ----------
    family : Family
        An instance of a class that derives from :class:`skvmf.families.Family`, of some `dim`.
    X : array-like of shape (n_samples, dim), default=None
        Rows to check it on, at least 30. None samples them from the family.

    Raises
    ------
    AssertionError
        If a check fails; the message says which.
    TypeError
        If `family` is a class, or no family.

    Examples
    --------
    The page :doc:`/contributing/add_a_family` writes two families and checks them. A class in place
    of a family is a mistake that a message explains:

    >>> from skvmf.families import Family
    >>> from skvmf.testing import check_family
    >>> check_family(Family)
    Traceback (most recent call last):
        ...
    TypeError: check_family takes a family, not its class: check_family(Family(dim)), ...
    """
    _require_family(family)
    rng = np.random.default_rng(0)
    if X is None:
        centres = 3 * rng.normal(size=(3, family.dim))
        if family.unit_rows:
            centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        X = family.sample(family.from_centres(centres), np.array([40, 40, 40]), rng)
        _require(X.shape == (120, family.dim), "sample should return counts.sum() rows of dim")
    X = np.array(X, dtype=np.float64)
    if family.unit_rows:
        # The lengths of rows must change nothing, so the checks are of rows of many lengths.
        X *= rng.uniform(0.2, 5, size=(len(X), 1))

    rows = make_rows(X, None, unit=family.unit_rows)
    resp = rng.dirichlet(np.ones(3), size=len(X))
    _check_rows(family, family.from_centres(_points(family, X)), X, resp)
    point = make_start(3, "kmeans").first(Mixture(family), rows, rng)
    family = point.family
    _check_step(family, point.components, X, resp)
    # Soft, sparse and hard responsibilities.
    for alpha, temperature in [(1.0, 1.0), (1.5, 1.0), (1.0, 0.0)]:
        _check_bound(point.with_posterior(FenchelYoungPosterior(alpha, temperature)), rows)
    _check_fixed_point(family, point.components, X, rng)
    if type(family).merge_cost is not Family.merge_cost:
        _check_merges(family, point.components, X)
    if type(family).proposal is not Family.proposal:
        _check_proposal(family, X)


def _require_family(family: Any) -> None:
    if isinstance(family, Family):
        return
    if isinstance(family, type):
        raise TypeError(
            f"check_family takes a family, not its class: check_family({family.__name__}(dim)), "
            "with the number of features, and whatever else the class asks for."
        )
    raise TypeError(
        f"check_family takes an instance of a class that derives from skvmf.families.Family, "
        f"not one of {type(family).__name__}."
    )


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_equal(result: Any, expected: Any, message: str, rtol: float = 1e-8) -> None:
    """Compare numbers, relative to the largest."""
    # Small entries of sums carry the rounding of large ones; beside zeros alone nothing is small.
    atol = rtol * float(np.abs(np.asarray(expected, dtype=np.float64)).max(initial=1e-300))
    assert_allclose(result, expected, rtol=rtol, atol=atol, err_msg=message)


def _block(family: AnyFamily, X: Array) -> DenseBlock:
    if not family.unit_rows:
        return DenseBlock(X, np.ones(len(X)), None, 0)
    lengths = np.linalg.norm(X.astype(np.float64), axis=1)
    scales = np.divide(1.0, lengths, out=np.zeros(len(X)), where=lengths > 0)
    return DenseBlock(X, np.ones(len(X)), scales, 0)


def _points(family: AnyFamily, X: Array) -> Array:
    """Return three rows as the family sees them."""
    return np.stack([_block(family, X).row(n) for n in (0, len(X) // 2, len(X) - 1)])


def _scores(family: AnyFamily, components: Any, X: Array) -> Array:
    return family.scores(_block(family, X), components).log_density()


def _statistics(family: AnyFamily, components: Any, X: Array, resp: Array) -> Statistics:
    """Return the statistics of rows with such responsibilities (n, K)."""
    block = _block(family, X)
    cache = family.scores(block, components).cache
    # Responsibilities carry the weights and scales of the rows, as in a fit.
    scaled = DenseResponsibilities(resp * block.factors[:, None])
    moments = family.moments(block, scaled, components, cache)
    return Statistics(0.0, len(X), resp.sum(axis=0), moments, family.centred_at(components))


def _check_rows(family: AnyFamily, components: Any, X: Array, resp: Array) -> None:
    scores = _scores(family, components, X)
    _require(scores.shape == resp.shape, "scores should be (n, K)")
    _require(np.isfinite(scores).all(), "scores of ordinary rows should be finite")
    in_float32 = _scores(family, components, X.astype(np.float32))
    # Rows are rounded to 24 bits, and scores multiply that by precisions or concentrations.
    _require_equal(in_float32, scores, "scores of float32 rows", rtol=1e-4)

    moments = _statistics(family, components, X, resp).moments
    by_row = [_statistics(family, components, X[[n]], resp[[n]]).moments for n in range(len(X))]
    labels = resp.argmax(axis=1).astype(np.int32)
    block = _block(family, X)
    hard = family.moments(block, HardResponsibilities(labels, block.factors), components)
    as_soft = _statistics(family, components, X, np.eye(3)[labels]).moments
    for i, moment in enumerate(moments):
        what = f"moment {i}"
        _require(moment.dtype == np.float64, f"{what} should be float64")
        _require_equal(sum(each[i] for each in by_row), moment, f"{what} is the sum over the rows")
        _require_equal(hard[i], as_soft[i], f"{what} with hard responsibilities")
    if family.unit_rows:
        _check_lengths(family, components, X, resp)


def _check_lengths(family: AnyFamily, components: Any, X: Array, resp: Array) -> None:
    """Check that lengths of rows change nothing, and that rows of zeros add nothing."""
    _require(np.isfinite(family.zero_row_log_density), "zero_row_log_density should be finite")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    scores = _scores(family, components, X)
    _require_equal(scores, _scores(family, components, unit), "scores without the rows' lengths")

    moments = _statistics(family, components, X, resp).moments
    X_and_zero = np.vstack([X, np.zeros(family.dim)])
    resp_and_zero = np.vstack([resp, np.ones(3) / 3])
    with_zero = _statistics(family, components, X_and_zero, resp_and_zero).moments
    for i, moment in enumerate(_statistics(family, components, unit, resp).moments):
        what = (
            f"moment {i} should not depend on the rows' lengths. Responsibilities carry the "
            "scale of the row: divide by it where you do not multiply by the row as stored"
        )
        _require_equal(moments[i], moment, what)
        _require_equal(with_zero[i], moment, f"moment {i} with a row of zeros, whose scale is 0")


def _check_step(family: AnyFamily, components: Any, X: Array, resp: Array) -> None:
    """Check a step for two components, when the last has no rows, and a re-seeded component."""
    resp = resp.copy()
    resp[:, 2] = 0
    stats = _statistics(family, components, X, resp)
    moments_before = [moment.copy() for moment in stats.moments]
    better, singular = family.maximize(stats, components)
    _require(len(better) == 3, "maximize should return K components")
    _require(singular.shape == (3,) and singular.dtype == bool, "singular should be (K,) booleans")
    for before, after in zip(moments_before, stats.moments, strict=True):
        _require_equal(after, before, "maximize should leave the statistics as they are")
    if not singular[2]:
        expected = family.centres(components)[2]
        _require_equal(family.centres(better)[2], expected, "a component without rows should stay")

    moved = family.reseed(components, 1, _points(family, X)[0])
    scores_before = _scores(family, components, X)[:, [0, 2]]
    scores_after = _scores(family, moved, X)[:, [0, 2]]
    _require_equal(scores_after, scores_before, "reseed moves k alone")

    grows = 0 < family.n_parameters(2) < family.n_parameters(3)
    _require(grows, "n_parameters should grow with the number of components")


def _check_fixed_point(
    family: AnyFamily, components: Any, X: Array, rng: np.random.Generator
) -> None:
    """Check that components beside those where steps end do not fit given responsibilities better.

    Components a little beside are those of rows that count a little more or less.
    """
    scores = _scores(family, components, X)
    # Soft, so that components overlap; but not equal, which would make all components the same.
    resp = np.exp(0.2 * (scores - scores.max(axis=1, keepdims=True)))
    resp /= resp.sum(axis=1, keepdims=True)
    family = family.with_prior_from(_statistics(family, components, X, resp))

    def fit(components: Any) -> float:
        fitted = float((resp * _scores(family, components, X)).sum())
        return (fitted + family.log_prior(components)) / len(X)

    for _ in range(_FIXED_POINT_STEPS):
        components, _ = family.maximize(_statistics(family, components, X, resp), components)
    best = fit(components)
    # Rows that fit well against those that do not: sizes. Any others: places and shapes.
    own = (resp * _scores(family, components, X)).sum(axis=1)
    kinds = [(own - own.mean()) / max(own.std(), 1e-300), *rng.normal(size=(8, len(X)))]
    for kind in kinds:
        for sign in (-1, 1):
            changed = resp * np.maximum(1 + sign * _SMALL_MOVE * kind, 0)[:, None]
            stats = _statistics(family, components, X, changed)
            gain = fit(family.maximize(stats, components)[0]) - best
            what = (
                f"components beside those where steps end fit the rows better, by {gain:.3g} a "
                "row: maximize should return the components of the largest likelihood. Is a "
                "moment, or a factor of one, wrong?"
            )
            _require(gain <= _LARGEST_GAIN, what)


def _check_bound(point: Point, rows: RowSource) -> None:
    bound = -np.inf
    # More steps would show smaller falls, and take longer.
    for step in range(12):
        stats = point.expect(rows)
        new_bound = point.bound(stats)
        fall = bound - new_bound
        # What rounding may take from a sum over all rows.
        allowed = 1e-10 * max(1, abs(new_bound))
        what = f"step {step} with {point.mixture.posterior} lowers the bound by {fall:.3g}"
        _require(fall <= allowed, what)

        after = point.maximize(stats, rows)
        # A step that moves a component without rows elsewhere may lower the bound.
        bound = new_bound if point.comparable(after) else -np.inf
        point = after


def _check_merges(family: AnyFamily, components: Any, X: Array) -> None:
    """Check the losses of merges: three parts are one in the end, whatever is merged first."""
    resp = np.eye(3)[_scores(family, components, X).argmax(axis=1)]
    stats = _statistics(family, components, X, resp)
    components, _ = family.maximize(stats, components)
    stats = _statistics(family, components, X, resp)
    parts = np.arange(3)
    totals = []
    for i, j, k in [(0, 1, 2), (1, 2, 0), (2, 0, 1)]:
        cost = family.merge_cost(stats, components, parts)
        _require(cost.points().shape[0] == 3, "points: one per part")
        # Merging writes into the counts.
        counts = cost.counts.copy()
        loss = cost.losses(i)[j]
        _require(loss >= -1e-9 * len(X), "a merge cannot gain likelihood")
        _require_equal(cost.losses(j, parts[[i]]), [loss], "the loss is the same from both sides")

        cost.merge(i, j)
        _require_equal(cost.counts[i], counts[i] + counts[j], "merge adds the numbers of rows")
        totals.append(loss + cost.losses(i)[k])
    _require_equal(totals, np.repeat(totals[0], 3), "losses do not depend on what is merged first")


def _check_proposal(family: AnyFamily, X: Array) -> None:
    """Check the simple components of a proposal, and a start by merging."""
    seeds = family.proposal().seeds
    points = _points(seeds, X)
    components = seeds.at_points(points)
    _require_equal(np.diag(_scores(seeds, components, points)), seeds.peaks(components), "peaks")
    longer = seeds.append(components, seeds.at_points(points[:1], components))
    _require(len(longer) == 4, "append should return components followed by others")
    start = make_start(3, "merging", init_size=len(X))
    rows = make_rows(X, None, unit=family.unit_rows)
    point = start.first(Mixture(family), rows, np.random.default_rng(0))
    _require(point.n_components == 3, "a start by merging should find K components")
