"""The grammar in the loop: blocks, tempered posteriors, and the two ways to make rules."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from skvmf._engine.em import run_em
from skvmf.grammar._model import (
    DependencyModel,
    MaximumPosterior,
    MeanField,
    RuleCounts,
    Sentences,
    _log_gamma_gap,
    as_rules,
    empty_counts,
    log_weight,
)

from .enumeration import enumerate_sentence, random_rules, tree_counts

N_TAGS = 3


def make_sentences(rng, lengths, n_tags=N_TAGS):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sentences(rng.integers(n_tags, size=offsets[-1]), offsets, n_tags)


def make_rules(rng, n_tags=N_TAGS):
    return as_rules(tuple(map(np.exp, random_rules(rng, n_tags))))


def expected(sentence, rules, temperature):
    """Return value and counts under q ~ p^(1 / temperature), over all trees one by one."""
    trees, _, scores = enumerate_sentence(sentence.tolist(), rules.log_prob)
    if temperature == 0:
        q = (scores == scores.max()).astype(float)
    else:
        q = np.exp(scores / temperature - (scores / temperature).max())
        q /= q.sum()
    entropy = -(q[q > 0] @ np.log(q[q > 0]))
    total = empty_counts(N_TAGS)
    for share, heads in zip(q, trees, strict=True):
        for whole, part in zip(total, tree_counts(sentence.tolist(), heads), strict=True):
            whole[tuple(slice(s) for s in part.shape)] += share * part
    return q @ scores + temperature * entropy, total


@pytest.mark.parametrize("temperature", [0.0, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_posterior_is_the_tempered_one(temperature, n):
    rng = np.random.default_rng(n)
    sentences, rules = make_sentences(rng, [n]), make_rules(rng)
    model = DependencyModel(MaximumPosterior(1.0, 0.0), temperature)
    stats = sentences.map_reduce(lambda block: model.expect(rules, block))
    value, counts = expected(sentences.tags, rules, temperature)
    assert stats.value == pytest.approx(value, rel=1e-13)
    assert stats.total == 1
    for ours, theirs in zip(stats.counts, counts, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.bits
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "estimate",
    [
        *[MaximumPosterior(concentration, 0.0) for concentration in (1.0, 3.5, 1e15)],
        *[MaximumPosterior(1.0, 1e-4), MaximumPosterior(0.0, 1e-4), MaximumPosterior(-10.0, 1e-2)],
        *[MaximumPosterior(-40.0, 1 / 3), MaximumPosterior(-1e15, 1e-300)],
        *[MeanField(concentration) for concentration in (1e-290, 1e-5, 0.1, 1.0, 5.0, 1e6, 1e15)],
    ],
    ids=repr,
)
def test_the_bound_never_falls(estimate, temperature):
    rng = np.random.default_rng(3)
    sentences = make_sentences(rng, rng.integers(1, 12, size=60))
    model = DependencyModel(estimate, temperature)
    rules = estimate.start(sentences.harmonic_counts(1.0))
    result = run_em(model, sentences, rules, max_iter=60, tol=0.0)
    falls = -np.diff(result.bounds)
    assert np.isfinite(result.bounds).all()
    assert (falls <= 1e-12 * np.maximum(1, np.abs(result.bounds[1:]))).all(), falls.max()
    if temperature == 0:
        assert falls[-1] == 0  # the best trees no longer change


def objective(estimate, counts, rules):
    return log_weight(counts, rules) + rules.log_prior


@pytest.mark.parametrize("concentration", [1.0, 2.5, 0.5, 0.0, -3.0])
def test_no_other_rules_have_a_larger_posterior(concentration):
    rng = np.random.default_rng(4)
    floor = 0.01
    estimate = MaximumPosterior(concentration, floor)
    counts = tuple(rng.gamma(0.7, 4.0, size=count.shape) for count in empty_counts(N_TAGS))
    best = estimate.maximize(counts, None)
    value = objective(estimate, counts, best)
    for probabilities in map(np.exp, best.log_prob):
        assert probabilities.min() >= floor * (1 - 1e-12)
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-14)
    for scale in (1e-3, 0.03, 0.3, 3.0):
        for _ in range(20):
            noise = (p * np.exp(rng.normal(0, scale, p.shape)) for p in map(np.exp, best.log_prob))
            other = estimate.start(tuple(noise))
            assert objective(estimate, counts, other) <= value + 1e-9


@pytest.mark.parametrize(
    ("concentration", "expected"),
    [(1.0, [0.2, 0.7, 0.1]), (-5.0, [0.01, 0.98, 0.01]), (2.0, [1 / 3, 1 / 3, 1 / 3])],
)
def test_where_nothing_was_counted_the_old_rules_decide_among_the_modes(concentration, expected):
    old = as_rules(tuple(np.full(c.shape, 1 / c.shape[-1]) for c in empty_counts(N_TAGS)))
    old.log_prob[0][:] = np.log([0.2, 0.7, 0.1])
    rules = MaximumPosterior(concentration, 0.01).maximize(empty_counts(N_TAGS), old)
    np.testing.assert_allclose(np.exp(rules.log_prob[0]), expected, rtol=1e-12)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_mean_field_weights_and_divergence_are_those_of_the_beta_distribution(concentration):
    counts = empty_counts(1)
    counts[1][:] = np.array([2.5, 1.25])
    rules = MeanField(concentration).maximize(counts, None)
    a, b = concentration + 2.5, concentration + 1.25

    def density(x, a=a, b=b):
        return np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))

    def divergence(x):
        c = concentration
        return density(x) * (np.log(density(x)) - np.log(density(x, c, c)))

    mean_log, _ = quad(lambda x: density(x) * np.log(x), 0, 1)
    assert rules.log_weights[1][0, 0, 0, 0] == pytest.approx(mean_log, rel=1e-9)
    one, _ = quad(divergence, 0, 1)
    assert rules.log_prior == pytest.approx(-4 * one, rel=1e-8)  # two sides, two valences
    np.testing.assert_allclose(np.exp(rules.log_prob[1][0, 0, 0]), [a / (a + b), b / (a + b)])


@pytest.mark.parametrize("a", [1e-290, 1e-5, 1.0, 29.9, 30.0, 1e3, 1e6, 1e15])
def test_what_counts_add_to_a_divergence_does_not_cancel(a):
    counts = np.array([0.0, 1e-300, 1e-10, 0.3, 7.0, 1e4])
    gaps = _log_gamma_gap(a, counts)
    with mp.workdps(50):
        for count, gap in zip(map(mp.mpf, counts.tolist()), gaps.tolist(), strict=True):
            exact = count * mp.digamma(a + count) - mp.loggamma(a + count) + mp.loggamma(a)
            largest = abs(mp.loggamma(a)) + abs(mp.loggamma(a + count)) if a < 30 else 0
            assert abs(gap - exact) <= 4e-16 * (1 + count + largest)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 2.0])
def test_mean_field_on_given_trees_is_the_exact_marginal_likelihood(concentration):
    rng = np.random.default_rng(5)
    sentences = make_sentences(rng, [4, 2])
    counts = sentences.tree_counts(np.array([2, 0, 2, 3, 0, 1]))
    model = DependencyModel(MeanField(concentration), temperature=1.0)
    rules = model.estimate.maximize(counts, None)
    stats = RuleCounts(log_weight(counts, rules), len(sentences), counts)
    exact = 0.0
    for count in counts:
        n, posterior = count.shape[-1], count + concentration
        before = n * gammaln(concentration) - gammaln(n * concentration)
        after = gammaln(posterior).sum(axis=-1) - gammaln(posterior.sum(axis=-1))
        exact += (after - before).sum()
    assert model.lower_bound(stats, rules) == pytest.approx(exact / len(sentences), rel=1e-12)
