"""A mixture model alone: its statistics, its bound, and which components leave."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.em.loop import run_em
from skvmf._engine.em.mixture import Mixture, Point
from skvmf._engine.em.posterior import FenchelYoungPosterior
from skvmf._engine.em.weight_prior import ModifiedDirichlet
from skvmf._engine.families.gaussian import Gaussian
from skvmf._engine.families.params import Params
from skvmf._engine.families.statistics import Statistics
from skvmf._engine.rows.sources import make_rows

ROWS = make_rows(np.array([7.0, 1, 8, 2, 9, 7])[:, None] * np.ones(2), None, unit=False)


def model(prior=None):
    prior = prior or ModifiedDirichlet()
    return Mixture(Gaussian(2, "spherical"), FenchelYoungPosterior(), prior)


def statistics(counts):
    """Return statistics with given counts; each component with rows is a unit square."""
    counts = np.asarray(counts, dtype=float)
    K = len(counts)
    moments = np.zeros((K, 2)), 2 * counts  # variance 1 about their centres
    centred_at = np.arange(2.0 * K).reshape(K, 2) * 1e4
    worst = np.array([-9.0]), np.array([0])
    return Statistics(0.0, counts.sum(), counts, moments, centred_at, *worst)


def point(K, prior=None):
    means = np.arange(2.0 * K).reshape(K, 2) * 1e4
    mixture = model(prior)
    components = mixture.family.components(means, np.ones(K))
    return Point(mixture, Params.first(np.full(K, 1 / K), components))


def test_empty_components_move_to_different_rows_in_one_step():
    before = point(5)
    stats = statistics([10, 0, 0, 30, 0])
    worst_values, worst_rows = np.array([-9.0, -9, -8, np.inf]), np.array([5, 0, 2, 4])
    stats = replace(stats, worst_values=worst_values, worst_rows=worst_rows)
    after = before.maximize(stats, ROWS)
    assert_array_equal(
        after.params.moved_or_pruned, [False, True, True, False, False]
    )  # no row is left
    assert_array_equal(after.components.means[1:3], [[7.0, 7.0], [8.0, 8.0]])
    assert_array_equal(after.components.means[4], before.components.means[4])
    assert_allclose(after.weights, np.array([10, 8, 8, 30, 0]) / 56)  # a fifth of the rows each
    assert not before.comparable(after)
    later = after.maximize(statistics([10, 5, 5, 25, 0]), ROWS)
    assert_array_equal(later.params.moved_or_pruned, [False, True, True, False, True])


@pytest.mark.bits
def test_a_component_is_empty_where_rounding_alone_is_left_of_it():
    after = point(2).maximize(statistics([1, 1e-15]), ROWS)
    assert_array_equal(after.params.moved_or_pruned, [False, True])
    after = point(2).maximize(statistics([1, 1e-14]), ROWS)
    assert_array_equal(after.params.moved_or_pruned, [False, False])


def test_a_singular_component_leaves_for_good():
    stats = statistics([10, 10, 20])
    stats.moments[1][1] = 0  # no variance is left
    before = point(3)
    after = before.maximize(stats, ROWS)
    assert after.weights[1] == 0
    assert after.params.moved_or_pruned[1]
    assert_array_equal(after.components.means[1], before.components.means[1])
    assert not before.comparable(after)
    again = after.maximize(statistics([10, 0, 20]), ROWS)
    assert_array_equal(again.components.means[1], before.components.means[1])
    assert again.weights[1] == 0


def test_a_component_leaves_when_it_rests_on_the_floor_for_two_steps():
    prior = ModifiedDirichlet(-8.0, 1e-3)  # takes nine rows, and asks for as many
    first = point(3, prior).maximize(statistics([50, 5, 45]), ROWS)
    assert_array_equal(first.params.on_floor, [False, True, False])
    assert first.weights[1] == 1e-3
    second = first.maximize(statistics([50, 5, 45]), ROWS)
    assert second.weights[1] == 0
    assert second.params.moved_or_pruned[1]
    assert_allclose(second.weights.sum(), 1)
    assert not first.comparable(second)


def test_a_component_that_comes_off_the_floor_stays():
    prior = ModifiedDirichlet(-8.0, 1e-3)
    first = point(3, prior).maximize(statistics([50, 5, 45]), ROWS)
    second = first.maximize(statistics([50, 20, 30]), ROWS)
    assert not second.params.on_floor.any()
    third = second.maximize(statistics([50, 5, 45]), ROWS)
    assert third.weights[1] == 1e-3
    assert third.params.on_floor[1]


@pytest.mark.parametrize(
    ("alpha", "count", "leaves"),
    [(-8.0, 0.5, True), (-8.0, 8.5, True), (-8.0, 9.5, False), (0.5, 4, False)],
)
def test_a_component_may_rest_with_as_many_rows_as_the_prior_takes(alpha, count, leaves):
    """Or with more than `min_rows`, which are three."""
    before = point(2, ModifiedDirichlet(alpha, 0.2))
    before = before.at(replace(before.params, on_floor=np.array([False, True])))
    after = before.maximize(statistics([91, count]), ROWS)
    assert_allclose(after.weights, [1, 0] if leaves else [0.8, 0.2])
    assert after.params.on_floor[1]


@pytest.mark.parametrize("tol", [np.inf, 1e-3])
def test_a_step_that_prunes_or_moves_is_never_the_last(tol):
    """However small the change of the bound: run_em takes at least one plain step after it."""
    rows = make_rows(np.random.default_rng(0).normal(size=(200, 2)) + 1, None, unit=False)
    means = np.array([[0.0, 0.0], [3.0, 1.0], [1e3, 1e3], [-1e3, 0]])
    far = Params.first(np.full(4, 0.25), model().family.components(means, np.ones(4)))
    history = []

    def watch(n_iter, bounds, point):
        history.append(point)
        return False

    result = run_em(Point(model(), far), rows, max_iter=100, tol=tol, on_iteration=watch)
    assert result.converged
    steps = list(itertools.pairwise(history))
    changed = [not before.comparable(after) for before, after in steps]
    assert any(changed)
    assert not changed[-1]
    reseeded = [
        (before.params.moved_or_pruned, after.params.moved_or_pruned) for before, after in steps
    ]
    moved = [int((after & ~before).sum()) for before, after in reseeded]
    assert max(moved) == 2  # both at once


@pytest.mark.parametrize("floor", [0.0, 1e-3])
@pytest.mark.parametrize("seed", range(30))
def test_only_weights_below_the_floor_are_moved_up_to_it(seed, floor):
    """Else a fit that goes on would begin with other weights, by rounding."""
    rng = np.random.default_rng(seed)
    counts = rng.exponential(size=7) ** 3 * [1, 1, 0, 1, 1, 1, 1]
    for weights in (counts / counts.sum(), ModifiedDirichlet(-0.5, 1e-3).mode(counts)):
        if (weights[weights > 0] >= floor).all():
            assert_array_equal(ModifiedDirichlet(-0.5, floor).clip(weights), weights)
    lifted = ModifiedDirichlet(-0.5, 0.1).clip(np.array([0.7, 0.0, 0.27, 0.03]))
    assert_allclose(lifted, [0.9 * 70 / 97, 0, 0.9 * 27 / 97, 0.1])


@pytest.mark.parametrize("alpha", [1.0, 0.5, 3.0])
def test_weights_stay_where_no_component_has_rows(alpha):
    """All may be singular: in a batch of copies of one row, with next to no regularization."""
    mixture = model(ModifiedDirichlet(alpha, 0.1))
    weights = np.array([0.2, 0.8])
    assert_array_equal(mixture.new_weights(np.zeros(2), weights), weights)
    assert_array_equal(model().new_weights(np.zeros(2), weights), weights)
