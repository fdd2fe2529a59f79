import math

import numba
import numpy as np
import pytest

from skvmf._kernels import inside_outside as charts

from ..grammar.enumeration import (
    empty_counts,
    enumerate_sentence,
    is_projective_tree,
    projective_trees,
    random_rules,
    weighed,
)

N_TAGS = 4


def batch(rng, lengths, n_tags=N_TAGS):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return rng.integers(n_tags, size=offsets[-1]), offsets


def inside(tags, offsets, rules):
    values = np.empty(len(offsets) - 1)
    charts.inside(tags, offsets, rules, values)
    return values


def inside_outside(tags, offsets, rules, best=False):
    values, counts = np.empty(len(offsets) - 1), empty_counts(len(rules[0]))
    charts.inside_outside(tags, offsets, rules, best, counts, values)
    return values, counts


def best_trees(tags, offsets, rules):
    heads = np.full(len(tags), 99)  # every one is written
    charts.best_trees(tags, offsets, rules, heads)
    return heads


def log_n_trees(n):
    """log of the number of projective trees over n words (Klein 2005; OEIS A006013)."""
    return math.log(math.comb(3 * n - 2, n - 1) // n)


@pytest.mark.parametrize("n", range(1, 7))
def test_sums_counts_and_best_tree_are_those_of_all_trees(n):
    assert math.exp(log_n_trees(n)) == pytest.approx(len(projective_trees(n)))
    rng = np.random.default_rng(n)
    for _ in range(5):
        rules = random_rules(rng, N_TAGS)
        tags, offsets = batch(rng, [n])
        trees, tree_rules, scores = enumerate_sentence(tags.tolist(), rules)
        weights = np.exp(scores)
        expected = weighed(weights / weights.sum(), tree_rules)
        (value,), counts = inside_outside(tags, offsets, rules)
        assert math.exp(value) == pytest.approx(weights.sum(), rel=2e-14)
        assert inside(tags, offsets, rules) == value
        for ours, theirs in zip(counts, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-14)

        best = int(np.argmax(scores))
        assert best_trees(tags, offsets, rules).tolist() == list(trees[best])
        (value,), counts = inside_outside(tags, offsets, rules, best=True)
        assert value == pytest.approx(scores[best], rel=2e-14)
        for ours, theirs in zip(counts, tree_rules[best], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("gap", [5.0, 20.0, 24.0, 26.0, 36.0, 40.0, 59.0])
def test_a_rare_tree_counts_for_what_it_is(gap):
    """Of two words either can be the head; all else is alike."""
    rules = tuple(np.zeros_like(rule) for rule in empty_counts(2))
    rules[0][1] = -gap
    tags, offsets = np.array([0, 1]), np.array([0, 2])
    (value,), counts = inside_outside(tags, offsets, rules)
    assert value == pytest.approx(math.log1p(math.exp(-gap)), abs=2e-16)
    rare = 1 / (1 + math.exp(gap))
    assert counts[0][1] == pytest.approx(rare, rel=1e-13)
    assert counts[2][1, 0, 0] == pytest.approx(rare, rel=1e-13)


def test_the_first_split_wins_a_tie():
    """All trees weigh the same here, and the first word is the root of the first of them."""
    rules = tuple(np.zeros_like(rule) for rule in empty_counts(1))
    for n in (2, 3, 5):
        tags, offsets = np.zeros(n, dtype=np.int64), np.array([0, n])
        heads = best_trees(tags, offsets, rules).tolist()
        assert heads[0] == 0
        assert is_projective_tree(tuple(heads))
        _, (root, _, choose) = inside_outside(tags, offsets, rules, best=True)
        assert root.sum() == 1
        assert choose.sum() == n - 1


@pytest.mark.parametrize("log_weight", [0.0, -9.2, -1e5, 700.0])
def test_long_sentences_neither_underflow_nor_overflow(log_weight):
    n = 40 if numba.config.DISABLE_JIT else 150
    rules = tuple(np.full_like(rule, log_weight) for rule in empty_counts(2))
    tags, offsets = batch(np.random.default_rng(0), [n], n_tags=2)
    n_rules = n + 2 * n + (n - 1)  # a head each, two stops each, an arc each but for the root
    (value,), counts = inside_outside(tags, offsets, rules)
    assert value - n_rules * log_weight == pytest.approx(log_n_trees(n), abs=1e-13 * abs(value))
    assert sum(count.sum() for count in counts) == pytest.approx(n_rules, rel=1e-9)


def test_an_impossible_sentence_counts_nothing_but_still_has_some_tree():
    rules = random_rules(np.random.default_rng(5), N_TAGS)
    rules[0][:] = -np.inf
    tags, offsets = batch(np.random.default_rng(6), [6])
    for best in (False, True):
        values, counts = inside_outside(tags, offsets, rules, best)
        assert values == -np.inf
        assert not any(count.any() for count in counts)
    assert is_projective_tree(tuple(best_trees(tags, offsets, rules).tolist()))


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_harmonic_counts_follow_the_attachment_probabilities(power):
    rng = np.random.default_rng(7)
    lengths = [5, 1, 2]
    tags, offsets = batch(rng, lengths)
    root, stop, choose = empty_counts(N_TAGS)
    for sentence in np.split(tags, offsets[1:-1]):
        n = len(sentence)
        distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
        np.fill_diagonal(distance, np.inf)
        closeness = np.where(np.isinf(distance), 0.0, distance**-power)
        attach = closeness / np.maximum(closeness.sum(axis=0), 1e-300) * (n - 1) / n  # [head, a]
        for h in range(n):
            root[sentence[h]] += 1 / n
            for direction, side in enumerate((range(h), range(h + 1, n))):
                p = attach[h, side]
                np.add.at(choose, (sentence[h], direction, sentence[side]), p)
                none = np.prod(1 - p)
                stop[sentence[h], direction] += [[none, 1 - none], [1 - none, p.sum() - (1 - none)]]
    counts = empty_counts(N_TAGS)
    charts.harmonic_counts(tags, offsets, power, counts)
    for ours, theirs in zip(counts, (root, stop, choose), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15)
    assert counts[0].sum() + counts[2].sum() == pytest.approx(sum(lengths))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_each_kernel_is_compiled_once():
    rng = np.random.default_rng(8)
    tags, offsets = batch(rng, [3, 2])
    rules = random_rules(rng, N_TAGS)
    for best in (False, True):
        inside_outside(tags, offsets, rules, best)
    inside(tags, offsets, rules)
    best_trees(tags, offsets, rules)
    for kernel in (charts.inside, charts.inside_outside, charts.best_trees):
        assert len(kernel.signatures) == 1
