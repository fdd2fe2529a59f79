"""The von Mises-Fisher family alone: densities, its maximum with and without the prior."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import vonmises_fisher

from skvmf._engine.contracts import DenseResponsibilities, HardResponsibilities, Statistics
from skvmf._engine.merging import DirectionMergeCost
from skvmf._engine.rows import make_rows
from skvmf._engine.vonmises_fisher import MAX_CONCENTRATION, VonMisesFisher, concentrated_lengths
from skvmf.distributions import vonmises_fisher as vmf

from ..oracles import vonmises_fisher_log_density

N, K, D = 40, 3, 4


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def some_rows(spread=1.0, dtype=np.float64):
    """Return rows of any length; sparse ones have zeros."""
    rng = np.random.default_rng(0)
    X = (np.eye(K, D)[rng.integers(K, size=N)] + spread * rng.normal(size=(N, D))).astype(dtype)
    return X * rng.uniform(0.5, 2, size=(N, 1)).astype(dtype)


def whole(X, weights=None):
    """Return all rows as one block."""
    return make_rows(X, weights, unit=True, columns=True).map_reduce(lambda block: block)


def some_components(family, kappa=(0.5, 5.0, 200.0)):
    directions = np.random.default_rng(1).normal(size=(K, D))
    return family.from_natural(directions, np.asarray(kappa))


def some_shares(block, packed, seed=2):
    """Return shares that carry the scales of the rows, and what they are without, (N, K)."""
    rng, scales = np.random.default_rng(seed), block.scales
    if packed:
        labels = rng.integers(K, size=N).astype(np.int32)
        return HardResponsibilities(labels, scales), np.eye(K)[labels]
    resp = rng.dirichlet(np.full(K, 0.05), size=N)
    return DenseResponsibilities(resp * scales[:, None]), resp


def statistics(family, components, block, packed=False):
    responsibilities, resp = some_shares(block, packed)
    moments = family.moments(block, responsibilities, components)
    counts, origins = resp.sum(axis=0), family.origins(components)
    return Statistics(0.0, resp.sum(), counts, moments, origins), resp


def fitted_to_all(family, components, X):
    """Return the maximum for one component that has all rows."""
    block = whole(X)
    moments = family.moments(block, DenseResponsibilities(block.scales[:, None].copy()), components)
    origins = family.origins(components)
    stats = Statistics(0.0, N, np.array([float(N)]), moments, origins)
    return family.maximize(stats, components)[0]


FORMATS = pytest.mark.parametrize(
    "as_format", [np.asarray, sparse.csr_array], ids=["dense", "sparse"]
)
TIED = pytest.mark.parametrize("tied", [False, True])


@pytest.mark.bits
@FORMATS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["exact", "newton"])
@pytest.mark.parametrize("largest", [200.0, 1e5, 1e6], ids=["plain", "wide", "tight"])
def test_scores_and_biases_are_log_densities(as_format, dtype, method, largest):
    X, kappas = some_rows(dtype=dtype), [0.5, 5.0, largest]
    family = VonMisesFisher(D, method=method)
    components = some_components(family, kappas)
    assert components.in_float64 == (largest > 200)
    assert_array_equal(components.concentrated, [False, False, largest == 1e6])
    found = family.scores(whole(as_format(X)), components).log_density()
    assert_allclose(components.concentrations, kappas, rtol=1e-10)
    for k, kappa in enumerate(components.concentrations):
        direction = components.directions[:, k]
        expected = vonmises_fisher_log_density(unit(X.astype(float)), direction, kappa)
        single = dtype == np.float32 and not components.in_float64
        accuracy = kappa * (1e-6 if single else 1e-13) + 1e-11
        assert_allclose(found[:, k], expected, rtol=1e-12, atol=accuracy)


@pytest.mark.parametrize("kappa", [1e-3, 1.0, 30.0])
def test_the_oracle_is_scipys(kappa):
    direction = np.eye(1, D, 1)[0]
    expected = vonmises_fisher(direction, kappa).logpdf(unit(some_rows()))
    assert_allclose(vonmises_fisher_log_density(unit(some_rows()), direction, kappa), expected)


@FORMATS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("packed", [False, True], ids=["shares", "labels"])
@pytest.mark.parametrize("largest", [200.0, 1e6], ids=["plain", "tight"])
def test_moments_are_sums_of_unit_rows(as_format, dtype, packed, largest):
    X, family = some_rows(dtype=dtype), VonMisesFisher(D)
    components = some_components(family, (0.5, 5.0, largest))
    stats, resp = statistics(family, components, whole(as_format(X)), packed)
    rows = unit(X.astype(float))
    assert_allclose(stats.moments[0], rows.T @ resp, rtol=1e-5, atol=1e-6)
    if largest == 1e6:
        chords = 0.5 * ((rows - components.directions[:, 2]) ** 2).sum(axis=1)
        expected = [0, 0, resp[:, 2] @ chords]  # of the one component that needs it
        assert_allclose(stats.moments[1], expected, rtol=1e-12)


@FORMATS
def test_few_and_many_shares_have_the_same_sums(as_format):
    """Both ways of summing: by a product, and by the shares that are not zero."""
    family, block = VonMisesFisher(D), whole(as_format(some_rows()))
    few, half = np.zeros((N, 100)), np.full((N, K), 0.5)
    few[np.arange(N), np.arange(N) % 100] = 0.75
    few[0, 5] = 0.25
    for resp in (few, half):
        responsibilities = DenseResponsibilities(resp * block.scales[:, None])
        assert responsibilities.denser_than(1 / 32) == (resp is half)
        components = family.from_natural(np.ones((resp.shape[1], D)), np.ones(resp.shape[1]))
        found = family.moments(block, responsibilities, components)[0]
        assert_allclose(found, unit(some_rows()).T @ resp, atol=1e-14)


def penalised(kappa, mean_length, count, family, n_components=1):
    """Return the log-posterior of one concentration, from the mean length of its rows."""
    log_partition = vmf.log_partition(kappa, D)
    n0 = family.prior_strength * n_components
    prior = n0 * (family.prior_length * kappa - log_partition)
    return count * (mean_length * kappa - log_partition) + prior


@FORMATS
@pytest.mark.parametrize("strength", [0.0, 3.0])
@TIED
def test_the_maximum_is_that_of_the_posterior(as_format, strength, tied):
    family = VonMisesFisher(D, tied=tied, prior_strength=strength, prior_length=0.4)
    components = some_components(family, (5.0, 5.0, 5.0))
    stats, resp = statistics(family, components, whole(as_format(some_rows())))
    sums = resp.T @ unit(some_rows())
    lengths, counts = np.linalg.norm(sums, axis=1), resp.sum(axis=0)
    fresh, broken = family.maximize(stats, components)
    assert not broken.any()
    assert_allclose(fresh.directions.T, unit(sums), rtol=1e-10, atol=1e-12)
    if tied:
        assert_array_equal(fresh.concentrations, fresh.concentrations[0])
        lengths, counts = lengths.sum(keepdims=True), counts.sum(keepdims=True)
    for length, count, kappa in zip(lengths, counts, fresh.concentrations, strict=False):
        n_components = K if tied else 1
        here, low, high = (
            penalised(kappa * factor, length / count, count, family, n_components)
            for factor in (1, 0.99, 1.01)
        )
        assert here > max(low, high)
        slope = (high - low) / (0.02 * kappa) / count
        assert abs(slope) < 1e-4


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_without_a_prior_the_size_of_the_weights_does_not_matter(scale):
    family = VonMisesFisher(D)
    components = some_components(family)
    stats, _ = statistics(family, components, whole(some_rows()))
    found, expected = (
        family.maximize(stats.scaled(factor), components)[0] for factor in (scale, 1.0)
    )
    assert_allclose(found.directions, expected.directions, rtol=1e-12)
    assert_allclose(found.concentrations, expected.concentrations, rtol=1e-9)


def test_the_maximum_without_a_prior_is_scipys_fit():
    X, family = unit(some_rows(0.3)), VonMisesFisher(D)
    fresh = fitted_to_all(family, family.from_natural(np.eye(1, D), np.ones(1)), X)
    direction, kappa = vonmises_fisher.fit(X)
    assert_allclose(fresh.directions[:, 0], direction, rtol=1e-10)
    assert_allclose(fresh.concentrations, kappa, rtol=1e-7)


@pytest.mark.bits
@pytest.mark.parametrize("spread", [1e-4, 1e-5])
def test_the_concentration_of_tight_rows_keeps_its_digits(spread):
    """1 - r is of the order of spread^2, below the rounding of r."""
    rng = np.random.default_rng(5)
    across = spread * np.hstack([np.zeros((N, 1)), rng.normal(size=(N, D - 1))])
    X = unit(np.eye(1, D) + across - across.mean(axis=0))
    family = VonMisesFisher(D)
    components = family.from_natural(X[:1], np.array([1e8]))
    assert components.concentrated.all()
    found = fitted_to_all(family, components, X).concentrations
    assert_allclose(found, vmf.fit(X)[1], rtol=1e-6)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_an_empty_component_keeps_its_parameters(strength):
    family = VonMisesFisher(D, prior_strength=strength, prior_length=0.5)
    components, block = some_components(family), whole(some_rows())
    responsibilities = DenseResponsibilities(
        np.eye(K)[np.zeros(N, dtype=int)] * block.scales[:, None]
    )
    moments = family.moments(block, responsibilities, components)
    stats = Statistics(0.0, N, np.array([N, 0.0, 0.0]), moments, None)
    fresh, broken = family.maximize(stats, components)
    assert not broken.any()
    assert_array_equal(fresh.directions[:, 1:], components.directions[:, 1:])
    assert_allclose(fresh.concentrations[1:], components.concentrations[1:], rtol=1e-10)


@TIED
def test_the_prior_counts_pseudo_rows_for_every_component(tied):
    family = VonMisesFisher(D, tied=tied, prior_strength=2.5, prior_length=0.3)
    components = some_components(family, (4.0, 4.0, 4.0))
    each = 0.3 * 4.0 - vmf.log_partition(4.0, D) - vmf.negentropy(0.3, D)
    assert_allclose(family.log_prior(components), K * 2.5 * each, rtol=1e-12)
    at_mode = some_components(family, np.full(K, vmf.concentration(0.3, D)))
    assert_allclose(family.log_prior(at_mode), 0, atol=1e-12)
    assert VonMisesFisher(D).log_prior(components) == 0


@pytest.mark.bits
@pytest.mark.parametrize("length", [0.01, 0.3, 0.999])
def test_near_its_mode_the_prior_keeps_its_digits(length):
    """There it is n0 A'(kappa) / 2 times the square of what the concentration is off by."""
    family, mode = VonMisesFisher(D, prior_length=length), vmf.concentration(length, D)
    slope, _ = vmf.variance_eigenvalues(length, D)
    for strength, share in [(1.0, 1e-3), (1e10, 1e-7), (1e10, -1e-9)]:
        strong = replace(family, prior_strength=strength)
        components = some_components(strong, np.full(K, mode * (1 + share)))
        expected = -K * strength * 0.5 * slope * (mode * share) ** 2
        assert_allclose(strong.log_prior(components), expected, rtol=2e-3)


