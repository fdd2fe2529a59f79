"""The dependency model with valence as a model for EM: sentences, rules, counts.

The posterior is over projective trees instead of components, and the multinomials of the rules take
the place of the weights, with the same priors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp

from .._engine.rows.parallel import Part, map_reduce
from .._kernels import inside_outside as charts
from .._typing import Array
from ..distributions._arguments import checked_array
from ..distributions.modified_dirichlet import modes

# Of root (T,), stop (T, 2, 2, 2) and choose (T, 2, T).
Arrays = tuple[Array, Array, Array]

# Tags, parents, and the (left, right) children of each node, nearest first.
Tree = tuple[list[int], list[int | None], list[tuple[list[int], list[int]]]]

# Cubed sentence lengths of a block, about a millisecond of inside-outside, beside which the cost of
# a task is small.
_BLOCK_COST = 100_000

# What a sentence costs beside its charts, in the same unit.
_SENTENCE_COST = 100

# Lower temperatures count as 0: scores divided by them are all rounding.
_MIN_TEMPERATURE = 1e-12

# From here on, log-gamma functions are taken from Stirling's series, which reaches the last digit.
_MIN_STIRLING = 30

# Trees that are drawn per sentence asked for, before a grammar is said not to end.
_MAX_DRAWS = 100


def empty_counts(n_tags: int) -> Arrays:
    """Return zeros in the shapes of the rules."""
    return np.zeros(n_tags), np.zeros((n_tags, 2, 2, 2)), np.zeros((n_tags, 2, n_tags))


def map_rules(function: Callable[..., Array], *rules: Arrays) -> Arrays:
    """Apply a function to root, stop and choose in turn."""
    root, stop, choose = (function(*parts) for parts in zip(*rules, strict=True))
    return root, stop, choose


def log(probabilities: Array) -> Array:
    """Return logarithms, with -inf for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


@dataclass(frozen=True, eq=False)
class Sentences:
    """Tag numbers, sentence i at ``tags[offsets[i]:offsets[i + 1]]``, none empty; int64."""

    tags: Array
    offsets: Array
    n_tags: int
    # Of the sums over sentences.
    dtype: ClassVar[Any] = np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def map_reduce(self, function: Callable[[Sentences], Part]) -> Part:
        """Add ``function(block)`` over blocks of sentences."""
        return map_reduce(lambda span: function(self._take(*span)), self._spans).total()

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Cut into blocks of about equal work, by the lengths alone."""
        costs = np.diff(self.offsets).astype(np.float64) ** 3 + _SENTENCE_COST
        block = (np.cumsum(costs) - costs) // _BLOCK_COST
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

        def of_block(block: Sentences) -> list[Array]:
            values = np.empty(len(block))
            charts.inside(block.tags, block.offsets, log_weights, values)
            return [values]

        return np.concatenate(self.map_reduce(of_block))

    def best_trees(self, log_weights: Arrays) -> Array:
        """Return the heads of each sentence's tree of largest weight, all in one array."""

        def of_block(block: Sentences) -> list[Array]:
            heads = np.empty_like(block.tags)
            charts.best_trees(block.tags, block.offsets, log_weights, heads)
            return [heads]

        return np.concatenate(self.map_reduce(of_block))


@dataclass(eq=False)
class RuleCounts:
    """Sums over blocks of sentences: bound, number of sentences, expected rule counts."""

    value: float
    total: float
    counts: Arrays

    def __iadd__(self, other: RuleCounts) -> RuleCounts:
        self.value += other.value
        self.total += other.total
        for count, added in zip(self.counts, other.counts, strict=True):
            count += added
        return self


@dataclass(frozen=True, eq=False)
class Rules:
    """A grammar: log-probabilities, the log-weights that expectations use, and the log-prior."""

    log_prob: Arrays
    log_weights: Arrays
    log_prior: float


