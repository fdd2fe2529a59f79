"""The units of features do not matter where covariances have as many variances as features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from skvmf import ComponentPath, RelativeGMM, SparseGaussianMixture, StudentTMixture

from ..pairwise import pairwise

X, Y = load_wine(return_X_y=True)
SPREADS = X.std(axis=0)
POWERS = 2.0 ** np.random.default_rng(0).integers(-9, 10, X.shape[1])
FACTORS = 10.0 ** np.random.default_rng(1).uniform(-3, 3, X.shape[1])
STARTS = ["merging", "kmeans", "k-means++", "random", "random_from_data"]


def known_labels():
    """Return three known rows of each class."""
    known = np.full(len(X), -1)
    for k in range(3):
        known[np.flatnonzero(Y == k)[:3]] = k
    return known


def assert_same(mixture, scaled, units):
    """Parameters have the same bits, each in its own units; so have probabilities of rows."""
    assert_array_equal(mixture.weights_, scaled.weights_)
    assert_array_equal(mixture.means_, scaled.means_ / units)
    assert_array_equal(mixture.labels_, scaled.labels_)
    assert_array_equal(mixture.probabilities_, scaled.probabilities_)
    assert mixture.background_weight_ == scaled.background_weight_
    shift = np.log(units).sum()
    assert_allclose(mixture.lower_bound_, scaled.lower_bound_ + shift, rtol=1e-12)
    assert_allclose(mixture.score(X), scaled.score(X * units) + shift, rtol=1e-12)


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture],
    covariance_type=["full", "tied", "diag"],
    init_params=STARTS,
    background=[False, True],
    known=[False, True],
    order=["C", "F"],
)
def test_powers_of_two_change_no_bit(kind, covariance_type, init_params, background, known, order):
    options = dict(covariance_type=covariance_type, init_params=init_params, reg_covar=0)
    options |= dict(background=background, random_state=0)
    fits = [
        kind(3, **options).fit(
            np.asarray(X * units, order=order), known_labels=known_labels() if known else None
        )
        for units in (1.0, POWERS)
    ]
    assert_same(*fits, POWERS)


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture, RelativeGMM],
    covariance_type=["full", "tied", "diag"],
    background=[False, True],
    known=[False, True],
    copies=[1, 40],  # rows of a pattern are taken together where there are many
)
def test_powers_of_two_change_no_bit_where_values_are_missing(
    kind, covariance_type, background, known, copies
):
    """The determinants of what is missing, too, are taken in units of the features' spread."""
    rows = X.copy()
    rows[np.random.default_rng(2).random(X.shape) < 0.05] = np.nan
    rows, labels = np.tile(rows, (copies, 1)), np.tile(known_labels(), copies)
    options = dict(covariance_type=covariance_type, reg_covar=0, background=background)
    options |= dict(missing_values="marginal", random_state=0, max_iter=5, tol=1e-9)
    if kind is RelativeGMM:
        labels[:] = -1  # classes may not be in order
    first, second = (
        kind(3, **options).fit(rows * units, known_labels=labels if known else None)
        for units in (1.0, POWERS)
    )
    assert_array_equal(first.weights_, second.weights_)
    assert_array_equal(first.means_, second.means_ / POWERS)
    assert_array_equal(first.probabilities_, second.probabilities_)


