"""The grammar in the loop: tempered posteriors, priors, and the two ways to make rules."""

import mpmath as mp
import numpy as np
import pytest

from skvmf.distributions import modified_dirichlet
from skvmf.grammar import DependencyModelWithValence

from ..mixture.checks import assert_bound_never_falls
from .enumeration import enumerate_sentence, probabilities, random_rules, tree_counts, weighed

TAGS = [0, 1, 2]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def draw_sentences(rng, lengths):
    return [rng.integers(3, size=n) for n in lengths]


@pytest.mark.parametrize("temperature", [0.0, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_a_step_is_that_of_the_tempered_posterior(temperature, n):
    """Value and counts under q ~ p^(1 / temperature), over all trees one by one."""
    rng = np.random.default_rng(n)
    [sentence], rules = draw_sentences(rng, [n]), random_rules(rng, 3)
    _, counts, scores = enumerate_sentence(sentence.tolist(), rules)
    if temperature == 0:
        q = (scores == scores.max()).astype(float)
    else:
        q = np.exp(scores / temperature - (scores / temperature).max())
        q /= q.sum()
    entropy = -(q[q > 0] @ np.log(q[q > 0]))
    start = tuple(map(np.exp, rules))
    options = {"temperature": temperature, "weight_floor": 0.0, "max_iter": 1, "tol": 0}
    model = DependencyModelWithValence(tags=TAGS, init=start, **options).fit([sentence])
    assert model.lower_bounds_[0] == pytest.approx(q @ scores + temperature * entropy, rel=1e-13)
    for found, count, before in zip(probabilities(model), weighed(q, counts), start, strict=True):
        total = count.sum(axis=-1, keepdims=True)
        expected = np.where(total > 0, count / np.where(total > 0, total, 1), before)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.bits
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("inference", "concentration", "floor"),
    [
        *[("map", concentration, 0.0) for concentration in (1.0, 3.5, 1e15)],
        *[("map", 1.0, 1e-4), ("map", 0.0, 1e-4), ("map", -10.0, 1e-2)],
        *[("map", -40.0, 1 / 3), ("map", -1e15, 1e-300)],
        *[("mean-field", c, 0.0) for c in (1e-290, 1e-5, 0.1, 1.0, 5.0, 1e6, 1e15)],
    ],
)
def test_the_bound_never_falls(inference, concentration, floor, temperature):
    rng = np.random.default_rng(3)
    sentences = draw_sentences(rng, rng.integers(1, 12, size=60))
    model = DependencyModelWithValence(
        tags=TAGS,
        inference=inference,
        weight_concentration_prior=concentration,
        weight_floor=floor,
        temperature=temperature,
        max_iter=30,
        tol=0.0,
    ).fit(sentences)
    assert_bound_never_falls(model)
    if temperature == 0:
        assert model.lower_bounds_[-1] == model.lower_bounds_[-2]  # the best trees stay


SENTENCES = [[0, 1], [1], [2, 0, 1, 0], [1, 1, 2], [0, 0]]
TREES = [[2, 0], [0], [2, 0, 2, 3], [2, 0, 2], [0, 1]]
COUNTS = weighed(np.ones(5), [tree_counts(*pair, 3) for pair in zip(SENTENCES, TREES, strict=True)])


@pytest.mark.parametrize("concentration", [1.0, 2.5, 0.5, 0.0, -3.0])
def test_rules_of_given_trees_are_the_modes_of_their_posteriors(concentration):
    options = {"weight_concentration_prior": concentration, "weight_floor": 0.01}
    model = DependencyModelWithValence(**options).fit(SENTENCES, TREES)
    assert model.converged_
    assert model.n_iter_ == 0
    height = 0.0
    for found, count in zip(probabilities(model), COUNTS, strict=True):
        for x, c in zip(
            *(each.reshape(-1, count.shape[-1]) for each in (found, count)), strict=True
        ):
            mode = modified_dirichlet.mode(concentration + c, 0.01)
            if c.any():  # otherwise there may be others
                np.testing.assert_allclose(x, mode, rtol=1e-12)
            height += modified_dirichlet.log_kernel(mode, concentration + c)
    assert model.lower_bounds_ == [pytest.approx(height / 5, rel=1e-12)]


@pytest.mark.parametrize(
    ("concentration", "expected"),
    [(1.0, [0.2, 0.7, 0.1]), (-5.0, [0.01, 0.98, 0.01]), (2.0, [1 / 3, 1 / 3, 1 / 3])],
)
def test_where_nothing_was_counted_the_old_rules_decide_among_the_modes(concentration, expected):
    start = [1 / 3] * 3, np.full((3, 2, 2, 2), 0.5), np.tile([0.2, 0.7, 0.1], (3, 2, 1))
    options = {"weight_concentration_prior": concentration, "weight_floor": 0.01}
    model = DependencyModelWithValence(tags=TAGS, init=start, max_iter=1, tol=0, **options)
    chosen = np.exp(model.fit([[0]]).choose_log_prob_)  # the one tag has no dependents
    np.testing.assert_allclose(chosen, np.tile(expected, (3, 2, 1)), rtol=1e-12)


@pytest.mark.bits
@pytest.mark.parametrize("concentration", [1e-290, 1e-5, 0.1, 1.0, 2.0, 29.9, 30.0, 1e3, 1e6, 1e15])
def test_mean_field_on_given_trees_is_the_exact_marginal_likelihood(concentration):
    """Whose large terms cancel for large and for small concentrations."""
    options = {"inference": "mean-field", "weight_concentration_prior": concentration}
    model = DependencyModelWithValence(**options).fit(SENTENCES, TREES)
    with mp.workdps(50):
        a, exact = mp.mpf(concentration), mp.mpf(0)
        for c in (c for count in COUNTS for c in count.reshape(-1, count.shape[-1]).tolist()):
            exact += mp.loggamma(len(c) * a) - mp.loggamma(len(c) * a + sum(c))
            exact += sum(mp.loggamma(a + each) - mp.loggamma(a) for each in c)
        largest = abs(mp.loggamma(a)) if a < 30 else 0
    assert abs(model.lower_bound_ - exact / 5) <= 2e-14 * (1 + largest)
    for found, count in zip(probabilities(model), COUNTS, strict=True):
        posterior = concentration + count
        means = posterior / posterior.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(found, means, rtol=1e-13)
