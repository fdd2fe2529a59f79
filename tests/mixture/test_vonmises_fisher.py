"""VonMisesFisherMixture through its public methods."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import vonmises_fisher
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from skvmf import VonMisesFisherMixture
from skvmf.distributions import vonmises_fisher as vmf

from .. import oracles
from ..csr_forms import FORMS
from ..pairwise import pairwise
from .checks import assert_bound_never_falls, assert_finite
from .em import em_on_the_sphere


def directions(n, d, n_clusters=3, noise=0.25, seed=0, dtype=np.float64):
    """Rows of random length about a few random directions, and which."""
    rng = np.random.default_rng(seed)
    centres = normalize(rng.normal(size=(n_clusters, d)))
    y = rng.integers(n_clusters, size=n)
    X = centres[y] + noise * rng.normal(size=(n, d)) / np.sqrt(d)
    return (X * rng.uniform(0.5, 2, size=(n, 1))).astype(dtype), y


@pytest.mark.bits
@pytest.mark.parametrize("d", [2, 3, 10])
def test_float32_sums_longer_than_their_counts_are_no_certainty(d):
    """Rounding may make a mean resultant length larger than one, and its component a needle."""
    X = np.full((40, d), -3.0, dtype=np.float32)
    options = {"init_params": "random_from_data", "concentrations_init": 1.0}
    mixture = VonMisesFisherMixture(1, **options).fit(X)
    falls = -np.diff(mixture.lower_bounds_)
    assert (falls < 1e-5).all()
    exact = VonMisesFisherMixture(1, **options).fit(X.astype(np.float64))
    assert_allclose(mixture.concentrations_, exact.concentrations_, rtol=1e-6)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_agrees_with_em_by_hand(tied, form):
    X, _ = directions(300, 6)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 2, size=300)
    labels = rng.integers(3, size=300)
    units = normalize(X)
    resp = np.eye(3)[labels] * weights[:, None]
    sums = resp.T @ units
    kappa = vmf.concentration(np.linalg.norm(sums, axis=1).sum() / weights.sum(), 6)
    start = resp.sum(axis=0) / weights.sum(), normalize(sums), np.full(3, kappa)
    pi, directions_, kappa, bounds = em_on_the_sphere(units, weights, *start, 7, tied=tied)
    mixture = VonMisesFisherMixture(
        3,
        concentration_type="tied" if tied else "free",
        concentration_prior=0,
        init_params=labels,
        max_iter=7,
        tol=0,
    )
    mixture.fit(X if form == "dense" else sparse.csr_array(X), sample_weight=weights)
    assert_allclose(mixture.lower_bounds_, bounds, rtol=1e-12)
    assert_allclose(mixture.weights_, pi, rtol=1e-10)
    assert_allclose(mixture.mean_directions_, directions_, rtol=1e-9, atol=1e-12)
    assert_allclose(mixture.concentrations_, kappa, rtol=1e-9)
    assert_allclose(mixture.score(X, sample_weight=weights), mixture.lower_bound_, rtol=1e-13)


@pairwise(
    init=["kmeans", "k-means++", "random", "random_from_data"],
    form=["dense", "csr"],
    dtype=[np.float32, np.float64],
)
def test_finds_separated_clusters(init, form, dtype):
    X, y = directions(400, 16, dtype=dtype)
    X = sparse.csr_array(X) if form == "csr" else X
    mixture = VonMisesFisherMixture(3, init_params=init, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(y, mixture.labels_) > 0.99
    assert mixture.converged_
    assert_array_equal(mixture.predict(X), mixture.labels_)
    assert mixture.predict_proba(X).dtype == dtype
    assert mixture.score_samples(X).dtype == dtype


def test_recovers_the_parameters_that_it_samples():
    truth = VonMisesFisherMixture.from_parameters(
        [0.3, 0.7],
        mean_directions=[[1, 0, 0, 0], [0, 2, 1, 0]],
        concentrations=[20.0, 60.0],
        random_state=0,
    )
    X, y = truth.sample(20000)
    assert_allclose(np.linalg.norm(X, axis=1), 1)
    fitted = VonMisesFisherMixture(2, random_state=0, tol=1e-8, concentration_prior=0).fit(X)
    order = np.argsort(fitted.weights_)
    assert_allclose(fitted.weights_[order], [0.3, 0.7], atol=0.01)
    assert_allclose(fitted.concentrations_[order], [20, 60], rtol=0.05)
    assert_allclose(fitted.means_[order], truth.means_, atol=0.01)
    assert np.mean(fitted.predict(X) == order[y]) > 0.99


@pytest.mark.bits
@pytest.mark.parametrize("seed", range(10))
def test_warm_start_goes_on_wherever_it_begins(seed):
    X, _ = directions(300, 6, noise=1.5)
    labels = np.random.default_rng(seed).integers(3, size=300)
    whole = VonMisesFisherMixture(3, init_params=labels, max_iter=6, tol=0).fit(X)
    parts = VonMisesFisherMixture(3, init_params=labels, max_iter=2, tol=0, warm_start=True).fit(X)
    parts.set_params(max_iter=4).fit(X)
    assert_array_equal(parts.weights_, whole.weights_)
    assert_array_equal(parts.means_, whole.means_)


# Degenerate and bad input


@pytest.mark.parametrize("form", FORMS)
def test_csr_representation_does_not_matter(form):
    X = sparse.csr_array(np.maximum(directions(80, 30)[0], 0))
    options = dict(init_params=np.arange(80) % 3, max_iter=10, tol=0)
    expected = VonMisesFisherMixture(3, **options).fit(X)
    other = form(X)
    before = other.copy()
    mixture = VonMisesFisherMixture(3, **options).fit(other)
    assert_allclose(mixture.means_, expected.means_, rtol=1e-10, atol=1e-14)
    for part in {"data", "indices", "indptr"} & set(vars(other)):
        assert_array_equal(getattr(other, part), getattr(before, part))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_zero_row_counts_nothing(form):
    X, _ = directions(60, 4)
    with_zeros = np.vstack([X, np.zeros((20, 4))])
    labels = np.arange(80) % 3
    options = dict(max_iter=10, tol=0)
    a = VonMisesFisherMixture(3, init_params=labels, **options).fit(form(with_zeros))
    b = VonMisesFisherMixture(3, init_params=labels[:60], **options).fit(form(X))
    assert_allclose(a.means_, b.means_, rtol=1e-12)
    for criterion in ("score", "aic", "bic"):
        with_them, without = getattr(a, criterion)(form(with_zeros)), getattr(a, criterion)(form(X))
        assert_allclose(with_them, without, rtol=1e-12)
    assert_allclose(a.predict_proba(form(with_zeros))[60:], np.tile(a.weights_, (20, 1)))
    assert_allclose(a.score_samples(form(with_zeros))[60:], -vmf.log_sphere_area(4))
    assert (a.predict(form(with_zeros))[60:] == a.weights_.argmax()).all()
    assert (a.labels_[60:] == a.weights_.argmax()).all()
    assert_allclose(a.probabilities_[60:], a.weights_.max())
    with pytest.raises(ValueError, match="rows with positive weight are zero"):
        VonMisesFisherMixture(3).fit(form(with_zeros), sample_weight=np.arange(80) >= 60)


@pairwise(
    weight=[1e30, 1e100, 1e300],
    of_others=[1.0, 1e-30, 1e-200],
    warm_start=[False, True],
    form=[np.asarray, sparse.csr_array],
)
def test_a_zero_row_may_weigh_more_than_all_others(form, warm_start, weight, of_others):
    X, _ = directions(60, 4)
    X = form(np.vstack([X, np.zeros((1, 4))]).astype(np.float32))
    found = []
    for last in (of_others, weight):
        mixture = VonMisesFisherMixture(
            2, concentration_prior=0, warm_start=warm_start, random_state=0
        ).fit(X)
        mixture.fit(X, sample_weight=np.append(np.full(60, of_others), last))
        found.append((mixture.means_, mixture.weights_, mixture.lower_bound_))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one, other)


def test_one_feature_has_no_directions():
    with pytest.raises(ValueError, match="n_features = 1"):
        VonMisesFisherMixture(2).fit(np.ones((10, 1)))


@pytest.mark.parametrize("kappa", [1e6, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tight_sparse_rows_are_fitted_as_dense(kappa, dtype):
    X = np.vstack([vmf.rvs(e, kappa, size=300, random_state=i) for i, e in enumerate(np.eye(3))])
    X = X.astype(dtype)
    options = dict(concentration_prior=0, init_params=np.repeat([0, 1, 2], 300))
    dense = VonMisesFisherMixture(3, **options).fit(X)
    csr = VonMisesFisherMixture(3, **options).fit(sparse.csr_array(X))
    digits = np.finfo(dtype).eps * kappa  # what 1 - m.x still carries
    assert_allclose(csr.concentrations_, dense.concentrations_, rtol=max(1e-9, 10 * digits))
    assert_array_equal(csr.labels_, dense.labels_)


def test_pruning_is_not_convergence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X[:100, 0] += 5
    X[100:200, 1] += 5
    options = dict(weight_concentration_prior=-3, concentration_prior=1.0, max_iter=400)
    options["init_params"] = "kmeans"
    mixture = VonMisesFisherMixture(6, random_state=0, **options).fit(X)
    again = VonMisesFisherMixture(6, random_state=0, tol=1e-7, **options).fit(X)
    assert mixture.converged_
    assert mixture.n_active_components_ == again.n_active_components_


@pytest.mark.bits
def test_tight_clusters_keep_their_digits():
    truth = VonMisesFisherMixture.from_parameters(
        [0.5, 0.5],
        mean_directions=[[1, 2, 3], [1, -1, 0]],
        concentrations=[1e9, 1e11],
        random_state=0,
    )
    X, y = truth.sample(4000)
    mixture = VonMisesFisherMixture(
        2, random_state=0, tol=1e-9, concentration_prior=0, max_iter=20
    ).fit(X)
    order = mixture.predict(truth.mean_directions_)
    for k in range(2):
        rows = X[y == k]
        _, kappa = vmf.fit(rows)
        assert_allclose(mixture.concentrations_[order[k]], kappa, rtol=1e-7)


def test_an_empty_component_is_reseeded_once_then_pruned():
    X = np.repeat(np.eye(3)[:2], 50, axis=0)
    options = dict(n_components=3, means_init=[[1, 0, 0], [0, 1, 0], [-1, -1, 0]], temperature=0)
    moved = VonMisesFisherMixture(max_iter=1, **options).fit(X)
    assert moved._fitted.params.moved_or_pruned.tolist() == [False, False, True]
    assert np.abs(X - moved.mean_directions_[2]).sum(axis=1).min() < 1e-12  # to a row
    mixture = VonMisesFisherMixture(max_iter=20, **options).fit(X)
    assert_finite(mixture, X)
    assert mixture.n_active_components_ == np.count_nonzero(mixture.weights_) == 2
    assert mixture.means_.shape == (3, 3)


def test_an_empty_component_goes_to_the_least_likely_row():
    X, _ = directions(200, 4, noise=0.1)
    X = np.vstack([X, [[-1.0, 0, 0, 0]], [[0, 0, 0, -1.0]]])
    labels = np.zeros(202, dtype=int)  # the second component has no rows
    again = VonMisesFisherMixture(2, init_params=labels, temperature=0, max_iter=1).fit(X)
    direction = again.mean_directions_[1]
    first = VonMisesFisherMixture(1, max_iter=0).fit(X)
    worst = normalize(X[[first.score_samples(X).argmin()]])[0]
    assert_allclose(direction, worst, atol=1e-12)


# Threads and processes


def test_same_bits_after_fork():
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    X, _ = directions(20_000, 8)
    mixture = VonMisesFisherMixture(5, random_state=0, max_iter=4, tol=0)
    with threadpool_limits(2):
        expected = mixture.fit(X).means_
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with threadpool_limits(2):
            os.write(writer, pickle.dumps(mixture.fit(X).means_))
        os._exit(0)
    means = pickle.loads(os.read(reader, 1 << 16))
    assert os.waitpid(child, 0)[1] == 0
    assert_array_equal(means, expected)


def test_overlapping_fits_do_not_disturb_each_other():
    X, _ = directions(20_000, 8)
    mixtures = [VonMisesFisherMixture(4, random_state=0) for _ in range(3)]
    expected = mixtures.pop().fit(X).means_
    with ThreadPoolExecutor(2) as threads:
        for fitted in threads.map(lambda mixture: mixture.fit(X), mixtures):
            assert_array_equal(fitted.means_, expected)


@pytest.mark.parametrize("d", [3, 300])
def test_concentrations_are_pooled_the_more_the_more_features_there_are(d):
    """They are a component's own in few dimensions, and nearly tied in many."""
    truth = VonMisesFisherMixture.from_parameters(
        [0.5, 0.5], mean_directions=np.eye(2, d), concentrations=[4.0 * d, d], random_state=0
    )
    X, labels = truth.sample(2000)
    free, pooled, tied = (
        VonMisesFisherMixture(2, init_params=labels, **options).fit(X)
        for options in (
            {"concentration_prior": 0},
            {},
            {"concentration_type": "tied", "concentration_prior": 0},
        )
    )
    spread = [np.ptp(mixture.concentrations_) for mixture in (free, pooled, tied)]
    assert spread[2] == 0
    low, high = (0.98, 1.0) if d == 3 else (0.005, 0.1)
    assert low * spread[0] < spread[1] < high * spread[0]
    assert pooled.lower_bound_ <= pooled.score(X) + 1e-9  # the prior only takes away