@TIED
@pytest.mark.parametrize("method", ["exact", "newton", "ode", "rational", "banerjee"])
def test_a_prior_that_outweighs_all_rows_is_at_its_mode(method, tied):
    """Pseudo-rows, so many that a step moves nothing, and the bound stands still."""
    options = {"tied": tied, "method": method, "prior_strength": 1e300, "prior_length": 0.3}
    family = VonMisesFisher(D, **options)
    components = family.from_centres(unit(np.random.default_rng(3).normal(size=(K, D))))
    assert family.log_prior(components) < -1e290
    stats, _ = statistics(family, components, whole(some_rows()))
    fresh, _ = family.maximize(stats, components)
    assert_array_equal(fresh.lengths, np.full(K, 0.3))
    assert family.log_prior(fresh) == 0


def test_the_prior_is_centred_on_the_pooled_length_of_a_partition():
    family = VonMisesFisher(D, prior_strength=1.0)
    stats, resp = statistics(family, family.from_centres(np.eye(K, D)), whole(some_rows()))
    pooled = np.linalg.norm(resp.T @ unit(some_rows()), axis=1).sum() / N
    assert_allclose(family.with_prior_from(stats).prior_length, pooled)
    assert family.prior_length == 0


@TIED
def test_a_start_has_one_concentration(tied):
    family = VonMisesFisher(D, tied=tied)
    stats, resp = statistics(family, family.from_centres(np.eye(K, D)), whole(some_rows()))
    sums = resp.T @ unit(some_rows())
    pooled = np.linalg.norm(sums, axis=1).sum() / N
    start = family.initial(stats, None)
    assert_allclose(start.directions.T, unit(sums), rtol=1e-10, atol=1e-14)
    assert_allclose(start.lengths, pooled)
    assert_allclose(start.concentrations, vmf.concentration(pooled, D))
    centred = family.initial(stats, None, np.eye(K, D))
    assert_array_equal(centred.directions.T, np.eye(K, D))
    assert_allclose(centred.lengths, pooled)


