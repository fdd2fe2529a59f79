"""The dependency model with valence as a model for EM: sentences, rules, counts.

The posterior is over projective trees instead of components, and the multinomials of the rules take
the place of the weights, with the same priors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp

from .._engine.rows.parallel import map_reduce
from .._kernels import inside_outside as charts
from .._typing import Array
from ..distributions._arguments import checked_array
from ..distributions.modified_dirichlet import modes

Part = TypeVar("Part")
Arrays = tuple[Array, Array, Array]  # root (T,), stop (T, 2, 2, 2), choose (T, 2, T)

_BLOCK_COST = 100_000  # cubed sentence lengths: about a millisecond of inside-outside
_MIN_TEMPERATURE = 1e-12  # below, 0: scores divided by less are all rounding


def empty_counts(n_tags: int) -> Arrays:
    """Return zeros in the shapes of the rules."""
    return np.zeros(n_tags), np.zeros((n_tags, 2, 2, 2)), np.zeros((n_tags, 2, n_tags))


def each(function: Callable[..., Array], *rules: Arrays) -> Arrays:
    """Apply a function to root, stop and choose in turn."""
    root, stop, choose = (function(*parts) for parts in zip(*rules, strict=True))
    return root, stop, choose


def log(probabilities: Array) -> Array:
    """Return logarithms, with -inf for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


@dataclass(frozen=True)
class Sentences:
    """Tag numbers, sentence i at ``tags[offsets[i]:offsets[i + 1]]``, none empty; int64."""

    tags: Array
    offsets: Array
    n_tags: int
    dtype: ClassVar[Any] = np.dtype(np.float64)  # of the sums over sentences

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def map_reduce(self, function: Callable[[Sentences], Part]) -> Part:
        """Add ``function(block)`` over blocks of sentences."""
        return map_reduce(lambda span: function(self._take(*span)), self._spans).total()

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Cut into blocks of about equal work, by the lengths alone."""
        cost = np.diff(self.offsets).astype(np.float64) ** 3 + 100
        block = (np.cumsum(cost) - cost) // _BLOCK_COST
        cuts = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(self)]
        return list(itertools.pairwise(cuts))

    def _take(self, start: int, stop: int) -> Sentences:
        offsets = self.offsets[start : stop + 1]
        return Sentences(self.tags[offsets[0] : offsets[-1]], offsets - offsets[0], self.n_tags)

    def tree_counts(self, heads: Array) -> Arrays:
        """Count the rules that the given trees use."""
        counts = empty_counts(self.n_tags)
        charts.count_trees(self.tags, self.offsets, heads, counts)
        return counts

    def harmonic_counts(self, power: float) -> Arrays:
        """Count the rules of a harmonic attachment, which prefers near words."""
        counts = empty_counts(self.n_tags)
        charts.harmonic_counts(self.tags, self.offsets, power, counts)
        return counts

    def log_partitions(self, log_weights: Arrays) -> Array:
        """Return the log of the total weight of each sentence's trees."""
        return self._filled(charts.inside, log_weights, lambda block: np.empty(len(block)))

    def best_trees(self, log_weights: Arrays) -> Array:
        """Return the heads of each sentence's tree of largest weight, all in one array."""
        return self._filled(charts.best_trees, log_weights, lambda b: np.empty_like(b.tags))

    def _filled(
        self, kernel: Callable[..., None], log_weights: Arrays, empty: Callable[[Sentences], Array]
    ) -> Array:
        def fill(block: Sentences) -> list[Array]:
            out = empty(block)
            kernel(block.tags, block.offsets, log_weights, out)
            return [out]

        return np.concatenate(self.map_reduce(fill))


@dataclass
class RuleCounts:
    """Sums over blocks of sentences: bound, number of sentences, expected rule counts."""

    value: float
    total: float
    counts: Arrays

    def __iadd__(self, other: RuleCounts) -> RuleCounts:
        self.value += other.value
        self.total += other.total
        for mine, theirs in zip(self.counts, other.counts, strict=True):
            mine += theirs
        return self


@dataclass(frozen=True)
class Rules:
    """A grammar: log-probabilities, the log-weights that expectations use, and the log-prior."""

    log_prob: Arrays
    log_weights: Arrays
    log_prior: float


def as_rules(probabilities: Arrays) -> Rules:
    """Return given probabilities as rules, without a prior."""
    log_prob = each(log, probabilities)
    return Rules(log_prob, log_prob, 0.0)