@pytest.mark.bits
@pairwise(
    form=[np.asarray, sparse.csr_array],
    dtype=[np.float32, np.float64],
    negentropy=["exact", "newton"],
    largest=[200.0, 1e5, 1e6, 1e9],
)
def test_divergences_keep_their_digits_for_any_concentration(form, dtype, negentropy, largest):
    X, _ = directions(40, 4, dtype=dtype)
    given = normalize(np.random.default_rng(1).normal(size=(3, 4)))
    X[:3] = given
    kappas = [0.5, 5.0, largest]
    mixture = VonMisesFisherMixture.from_parameters(
        np.full(3, 1 / 3), mean_directions=given, concentrations=kappas, negentropy=negentropy
    )
    divergence = mixture.divergence(form(X))
    for k, kappa in enumerate(kappas):
        expected = oracles.vonmises_fisher_log_density(normalize(X.astype(float)), given[k], kappa)
        expected = -expected - vmf.log_sphere_area(4)
        single = dtype == np.float32 and largest == 200
        accuracy = kappa * (1e-6 if single else 1e-13 if kappa < 1e6 else 1e-15) + 1e-11
        rtol = 1e-12 if dtype == np.float64 else 1e-7
        assert_allclose(divergence[:, k], expected, rtol=rtol, atol=accuracy)