@TIED
def test_a_start_on_rows_that_are_all_but_equal_has_the_pseudo_rows_too(tied):
    """Their own resultant length is 1 but for rounding."""
    family = VonMisesFisher(D, tied=tied, prior_strength=2.0)
    sums = np.zeros((D, K))
    sums[0] = counts = np.array([5.0, 7.0, 1.0])
    stats = Statistics(0.0, counts.sum(), counts, (sums,), None)
    start = family.with_prior_from(stats).initial(stats, None)
    assert_allclose(start.complements, 1e-6 * 2 * K / (counts.sum() + 2 * K), rtol=1e-9)


def test_parts_that_are_empty_or_cancel_start_at_some_axis():
    """Where rows cancel, the direction of what rounding leaves would be another at every turn."""
    family, sums = VonMisesFisher(D), np.zeros((D, 3))
    sums[:, 0] = 0.5
    sums[:, 2] = 1e-15
    stats = Statistics(0.0, 4.0, np.array([2.0, 0.0, 2.0]), (sums,), None)
    directions = family.initial(stats, None).directions
    assert_array_equal(np.sort(directions[:, 1:], axis=0), np.eye(D)[:, [-1, -1]])
    assert directions[:, 1] @ directions[:, 2] == 0  # equal components would never part
    assert_allclose(directions[:, 0], 0.5)


