"""Memberships that hold: after `calibrate` they are those that other fits of such rows give."""

import pickle
from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from skvmf import ClusterTracker, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf._engine.em.calibration import Judged, best_temperature, log_loss
from skvmf._engine.em.matching import matched_by_rows
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.feature_extraction import FisherVectorTransformer
from skvmf.inspection import match_components, renumber_components
from skvmf.mixture._calibration import log_odds

from .kinds import MIXTURES

RNG = np.random.default_rng(0)
DIAG = {"covariance_type": "diag", "random_state": 0}


def dependent(n, seed=0, gap=1.5):
    """Return rows of four clusters whose features come in groups that are all but equal."""
    rng = np.random.default_rng(seed)
    centres = gap * np.eye(4)
    rows = centres[rng.integers(4, size=n)] + rng.normal(size=(n, 4))
    return np.repeat(rows, 8, axis=1) + 0.3 * rng.normal(size=(n, 32))


X = dependent(1200)


@pytest.fixture(scope="module")
def mixture():
    return SparseGaussianMixture(4, **DIAG).fit(X)


@pytest.fixture(scope="module")
def calibrated(mixture):
    return deepcopy(mixture).calibrate(X, random_state=0)


# What a temperature is.


def test_memberships_are_those_of_the_formula(mixture, calibrated):
    """Log-densities plus log-weights, divided by the temperature."""
    T = calibrated.membership_temperature_
    assert T > 2
    logs = np.stack(
        [
            SparseGaussianMixture.from_parameters(
                [1.0], mean[None], variances[None], **DIAG
            ).score_samples(X)
            for mean, variances in zip(mixture.means_, mixture.covariances_, strict=True)
        ],
        axis=1,
    )
    expected = softmax((logs + np.log(mixture.weights_)) / T, axis=1)
    assert_allclose(calibrated.predict_proba(X), expected, atol=1e-9)
    assert_array_equal(calibrated.transform(X), calibrated.predict_proba(X))
    assert_array_equal(calibrated.responsibilities(X).toarray(), calibrated.predict_proba(X))
    assert_allclose(calibrated.probabilities_, calibrated.predict_proba(X).max(axis=1))


def test_all_but_memberships_stays(mixture, calibrated):
    assert_array_equal(calibrated.labels_, mixture.labels_)
    assert_array_equal(calibrated.predict(X), mixture.predict(X))
    assert_array_equal(calibrated.score_samples(X), mixture.score_samples(X))
    for name in ("bic", "aic", "icl", "score"):
        assert getattr(calibrated, name)(X) == getattr(mixture, name)(X)
    for before, after in zip(mixture.sample(20), calibrated.sample(20), strict=True):
        assert_array_equal(before, after)
    bags = np.split(X, 100)
    vectors = [
        FisherVectorTransformer(each).fit(bags).transform(bags) for each in (mixture, calibrated)
    ]
    assert_array_equal(*vectors)
    for name in ("weights_", "means_", "covariances_", "lower_bound_"):
        assert_array_equal(getattr(calibrated, name), getattr(mixture, name))


@pytest.mark.parametrize("spread", [5, 500])
def test_as_much_is_said_as_holds(spread):
    """On average, also where another model puts rows into components that are far away."""
    log_odds = spread * RNG.normal(size=(400, 3))
    weights = RNG.uniform(0.5, 2, size=400)
    others = softmax(log_odds / 2.5 + 0.3 * RNG.normal(size=(400, 3)), axis=1)
    others[:80] = others[:80, ::-1]
    found = best_temperature([Judged(log_odds, others, weights)])
    assert found > 1
    label = log_odds.argmax(axis=1)
    said = softmax(log_odds / found, axis=1)[np.arange(400), label]
    held = others[np.arange(400), label]
    assert_allclose(np.average(said, weights=weights), np.average(held, weights=weights), atol=1e-3)


def test_the_log_loss_is_the_cross_entropy():
    """In nats for each row, of which some count more and some say only half of it."""
    log_odds = 3 * RNG.normal(size=(50, 3))
    weights = RNG.uniform(0.5, 2, size=50)
    others = softmax(RNG.normal(size=(50, 3)), axis=1) * RNG.choice([0.5, 1], size=(50, 1))
    entropies = -(others * log_softmax(log_odds / 2, axis=1)).sum(axis=1)
    expected = np.sum(weights * entropies) / np.sum(weights * others.sum(axis=1))
    assert_allclose(log_loss([Judged(log_odds, others, weights)], 2.0), expected)