@pytest.mark.parametrize("solver", ["ecm", "em"])
@pytest.mark.parametrize("order", ["means", "scales", "both"])
def test_powers_of_two_change_no_bit_of_ordered_components(order, solver):
    """Which equation LAPACK solves first, by its size, does not depend on units."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows, units = rng.normal(size=(60, 3)), 2.0 ** rng.integers(-9, 10, 3)
        options = dict(order=order, solver=solver, random_state=0, reg_covar=0, max_iter=20)
        first = RelativeGMM(4, clearance=0.125, **options).fit(rows)
        second = RelativeGMM(4, clearance=0.125 * units[0], **options).fit(rows * units)
        assert_array_equal(first.means_, second.means_ / units)
        assert_array_equal(first.probabilities_, second.probabilities_)


def test_the_rounding_of_a_bound_is_the_same_in_any_unit():
    """Bounds that fall by reg_covar end a fit at the best; which falls count has no unit."""
    rng = np.random.default_rng(133)  # of 300, the one whose bound falls by about the rounding
    rows, labels = 1e-3 * np.eye(4)[rng.integers(4, size=20)], rng.integers(2, size=20)
    n_steps = set()
    for unit in 2.0 ** np.arange(-20, 21, 10):
        mixture = SparseGaussianMixture(
            2, init_params=labels, reg_covar=1e-6 * unit**2, weight_concentration_prior=1.0
        )
        n_steps.add(mixture.fit(rows * unit).n_iter_)
    assert len(n_steps) == 1


@pytest.mark.parametrize("init_params", ["merging", Y, "means"])
def test_powers_of_two_change_no_bit_of_given_starts(init_params):
    def fit(units):
        options = dict(random_state=0, reg_covar=0)
        if isinstance(init_params, str) and init_params == "means":
            options["means_init"] = X[[0, 70, 150]] * units
        else:
            options["init_params"] = init_params
        return SparseGaussianMixture(3, **options).fit(X * units)

    assert_same(fit(1.0), fit(POWERS), POWERS)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
def test_powers_of_two_change_no_bit_of_streams_and_warm_starts(kind, background):
    order = np.random.default_rng(0).permutation(len(X))

    def stream(units):
        mixture = kind(3, random_state=0, reg_covar=0, background=background)
        for rows in np.array_split(X[order] * units, 2):
            mixture.partial_fit(rows)
        return mixture.partial_fit(X * units)

    def grown(units):
        mixture = kind(2, random_state=0, reg_covar=0, background=background, warm_start=True)
        return mixture.fit(X * units).set_params(n_components=4).fit(X * units)

    for first, second in [(stream(1.0), stream(POWERS)), (grown(1.0), grown(POWERS))]:
        assert_array_equal(first.weights_, second.weights_)
        assert_array_equal(first.means_, second.means_ / POWERS)


def test_powers_of_two_change_no_bit_of_paths():
    paths = [
        ComponentPath(SparseGaussianMixture(random_state=0, reg_covar=0), max_components=6).fit(
            X * units
        )
        for units in (1.0, POWERS)
    ]
    assert_array_equal(paths[0].linkage_[:, :2], paths[1].linkage_[:, :2])
    assert_array_equal(paths[0].linkage_[:, 2] > 0, paths[1].linkage_[:, 2] > 0)
    assert_array_equal(paths[0].cut(3, X), paths[1].cut(3, X * POWERS))


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture],
    covariance_type=["full", "tied", "diag"],
    missing=[False, True],
    init_params=["merging", "kmeans"],
)
def test_other_factors_change_nothing_beyond_rounding(kind, covariance_type, missing, init_params):
    rows = X + 1e-3 * SPREADS * np.random.default_rng(0).normal(size=X.shape)  # without ties
    if missing:
        rows[np.random.default_rng(2).random(X.shape) < 0.03] = np.nan
    options = dict(covariance_type=covariance_type, init_params=init_params, reg_covar=0)
    options |= dict(random_state=0, missing_values="marginal" if missing else "error")
    first, second = (kind(3, **options).fit(rows * units) for units in (1.0, FACTORS))
    # Components may have other numbers where merges cost the same but for rounding.
    assert_allclose(np.sort(first.weights_), np.sort(second.weights_), rtol=1e-4)
    assert_allclose(first.lower_bound_, second.lower_bound_ + observed_shift(rows), rtol=1e-6)


def observed_shift(rows):
    """Return the mean of the logarithms of the factors that rows have values of."""
    return float(np.mean(~np.isnan(rows) @ np.log(FACTORS)))


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_a_background_leaves_clusters_their_rows_in_any_units(covariance_type):
    """A box is narrow along a feature of small numbers: spheres in raw units are not."""
    mixture = SparseGaussianMixture(
        3, covariance_type=covariance_type, background=True, random_state=0, reg_covar=0
    ).fit(X)
    assert mixture.background_weight_ < 0.2
    inside = mixture.labels_ >= 0
    assert adjusted_rand_score(Y[inside], mixture.labels_[inside]) > 0.8


def test_known_labels_lead_others_in_any_units():
    """A feature of noise and of large numbers does not decide which class rows are nearest to."""
    noise = np.random.default_rng(0).normal(size=(len(X), 1))
    for method in ("fit", "partial_fit"):
        labels = []
        for factor in (1, 1024):
            rows = np.hstack([X / SPREADS, factor * noise])
            mixture = SparseGaussianMixture(3, covariance_type="diag", reg_covar=0, random_state=0)
            labels.append(getattr(mixture, method)(rows, known_labels=known_labels()).labels_)
        assert_array_equal(*labels)
        assert (labels[0] == Y).mean() > 0.8


def test_an_ordered_mixture_has_its_order_in_any_units():
    first, second = (
        RelativeGMM(3, random_state=0, reg_covar=0).fit(X * units) for units in (1.0, POWERS)
    )
    assert_array_equal(first.means_, second.means_ / POWERS)


@pairwise(
    kind=[SparseGaussianMixture, StudentTMixture],
    covariance_type=["full", "tied", "diag", "spherical"],
    init_params=STARTS,
    n_components=[2, 5],
)
def test_the_order_of_features_does_not_matter(kind, covariance_type, init_params, n_components):
    """Also where rows have no clusters, so that a start ends wherever it began."""
    options = dict(covariance_type=covariance_type, init_params=init_params, max_iter=0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(60, 4))
        order = rng.permutation(4)
        first = kind(n_components, random_state=0, **options).fit(rows)
        second = kind(n_components, random_state=0, **options).fit(rows[:, order])
        assert_allclose(first.means_[:, order], second.means_, atol=1e-9)


# Units are the spread within clusters: that of all rows says little of one.


def told_apart_by_one_feature(gap, n_features, seed):
    """Return rows of five clusters that lie along the first feature; the others are noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=600)
    rows = rng.normal(size=(600, n_features))
    rows[:, 0] += gap * labels
    return rows, labels


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
@pytest.mark.parametrize(("gap", "n_features"), [(8, 6), (20, 10), (100, 30)])
def test_one_feature_tells_clusters_apart_among_noise(kind, covariance_type, gap, n_features):
    for seed in range(2):
        rows, labels = told_apart_by_one_feature(gap, n_features, seed)
        mixture = kind(5, covariance_type=covariance_type, random_state=0).fit(rows)
        assert adjusted_rand_score(labels, mixture.labels_) > 0.95


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_rows_that_are_new_to_a_fit_are_told_apart_by_one_feature(covariance_type):
    """A warm start with more components, too, looks for clusters in units within them."""
    rows, labels = told_apart_by_one_feature(20, 10, 0)
    mixture = SparseGaussianMixture(
        2, covariance_type=covariance_type, random_state=0, warm_start=True
    )
    mixture.fit(rows[labels < 2]).set_params(n_components=5).fit(rows)
    assert adjusted_rand_score(labels, mixture.labels_) > 0.95


