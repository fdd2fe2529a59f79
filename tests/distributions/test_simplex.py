"""Public maps onto the simplex and their losses."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax

from skvmf.distributions.simplex import (
    entmax,
    fenchel_young_loss,
    fenchel_young_posterior,
    tsallis_negentropy,
)

ALPHAS = [0.3, 0.7, 1.0, 1.25, 1.5, 2.0, 3.0]
OWN_TABLE = Path(__file__).parents[1] / "reference" / "entmax_table.npz"
SHARED_TABLE = Path(__file__).parents[3] / "shared" / "reference" / "entmax_reference.npz"


@pytest.mark.parametrize("path", [OWN_TABLE, SHARED_TABLE], ids=["own", "shared"])
def test_against_the_reference_tables(path):
    if not path.exists():
        pytest.skip("this table is not part of the project")
    table = dict(np.load(path))
    for i, alpha in enumerate(table["alpha"]):
        span = slice(*table["offsets"][i : i + 2])
        p = entmax(table["z"][span], alpha)
        np.testing.assert_array_equal(p > 0, table["p"][span] > 0)
        assert np.abs(p - table["p"][span]).max() <= 1e-15
        single = table["z"][span].astype(np.float32)
        exact = single == table["z"][span]
        if exact.all():
            assert np.abs(entmax(single, alpha) - table["p"][span]).max() <= 6e-8


def test_alpha_one_is_softmax_and_its_loss_the_kullback_leibler_divergence(rng):
    z, y = 5 * rng.standard_normal((30, 7)), rng.dirichlet(np.ones(7), 30)
    np.testing.assert_allclose(entmax(z, 1), softmax(z, axis=1), rtol=1e-14)
    for near in (1 - 1e-7, 1 + 1e-7):
        np.testing.assert_allclose(entmax(z, near), softmax(z, axis=1), atol=2e-6)
    expected = np.sum(y * (np.log(y) - log_softmax(z, axis=1)), axis=1)
    np.testing.assert_allclose(fenchel_young_loss(z, y, 1), expected, rtol=1e-13)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axis_and_shape(alpha, axis, rng):
    z = rng.standard_normal((3, 4, 5))
    p = entmax(z, alpha, axis=axis)
    assert p.shape == z.shape
    np.testing.assert_allclose(p.sum(axis=axis), 1, atol=1e-14)
    moved = entmax(np.moveaxis(z, axis, -1).copy(), alpha)
    np.testing.assert_array_equal(np.moveaxis(p, axis, -1), moved)
    assert entmax(z.transpose(2, 0, 1), alpha, axis=axis).shape == (5, 3, 4)
    none = np.empty((0, 3))
    assert entmax(none, alpha).shape == (0, 3)
    assert tsallis_negentropy(none, alpha).shape == fenchel_young_loss(none, none, alpha).shape
    assert tsallis_negentropy(none, alpha).shape == (0,)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_dtypes_and_input_left_alone(alpha, rng):
    z = rng.standard_normal((6, 5))
    copy, single = z.copy(), entmax(z.astype(np.float32), alpha)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, entmax(z, alpha), atol=1e-6 if alpha <= 2 else 1e-3)
    fenchel_young_loss(z, np.full(5, 0.2), alpha)
    np.testing.assert_array_equal(z, copy)
    assert entmax([[1, 0]], alpha).dtype == np.float64
    loss, gradient = fenchel_young_loss(np.float32([1, 0]), [0, 1], 2, return_gradient=True)
    assert loss == 1
    assert gradient.dtype == np.float32


def test_negentropy(rng):
    p = rng.dirichlet(np.ones(6), 20)
    p[0] = [1, 0, 0, 0, 0, 0]
    for alpha in (1.5, 2.0, 3.0):
        expected = ((p**alpha).sum(axis=1) - 1) / (alpha * (alpha - 1))
        np.testing.assert_allclose(tsallis_negentropy(p, alpha), expected, atol=1e-15)
    shannon = np.sum(p[1:] * np.log(p[1:]), axis=1)
    np.testing.assert_allclose(tsallis_negentropy(p, 1)[1:], shannon, rtol=1e-14)
    np.testing.assert_allclose(tsallis_negentropy(p, 1 + 1e-9)[1:], shannon, rtol=1e-7)
    np.testing.assert_array_equal(tsallis_negentropy(p.T, 1.5, axis=0), tsallis_negentropy(p, 1.5))
    assert np.all(tsallis_negentropy(p[:1], 1.5) == 0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_loss_is_its_definition(alpha, rng):
    """Omega*(z) - <z, y> + Omega(y), with the supremum of Omega* found among many points."""
    z, y = rng.standard_normal(3), np.array([0.2, 0.8, 0.0])
    points = rng.dirichlet(np.full(3, 0.5), 200_000)
    conjugate = np.max(points @ z - tsallis_negentropy(points, alpha))
    expected = conjugate - z @ y + tsallis_negentropy(y, alpha)
    np.testing.assert_allclose(fenchel_young_loss(z, y, alpha), expected, atol=2e-4)
    assert fenchel_young_loss(z, y, alpha) >= expected - 1e-12


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("axis", [0, -1])
def test_gradient_is_the_finite_difference(alpha, axis, rng):
    z, y = rng.standard_normal((4, 5)), rng.dirichlet(np.ones(5), 4)
    if axis == 0:
        z, y = z.T, y.T
    loss, gradient = fenchel_young_loss(z, y, alpha, axis=axis, return_gradient=True)
    np.testing.assert_array_equal(loss, fenchel_young_loss(z, y, alpha, axis=axis))
    np.testing.assert_allclose(gradient, entmax(z, alpha, axis=axis) - y, atol=1e-15)
    step = 1e-5
    for at in np.ndindex(z.shape):
        bump = np.zeros_like(z)
        bump[at] = step
        up = fenchel_young_loss(z + bump, y, alpha, axis=axis).sum()
        down = fenchel_young_loss(z - bump, y, alpha, axis=axis).sum()
        np.testing.assert_allclose((up - down) / (2 * step), gradient[at], atol=2e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_huge_and_forbidden_scores(alpha):
    z = [[1e15, -1e15, 1e15], [-np.inf, 0.0, -np.inf], [-1e300, 1e300, 0.0]]
    expected = [[0.5, 0, 0.5], [0, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(entmax(z, alpha), expected, atol=1e-15)
    loss = fenchel_young_loss([[1e15, -1e15], [0.0, -np.inf], [0.0, -np.inf]], [1.0, 0.0], alpha)
    np.testing.assert_allclose(loss, 0, atol=1e-15 if alpha >= 1 else 1e-4)  # no zeros below 1
    assert fenchel_young_loss([0.0, -np.inf], [0.5, 0.5], alpha) == np.inf
    assert fenchel_young_loss([0.0, -1e15], [0.0, 1.0], alpha) == 1e15
    assert fenchel_young_loss([1e308, -1e308], [0.5, 0.5], alpha) == 1e308  # 2e308 is none


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf], [0.0, -np.nan]])
def test_scores_without_an_answer_are_refused(alpha, bad):
    z = [[0.0, 1.0], bad]
    with pytest.raises(ValueError, match="slice is number 1"):
        entmax(z, alpha)
    with pytest.raises(ValueError, match="scores hold nan"):
        fenchel_young_loss(z, [0.5, 0.5], alpha)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entmax([0.0, 1.0], 0.0), "alpha"),
        (lambda: entmax([0.0, 1.0], np.nan), "alpha"),
        (lambda: entmax([0.0, 1.0], np.inf), "alpha"),
        (lambda: entmax([], 1.5), "at least one entry"),
        (lambda: entmax(np.empty((3, 0)), 1), "at least one entry"),
        (lambda: entmax([0.0, 1.0], [1.5]), r"alpha.*shape \(1,\)"),
        (lambda: entmax([0.0, 1.0], "1.5"), "alpha should hold real numbers"),
        (lambda: entmax([0.0, 1.0], None), "alpha"),
        (lambda: entmax([0.0, 1.0], 1.5, axis=1), "axis=1 is not an axis of scores"),
        (lambda: entmax([0.0, 1.0], 1.5, axis=None), "axis=None is not an axis"),
        (lambda: entmax([[0.0], [1.0, 2.0]], 1.5), "scores should be an array of numbers"),
        (lambda: entmax([0.0, 1.0j], 1.5), "scores should hold real numbers"),
        (lambda: entmax(sparse.csr_array([[0.0, 1.0]]), 1.5), "toarray"),
        (lambda: tsallis_negentropy([], 2), "at least one entry"),
        (lambda: tsallis_negentropy([0.5, 0.6], 2), "sums of 1"),
        (lambda: tsallis_negentropy([np.nan, 1.0], 2), "p must hold probabilities"),
        (lambda: tsallis_negentropy([0.5, 0.5], 2, axis=-2), "axis=-2 is not an axis of p"),
        (lambda: tsallis_negentropy([-0.1, 1.1], 2), "negative"),
        (lambda: tsallis_negentropy([0.5, 0.5], 0), "alpha"),
        (lambda: fenchel_young_loss([0.0, 1.0], [0.5, 0.6], 2), "sums of 1"),
        (lambda: fenchel_young_loss([0.0, 1.0], [-0.5, 1.5], 2), "not negative"),
        (lambda: fenchel_young_loss([0.0, 1.0], [np.nan, 1.0], 2), "target"),
        (lambda: fenchel_young_loss([0.0, 1.0], [0.2, 0.3, 0.5], 2), "broadcast"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9, 0.999])
def test_alpha_below_one_is_the_maximum_and_has_no_zeros(alpha, rng):
    z = rng.normal(scale=5, size=(40, 6))
    p = entmax(z, alpha)
    assert p.min() > 0
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    # stationary: z - p^(alpha - 1) / (alpha - 1) is the same for all entries
    rest = z - p ** (alpha - 1) / (alpha - 1)
    np.testing.assert_allclose(rest, np.broadcast_to(rest[:, :1], rest.shape), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_a_posterior_minimizes_the_free_energy(alpha, temperature, rng):
    losses, weights = rng.normal(size=(5, 4)), np.array([0.1, 0.2, 0.3, 0.4])
    q = fenchel_young_posterior(losses, weights, alpha, temperature)
    eta = np.log(weights) if alpha == 1 else (weights ** (alpha - 1) - 1) / (alpha - 1)

    def energy(responsibilities):
        price = fenchel_young_loss(
            np.broadcast_to(eta, responsibilities.shape), responsibilities, alpha
        )
        return (responsibilities * losses).sum(axis=1) + temperature * price

    for other in rng.dirichlet(np.ones(4), size=(200, 5)):
        assert (energy(q) <= energy(other) + 1e-12).all()


def test_a_posterior_is_weights_times_powers_of_densities_at_one_and_near_it(rng):
    losses, weights = rng.normal(size=(5, 4)), np.array([0.1, 0.2, 0.3, 0.4])
    expected = weights * np.exp(-losses / 3)
    expected /= expected.sum(axis=1, keepdims=True)
    for alpha in (1 - 1e-8, 1.0, 1 + 1e-8):
        result = fenchel_young_posterior(losses, weights, alpha, temperature=3)
        np.testing.assert_allclose(result, expected, atol=1e-6)


def test_a_posterior_excludes_what_has_no_weight_or_an_infinite_loss():
    losses = [[0.0, 1.0, 2.0], [np.inf, 0.0, 0.0]]
    for alpha in (0.5, 1.0, 2.0):
        q = fenchel_young_posterior(losses, [0.5, 0.5, 0.0], alpha)
        assert (q[:, 2] == 0).all()
        assert q[1].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0, 1.0]], [0.5, 0.6], 1), "weights must hold probabilities"),
        (([[0.0, 1.0]], [1.0], 1), "one entry for each column"),
        (([[0.0, 1.0]], [0.5, 0.5], 0), "alpha must be"),
        (([[0.0, 1.0]], [0.5, 0.5], 2, 0), "temperature must be"),
        (([[np.nan, 1.0]], [0.5, 0.5], 2), "nan"),
    ],
)
def test_what_is_no_posterior_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fenchel_young_posterior(*arguments)