@pytest.mark.parametrize("kappa", [1e-3, 1.0, 30.0])
def test_the_oracle_is_scipys(kappa):
    direction, units = np.eye(1, 4, 1)[0], normalize(directions(40, 4)[0])
    expected = vonmises_fisher(direction, kappa).logpdf(units)
    assert_allclose(oracles.vonmises_fisher_log_density(units, direction, kappa), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_components", [3, 100])
def test_few_and_many_shares_have_the_same_sums(form, n_components):
    """Both ways of summing: by a product, and by the shares that are not zero."""
    X, _ = directions(400, 8, noise=1.5)
    options = dict(means_init=X[:n_components], entmax_alpha=2.0, tol=0)
    mixture = VonMisesFisherMixture(n_components, max_iter=0, **options).fit(form(X))
    sums = mixture.predict_proba(X).T @ normalize(X)
    mixture.set_params(max_iter=1).fit(form(X))
    used = np.linalg.norm(sums, axis=1) > 0.1
    assert used.sum() > n_components / 2
    assert_allclose(mixture.mean_directions_[used], normalize(sums[used]), atol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n0", [30.0, 1e10])
def test_the_prior_counts_pseudo_rows_for_every_component(n0, tied):
    """Of the pooled length of the first start: in concentrations, and in the bound, to digits."""
    sizes, labels = np.array([50, 20]), np.repeat([0, 1], [50, 20])

    def rows(kappas):
        draws = zip(np.eye(4), kappas, sizes, strict=False)
        return np.vstack([vmf.rvs(*d, size=n, random_state=n) for *d, n in draws])

    first, X = rows([300.0, 300.0]), rows([60.0, 200.0])
    length = np.linalg.norm(np.eye(2)[labels].T @ first, axis=1).sum() / 70
    mixture = VonMisesFisherMixture(
        2,
        concentration_prior=n0,
        concentration_type="tied" if tied else "free",
        init_params=labels,
        warm_start=True,
        tol=0,
    )
    mixture.set_params(max_iter=1).fit(first)
    mixture.set_params(max_iter=5).fit(X)
    assert_bound_never_falls(mixture)
    sums = np.linalg.norm(np.eye(2)[labels].T @ X, axis=1)
    if tied:
        lengths = np.full(2, (sums.sum() + 2 * n0 * length) / (70 + 2 * n0))
    else:
        lengths = (sums + n0 * length) / (sizes + n0)
    expected = vmf.concentration(lengths, 4)
    assert_allclose(mixture.concentrations_, expected, rtol=1e-9)
    each = length * expected - vmf.log_partition(expected, 4) - vmf.negentropy(length, 4)
    if n0 > 100:  # the difference above would be rounding alone
        each = -vmf.negentropy(length, 4, order=2) * (lengths - length) ** 2 / 2
    penalty = 70 * (mixture.lower_bound_ - mixture.score(X))
    assert_allclose(penalty, n0 * each.sum(), rtol=1e-6 if n0 < 100 else 1e-3, atol=1e-10)


def test_parts_that_are_empty_or_cancel_start_at_some_axis():
    """Where rows cancel, the direction of what rounding leaves would be another at every turn."""
    rows = np.random.default_rng(0).normal(size=(20, 3))
    X = np.vstack([rows + [9, 0, 0], rows, -rows])
    labels = np.repeat([0, 2], [20, 40])
    fitted = VonMisesFisherMixture(3, init_params=labels, max_iter=0).fit(X).mean_directions_
    assert_array_equal(np.sort(fitted[1:]), np.eye(3)[[-1, -1]])
    assert fitted[1] @ fitted[2] == 0  # equal components would never part


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e308])
def test_directions_of_any_length_make_the_same_components(size):
    signs = np.sign(np.random.default_rng(1).normal(size=(3, 4)))
    mixtures = [
        VonMisesFisherMixture.from_parameters(
            np.full(3, 1 / 3), mean_directions=length * signs, concentrations=np.ones(3)
        )
        for length in (size, 1.0)
    ]
    assert_allclose(mixtures[0].mean_directions_, mixtures[1].mean_directions_, rtol=1e-15)