@pytest.mark.slow
def test_small_spherical_clusters_are_found_as_in_their_own_units():
    """The mean over forty sets of forty rows: .90 in their units, .86 in those of all rows."""
    scores = []
    for seed in range(40):
        rows, labels = make_blobs(40, 2, centers=4, random_state=seed)
        mixture = SparseGaussianMixture(4, random_state=0).fit(rows)
        scores.append(adjusted_rand_score(labels, mixture.labels_))
    assert np.mean(scores) > 0.87


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_counts_that_repeat_values_are_no_clusters(share):
    """Ranks tell nothing of a feature that mostly repeats values: it counts as the others do."""
    rng = np.random.default_rng(0)
    rows, labels = make_blobs(300, 3, centers=3, random_state=0)
    counts = rng.poisson(2, 300) * (rng.random(300) < share)
    mixture = SparseGaussianMixture(3, random_state=0, reg_covar=1e-2)
    mixture.fit(np.column_stack([rows, counts]))
    assert adjusted_rand_score(labels, mixture.labels_) > 0.95


def test_a_feature_that_is_the_same_in_near_rows_leaves_the_fit_finite():
    rows, labels = make_blobs(300, 3, centers=3, random_state=0)
    mixture = SparseGaussianMixture(3, random_state=0).fit(np.column_stack([rows, labels]))
    assert np.isfinite(mixture.lower_bound_)
    assert adjusted_rand_score(labels, mixture.labels_) > 0.95


# Missing values: the search does not believe what it has filled in.


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_clusters_are_found_where_values_are_missing(share):
    """As from the true partition, for ten sets of which up to five ended short of it."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        means = rng.normal(0, 3, (5, 4))
        roots = 0.6 * rng.normal(size=(5, 4, 4))
        labels = rng.integers(5, size=1000)
        rows = means[labels] + np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(1000, 4)))
        rows[rng.random(rows.shape) < share] = np.nan
        options = dict(missing_values="marginal", weight_concentration_prior=1.0)
        mixture = SparseGaussianMixture(5, random_state=0, **options).fit(rows)
        oracle = SparseGaussianMixture(5, init_params=labels, **options).fit(rows)
        assert mixture.lower_bound_ > oracle.lower_bound_ - 0.02


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
@pytest.mark.parametrize("weight", [1e-20, 1e-100, 1e-300])
def test_powers_of_two_change_no_bit_where_one_row_has_nearly_all_weight(kind, weight):
    weights = np.full(len(X), weight)
    weights[7] = 1.0
    means = X[[0, 60, 150]]
    fits = [
        kind(3, fixed=("means", "weights"), means_init=means * units, reg_covar=0, max_iter=0).fit(
            X * units, sample_weight=weights
        )
        for units in (1.0, POWERS)
    ]
    assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert_array_equal(fits[0].probabilities_, fits[1].probabilities_)


@pytest.mark.parametrize("missing_values", ["error", "marginal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_weigh_next_to_nothing_may_be_far_from_the_others(dtype, missing_values):
    """In units of the spread of those that do, they are beyond the largest float."""
    rows = (1e9 * np.random.default_rng(0).poisson(0.7, size=(30, 4))).astype(dtype)
    weights = np.full(30, 1e-90)
    weights[:5] = 1.0
    rows[:5] = 1.0
    if missing_values == "marginal":
        rows[20, 1] = np.nan
    mixture = SparseGaussianMixture(2, missing_values=missing_values, random_state=0)
    mixture.fit(rows, sample_weight=weights)
    assert np.isfinite(mixture.means_).all()
    assert np.isfinite(mixture.lower_bound_)