def log_weight(counts: Arrays, rules: Rules) -> float:
    """Return the log-weight of counted rules; a rule not counted may have weight zero."""
    pairs = zip(counts, rules.log_weights, strict=True)
    return float(sum(count[count > 0] @ weight[count > 0] for count, weight in pairs))


@dataclass(frozen=True)
class MaximumPosterior:
    """One value per rule, under a modified Dirichlet prior on every multinomial (Tu, 2016)."""

    concentration: float
    floor: float

    def start(self, counts: Arrays) -> Rules:
        """Return the rules to start from: proportional to the counts, but for the floor."""
        return self._rules(each(lambda count: modes(count, self.floor), counts))

    def maximize(self, counts: Arrays, rules: Rules | None) -> Rules:
        """Return the posterior mode of every multinomial (Tu, 2016, section 2.1)."""
        old = each(np.zeros_like, counts) if rules is None else rules.log_prob
        counts = each(self._lean, counts, old)
        excess = self.concentration - 1
        return self._rules(each(lambda count: modes(excess + count, self.floor), counts))

    def _lean(self, counts: Array, old: Array) -> Array:
        """Lean to the old values if nothing was counted and the mode is not unique."""
        if self.concentration > 1:
            return counts
        uncounted = counts.sum(axis=-1, keepdims=True) == 0
        weight = 1.0 if self.concentration == 1 else (1 - self.concentration) / 2
        return np.where(uncounted, weight * np.exp(old), counts)

    def _rules(self, probabilities: Arrays) -> Rules:
        rules = as_rules(probabilities)
        excess = self.concentration - 1
        if excess == 0:  # where a probability may be zero
            return rules
        return replace(rules, log_prior=excess * sum(float(p.sum()) for p in rules.log_prob))


@dataclass(frozen=True)
class MeanField:
    """A Dirichlet over every multinomial: variational Bayes (Kurihara and Sato, 2004)."""

    concentration: float

    def start(self, counts: Arrays) -> Rules:
        return self.maximize(counts, None)

    def maximize(self, counts: Arrays, rules: Rules | None) -> Rules:
        """Return the Dirichlet posteriors: their means, and their weights exp E log theta."""
        posterior = each(lambda count: self.concentration + count, counts)
        totals = each(lambda c: c.sum(axis=-1, keepdims=True), posterior)
        means = each(lambda c, total: np.log(c) - np.log(total), posterior, totals)
        weights = each(lambda c, total: digamma(c) - digamma(total), posterior, totals)
        divergence = 0.0  # of the posteriors from the prior, by Kullback and Leibler
        for count in counts:
            whole = _log_gamma_gap(count.shape[-1] * self.concentration, count.sum(axis=-1))
            divergence += float(_log_gamma_gap(self.concentration, count).sum() - whole.sum())
        return Rules(means, weights, -divergence)


Estimate: TypeAlias = MaximumPosterior | MeanField  # how counts become rules


def _log_gamma_gap(a: float, c: Array) -> Array:
    """Return c digamma(a + c) - log gamma(a + c) + log gamma(a), the gap to a tangent.

    For large `a` these are Stirling's series, whose large terms are cancelled by hand.
    """
    z = a + c
    if a < 30:
        return c * digamma(z) - (gammaln(z) - gammaln(a))
    slope = 1 / (12 * z**2) - 1 / (120 * z**4) + 1 / (252 * z**6) - 1 / (240 * z**8)
    rest = _stirling_rest(a) - _stirling_rest(z) - c * slope
    return c - (a - 0.5) * np.log1p(c / a) - c / (2 * z) + rest


def _stirling_rest(z: float | Array) -> Array:
    """Return log gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2 for z >= 30."""
    return np.asarray(1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7))


@dataclass(frozen=True)
class DependencyModel:
    """The grammar at some rules, as the EM loop sees it.

    The posterior of trees is proportional to weight^(1 / temperature). The bound is the sum over
    sentences of E_q log weight + temperature * H(q), plus the log-prior, per sentence.
    """

    estimate: Estimate
    temperature: float
    rules: Rules

    def expect(self, sentences: Sentences) -> RuleCounts:
        """Return the expected counts of rules in the trees of all sentences."""
        return sentences.map_reduce(self._expect_block)

    def _expect_block(self, sentences: Sentences) -> RuleCounts:
        hard = self.temperature < _MIN_TEMPERATURE
        temperature = 1.0 if hard else self.temperature
        weights = each(lambda log_weight: log_weight / temperature, self.rules.log_weights)
        counts, values = empty_counts(sentences.n_tags), np.empty(len(sentences))
        charts.inside_outside(sentences.tags, sentences.offsets, weights, hard, counts, values)
        return RuleCounts(temperature * float(values.sum()), len(sentences), counts)

    def bound(self, stats: RuleCounts) -> float:
        """Return the bound per sentence."""
        return (stats.value + self.rules.log_prior) / stats.total

    def comparable(self, after: Self) -> bool:
        """Whether a small change of the bound ends the fit: always, as rules only move."""
        return True

    def maximize(self, stats: RuleCounts, sentences: object) -> Self:
        """Return the grammar at better rules."""
        return replace(self, rules=self.estimate.maximize(stats.counts, self.rules))