@TIED
def test_a_reseeded_component_has_the_mean_length_of_all(tied):
    """And a unit direction: a row scaled to unit length in float32 is off by its rounding."""
    family, row = (
        VonMisesFisher(D, tied=tied),
        unit(some_rows())[0].astype(np.float32).astype(float),
    )
    assert abs(np.linalg.norm(row) - 1) > 1e-9
    before = some_components(family, (4.0, 4.0, 4.0) if tied else (0.5, 5.0, 200.0))
    moved = family.reseed(before, 1, row)
    assert_allclose(moved.directions[:, 1], row / np.linalg.norm(row), rtol=1e-15)
    assert_array_equal(moved.directions[:, [0, 2]], before.directions[:, [0, 2]])
    lengths = before.lengths[[0, 2]]
    assert_allclose(moved.lengths, [lengths[0], before.lengths.mean(), lengths[1]])


@pytest.mark.bits
@FORMATS
def test_densities_at_the_peak_of_a_large_concentration_keep_their_digits(as_format):
    family, row = VonMisesFisher(D), np.eye(1, D)
    for kappa in (1e6, 1e9, 1e12):
        components = family.from_natural(row, np.array([kappa]))
        expected = vmf.logpdf(row, row, kappa)
        found = family.scores(whole(as_format(row)), components).log_density()
        assert_allclose(found[0], expected, rtol=1e-14)