def as_rules(probabilities: Arrays) -> Rules:
    """Return given probabilities as rules, without a prior."""
    log_prob = map_rules(log, probabilities)
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
        return self._rules(map_rules(lambda count: modes(count, self.floor), counts))

    def maximize(self, counts: Arrays, rules: Rules | None) -> Rules:
        """Return the posterior mode of every multinomial (Tu, 2016, section 2.1)."""
        old = map_rules(np.zeros_like, counts) if rules is None else rules.log_prob
        counts = map_rules(self._lean, counts, old)
        excess = self.concentration - 1
        return self._rules(map_rules(lambda count: modes(excess + count, self.floor), counts))

    def _lean(self, counts: Array, old: Array) -> Array:
        """Lean to the old values if nothing was counted and the mode is not unique."""
        if self.concentration > 1:
            return counts
        uncounted = counts.sum(axis=-1, keepdims=True) == 0
        weight = 1.0 if self.concentration == 1 else (1 - self.concentration) / 2
        return np.where(uncounted, weight * np.exp(old), counts)

    def _rules(self, probabilities: Arrays) -> Rules:
        """Return probabilities as rules with their log-prior."""
        rules = as_rules(probabilities)
        excess = self.concentration - 1
        # Then probabilities may be zero, and 0 times an infinite logarithm would be nan.
        if excess == 0:
            return rules
        log_prior = excess * sum(float(log_prob.sum()) for log_prob in rules.log_prob)
        return replace(rules, log_prior=log_prior)


@dataclass(frozen=True)
class MeanField:
    """A Dirichlet over every multinomial: variational Bayes (Kurihara and Sato, 2004)."""

    concentration: float

    def start(self, counts: Arrays) -> Rules:
        return self.maximize(counts, None)

    def maximize(self, counts: Arrays, rules: Rules | None) -> Rules:
        """Return the Dirichlet posteriors: their means, and their weights exp E log theta."""
        posterior = map_rules(lambda count: self.concentration + count, counts)
        totals = map_rules(lambda c: c.sum(axis=-1, keepdims=True), posterior)
        means = map_rules(lambda c, total: np.log(c) - np.log(total), posterior, totals)
        weights = map_rules(lambda c, total: digamma(c) - digamma(total), posterior, totals)
        # The Kullback-Leibler divergence of the posteriors from the prior.
        divergence = 0.0
        for count in counts:
            parts = _log_gamma_gap(self.concentration, count)
            whole = _log_gamma_gap(count.shape[-1] * self.concentration, count.sum(axis=-1))
            divergence += float(parts.sum() - whole.sum())
        return Rules(means, weights, -divergence)


# How counts become rules.
Estimate: TypeAlias = MaximumPosterior | MeanField


def _log_gamma_gap(a: float, c: Array) -> Array:
    """Return c digamma(a + c) - log gamma(a + c) + log gamma(a), the gap to a tangent.

    For large `a` these are Stirling's series, whose large terms are cancelled by hand.
    """
    z = a + c
    if a < _MIN_STIRLING:
        return c * digamma(z) - (gammaln(z) - gammaln(a))
    # log z - 1 / (2 z) - digamma(z).
    slope = 1 / (12 * z**2) - 1 / (120 * z**4) + 1 / (252 * z**6) - 1 / (240 * z**8)
    remainder = _stirling_remainder(a) - _stirling_remainder(z) - c * slope
    return c - (a - 0.5) * np.log1p(c / a) - c / (2 * z) + remainder


def _stirling_remainder(z: float | Array) -> Array:
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
        """Return the counts of one block."""
        hard = self.temperature < _MIN_TEMPERATURE
        temperature = 1.0 if hard else self.temperature
        weights = map_rules(lambda log_weight: log_weight / temperature, self.rules.log_weights)
        counts = empty_counts(sentences.n_tags)
        values = np.empty(len(sentences))
        charts.inside_outside(sentences.tags, sentences.offsets, weights, hard, counts, values)
        return RuleCounts(temperature * float(values.sum()), len(sentences), counts)

    def bound(self, stats: RuleCounts) -> float:
        """Return the bound per sentence."""
        return (stats.value + self.rules.log_prior) / stats.total

    def size_of_bound(self, stats: RuleCounts) -> float:
        """Return the size of the bound, at least 1."""
        return max(1.0, abs(self.bound(stats)))

    def comparable(self, after: Self) -> bool:
        """Whether a small change of the bound ends the fit: always, as rules only move."""
        return True

    def maximize(self, stats: RuleCounts, sentences: object) -> Self:
        """Return the grammar at better rules."""
        return replace(self, rules=self.estimate.maximize(stats.counts, self.rules))