_TRIES = 100  # per sentence asked for, before a grammar is said not to end

Tree = tuple[list[int], list[int | None], list[tuple[list[int], list[int]]]]


def check_rules(root: ArrayLike, stop: ArrayLike, choose: ArrayLike, *, n_tags: int) -> Arrays:
    """Return given probabilities as three arrays that sum to one over their last axes."""
    return (
        _check_rule("root", root, (n_tags,)),
        _check_rule("stop", stop, (n_tags, 2, 2, 2)),
        _check_rule("choose", choose, (n_tags, 2, n_tags)),
    )


def _check_rule(name: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    rule: Array = checked_array(given, name).astype(np.float64)
    if rule.shape != shape:
        raise ValueError(f"{name} should have the shape {shape}, got {rule.shape}.")
    totals = rule.sum(axis=-1, keepdims=True)
    if not (rule >= 0).all() or not np.allclose(totals, 1, rtol=1e-6):
        raise ValueError(f"{name} should be non-negative and sum to 1 over its last axis.")
    return rule / totals


def with_average_tag(log_rules: Arrays) -> Arrays:
    """Add one tag that is the average of the others: as dependent, as root and as head."""
    root, stop, choose = (_with_average(rule, axis=0) for rule in log_rules)
    return root, stop, _with_average(choose, axis=-1)


def _with_average(log_prob: Array, axis: int) -> Array:
    total = logsumexp(log_prob, axis=axis, keepdims=True)
    return np.concatenate([log_prob, total - np.log(log_prob.shape[axis])], axis=axis)


def draw_trees(
    rng: np.random.RandomState, log_rules: Arrays, n_samples: int, max_length: int
) -> tuple[list[Array], list[Array]]:
    """Draw sentences of at most `max_length` tags: lists of tag numbers and of heads."""
    root, stop, choose = each(np.exp, log_rules)
    rules = np.cumsum(root), stop[..., 0], np.cumsum(choose, axis=-1)
    sentences, heads = [], []
    for _ in range(_TRIES * (n_samples + 1)):
        tree = _draw_tree(rng, *rules, max_length)
        if tree is not None:
            tags, parents, sides = tree
            order = _reading_order(sides)
            position = np.argsort(order)
            sentences.append(np.array(tags)[order])
            heads.append(np.array([0 if p is None else position[p] + 1 for p in parents])[order])
        if len(sentences) == n_samples:
            return sentences, heads
    raise ValueError(
        f"Only {len(sentences)} of {_TRIES * (n_samples + 1)} sentences drawn had at most "
        f"max_length={max_length} tags: this grammar stops too rarely. Increase max_length."
    )


def _draw_tree(
    rng: np.random.RandomState, root: Array, stop: Array, choose: Array, max_length: int
) -> Tree | None:
    """Draw tags, parents and each node's (left, right) children, nearest first; None if long."""
    tags = [_draw(rng, root)]
    parents: list[int | None] = [None]
    sides: list[tuple[list[int], list[int]]] = []
    while len(sides) < len(tags):
        h = len(sides)
        sides.append(([], []))
        for direction, children in enumerate(sides[h]):
            while rng.random_sample() >= stop[tags[h], direction, min(len(children), 1)]:
                children.append(len(tags))
                tags.append(_draw(rng, choose[tags[h], direction]))
                parents.append(h)
                if len(tags) > max_length:
                    return None
    return tags, parents, sides


def _draw(rng: np.random.RandomState, cumulative: Array) -> int:
    return int(np.searchsorted(cumulative, rng.random_sample() * cumulative[-1], side="right"))


def _reading_order(sides: list[tuple[list[int], list[int]]]) -> Array:
    order, waiting = [], [(0, False)]
    while waiting:
        node, left_is_done = waiting.pop()
        if left_is_done:
            order.append(node)
            continue
        left, right = sides[node]  # what is pushed last is read first
        waiting += [(child, False) for child in reversed(right)]
        waiting.append((node, True))
        waiting += [(child, False) for child in left]
    return np.array(order)
