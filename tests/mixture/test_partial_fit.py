"""What a mixture makes of a stream, batch by batch."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

from ..pairwise import pairwise
from .kinds import FLAT, MIXTURES, TYPES, matrices

PLAIN = {VonMisesFisherMixture: {"concentration_prior": 0.0}}  # no prior on components
rng = np.random.default_rng(0)
CENTRES = np.array([[0.0, 7.0, 0.0], [5.0, 0.0, 0.0], [9.0, 9.0, 3.0]])
LABELS = rng.integers(3, size=600)
X = CENTRES[LABELS] + rng.normal(size=(600, 3))


def stream(mixture, rows=X, size=100):
    """Take one pass over the rows."""
    for start in range(0, rows.shape[0], size):
        mixture.partial_fit(rows[start : start + size])
    return mixture


def parameters(mixture):
    names = "weights_", "means_", "covariances_", "scale_matrices_", "concentrations_"
    return [getattr(mixture, name) for name in names if name in vars(mixture)]


def assert_close(first, second, rtol=0, atol=0):
    """Two mixtures have the same parameters; without a tolerance, the same bits."""
    for one, other in zip(parameters(first), parameters(second), strict=True):
        assert_allclose(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture, RelativeGMM])
def test_without_forgetting_one_component_is_that_of_all_rows(cls):
    options = {"learning_decay": 1.0, "n_components": 1} | FLAT | PLAIN.get(cls, {})
    online = stream(cls(**options, random_state=0))
    assert_close(online, cls(**options).fit(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("cls", "start"), zip(MIXTURES, [{}, {"init_params": "kmeans", "n_init": 4}] * 2, strict=True)
)
def test_the_first_step_is_one_of_em(cls, start):
    options = {"random_state": 0} | FLAT | start | PLAIN.get(cls, {})
    begun = cls(3, max_iter=0, **options).fit(X)
    by_em = copy.deepcopy(begun).set_params(warm_start=True, max_iter=1, tol=0)
    by_em.fit(X)
    online = stream(cls(3, **options), size=600)
    assert_close(online, by_em, rtol=1e-7)


@pytest.mark.parametrize("decay", [0.3, 0.7])
def test_steps_are_those_of_the_formulas(decay):
    """Two components in one dimension, by hand, with moments about zero."""
    rng = np.random.default_rng(0)
    weights, means, variances = np.array([0.4, 0.6]), np.array([-1.0, 2.0]), np.array([1.0, 2.0])
    given = weights, means[:, None], variances
    options = dict(covariance_type="spherical", reg_covar=0, learning_decay=decay, **FLAT)
    mixture = SparseGaussianMixture.from_parameters(*given, **options)
    remembered = seen = 0.0
    for size in (40, 10, 25):
        x, w = rng.normal(size=size) * 3, rng.uniform(0.5, 2, size)
        mixture.partial_fit(x[:, None], sample_weight=w)
        density = weights * np.exp(-0.5 * (x[:, None] - means) ** 2 / variances)
        resp = density / np.sqrt(variances)
        resp /= resp.sum(axis=1, keepdims=True)
        batch = np.array([w @ resp, (w * x) @ resp, (w * x * x) @ resp]) / w.sum()
        seen += w.sum()
        gain = (w.sum() / seen) ** decay
        remembered = (1 - gain) * remembered + gain * batch
        weights, means = remembered[0], remembered[1] / remembered[0]
        variances = remembered[2] / remembered[0] - means**2
        assert_allclose(mixture.weight_seen_, seen)
        assert_allclose(mixture.weights_, weights)
        assert_allclose(mixture.means_[:, 0], means)
        assert_allclose(mixture.covariances_, variances)


@pytest.mark.parametrize("cls", MIXTURES)
def test_the_weight_seen_is_finite(cls):
    weights = np.full(len(X), 0.9 * np.finfo(float).max / len(X))
    mixture = cls(2, random_state=0).fit(X, sample_weight=weights)
    assert_allclose(mixture.weight_seen_, weights.sum())
    mixture.partial_fit(X, sample_weight=weights)
    assert mixture.weight_seen_ == np.finfo(float).max


@pytest.mark.parametrize("cls", MIXTURES)
def test_a_fit_of_the_same_rows_stays(cls):
    options = FLAT | PLAIN.get(cls, {})
    if cls is StudentTMixture:
        options = options | {"degrees_of_freedom": 5.0}  # estimates creep up to a Gaussian's
    mixture = cls(3, random_state=0, tol=1e-11, max_iter=1000, **options).fit(X)
    before = copy.deepcopy(mixture)
    mixture.partial_fit(X)
    assert_close(mixture, before, rtol=1e-4, atol=1e-4)
    assert (mixture.n_steps_, mixture.weight_seen_) == (1, 1200.0)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("cls", [SparseGaussianMixture, StudentTMixture])
def test_an_offset_does_not_matter(cls, covariance_type):
    here = stream(cls(3, covariance_type=covariance_type, random_state=0), X[:300])
    there = stream(cls(3, covariance_type=covariance_type, random_state=0), X[:300] + 1e6)
    assert_allclose(there.means_ - 1e6, here.means_, rtol=1e-4, atol=1e-4)
    assert_allclose(matrices(there), matrices(here), rtol=1e-4, atol=1e-4)
    assert_allclose(there.weights_, here.weights_, rtol=1e-4)


@pytest.mark.bits
def test_concentrated_directions_keep_their_digits():
    """Components beyond a concentration of 4e5 are summed by chords, about directions that move."""
    means = np.eye(2, 3)
    rows, _ = make_vonmises_fisher_blobs(
        1000, 3, centers=means, concentration=1e8, shuffle=True, random_state=0
    )
    online = stream(VonMisesFisherMixture(2, learning_decay=1.0, random_state=0), rows)
    fitted = VonMisesFisherMixture(2, random_state=0).fit(rows)
    result, expected = np.sort(online.concentrations_), np.sort(fitted.concentrations_)
    assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("cls", MIXTURES)
def test_what_is_said_is_of_the_batch(cls):
    mixture = cls(3, random_state=0).partial_fit(X[:100]).partial_fit(X[100:250])
    batch = X[100:250]
    assert (mixture.n_steps_, mixture.weight_seen_) == (2, 250.0)
    assert_array_equal(mixture.labels_, mixture.predict(batch))
    assert_allclose(mixture.probabilities_, mixture.predict_proba(batch).max(axis=1))
    assert not {"n_iter_", "converged_", "lower_bound_", "lower_bounds_"} & set(vars(mixture))


def test_what_is_said_of_a_whole_fit_goes_and_comes_back():
    mixture = RelativeGMM(2, random_state=0).fit(X)
    mixture.partial_fit(X)
    of_fits = {"n_iter_", "converged_", "lower_bound_", "lower_bounds_"}
    assert not of_fits & set(vars(mixture))
    again, fresh = mixture.fit(X), RelativeGMM(2, random_state=0).fit(X)
    assert of_fits < set(vars(again))
    assert (again.n_steps_, again.weight_seen_) == (0, 600.0)
    assert_close(again, fresh)


def test_sparse_rows_are_dense_ones():
    rows = np.where(np.abs(X) > 1, X, 0)
    dense = stream(VonMisesFisherMixture(3, means_init=CENTRES), rows)
    csr = stream(VonMisesFisherMixture(3, means_init=CENTRES), sparse.csr_array(rows))
    assert_close(dense, csr, rtol=1e-9)


@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture])
def test_batches_may_be_dask_arrays(cls):
    array = pytest.importorskip("dask.array", reason="needs dask: pip install 'skvmf[dask]'")
    lazy = stream(cls(3, random_state=0), array.from_array(X, chunks=(70, 3)), size=300)
    in_memory = stream(cls(3, random_state=0), size=300)
    assert_close(lazy, in_memory)
    assert_array_equal(np.asarray(lazy.labels_), in_memory.labels_)


@pytest.mark.bits
@pytest.mark.parametrize("cls", MIXTURES)
def test_pickles_go_on_with_the_same_bits(cls):
    mixture = cls(3, random_state=0).partial_fit(X[:300])
    again = pickle.loads(pickle.dumps(mixture))
    assert (again.n_steps_, again.weight_seen_) == (1, 300.0)
    assert_close(mixture.partial_fit(X[300:]), again.partial_fit(X[300:]))
    fitted = cls(3, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert_close(fitted.partial_fit(X[300:]), again.partial_fit(X[300:]))


@pytest.mark.parametrize("cls", MIXTURES)
def test_the_first_batch_has_a_row_for_each_component(cls):
    mixture = cls(3, random_state=0)
    with pytest.raises(ValueError, match=r"n_samples >= n_.*first batch, .* about 100 rows per"):
        mixture.partial_fit(X[:2])
    assert "_fitted" not in vars(mixture)
    mixture.partial_fit(X[:50]).partial_fit(X[50:51])
    assert (mixture.n_steps_, mixture.weight_seen_) == (2, 51.0)


def test_given_parameters_are_a_start_that_has_seen_nothing():
    given = [0.2, 0.3, 0.5], CENTRES, np.ones(3)
    options = {"covariance_type": "spherical"} | FLAT
    mixture = SparseGaussianMixture.from_parameters(*given, **options)
    assert (mixture.n_steps_, mixture.weight_seen_) == (0, 0.0)
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        mixture.partial_fit(X[:2])
    mixture.partial_fit(X)
    em = SparseGaussianMixture.from_parameters(*given, **options, warm_start=True, max_iter=1)
    assert_close(mixture, em.fit(X))


@pytest.mark.parametrize("cls", MIXTURES)
def test_a_refused_batch_leaves_the_mixture_as_it_was(cls):
    mixture = cls(3, random_state=0).partial_fit(X[:300])
    before = pickle.dumps(mixture)
    broken = X[:5].copy()
    broken[2, 1] = np.nan
    for rows, weights, reason in [
        (broken, None, "NaN"),
        (X[:5, :2], None, "features"),
        (X[:5], -np.ones(5), "[Nn]egative"),
        (X[:5], np.ones(4), "sample_weight"),
        (X[:0], None, "minimum of 1"),
    ]:
        with pytest.raises(ValueError, match=reason):
            mixture.partial_fit(rows, sample_weight=weights)
        assert pickle.dumps(mixture) == before


@pytest.mark.parametrize(
    ("cls", "changed"), zip(MIXTURES, [{"n_components": 4}, {"background": True}] * 2, strict=True)
)
def test_changes_that_a_stream_cannot_follow_are_refused(cls, changed):
    mixture = cls(3, random_state=0).partial_fit(X).set_params(**changed)
    with pytest.raises(ValueError, match=f"partial_fit continues with {next(iter(changed))}"):
        mixture.partial_fit(X)


def test_another_covariance_type_is_refused():
    mixture = SparseGaussianMixture(3, random_state=0).partial_fit(X)
    message = "covariance_type='full', and covariance_type is 'diag' now: set it back"
    with pytest.raises(ValueError, match=message) as refusal:
        mixture.set_params(covariance_type="diag").partial_fit(X)
    assert "warm_start" not in str(refusal.value)  # which a stream does not look at


def test_zero_rows_teach_nothing():
    mixture = VonMisesFisherMixture(3, random_state=0)
    with pytest.raises(ValueError, match="zero row has no direction"):
        mixture.partial_fit(np.zeros((5, 3)))
    mixture.partial_fit(X)
    before = copy.deepcopy(mixture)
    mixture.partial_fit(np.zeros((2, 3)))
    assert_close(mixture, before)
    assert (mixture.n_steps_, mixture.weight_seen_) == (2, 600.0)
    assert_array_equal(mixture.labels_, np.argmax(mixture.weights_))


def test_a_prior_below_one_waits_for_rows():
    """Twelve components for three clusters; the prior takes 31 rows from each."""
    options = {"weight_concentration_prior": -30.0, "covariance_type": "spherical"}
    mixture = SparseGaussianMixture(12, random_state=0, **options)
    rows = np.tile(X, (5, 1)) + np.random.default_rng(1).normal(scale=0.5, size=(3000, 3))
    n_active = []
    for start in range(0, len(rows), 60):
        mixture.partial_fit(rows[start : start + 60])
        flat = start + 60 < 2 * 12 * 31
        n_active.append(mixture.n_active_components_)
        assert not flat or n_active[-1] == 12
    assert 3 <= n_active[-1] < 12
    assert mixture.score(rows) > SparseGaussianMixture(1, covariance_type="spherical").fit(
        rows
    ).score(rows)
    at_once = stream(
        SparseGaussianMixture(12, random_state=0, flat_start=False, **options), rows, 60
    )
    assert at_once.n_active_components_ < 3


@pytest.mark.bits
def test_means_stay_in_order():
    """Components would cross along the stream."""
    noise = np.random.default_rng(2).normal(size=(40, 50, 2))
    first, second = np.array([0.0, -20.0]), np.array([3.0, 20.0])
    options = {"covariance_type": "spherical", "means_init": [first, second]} | FLAT
    ordered = RelativeGMM(2, **options)
    free = SparseGaussianMixture(2, **options)
    for i in range(20):
        moved = [first + [0.4 * i, 0], second]
        rows = np.vstack([moved[k] + noise[2 * i + k] for k in range(2)])
        ordered.partial_fit(rows)
        free.partial_fit(rows)
        assert ordered.means_[0, 0] <= ordered.means_[1, 0]
    assert free.means_[0, 0] > free.means_[1, 0]


@pytest.mark.parametrize("cls", MIXTURES)
def test_a_background_learns_too(cls):
    others = np.random.default_rng(3).uniform(-30, 30, size=(60, 3))
    rows = np.random.default_rng(4).permutation(np.vstack([X, others]))
    mixture = stream(cls(3, background=True, random_state=0, **FLAT), rows, 110)
    assert 0.01 < mixture.background_weight_ < 0.4
    assert_allclose(mixture.weights_.sum() + mixture.background_weight_, 1)
    if cls is not VonMisesFisherMixture:  # where any direction is near some component
        assert_array_equal(mixture.background_bounds_, stream(mixture, rows).background_bounds_)


@pairwise(
    cls=MIXTURES,
    sizes=[(1e-300, 1e-299), (1e299, 1e300), (1e-25, 1e-15), (1e-21, 1e30)],
    decay=[1.0, 0.7],
    after_fit=[False, True],
)
def test_weights_of_batches_keep_their_ratio(cls, sizes, decay, after_fit):
    """Weights far beyond 1e20 and their like in the middle of floats give the same mixture."""
    options = {"learning_decay": decay, "random_state": 0, "max_iter": 2, "tol": 10} | FLAT
    options |= PLAIN.get(cls, {})

    def mixture(first, second):
        begun = cls(3, **options)
        weights = np.full(300, first)
        if after_fit:
            begun.fit(X[:300], sample_weight=weights)
        else:
            begun.partial_fit(X[:300], sample_weight=weights)
        return begun.partial_fit(X[300:], sample_weight=np.full(300, second))

    extreme, ordinary = mixture(*sizes), mixture(1.0, sizes[1] / sizes[0])
    assert_allclose(extreme.weight_seen_ / 300, sum(sizes), rtol=1e-12)
    assert_close(extreme, ordinary, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", MIXTURES)
def test_a_batch_next_to_nothing_changes_nothing(cls):
    heavy, light = np.full(300, 1e300), np.full(300, 1e-300)
    options = {"random_state": 0} | PLAIN.get(cls, {})
    mixture = cls(3, **options).partial_fit(X[:300], sample_weight=heavy)
    before = copy.deepcopy(mixture)
    mixture.partial_fit(X[300:], sample_weight=light)
    assert all(np.isfinite(value).all() for value in parameters(mixture))
    assert_close(mixture, before, rtol=0.2)
    other = cls(3, **options).partial_fit(X[:300], sample_weight=light)
    other.partial_fit(X[300:], sample_weight=heavy)
    assert_allclose(other.weight_seen_, 300e300)
    assert all(np.isfinite(value).all() for value in parameters(other))


def test_a_stream_whose_components_are_all_singular_is_refused_and_goes_on():
    """A component of next to no weight is none: those that have rows are all singular here."""
    X = 1e30 * np.random.default_rng(0).normal(size=(5, 2))
    X[:3] = 0
    mixture = SparseGaussianMixture(3, random_state=0)
    mixture.partial_fit(X, sample_weight=1e100 * np.random.default_rng(0).uniform(0.5, 1.5, 5))
    weights = mixture.weights_
    with pytest.raises(ValueError, match=r"Every covariance is singular.*Increase reg_covar"):
        mixture.partial_fit(X[:2])
    assert_array_equal(mixture.weights_, weights)
