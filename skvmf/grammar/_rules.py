"""Validation of given rules, rules for unknown tags, and sampling of sentences."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from .._typing import Array
from ..distributions._arguments import checked_array
from ._model import Arrays, each

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
    """Append the logarithm of the mean along an axis."""
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
    """Draw an index by its cumulated probabilities."""
    return int(np.searchsorted(cumulative, rng.random_sample() * cumulative[-1], side="right"))


def _reading_order(sides: list[tuple[list[int], list[int]]]) -> Array:
    """Return the nodes from left to right."""
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