@FORMATS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_one_minus_the_cosine(as_format, dtype):
    X, centres = some_rows(dtype=dtype), unit(np.random.default_rng(3).normal(size=(5, D)))
    found = VonMisesFisher(D).distances(whole(as_format(X)), centres)
    expected = 1 - unit(X.astype(float)) @ centres.T
    assert_allclose(found, expected, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert (found >= 0).all()


@pytest.mark.parametrize("method", ["exact", "newton", "ode", "rational", "banerjee"])
def test_means_and_natural_parameters_say_the_same(method):
    family = VonMisesFisher(D, method=method)
    means = np.array([[0.6, 0, 0, 0], [0, 0.1, 0.1, 0], [0, 0, 0, 0.0]])
    components = family.from_means(means)
    assert_allclose(components.directions.T * components.lengths[:, None], means, atol=1e-15)
    assert_array_equal(components.directions[:, 2], np.eye(1, D)[0])  # any direction will do
    assert_allclose(components.lengths + components.complements, 1)
    if method in ("exact", "newton"):
        other = family.from_natural(7 * components.directions.T, components.concentrations)
        assert_allclose(other.lengths, components.lengths, rtol=1e-9, atol=1e-12)
        assert_allclose(other.directions, components.directions, atol=1e-15)
    psi = vmf.negentropy(components.lengths, D, method=method)
    log_partition = components.concentrations * components.lengths - psi
    expected = -log_partition - vmf.log_sphere_area(D)
    assert_allclose(components.log_normalizers, expected, rtol=1e-8, atol=1e-10)


def test_concentrations_are_bounded():
    family = VonMisesFisher(D)
    with pytest.raises(ValueError, match="at most 1e\\+12, got 1e\\+13"):
        family.from_natural(np.eye(1, D), np.array([1e13]))
    tight = family.components(np.eye(D)[:, :1], np.ones(1), np.zeros(1))
    assert tight.concentrations[0] <= MAX_CONCENTRATION * (1 + 1e-15)
    assert np.isfinite(tight.log_normalizers).all()


def test_kmeans_shares_one_concentration_and_has_no_prior():
    twin = VonMisesFisher(D, method="rational", prior_strength=2.0).kmeans()
    assert (twin.tied, twin.method, twin.prior_strength) == (True, "exact", 0.0)
    centres = unit(np.random.default_rng(0).normal(size=(K, D)))
    assert_array_equal(twin.centres(twin.from_centres(centres)), centres)


def test_a_fit_goes_on_with_its_anchor():
    fresh = VonMisesFisher(D, prior_strength=2.0)
    assert VonMisesFisher(D, prior_length=0.3).continued_by(fresh).prior_length == 0.3
    assert VonMisesFisher(D, prior_length=0.3).continued_by(fresh).prior_strength == 2.0
    with pytest.raises(ValueError, match="has 5 features, not 4"):
        VonMisesFisher(5).continued_by(fresh)
    assert fresh.min_rows == 2
    assert_allclose(VonMisesFisher(3).zero_row_log_density, -np.log(4 * np.pi))


@pytest.mark.parametrize("length", [0.3, 1.0])
def test_a_mean_opposite_to_its_old_direction_has_its_length(length):
    direction = np.array([[0.6], [0.8]])
    lengths, complements = concentrated_lengths(
        -length * direction, np.array([1 + length]), direction
    )
    assert_allclose([lengths[0], complements[0]], [length, 1 - length], atol=1e-15)


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e308])
def test_directions_of_any_length_make_the_same_components(size):
    signs = np.sign(np.random.default_rng(1).normal(size=(K, D)))
    found, expected = (VonMisesFisher(D).from_natural(s * signs, np.ones(K)) for s in (size, 1.0))
    assert_allclose(found.directions, expected.directions, rtol=1e-15)


def test_parts_of_rows_that_cancel_have_a_direction():
    sums = np.vstack([np.zeros(D), 3 * np.eye(1, D)])
    parts = VonMisesFisher(D).fit_parts(DirectionMergeCost(sums, np.array([2.0, 4.0]), 0.0), [0, 1])
    assert_array_equal(np.linalg.norm(parts.directions, axis=0), 1)
    assert_array_equal(parts.directions[:, 1], np.eye(1, D)[0])
    assert_allclose(parts.lengths, 0.5)
