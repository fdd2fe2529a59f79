"""Coordinates of the means: there and back, derivatives, and order to the last digit."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.ordered import AbsoluteCoordinates, RelativeCoordinates, pull_back_information

SHAPES = [(1, 1), (2, 1), (3, 2), (4, 3)]
KINDS = [
    AbsoluteCoordinates(),
    RelativeCoordinates(),
    RelativeCoordinates(clearance=0.3),
    RelativeCoordinates(clearance=0.3, squared=True),
]


def ordered_means(shape, coordinates, seed=0):
    """Means whose gaps along the feature are well above the clearance."""
    means = np.random.default_rng(seed).normal(size=shape)
    feature = getattr(coordinates, "feature", 0)
    gaps = np.random.default_rng(seed + 1).uniform(0.5, 2, size=shape[0])
    means[:, feature] = np.cumsum(gaps)
    return means


def difference_quotient(function, x, step=1e-6):
    """Return the derivative of a function of arrays, one column for each entry of x."""
    columns = []
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        columns.append((function(up) - function(down)).ravel() / (2 * step))
    return np.array(columns).T


@pytest.mark.parametrize("coordinates", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_there_and_back(coordinates, shape):
    means = ordered_means(shape, coordinates)
    assert_allclose(coordinates.to_means(coordinates.from_means(means)), means, rtol=1e-14)


@pytest.mark.parametrize("feature", [0, 1])
def test_relative_coordinates_are_a_reference_and_gaps(feature):
    means = np.array([[1.0, 2.0], [4.0, 3.0], [5.0, 7.0]])
    plain = RelativeCoordinates(feature).from_means(means)
    assert_array_equal(plain, [[1, 2], [3, 1], [1, 4]])
    roots = RelativeCoordinates(feature, clearance=0.75, squared=True).from_means(means)
    expected = plain.copy()
    expected[1:, feature] = np.sqrt(plain[1:, feature] - 0.75)
    assert_allclose(roots, expected)


@pytest.mark.parametrize("coordinates", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_are_difference_quotients(coordinates, shape):
    here = coordinates.from_means(ordered_means(shape, coordinates))
    jacobian = coordinates.jacobian(here)
    assert_allclose(jacobian, difference_quotient(coordinates.to_means, here), atol=1e-8)
    gradient = np.random.default_rng(2).normal(size=shape)
    pulled = coordinates.pull_back(here, gradient)
    assert_allclose(pulled.ravel(), jacobian.T @ gradient.ravel(), rtol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_information_keeps_its_determinant_and_lengths(shape):
    rng = np.random.default_rng(3)
    coordinates = RelativeCoordinates(clearance=0.1)
    here = coordinates.from_means(ordered_means(shape, coordinates))
    root = rng.normal(size=(here.size, here.size))
    information = root @ root.T
    jacobian = coordinates.jacobian(here)
    pulled = pull_back_information(jacobian, information)
    assert_allclose(np.linalg.det(pulled), np.linalg.det(information), rtol=1e-10)
    for step in rng.normal(size=(5, here.size)):
        moved = jacobian @ step
        assert_allclose(step @ pulled @ step, moved @ information @ moved, rtol=1e-10)


@given(arrays(float, (4, 2), elements=st.floats(-1e3, 1e3)), st.sampled_from([0.0, 0.05, 7.0]))
def test_any_roots_are_means_in_order(roots, clearance):
    means = RelativeCoordinates(1, clearance, squared=True).to_means(roots)
    assert (means[:-1, 1] + clearance <= means[1:, 1]).all()


def nearest_by_enumeration(values, weights, clearance):
    """Try every set of gaps held at the clearance and keep the best that is in order."""
    K = len(values)
    best, nearest = np.inf, None
    for held in product([False, True], repeat=K - 1):
        blocks = np.concatenate([[0], np.cumsum(~np.array(held, dtype=bool))]).astype(int)
        steps = clearance * np.arange(K)
        levels = np.bincount(blocks, weights * (values - steps)) / np.bincount(blocks, weights)
        candidate = levels[blocks] + steps
        loss = weights @ (candidate - values) ** 2
        if (np.diff(candidate) >= clearance - 1e-12).all() and loss < best:
            best, nearest = loss, candidate
    return nearest


@pytest.mark.parametrize("clearance", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_project_finds_the_nearest(K, clearance):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values, weights = rng.normal(size=K), rng.uniform(0.1, 3, size=K)
        coordinates = RelativeCoordinates(clearance=clearance)
        nearest = nearest_by_enumeration(values, weights, clearance)
        assert_allclose(coordinates.project(values, weights), nearest, atol=1e-12)
        ordered = 1e7 + (clearance + 0.1) * np.arange(K)
        assert_array_equal(coordinates.project(ordered, weights), ordered)


def test_project_leaves_equal_values_as_they_are():
    rng = np.random.default_rng(0)
    for value in (1e30, -1e30, 1 / 3, *rng.normal(size=20)):
        values, weights = np.full(3, value), rng.uniform(1e299, 1e300, size=3)
        assert_array_equal(RelativeCoordinates().project(values, weights), values)


@pytest.mark.bits
@given(
    arrays(float, 5, elements=st.floats(-1e9, 1e9)),
    st.sampled_from([0.0, 0.1, 0.5, 1 / 3]),
)
def test_order_holds_to_the_last_digit(values, clearance):
    coordinates = RelativeCoordinates(clearance=clearance)
    column = coordinates.project(values, np.ones(5))
    means = coordinates.keep_order(column[:, None], np.ones(5, dtype=bool))[:, 0]
    assert (means[:-1] + clearance <= means[1:]).all()
    assert (np.diff(means) >= clearance).all()
    assert_allclose(means, column, rtol=1e-15, atol=1e-15)


def test_those_without_rows_lie_between_their_neighbours():
    means = np.array([[5.0], [1.0], [1.2], [0.0], [4.0], [-3.0]])
    alive = np.array([False, True, False, False, True, False])
    ordered = RelativeCoordinates(clearance=2.0).keep_order(means, alive)
    assert_array_equal(ordered.ravel(), [1.0, 1.0, 1.2, 1.0, 4.0, 4.0])
    assert_array_equal(AbsoluteCoordinates().keep_order(means, alive), means)


@pytest.mark.parametrize("value", [-9.0, 0.0, 0.4, 1.1, 9.0])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_mean_is_placed_as_near_as_the_order_allows(k, value):
    coordinates = RelativeCoordinates(clearance=0.3)
    means = np.array([[0.1, 5.0], [0.7, 5.0], [1.4, 5.0]])
    alive = np.arange(3) != k
    row = np.array([value, -2.0])
    placed = coordinates.place(means, alive, k, row)
    assert (placed[:-1, 0] + 0.3 <= placed[1:, 0]).all()
    limits = {0: (-np.inf, 0.4), 1: (0.4, 1.1), 2: (1.0, np.inf)}
    assert_allclose(placed[k], [np.clip(value, *limits[k]), -2.0], atol=1e-15)
    assert_allclose(placed[alive], means[alive], atol=1e-15)
    plain = AbsoluteCoordinates().place(means, alive, k, row)
    assert_array_equal(plain[k], row)
    assert_array_equal(plain[alive], means[alive])


def test_neighbours_make_room_and_those_without_rows_give_way():
    coordinates = RelativeCoordinates(clearance=1.0)
    means = np.array([[0.0], [0.5], [1.0], [1.0], [4.0]])
    alive = np.array([True, False, False, True, True])
    placed = coordinates.place(means, alive, 1, np.array([9.0]))
    assert_allclose(placed.ravel(), [-0.5, 0.5, 1.0, 1.5, 4.0])
    alone = coordinates.place(means, alive & (np.arange(5) == 0), 3, np.array([-9.0]))
    assert_allclose(alone.ravel(), [0.0, 0.5, 1.0, 1.0, 4.0])
