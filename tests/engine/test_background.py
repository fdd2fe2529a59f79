"""The background: a box around the rows that count, or the sphere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.contracts import Params, Scores
from skvmf._engine.model import NO_BACKGROUND, Background, bounding_box
from skvmf._engine.rows import make_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_box_holds_what_counts_and_no_more(dtype):
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(dtype)
    weights = np.ones(9000)
    weights[np.abs(X).max(axis=1) > 2] = 0
    box = bounding_box(make_rows(X, weights, unit=False), 1e-6)
    inside = X[weights > 0]
    assert_array_equal(box, [inside.min(axis=0), inside.max(axis=0)])


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e90])
def test_the_box_has_a_volume_where_features_are_constant(offset):
    X = np.full((10, 2), offset)
    X[:, 1] += np.arange(10) * max(1, abs(offset))
    for variance in (1e-2, 1e-30):
        box = bounding_box(make_rows(X, None, unit=False), variance)
        assert (box[0] < box[1]).all()
        assert np.isfinite(Background.in_box(box).log_densities).all()
        if offset == 0:
            assert_allclose((box[1] - box[0])[0] ** 2 / 12, variance)  # as of a uniform variable
            assert_allclose(box.mean(axis=0), [0, 4.5])


def test_densities_integrate_to_one():
    corners = np.array([[-1.0, 2.0], [3.0, 2.5]])
    assert_allclose(np.exp(Background.in_box(corners).log_densities) * 4 * 0.5, 1)
    assert_allclose(np.exp(Background.on_sphere(3).log_densities) * 4 * np.pi, 1)


def test_rows_are_drawn_uniformly():
    rng = np.random.RandomState(0)
    corners = np.array([[-1.0, 2.0], [3.0, 2.5]])
    inside = Background.in_box(corners).draw([20_000], 2, rng)
    assert (inside >= corners[0]).all()
    assert (inside <= corners[1]).all()
    assert_allclose(inside.mean(axis=0), [1, 2.25], atol=0.05)
    assert_allclose(inside.var(axis=0), [16 / 12, 0.25 / 12], rtol=0.05)
    around = Background.on_sphere(4).draw([20_000], 4, rng)
    assert_allclose(np.linalg.norm(around, axis=1), 1)
    assert_allclose(around.T @ around / 20_000, np.eye(4) / 4, atol=0.01)
    assert_allclose(around.mean(axis=0), 0, atol=0.02)


def test_its_weight_is_taken_from_all_others():
    weights = np.array([0.25, 0.75])
    assert_allclose(Background.on_sphere(3).add_weight(weights, 0.2), [0.2, 0.6, 0.2])


def test_no_background_leaves_everything_as_it_is():
    weights, scores = np.array([0.25, 0.75]), Scores(np.ones((4, 2)), np.zeros(2))
    assert_array_equal(NO_BACKGROUND.add_weight(weights, 0.2), weights)
    assert NO_BACKGROUND.add_scores(scores) is scores
    assert NO_BACKGROUND.draw([], 2, np.random.RandomState(0)).shape == (0, 2)


@pytest.mark.parametrize(
    ("background", "weights", "expected"),
    [
        (NO_BACKGROUND, [0.4, 0.6], [0.4, 0.6]),
        (NO_BACKGROUND, [0.2, 0.3, 0.5], [0.4, 0.6]),
        (NO_BACKGROUND, [0.0, 0.0, 1.0], [0.5, 0.5]),
        (Background.on_sphere(3), [0.4, 0.6], [0.36, 0.54, 0.1]),
        (Background.on_sphere(3), [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
    ],
)
def test_a_fit_goes_on_with_a_background_or_without(background, weights, expected):
    params = Params.first(np.array(weights), np.zeros(2))
    assert_allclose(background.weights_after(params), expected)
