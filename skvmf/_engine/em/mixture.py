"""A mixture as a value: its weights, E-step and background, EM steps and predictions."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.random import RandomState

from ..._typing import Array
from ..families.background import NO_BACKGROUND, Background
from ..families.family import AnyFamily, Constraint, Scores, Update
from ..families.missing import ObservedRows
from ..families.params import Params
from ..families.responsibilities import (
    DenseResponsibilities,
    Responsibilities,
    SparseResponsibilities,
    as_dense,
)
from ..families.statistics import Statistics
from ..rows.blocks import Block, DenseBlock, warn_if_too_large
from ..rows.sources import Labels, RowSource
from .loop import EMResult, OfRows
from .posterior import SOFTMAX, FenchelYoungPosterior
from .weight_prior import FLAT, ModifiedDirichlet

MixtureResult: TypeAlias = EMResult[Params, Statistics]

_LARGEST = float(np.finfo(np.float64).max)
_FEW = 1e-9  # of the rows of a block: a component with less may be empty
_MOST_ENTRIES = 2**20  # of the least likely rows that are kept
_RESTS = 1 + 1e-9  # times the floor, up to which a weight is on it
LEAST = -1e270  # log-density below which rows are all as unlikely; sums of it are finite


@dataclass(frozen=True)
class Assigned:
    """The E-step of a block."""

    responsibilities: Responsibilities  # of the components and the background
    counts: Array  # their sums, with a background (K + 1,)
    values: Array  # of each row
    scores: Scores  # used up, but for the cache

    def of_components(self, n_components: int) -> Responsibilities:
        """Return the responsibilities without those of the background."""
        return self.responsibilities.first_components(n_components)


@dataclass(frozen=True)
class Mixture:
    """A mixture as a value: all that a fit needs to know; the loop increases its lower bound.

    An estimator turns its parameters into one; nothing below an estimator sees the estimator.
    """

    family: Any  # a Family: what a component is
    posterior: FenchelYoungPosterior = SOFTMAX  # how responsibilities follow from log-densities
    weight_prior: ModifiedDirichlet = FLAT
    fixed_weights: bool = False  # whether the first weights stay
    update: Update = Update()  # how statistics move components
    background: Background = NO_BACKGROUND  # what rows may belong to in place of a component
    constraint: Constraint = Constraint()  # what components must fulfil
    known: Array | None = None  # int32 per row: its component, if known; -1 if not; K: background

    @classmethod
    def plain(cls, family: AnyFamily, background: Background = NO_BACKGROUND) -> "Mixture":
        """Return a mixture with softmax responsibilities and no prior; its weights stay."""
        return cls(family, fixed_weights=True, background=background)

    def scores(self, params: Params, block: Block) -> Scores:
        """Return log-densities of a block, the background's last; -inf beside a known component."""
        with np.errstate(over="ignore"):  # of rows far away: the log-density is -inf
            scores: Scores = self.family.scores(block, params.components)
        scores = self.background.add_scores(scores, block)
        if self.known is not None:
            rows, labels = _known_rows(self.known, params, block)
            known = scores.unnormalized[rows, labels]
            scores.unnormalized[rows] = -np.inf
            scores.unnormalized[rows, labels] = known
        return scores

    def assign(
        self,
        params: Params,
        block: Block,
        posterior: FenchelYoungPosterior | None = None,
        *,
        row_weights: Array | None = None,
        scores: Scores | None = None,
    ) -> Assigned:
        """Return the E-step of a block: the one place where rows meet components softly.

        Responsibilities carry the weights and scales of the block's rows, unless other weights are
        given. Scores that are given are used up.
        """
        scores = self.scores(params, block) if scores is None else scores
        posterior = self.posterior if posterior is None else posterior
        factors = (block.weights, block.scales) if row_weights is None else (row_weights, None)
        return Assigned(*posterior.assign(scores, params.weights, *factors), scores)

    def label(
        self, params: Params, block: Block, posterior: FenchelYoungPosterior
    ) -> tuple[Array, Array, Scores]:
        """Return the likeliest component of each row, its score, and the scores, not used up."""
        scores = self.scores(params, block)
        labels, _, best = posterior.label(scores, params.weights, block.weights)
        return labels, best, scores

    def log_density(self, params: Params, block: Block) -> Array:
        """Return the log-density of the mixture at each row."""
        scores = self.scores(params, block)
        values = SOFTMAX.values(scores, params.weights)
        block.buffers.release("scores", scores.unnormalized)
        return values

    def expectation(self, params: Params, rows: RowSource) -> Statistics:
        """Return what `expect` does, for all rows."""
        return rows.map_reduce(partial(self.expect, params))

    def expect(
        self, params: Params, block: Block, labels: Labels | None = None, of_rows: OfRows = None
    ) -> Statistics:
        """Share out the rows of a block and sum what the maximization needs.

        Note the component of each row in `labels`, under the number of the first, and what
        `most_responsible` returns in `of_rows` (not with alpha-entmax).
        """
        scores = self.scores(params, block)
        span = slice(block.start, block.start + len(block.weights))
        if of_rows is not None:
            fitted = FittedMixture(self, params)
            found, invisible, best = fitted.label(scores, block.has_direction, self.posterior)
        assigned = self.assign(params, block, scores=scores)
        own, counts, values = (
            assigned.of_components(params.n_components),
            assigned.counts,
            assigned.values,
        )
        if labels is not None:
            labels[block.start] = own.largest().astype(np.int32)
        if of_rows is not None:
            largest = self.posterior.largest(best, values)
            of_rows[0][span], of_rows[1][span] = found, fitted.shown(found, invisible, largest)
        moments = self.family.moments(block, own, params.components, scores.cache)
        block.buffers.release("scores", scores.unnormalized)
        value = _weighted_sum(block.weights, np.maximum(values, LEAST, out=values))
        values[block.weights == 0] = np.inf
        if self.known is not None:  # no other component can have those rows
            values[_known_rows(self.known, params, block)[0]] = np.inf
        worst = self._worst(values, counts, params)
        block.release()
        return Statistics(
            value=value,
            total=float(block.weights.sum()),
            counts=counts,
            moments=moments,
            centred_at=self.family.centred_at(params.components),
            worst_values=values[worst].astype(np.float64),
            worst_rows=block.start + worst,
            buffers=block.buffers,
        )

    def _worst(self, values: Array, counts: Array, params: Params) -> Array:
        """Return the numbers of the least likely rows: one for each component without rows here."""
        K = params.n_components
        empty = (counts[:K] <= _FEW * counts.sum()) & ~params.reseeded[:K]
        most = max(1, _MOST_ENTRIES // self.family.dim)
        n_worst = min(np.count_nonzero(empty), most)
        if n_worst <= 1:
            return np.array([np.argmin(values)])
        return np.argsort(values, kind="stable")[:n_worst]

    def lower_bound(self, stats: Statistics, params: Params) -> float:
        """Return the penalised value of the parameters per unit of sample weight; it is finite."""
        log_prior = self.weight_prior.log_density(params.weights)
        log_prior += self.family.log_prior(params.components)
        return min(max((stats.value + log_prior) / stats.total, -_LARGEST), _LARGEST)

    def comparable(self, before: Params, after: Params) -> bool:
        same_weights = np.array_equal(before.weights > 0, after.weights > 0)
        return same_weights and np.array_equal(before.reseeded, after.reseeded)

    def maximize(self, stats: Statistics, params: Params, rows: RowSource) -> Params:
        """Return better parameters.

        Empty components are re-seeded once in a fit, each at another of the least likely `rows`,
        then pruned. So is a singular one, and one whose weight stays on the prior's floor for two
        steps with fewer rows than a component or the prior asks for, unless all weights are on the
        floor.
        """
        K = params.n_components
        empty = stats.counts <= 10 * np.finfo(np.float64).eps * stats.total
        counts = np.where(empty, 0.0, stats.counts)
        own = replace(stats, counts=counts[:K].copy())
        components, singular = params.components, np.zeros(K, dtype=bool)
        if own.counts.any():  # else the background has every row
            components, singular = self.update(self.family, own, params.components)
        counts[:K][singular] = 0
        reseeded = params.reseeded.copy()
        reseeded[:K] |= singular
        empty_ones = np.flatnonzero(empty[:K] & ~reseeded[:K]).tolist()
        for k, row in zip(empty_ones, _distinct_worst(stats, rows, len(empty_ones)), strict=False):
            alive = counts[:K] > 0
            if np.isnan(row).any():  # of a missing value
                row = np.where(np.isnan(row), self.family.centres(components).mean(axis=0), row)
            moved = self.update.reseed(self.family, components, alive, k, row)
            if moved is components:  # its mean is fixed, and it has no rows there
                continue
            components, counts[k] = moved, stats.total / len(counts)
            reseeded[k] = True
        weights = self.new_weights(counts, params.weights)
        floor = self.weight_prior.floor * _RESTS
        on_floor = (weights <= floor) & (weights.max() > floor)
        needed = np.maximum(self.family.min_rows, 1 - self.weight_prior.alpha)
        leaves = on_floor & params.on_floor & (stats.counts < needed) & (counts > 0)
        leaves[K:] = False
        if leaves.any():
            counts[leaves] = 0
            weights = self.new_weights(counts, params.weights)
        return Params(weights, components, reseeded | leaves, on_floor)

    def continued(self, fitted: "FittedMixture") -> tuple["Mixture", Params]:
        """Return the mixture, and first parameters, of a fit that continues an earlier one."""
        family = fitted.family.continued_by(self.family)
        components = family.adapted(fitted.params.components)
        weights = self.background.weights_after(fitted.params)
        params = Params.first(weights, components).pruned()
        if fitted.mixture.constraint != self.constraint:  # else they fulfil it
            params = self.constraint.apply(family, params)
        return replace(self, family=family), params

    def fitted(
        self, params: Params, stats: Statistics | None = None
    ) -> tuple["FittedMixture", Statistics | None]:
        """Return a fit and its statistics, with components in the order to publish."""
        params, stats = self.constraint.sort(self.family, params, stats)
        return FittedMixture(replace(self, known=None), params), stats

    def new_weights(self, counts: Array, weights: Array) -> Array:
        """Return weights at the mode of their posterior, or the old ones if they are fixed.

        For alpha-entmax and a prior that is not flat the mode is only a good guess: the old weights
        stay where new ones would lower the bound (the guard is derived here).
        """
        prior = self.weight_prior
        if self.fixed_weights:
            return weights
        better = prior.mode(counts)
        if not self.posterior.tsallis or prior.flat or np.any((better > 0) != (weights > 0)):
            return better
        value = partial(self.posterior.value_of_weights, counts)
        old, new = (value(w) + prior.log_density(w) for w in (weights, better))
        return better if new >= old else weights


def _known_rows(known: Array, params: Params, block: Block) -> tuple[Array, Array]:
    """Return the rows of a block whose components are known and have not left, and those."""
    labels = known[block.start : block.start + len(block.weights)]
    rows = np.flatnonzero((labels >= 0) & block.has_direction)
    rows = rows[params.weights[labels[rows]] > 0]
    return rows, labels[rows]


def _distinct_worst(stats: Statistics, rows: RowSource, n: int) -> Array:
    """Return at most n different rows that count, the least likely first."""
    n_counted = max(1, np.count_nonzero(stats.worst_values < np.inf))
    numbers = stats.worst_rows[: n if n <= 1 else n_counted].tolist()
    if not numbers:
        return np.empty((0, 0))
    found = dict(rows.map_reduce(partial(_numbered_rows, set(numbers))))
    worst = np.stack([found[number] for number in numbers])
    if n > 1:
        worst = worst[np.sort(np.unique(worst, axis=0, return_index=True)[1])]
    return worst[:n]


def _numbered_rows(numbers: set[int], block: Block) -> list[tuple[int, Array]]:
    """Return those of some rows that are in a block, each after its number."""
    start = block.start
    own = sorted(numbers.intersection(range(start, start + len(block.weights))))
    found = [(number, block.row(number - start)) for number in own]
    block.release()
    return found


def _weighted_sum(weights: Array, values: Array) -> float:
    """Return weights @ values without the rows of weight 0, whose values may be infinite."""
    if (weights > 0).all():
        return float(weights @ values)
    counted = weights > 0
    return float(weights[counted] @ values[counted])


def _sums(block: Block, values: Array) -> Array:
    """Return the weighted sum of values, and that of weights."""
    return np.array([_weighted_sum(block.weights, np.maximum(values, LEAST)), block.weights.sum()])


@dataclass(frozen=True)
class FittedMixture:
    """A mixture and its parameters; everything that estimators predict is asked here.

    With a background the last of `params.weights` is its weight. It has no number and no
    column among the K components: its rows have the label -1.
    """

    mixture: Mixture
    params: Params

    @property
    def family(self) -> Any:
        return self.mixture.family

    @property
    def background(self) -> Background:
        return self.mixture.background

    @property
    def n_components(self) -> int:
        return self.params.n_components

    @property
    def weights(self) -> Array:
        return self.params.component_weights

    @property
    def n_parameters(self) -> int:
        n_weights = max(int(np.count_nonzero(self.params.weights)) - 1, 0)
        n_parameters: int = self.family.n_parameters(int(np.count_nonzero(self.weights)))
        return n_parameters + (0 if self.mixture.fixed_weights else n_weights)

    def probabilities(self, rows: RowSource, posterior: FenchelYoungPosterior) -> Array:
        """Return the responsibilities of the components for each row, (n, K), in the rows' dtype.

        With that of the background, those for a row sum to one for any weight. Those of rows
        without a direction, and of rows so far away that no component has a density there, are
        the weights, or 0 with a background.
        """
        K = self.n_components
        warn_if_too_large(
            rows.n_rows * K * np.dtype(rows.dtype).itemsize,
            f"The responsibilities of {K} components for {rows.n_rows} rows take",
            "responsibilities(X) returns them without the zeros, predict(X) labels alone.",
        )
        return rows.per_row(
            lambda block: as_dense(self._assigned(block, posterior), K), rows.dtype, K
        )

    def responsibilities(
        self, rows: RowSource, posterior: FenchelYoungPosterior
    ) -> list[SparseResponsibilities]:
        """Return what `probabilities` does, block after block and without the zeros."""
        parts = {}

        def pack(block: Block, span: slice) -> None:
            resp = self._assigned(block, posterior)
            if isinstance(resp, DenseResponsibilities):
                resp = DenseResponsibilities(resp.resp.astype(rows.dtype, copy=False))
            parts[span.start] = resp.packed()

        rows.for_each(pack)
        return [parts[start] for start in sorted(parts)]

    def _assigned(self, block: Block, posterior: FenchelYoungPosterior) -> Responsibilities:
        assigned = self.assign(block, posterior)
        resp = assigned.of_components(self.n_components)
        invisible = ~block.has_direction | np.isneginf(assigned.values)
        if invisible.any():
            resp = DenseResponsibilities(as_dense(resp, self.n_components))
            resp.resp[invisible] = 0.0 if len(self.background) else self.weights
        return resp

    def labels(self, rows: RowSource, posterior: FenchelYoungPosterior) -> Array:
        """Return the component most responsible for each row, (n,); ties go to the first.

        A row without a direction or a density goes to the background, or if there is none, to the
        component with the largest weight; -1 is the background.
        """
        return rows.per_row(
            lambda block: self.label(self.scores(block), block.has_direction, posterior)[0],
            np.int64,
        )

    def most_responsible(
        self, rows: RowSource, posterior: FenchelYoungPosterior
    ) -> tuple[Array, Array]:
        """Return the labels of rows, and the responsibilities of those components; 0 for -1."""
        labels = np.empty(rows.n_rows, dtype=np.int64)
        largest = np.empty(rows.n_rows, dtype=rows.dtype)

        def write(block: Block, span: slice) -> None:
            scores = self.scores(block)
            own, invisible, _ = self.label(scores, block.has_direction, posterior)
            assigned = self.assign(block, posterior, scores)
            resp = as_dense(assigned.responsibilities, len(self.params.weights))
            resp = resp[np.arange(len(own)), own]
            labels[span], largest[span] = own, self.shown(own, invisible, resp)

        rows.for_each(write)
        return labels, largest

    def shown(self, labels: Array, invisible: Array, largest: Array) -> Array:
        """Return the responsibilities of labels as they are published, also where none is seen."""
        return np.where(labels == -1, 0, np.where(invisible, self.weights.max(), largest))

    def label(
        self, scores: Scores, has_direction: Array, posterior: FenchelYoungPosterior
    ) -> tuple[Array, Array, Array]:
        """Return labels, which rows no component sees, and scores of labels; nothing is used up."""
        ones = np.ones(len(has_direction))
        labels, _, values = posterior.label(scores, self.params.weights, ones)
        invisible: Array = ~has_direction | np.isneginf(values)
        if len(self.background):
            labels[labels == self.n_components] = -1
        if invisible.any():
            labels[invisible] = -1 if len(self.background) else np.argmax(self.weights)
        return labels, invisible, values

    def log_densities(self, rows: RowSource) -> Array:
        least = max(LEAST, float(np.finfo(rows.dtype).min))
        of_zero_row = self.family.zero_row_log_density

        def log_density(block: Block) -> Array:
            values = self.mixture.log_density(self.params, block)
            return np.maximum(np.where(block.has_direction, values, of_zero_row), least)

        return rows.per_row(log_density, rows.dtype)

    def log_likelihood(self, rows: RowSource) -> tuple[float, float]:
        """Return the weighted sum of log-densities, and of the weights of rows that count."""
        total, weight = rows.map_reduce(self._log_likelihood).tolist()
        return total, weight

    def _log_likelihood(self, block: Block) -> Array:
        return _sums(block, self.mixture.log_density(self.params, block))

    def bic(self, log_likelihood: float, n_samples: float) -> float:
        """Return the Bayesian information criterion."""
        return -2 * log_likelihood + self.n_parameters * float(np.log(max(n_samples, 1)))

    def evaluate(self, rows: RowSource, posterior: FenchelYoungPosterior) -> list[float]:
        """Return what `log_likelihood` does, and the weighted sum of responsibility entropies."""
        return rows.map_reduce(partial(self._evaluate, posterior)).tolist()

    def _evaluate(self, posterior: FenchelYoungPosterior, block: Block) -> Array:
        assigned = self.assign(block, posterior)
        resp = as_dense(assigned.responsibilities, len(self.params.weights))
        logs = block.buffers.acquire("logs", resp.shape, resp.dtype)
        np.log(np.maximum(resp, np.finfo(resp.dtype).tiny, out=logs), out=logs)
        entropy = -(block.weights @ np.einsum("nk,nk->n", resp, logs))
        block.buffers.release("logs", logs)
        block.buffers.release("scores", assigned.scores.unnormalized)
        both = (
            _sums(block, assigned.values) if posterior == SOFTMAX else self._log_likelihood(block)
        )
        return np.append(both, entropy)

    def sample(self, n_samples: int, rng: RandomState) -> tuple[Array, Array]:
        """Draw rows by component, those of the background last, and return their labels, too."""
        K = self.n_components
        counts = rng.multinomial(n_samples, self.params.weights)
        own = self.family.sample(self.params.components, counts[:K], rng)
        others = self.background.draw(counts[K:], own.shape[1], rng)
        labels = np.append(np.repeat(np.arange(K), counts[:K]), np.full(len(others), -1))
        return np.vstack([own, others]), labels

    def imputed(self, limit: float, block: DenseBlock) -> Array:
        """Return rows of a block, filled with conditional means up to a limit, in absolute value.

        They are those under the components alone.
        """
        if block.missing is None:
            return block.X
        params = self.params
        weights = NO_BACKGROUND.weights_after(params)
        alone = FittedMixture(Mixture.plain(self.family), Params.first(weights, params.components))
        resp = as_dense(alone._assigned(block, SOFTMAX), self.n_components)
        filled = ObservedRows(self.family.type, block, params.components).conditional_means(resp)
        return np.clip(filled, -limit, limit)

    def scores(self, block: Block) -> Scores:
        """Return the log-densities of a block, the background's last."""
        return self.mixture.scores(self.params, block)

    def assign(
        self, block: Block, posterior: FenchelYoungPosterior, scores: Scores | None = None
    ) -> Assigned:
        """Return the E-step of a block, without the weights of its rows."""
        ones = np.ones(len(block.weights))
        return self.mixture.assign(self.params, block, posterior, row_weights=ones, scores=scores)