def check_rules(root: ArrayLike, stop: ArrayLike, choose: ArrayLike, *, n_tags: int) -> Arrays:
    """Return given probabilities as three arrays that sum to one over their last axes."""
    return (
        _check_rule("root", root, (n_tags,)),
        _check_rule("stop", stop, (n_tags, 2, 2, 2)),
        _check_rule("choose", choose, (n_tags, 2, n_tags)),
    )


def _check_rule(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return one array of probabilities, or raise a ValueError that names it."""
    rule: Array = checked_array(values, name).astype(np.float64)
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
    """Append the logarithm of the mean probability along an axis."""
    total = logsumexp(log_prob, axis=axis, keepdims=True)
    return np.concatenate([log_prob, total - np.log(log_prob.shape[axis])], axis=axis)


def draw_trees(
    rng: np.random.RandomState, log_rules: Arrays, n_samples: int, max_length: int
) -> tuple[list[Array], list[Array]]:
    """Draw sentences of at most `max_length` tags: lists of tag numbers and of heads."""
    root, stop, choose = map_rules(np.exp, log_rules)
    root = np.cumsum(root)
    stop = stop[..., 0]
    choose = np.cumsum(choose, axis=-1)
    sentences: list[Array] = []
    heads: list[Array] = []
    max_draws = _MAX_DRAWS * (n_samples + 1)
    for _ in range(max_draws):
        tree = _draw_tree(rng, root, stop, choose, max_length)
        if tree is not None:
            tags, parents, children = tree
            order = _reading_order(children)
            # Positions from 1, and 0 for what has no parent.
            position = np.argsort(order) + 1
            tree_heads = [0 if parent is None else position[parent] for parent in parents]
            sentences.append(np.array(tags)[order])
            heads.append(np.array(tree_heads)[order])
        if len(sentences) == n_samples:
            return sentences, heads
    raise ValueError(
        f"Only {len(sentences)} of {max_draws} sentences drawn had at most "
        f"max_length={max_length} tags: this grammar stops too rarely. Increase max_length."
    )


def _draw_tree(
    rng: np.random.RandomState, root: Array, stop: Array, choose: Array, max_length: int
) -> Tree | None:
    """Draw a tree from the top, or return None if it has more tags than `max_length`.

    `root` (T,) and `choose` (T, 2, T) are cumulative; `stop` (T, 2, 2) is the probability to stop.
    """
    tags = [_draw(rng, root)]
    parents: list[int | None] = [None]
    children: list[tuple[list[int], list[int]]] = []
    while len(children) < len(tags):
        h = len(children)
        children.append(([], []))
        for direction, side in enumerate(children[h]):
            while rng.random_sample() >= stop[tags[h], direction, min(len(side), 1)]:
                side.append(len(tags))
                tags.append(_draw(rng, choose[tags[h], direction]))
                parents.append(h)
                if len(tags) > max_length:
                    return None
    return tags, parents, children


def _draw(rng: np.random.RandomState, cumulative: Array) -> int:
    """Draw a number by cumulative probabilities, whose last may differ from 1 by rounding."""
    return int(np.searchsorted(cumulative, rng.random_sample() * cumulative[-1], side="right"))


def _reading_order(children: list[tuple[list[int], list[int]]]) -> Array:
    """Return the nodes of a tree from left to right."""
    order = []
    # A stack, as trees may be deeper than Python's recursion.
    stack = [(0, False)]
    while stack:
        node, left_is_done = stack.pop()
        if left_is_done:
            order.append(node)
            continue
        # What is pushed last is read first.
        left, right = children[node]
        stack += [(child, False) for child in reversed(right)]
        stack.append((node, True))
        stack += [(child, False) for child in left]
    return np.array(order)