def test_it_is_1_where_memberships_should_be_surer():
    log_odds = RNG.normal(size=(100, 3))
    others = softmax(5 * log_odds, axis=1)
    assert best_temperature([Judged(log_odds, others, np.ones(100))]) == 1


def test_it_is_finite_where_nothing_can_be_predicted():
    log_odds = 100 * RNG.normal(size=(100, 3))
    others = np.full((100, 3), 1 / 3)
    assert 10 < best_temperature([Judged(log_odds, others, np.ones(100))]) <= 1e4
    assert best_temperature([Judged(log_odds, np.zeros((100, 3)), np.ones(100))]) == 1e4


def test_it_is_1_where_memberships_differ_by_rounding():
    log_odds = np.array([[0.0, -800], [-700, 0]])
    others = np.array([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]])
    assert best_temperature([Judged(log_odds, others, np.ones(2))]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_components_are_matched_by_rows_as_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    labels, others = rng.integers(-1, 4, size=(2, 60))
    weights = rng.uniform(size=60)
    shared = np.zeros((4, 4))
    both = (labels >= 0) & (others >= 0)
    np.add.at(shared, (labels[both], others[both]), weights[both])
    best = max(shared[np.arange(4), list(order)].sum() for order in permutations(range(4)))
    indices = matched_by_rows(labels, others, weights, 4)
    has_match = indices >= 0
    assert_allclose(shared[np.arange(4)[has_match], indices[has_match]].sum(), best)
    assert len(set(indices[has_match])) == has_match.sum()


def test_components_without_common_rows_match_none():
    indices = matched_by_rows(np.array([0, 0, 2]), np.array([1, 1, -1]), np.ones(3), 3)
    assert_array_equal(indices, [1, -1, -1])
    assert_array_equal(matched_by_rows(*np.full((2, 3), -1), np.ones(3), 2), [-1, -1])


# What it is for.


def says_and_is(mixture, others, rows):
    """Return the mean largest membership of rows, and what other fits say of these components."""
    proba = mixture.predict_proba(rows)
    label = proba.argmax(axis=1)
    is_ = []
    for other in others:
        index = match_components(mixture, other).indices[label]
        theirs = other.predict_proba(rows)[np.arange(len(rows)), index]
        is_.append(np.where(index >= 0, theirs, 0).mean())
    return proba.max(axis=1).mean(), np.mean(is_)


def test_memberships_are_what_fits_of_other_rows_say(mixture, calibrated):
    others = [SparseGaussianMixture(4, **DIAG).fit(dependent(1200, seed=i)) for i in (1, 2, 3)]
    rows = dependent(2000, seed=4)
    says, holds = says_and_is(mixture, others, rows)
    assert says > holds + 0.1
    says, holds = says_and_is(calibrated, others, rows)
    assert abs(says - holds) < 0.06


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_they_are_where_other_fits_find_other_clusters(seed):
    """And give rows to components hundreds of nats away, which no log loss should be made of."""
    pixels = np.random.default_rng(seed).permutation(load_digits().data)
    unseen = pixels[1400:]
    mixture = SparseGaussianMixture(10, covariance_type="diag", reg_covar=0.1, random_state=seed)
    others = [
        clone(mixture).set_params(random_state=seed + i).fit(pixels[700:1400]) for i in (1, 2, 3)
    ]
    says, holds = says_and_is(mixture.fit(pixels[:700]), others, unseen)
    assert says > holds + 0.2
    mixture.calibrate(pixels[:700], n_resamples=5, random_state=seed)
    says, holds = says_and_is(mixture, others, unseen)
    assert abs(says - holds) < 0.1


@pytest.mark.parametrize("gap", [3.0, 2.0])
def test_true_gaussians_stay_as_they_are(gap):
    rng = np.random.default_rng(1)
    rows = gap * np.eye(5)[rng.integers(5, size=4000)] + rng.normal(size=(4000, 5))
    mixture = SparseGaussianMixture(5, covariance_type="spherical", random_state=0).fit(rows)
    assert mixture.calibrate(rows, random_state=0).membership_temperature_ < 1.15


@pytest.mark.parametrize(("d", "kappa"), [(3, 20.0), (100, 60.0)])
def test_true_directions_stay_as_they_are(d, kappa):
    rows, _ = make_vonmises_fisher_blobs(3000, d, centers=4, concentration=kappa, random_state=0)
    mixture = VonMisesFisherMixture(4, random_state=0).fit(rows)
    assert mixture.calibrate(rows, random_state=0).membership_temperature_ < 1.15


def test_known_labels_are_the_judge():
    """Features that are all but equal count as many: known rows tell how sure their fit may be."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1000)
    rows = np.repeat(2.0 * y[:, None] + rng.normal(size=(1000, 1)), 20, axis=1)
    rows += 0.1 * rng.normal(size=(1000, 20))
    known = np.where(rng.uniform(size=1000) < 0.6, y, -1)
    mixture = SparseGaussianMixture(2, **DIAG).fit(rows, known_labels=known)
    is_right = (mixture.labels_ == y).mean()
    assert is_right < 0.9
    assert mixture.probabilities_.mean() > is_right + 0.1
    mixture.calibrate(rows, known_labels=known, random_state=0)
    assert abs(mixture.probabilities_.mean() - is_right) < 0.03
    with pytest.warns(UserWarning, match="fitted with known labels, and fits without them judge"):
        unknown = deepcopy(mixture).calibrate(rows, random_state=0)
    assert unknown.membership_temperature_ != mixture.membership_temperature_
    with pytest.raises(ValueError, match="known_labels has no known row"):
        mixture.calibrate(rows, known_labels=np.full(1000, -1))


# Rows of every kind.


def test_rows_of_every_kind_give_the_same(tmp_path):
    rows, _ = make_vonmises_fisher_blobs(300, 8, centers=3, concentration=4.0, random_state=0)
    rows[np.abs(rows) < 0.2] = 0
    mixture = VonMisesFisherMixture(3, concentration_type="tied", random_state=0).fit(rows)
    expected = deepcopy(mixture).calibrate(rows, random_state=0).membership_temperature_
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    pandas = pytest.importorskip("pandas")
    for same in (mapped, rows.tolist(), sparse.csr_array(rows), pandas.DataFrame(rows)):
        if isinstance(same, pandas.DataFrame):
            mixture = clone(mixture).fit(same)
        again = deepcopy(mixture).calibrate(same, random_state=0).membership_temperature_
        assert_allclose(again, expected, rtol=1e-3)


@pytest.mark.parametrize("kind", MIXTURES)
def test_every_mixture(kind):
    mixture = kind(3, random_state=0).fit(X[:300]).calibrate(X[:300], random_state=0)
    assert 1 <= mixture.membership_temperature_ <= 1e4
    assert_allclose(mixture.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
def test_missing_values(kind):
    holes = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
    mixture = kind(4, missing_values="marginal", **DIAG).fit(holes).calibrate(holes, random_state=0)
    assert mixture.membership_temperature_ > 1.5
    assert np.isfinite(mixture.predict_proba(holes)).all()


def test_a_background_has_a_membership_at_the_temperature_too():
    noise = np.random.default_rng(1).uniform(-6, 6, size=(120, 32))
    mixture = SparseGaussianMixture(4, background=True, **DIAG).fit(np.vstack([X, noise]))
    mixture.calibrate(np.vstack([X, noise]), random_state=0)
    proba = mixture.predict_proba(noise)
    assert proba.sum(axis=1).max() <= 1
    assert mixture.membership_temperature_ > 1
    assert mixture.probabilities_[mixture.labels_ == -1].max() == 0


@pytest.mark.parametrize("limits", [(297, 303), (0.99, 1.01)])
def test_limits_on_sizes_are_those_of_other_fits_too(limits):
    """Offsets are part of memberships, and a sample has its share of the limits in rows."""
    mixture = SparseGaussianMixture(4, size_limits=limits, **DIAG).fit(X)
    assert mixture.size_offsets_.any()
    assert_allclose(softmax(log_odds(mixture, X), axis=1), mixture.predict_proba(X), atol=1e-9)
    mixture.calibrate(X, random_state=0)
    assert mixture.membership_temperature_ > 2
    at_temperature = mixture.predict_proba(X)
    expected = softmax(log_odds(mixture, X) / mixture.membership_temperature_, axis=1)
    assert_allclose(at_temperature, expected, atol=1e-9)
    # Some rows are moved, to keep the limits exactly: their label is not the most likely one.
    own = at_temperature[np.arange(1200), mixture.labels_]
    assert_array_equal(mixture.probabilities_, own)
    sampled = deepcopy(mixture).calibrate(X[::2], random_state=0)
    assert sampled.membership_temperature_ > 2


def test_clusters_of_a_tracker():
    """Its mixture begins at the clusters that it follows; other fits need a start of their own."""
    tracker = ClusterTracker(VonMisesFisherMixture(4, random_state=0), random_state=0).fit(X)
    tracker.partial_fit(X[:300])
    with pytest.raises(ValueError, match=r"init_params has the components of 1500 rows, and X"):
        tracker.mixture_.calibrate(X, random_state=0)
    labels = tracker.predict(X)
    tracker.mixture_.set_params(init_params="merging", max_iter=100).calibrate(X, random_state=0)
    assert tracker.mixture_.membership_temperature_ > 1
    assert_array_equal(tracker.predict(X), labels)
    assert tracker.partial_fit(X[300:600]).mixture_.membership_temperature_ == 1


def test_rows_without_weight_do_not_count(mixture):
    far = np.vstack([X, 50 + 0 * X[:300]])
    weights = np.repeat([1.0, 0.0], [1200, 300])
    with_weights = deepcopy(mixture).calibrate(far, sample_weight=weights, random_state=0)
    without = deepcopy(mixture).calibrate(X, random_state=0)
    assert with_weights.membership_temperature_ == pytest.approx(without.membership_temperature_)


def log_temperatures(mixture, rows, **arguments):
    """Return the mean over seeds and its standard error."""
    logs = [
        np.log(
            deepcopy(mixture)
            .calibrate(rows, random_state=seed, **arguments)
            .membership_temperature_
        )
        for seed in range(12)
    ]
    return np.mean(logs), np.std(logs, ddof=1) / np.sqrt(12)


def assert_agree_but_for_chance(one, other):
    """Assert that means over seeds are within three standard errors, which are small."""
    error = np.hypot(one[1], other[1])
    assert error < 0.1
    assert abs(one[0] - other[0]) < 3 * error


def test_weights_are_repetitions_and_the_order_of_rows_is_none():
    """Up to the chance of the draws: of a row, one copy may be drawn and the other not."""
    rows = dependent(1200, gap=2.0)
    twice = np.random.default_rng(0).uniform(size=1200) < 0.3
    weighted = SparseGaussianMixture(4, **DIAG).fit(rows, sample_weight=1.0 + twice)
    repeated = np.vstack([rows, rows[twice]])
    expected = log_temperatures(weighted, rows, sample_weight=1.0 + twice)
    assert expected[0] > 0.5
    assert_agree_but_for_chance(expected, log_temperatures(weighted, repeated))
    order = np.random.default_rng(0).permutation(1200)
    shuffled = log_temperatures(weighted, rows[order], sample_weight=1.0 + twice[order])
    assert_agree_but_for_chance(expected, shuffled)


def test_it_is_the_same_for_any_number_of_threads(mixture, calibrated):
    for n_threads in (1, 3):
        with threadpool_limits(n_threads):
            again = deepcopy(mixture).calibrate(X, random_state=0)
        assert again.membership_temperature_ == calibrated.membership_temperature_
        assert_array_equal(again.probabilities_, calibrated.probabilities_)


# How long it lasts.


def test_a_new_fit_and_a_step_forget_it(mixture, calibrated):
    assert mixture.membership_temperature_ == 1
    fitted = deepcopy(calibrated).fit(X)
    assert fitted.membership_temperature_ == 1
    assert_array_equal(fitted.probabilities_, mixture.probabilities_)
    warm = deepcopy(calibrated).set_params(warm_start=True).fit(X)
    assert warm.membership_temperature_ == 1
    assert deepcopy(calibrated).partial_fit(X).membership_temperature_ == 1


def test_copies_pickles_and_other_numbers_keep_it(mixture, calibrated):
    for same in (deepcopy(calibrated), pickle.loads(pickle.dumps(calibrated))):
        assert same.membership_temperature_ == calibrated.membership_temperature_
        assert_array_equal(same.predict_proba(X), calibrated.predict_proba(X))
    reference = SparseGaussianMixture.from_parameters(
        mixture.weights_[::-1], mixture.means_[::-1], mixture.covariances_[::-1], **DIAG
    )
    renumbered = renumber_components(reference, calibrated)
    assert_allclose(renumbered.predict_proba(X)[:, ::-1], calibrated.predict_proba(X))
    assert clone(calibrated).fit(X).membership_temperature_ == 1


def test_of_a_sample_probabilities_are_left_out(mixture):
    sampled = deepcopy(mixture).calibrate(X[::2], random_state=0)
    assert not hasattr(sampled, "probabilities_")
    assert_array_equal(sampled.labels_, mixture.labels_)
    given = SparseGaussianMixture.from_parameters(
        mixture.weights_, mixture.means_, mixture.covariances_, **DIAG
    )
    assert given.membership_temperature_ == 1
    assert given.calibrate(X, random_state=0).membership_temperature_ > 1


# What is refused.


@pytest.mark.parametrize("options", [{"temperature": 0}, {"entmax_alpha": 1.5}])
def test_memberships_with_exact_zeros_are_refused(options):
    mixture = SparseGaussianMixture(4, **DIAG, **options).fit(X)
    with pytest.raises(ValueError, match="memberships that are exactly 0, and no temperature"):
        mixture.calibrate(X)
    assert mixture.membership_temperature_ == 1


def test_a_fit_at_another_temperature_is_calibrated_from_there():
    mixture = SparseGaussianMixture(4, temperature=3.0, **DIAG).fit(X)
    assert mixture.calibrate(X, random_state=0).membership_temperature_ < 4


def test_bad_input(mixture):
    before = deepcopy(vars(mixture))
    with pytest.raises(ValueError, match=r"X has 7 rows with a weight, .* give at least 8"):
        mixture.calibrate(X[:7])
    with pytest.raises(ValueError, match="n_resamples must be a positive integer, not 0"):
        mixture.calibrate(X, n_resamples=0)
    with pytest.raises(ValueError, match="known_labels should be integers from -1"):
        mixture.calibrate(X, known_labels=np.full(1200, 9))
    with pytest.raises(ValueError, match="X has 3 features"):
        mixture.calibrate(X[:, :3])
    assert vars(mixture).keys() == before.keys()
    assert mixture.membership_temperature_ == 1


def test_one_component_has_all_memberships():
    mixture = SparseGaussianMixture(1, **DIAG).fit(X[:200]).calibrate(X[:200], random_state=0)
    assert mixture.membership_temperature_ == 1
    assert_array_equal(mixture.predict_proba(X[:200]), 1)


def test_rows_without_a_direction_judge_nothing():
    rows = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
    mixture = VonMisesFisherMixture(3, random_state=0).fit(rows)
    with_zeros = np.vstack([rows, np.zeros((30, 3))])
    mixture.calibrate(with_zeros, random_state=0)
    assert 1 <= mixture.membership_temperature_ < 2
    few = VonMisesFisherMixture(1, random_state=0).fit([[1.0, 0], [0, 1]])
    with pytest.raises(ValueError, match="No row with a density was left out"):
        few.calibrate([[1.0, 0], [0, 0]], n_resamples=1, random_state=Drawing([0, 0]))


class Drawing(np.random.Generator):
    """A generator whose draws of rows are given."""

    def __init__(self, rows):
        super().__init__(np.random.PCG64(0))
        self.rows = rows

    def integers(self, high, size=None):
        return np.array(self.rows) if size else 1


def test_dask_arrays_are_refused_with_advice():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(400, 32))
    mixture = SparseGaussianMixture(4, **DIAG).fit(rows)
    with pytest.raises(TypeError, match="Give a random sample of the rows"):
        mixture.calibrate(rows)
    mixture.calibrate(X, random_state=0)
    assert not hasattr(mixture, "probabilities_")  # those of the array are lazy, at temperature 1
    assert_allclose(mixture.predict_proba(rows).compute(), mixture.predict_proba(X), rtol=1e-6)


@pytest.mark.slow
def test_digits():
    """So few rows that other fits find other clusters: one number helps, and is not enough."""
    pixels = load_digits().data
    parts = np.random.default_rng(0).permutation(1797)[:1795].reshape(5, 359)
    options = {"covariance_type": "diag", "reg_covar": 0.1}
    mixture, other = (
        SparseGaussianMixture(10, random_state=i, **options).fit(pixels[part])
        for i, part in enumerate(parts[:2])
    )
    says, holds = says_and_is(mixture, [other], pixels[parts[4]])
    assert says > holds + 0.2
    mixture.calibrate(pixels[parts[0]], random_state=0)
    says_now, holds = says_and_is(mixture, [other], pixels[parts[4]])
    assert abs(says_now - holds) < abs(says - holds)
