"""Fits with limits on the sizes of components."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from skvmf import (
    ClusterTracker,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.datasets import load_docstrings
from skvmf.inspection import component_stability, component_summary, membership_reliability
from skvmf.model_selection import ComponentPath

from ..hooks import few_rows_in_blocks, killed_after
from .checks import assert_finite, assert_same_bits

K, n, d = 6, 600, 8
rng = np.random.default_rng(0)
CENTRES = 2 * rng.normal(size=(K, d))
X = CENTRES[rng.choice(K, n, p=[0.5, 0.2, 0.15, 0.1, 0.03, 0.02])] + rng.normal(size=(n, d))
WEIGHTS = rng.integers(1, 6, n).astype(float)
CSR = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))

KINDS = {
    "directions": (VonMisesFisherMixture, {}),
    "tied directions": (VonMisesFisherMixture, {"concentration_type": "tied"}),
    "hard directions": (VonMisesFisherMixture, {"temperature": 0}),
    "soft directions": (VonMisesFisherMixture, {"temperature": 3.0}),
    "fixed weights": (VonMisesFisherMixture, {"fixed": ("weights",)}),
    "two starts": (VonMisesFisherMixture, {"n_init": 2, "init_params": "kmeans"}),
    "random rows": (VonMisesFisherMixture, {"init_params": "random_from_data"}),
    "full": (SparseGaussianMixture, {"reg_covar": 0.1}),
    "tied": (SparseGaussianMixture, {"covariance_type": "tied"}),
    "diag": (SparseGaussianMixture, {"covariance_type": "diag"}),
    "hard": (SparseGaussianMixture, {"covariance_type": "spherical", "temperature": 0}),
}


def mixture(kind="directions", size_limits=(0.5, 1.25), **options):
    make, parameters = KINDS[kind]
    return make(K, random_state=0, size_limits=size_limits, **parameters | options)


def sizes(labels, weights=None):
    return np.bincount(labels, weights, K)


def refused(match, rows=X, *, fit=None, **options):
    with pytest.raises(ValueError, match=match):
        mixture(**options).fit(rows, **fit or {})


@pytest.mark.parametrize("size_limits", [(0.5, 1.25), (None, 110), (90, None), (1.0, 1.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_keep_the_limits(kind, size_limits):
    fitted = mixture(kind, size_limits).fit(X)
    least, most = size_limits
    counts = sizes(fitted.labels_)
    if least is not None:
        assert counts.min() >= (least if isinstance(least, int) else least * n / K)
    if most is not None:
        assert counts.max() <= (most if isinstance(most, int) else most * n / K)
    assert fitted.size_offsets_.shape == (K,)
    assert_finite(fitted, X)
    assert_allclose(fitted.weights_.sum(), 1)
    # Sums of soft responsibilities are not numbers of labels, so that more rows move.
    if fitted.temperature == 0:
        assert np.mean(fitted.predict(X) != fitted.labels_) <= 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_responsibilities_keep_the_limits_up_to_half_a_percent(kind):
    fitted = mixture(kind, (0.9, 1.1)).fit(X)
    sums = fitted.predict_proba(X).sum(axis=0)
    outside = np.maximum(sums - 110, 0).sum() + np.maximum(90 - sums, 0).sum()
    assert outside <= 0.005 * n
    assert fitted.size_offsets_.any()
    assert (sums[fitted.size_offsets_ > 0] > 100).all()
    assert (sums[fitted.size_offsets_ < 0] < 100).all()


@pytest.mark.parametrize("kind", KINDS)
def test_limits_that_nothing_breaks_change_no_bits(kind):
    free = mixture(kind, None, weight_concentration_prior=1.0).fit(X)
    limited = mixture(kind, (0, n), weight_concentration_prior=1.0).fit(X)
    assert free.size_offsets_ is None
    assert_array_equal(limited.size_offsets_, np.zeros(K))
    free.size_offsets_ = limited.size_offsets_
    assert_same_bits(free, limited)
    assert_array_equal(free.predict_proba(X), limited.predict_proba(X))


@pytest.mark.parametrize("kind", ["directions", "tied", "hard"])
def test_whole_weights(kind):
    fitted = mixture(kind, (0.8, 1.1)).fit(X, sample_weight=WEIGHTS)
    mean = WEIGHTS.sum() / K
    counts = sizes(fitted.labels_, WEIGHTS)
    assert counts.min() >= 0.8 * mean
    assert counts.max() <= 1.1 * mean


@pytest.mark.parametrize("n_rows", [595, 599, 601])
@pytest.mark.parametrize("size_limits", [(0.503, 1.249), (0.98, 1.03), (None, 1.248), (0.97, None)])
def test_multiples_of_a_mean_that_is_no_whole_number_are_kept(n_rows, size_limits):
    rows = np.vstack([X, X[:1] + 0.1])[:n_rows]
    counts = sizes(mixture(size_limits=size_limits).fit(rows).labels_)
    least, most = size_limits
    mean = n_rows / K
    if least is not None:
        assert counts.min() >= least * mean
    if most is not None:
        assert counts.max() <= most * mean


def test_multiples_that_no_whole_numbers_of_rows_keep():
    counts = sizes(mixture(size_limits=(1.0, 1.0)).fit(X[:595]).labels_)
    assert_array_equal(np.sort(counts), [99, 99, 99, 99, 99, 100])
    counts = sizes(mixture(size_limits=(0.999, 1.001)).fit(X[:595]).labels_)
    assert_array_equal(np.sort(counts), [99, 99, 99, 99, 99, 100])


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25])
def test_other_weights_keep_the_limits_up_to_the_largest(scale):
    weights = scale * np.random.default_rng(1).uniform(0.5, 2, n)
    options = {"concentration_prior": 0.0}
    fitted = mixture(size_limits=(0.8, 1.1), **options).fit(X, sample_weight=weights)
    mean = weights.sum() / K
    counts = sizes(fitted.labels_, weights)
    assert counts.min() >= 0.8 * mean - weights.max()
    assert counts.max() <= 1.1 * mean + weights.max()


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("seed", range(8))
def test_weights_that_do_not_fit_are_at_most_one_row_outside(seed, temperature):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, 2))
    rows[:20] *= 0.01
    weights = rng.exponential(2, 50) if seed % 2 else rng.integers(1, 6, 50).astype(float)
    fitted = SparseGaussianMixture(
        7,
        covariance_type="spherical",
        reg_covar=0.1,
        size_limits=(1.0, 1.0),
        temperature=temperature,
        random_state=0,
    ).fit(rows, sample_weight=weights)
    counts = np.bincount(fitted.labels_, weights, 7)
    mean = weights.sum() / 7
    assert counts.min() >= np.floor(mean) - weights.max()
    assert counts.max() <= np.ceil(mean) + weights.max()


def test_labels_that_nothing_can_move():
    rows = np.random.default_rng(0).normal(size=(7, 2))
    weights = np.array([3.0, 3, 3, 3, 3, 3, 2])
    fitted = SparseGaussianMixture(
        4, covariance_type="spherical", reg_covar=0.1, size_limits=(5, 5), temperature=0
    ).fit(rows, sample_weight=weights)
    counts = np.bincount(fitted.labels_, weights, 4)
    assert counts.min() >= 2
    assert counts.max() <= 8


def test_limits_without_room_for_nearly_equal_rows():
    """Rows see 24 components with room at a time, and nearly all rows are in one place."""
    rows = np.random.default_rng(0).normal(size=(1500, 6))
    rows[:1450] = [5, 0, 0, 0, 0, 0] + 1e-3 * rows[:1450]
    fitted = VonMisesFisherMixture(
        150, size_limits=(1.0, 1.0), init_params="random_from_data", max_iter=1, random_state=0
    ).fit(rows)
    assert_array_equal(np.bincount(fitted.labels_), 10)


def test_a_weight_of_two_is_two_rows():
    of_weights = mixture(size_limits=(150, 300)).fit(X, sample_weight=np.full(n, 2.0))
    of_rows = mixture(size_limits=(75, 150)).fit(X)
    assert 2 * sizes(of_weights.labels_).max() <= 300
    assert_allclose(of_weights.size_offsets_, of_rows.size_offsets_, atol=0.2)


@pytest.mark.parametrize("kind", ["directions", "tied directions", "hard directions"])
def test_sparse_rows_are_those_of_dense_ones(kind):
    dense, csr = (mixture(kind).fit(rows) for rows in (CSR.toarray(), CSR))
    assert_allclose(csr.lower_bound_, dense.lower_bound_, rtol=1e-3)
    assert sizes(csr.labels_).max() <= 125
    assert np.mean(csr.labels_ == dense.labels_) > 0.95


def test_texts_and_empty_rows():
    rows = TfidfVectorizer(min_df=3).fit_transform(load_docstrings().data).tolil()
    rows[[5, 9]] = 0
    rows = rows.tocsr()
    counted = np.diff(rows.indptr) > 0
    fitted = VonMisesFisherMixture(13, random_state=0, size_limits=(0.5, 1.2)).fit(rows)
    counts = np.bincount(fitted.labels_[counted], minlength=13)
    mean = counted.sum() / 13
    assert counts.min() >= 0.5 * mean
    assert counts.max() <= 1.2 * mean
    assert fitted.labels_[5] == fitted.weights_.argmax()


def test_digits():
    rows = load_digits().data
    fitted = SparseGaussianMixture(
        10, covariance_type="diag", reg_covar=1.0, random_state=0, size_limits=(0.8, 1.1)
    ).fit(rows)
    counts = np.bincount(fitted.labels_)
    assert counts.min() >= 144
    assert counts.max() <= 197


@pytest.mark.parametrize("kind", ["directions", "tied", "hard directions"])
def test_steps_under_limits_raise_the_bound(kind):
    """Each step of EM and each new dual do, but for what an ascent leaves."""
    fitted = mixture(kind, tol=1e-5, max_iter=50).fit(X)
    falls = -np.diff(fitted.lower_bounds_)
    assert falls.max(initial=0) < 2e-3
    free = mixture(kind, None).fit(X)
    assert fitted.lower_bound_ < free.lower_bound_


def test_responsibilities_are_those_of_offset_log_weights():
    fitted = mixture().fit(X)
    plain = VonMisesFisherMixture.from_parameters(
        fitted.weights_,
        mean_directions=fitted.mean_directions_,
        concentrations=fitted.concentrations_,
    )
    assert_allclose(plain.score_samples(X), fitted.score_samples(X), rtol=1e-10)
    logits = np.log(plain.predict_proba(X) + 1e-300) - fitted.size_offsets_
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(fitted.predict_proba(X), expected, atol=1e-7)
    moved = fitted.labels_ != fitted.predict(X)
    of_labels = fitted.predict_proba(X)[np.arange(n), fitted.labels_]
    assert_allclose(fitted.probabilities_, of_labels, atol=1e-7)
    assert (fitted.probabilities_[~moved] >= 1 / K).all()


def test_the_bound_is_that_of_the_lagrangian():
    fitted = mixture("tied", size_limits=(80, 120)).fit(X)
    offsets = fitted.size_offsets_
    plain = SparseGaussianMixture.from_parameters(
        fitted.weights_, fitted.means_, fitted.covariances_, covariance_type="tied"
    )
    with np.errstate(divide="ignore"):
        joint = np.log(plain.predict_proba(X)) + plain.score_samples(X)[:, None]
    value = logsumexp(joint - offsets, axis=1).sum()
    value += np.where(offsets > 0, 120, 80) @ offsets
    assert_allclose(fitted.lower_bound_, value / n, rtol=1e-8)


@pytest.mark.parametrize("kind", ["directions", "diag"])
def test_threads_blocks_and_memory_maps(kind, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    fits = []
    with few_rows_in_blocks(64):
        for n_threads, rows in ((1, X), (3, np.load(tmp_path / "rows.npy", mmap_mode="r"))):
            with threadpool_limits(n_threads):
                fits.append(mixture(kind).fit(rows))
    assert_same_bits(*fits)


@pytest.mark.parametrize("kind", ["directions", "diag"])
def test_after_truncated_steps(kind, monkeypatch):
    """Many components have truncated steps without limits, and exact ones within them."""
    monkeypatch.setattr("skvmf._engine.rows.blocks.TRUNCATED_FROM", 128)
    make, parameters = KINDS[kind]
    rows = np.random.default_rng(1).normal(size=(2600, d)).astype(np.float32)
    fitted = make(128, random_state=0, size_limits=(15, 25), **parameters).fit(rows)
    counts = np.bincount(fitted.labels_)
    assert counts.min() >= 15
    assert counts.max() <= 25
    of_labels = fitted.predict_proba(rows)[np.arange(2600), fitted.labels_]
    assert_allclose(fitted.probabilities_, of_labels, atol=1e-5)


def test_more_components_than_candidates():
    """Some candidates of a row are left out, and no offset runs away."""
    rows = np.random.default_rng(1).normal(size=(3000, 6)) + [3, 0, 0, 0, 0, 0]
    fitted = VonMisesFisherMixture(100, random_state=0, size_limits=(0.9, 1.1)).fit(rows)
    counts = np.bincount(fitted.labels_)
    assert counts.min() >= 27
    assert counts.max() <= 33
    # Of the same order as what a row loses in the next component.
    assert np.abs(fitted.size_offsets_).max() < 50
    sums = fitted.predict_proba(rows).sum(axis=0)
    assert np.maximum(sums - 33, 0).sum() + np.maximum(27 - sums, 0).sum() <= 0.005 * 3000


def test_single_precision():
    fitted = mixture(size_limits=(1.0, 1.0)).fit(X.astype(np.float32))
    assert_array_equal(sizes(fitted.labels_), n // K)
    assert fitted.probabilities_.dtype == np.float32


def test_missing_values():
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    fitted = mixture("diag", missing_values="marginal").fit(rows)
    assert sizes(fitted.labels_).max() <= 125


def test_copies_that_fit_are_split_at_the_limit():
    rows = np.vstack([X, np.repeat(X[:1], 100, axis=0)])
    fitted = mixture(size_limits=(None, 117)).fit(rows)
    assert sizes(fitted.labels_).max() <= 117


def test_pruned_components_return():
    """A start with one component in use: the others begin at rows."""
    start = np.zeros(n, dtype=int)
    start[0] = K - 1
    fitted = mixture("tied", init_params=start).fit(X)
    assert sizes(fitted.labels_).min() >= 50
    assert (fitted.weights_ > 0).all()


def test_no_steps():
    fitted = mixture(max_iter=0).fit(X)
    assert sizes(fitted.labels_).max() <= 125


def test_copies_and_pickles_predict_the_same():
    fitted = mixture().fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.size_offsets_, fitted.size_offsets_)
    assert_array_equal(again.predict(X), fitted.predict(X))
    fresh = clone(fitted).fit(X)
    assert_same_bits(fitted, fresh)
    assert not fitted.size_offsets_.flags.writeable


@pytest.mark.parametrize("after", [1, 3, 6, 9])
@pytest.mark.parametrize("kind", ["directions", "two starts"])
def test_a_checkpoint_continues_with_the_same_bits(at_once, tmp_path, kind, after):
    whole = mixture(kind).fit(X)
    checkpointed = mixture(kind, checkpoint=tmp_path / "fit.npz")
    killed_after(after, lambda: checkpointed.fit(X))
    again = mixture(kind, checkpoint=tmp_path / "fit.npz").fit(X)
    again.checkpoint = None
    assert_same_bits(whole, again)


def test_a_warm_start_keeps_the_limits():
    fitted = mixture(warm_start=True).fit(X)
    again = fitted.fit(X)
    assert sizes(again.labels_).max() <= 125


@pytest.mark.parametrize("size_limits", [(0.5, 1.25), (40, 90)])
@pytest.mark.parametrize("kind", ["directions", "tied"])
def test_a_warm_start_with_more_components_keeps_the_limits(kind, size_limits):
    fitted = mixture(kind, (0.5, 1.25), warm_start=True).fit(X)
    again = fitted.set_params(n_components=10, size_limits=size_limits).fit(X)
    counts = np.bincount(again.labels_, minlength=10)
    least, most = (30, 75) if size_limits == (0.5, 1.25) else size_limits
    assert counts.min() >= least
    assert counts.max() <= most
    assert again.size_offsets_.shape == (10,)


def test_a_warm_start_without_limits_forgets_offsets():
    fitted = mixture(warm_start=True).fit(X)
    again = fitted.set_params(size_limits=None).fit(X)
    assert again.size_offsets_ is None
    plain = VonMisesFisherMixture.from_parameters(
        again.weights_, mean_directions=again.mean_directions_, concentrations=again.concentrations_
    )
    assert_allclose(again.predict_proba(X), plain.predict_proba(X), atol=1e-9)


def test_a_stream_that_goes_on_without_limits_forgets_offsets():
    """Its statistics are those of the fit, but the batch is shared out by the densities."""
    fitted = mixture("diag").fit(X)
    assert fitted.size_offsets_.any()
    limited = pickle.loads(pickle.dumps(fitted)).set_params(size_limits=None)
    assert_array_equal(limited.predict_proba(X), fitted.predict_proba(X))
    limited.partial_fit(X)
    assert limited.size_offsets_ is None
    plain = SparseGaussianMixture.from_parameters(
        limited.weights_, limited.means_, limited.covariances_, covariance_type="diag"
    )
    assert_allclose(limited.predict_proba(X), plain.predict_proba(X), atol=1e-9)


def test_a_summary_and_a_path_are_free():
    fitted = mixture().fit(X)
    component_summary(fitted, X)
    component_summary(fitted, X, labels=fitted.labels_)
    with pytest.raises(ValueError, match="does not go with a path"):
        ComponentPath(mixture(), max_components=6).fit(X)
    path = ComponentPath(mixture(size_limits=None), max_components=6).fit(X)
    labels = path.cut(3, X)
    assert np.bincount(labels).max() > 1.25 * n / 3


def test_calibrated_memberships_are_less_offsets():
    """Labels stay, also those of rows that limits have moved."""
    fitted = mixture("diag", (0.9, 1.1)).fit(X)
    labels, predicted = fitted.labels_, fitted.predict(X)
    assert (labels != predicted).any()
    reliability = membership_reliability(fitted, X, random_state=1)
    said = reliability.before.weights @ reliability.before.prob_pred
    assert_allclose(said, fitted.predict_proba(X).max(axis=1).mean(), atol=0.02)
    before = fitted.predict_proba(X)
    fitted.calibrate(X, random_state=0)
    T = fitted.membership_temperature_
    assert T > 1
    logits = np.log(before + 1e-300) / T
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    least = np.exp(-60 / T)  # of those that were less than e^-60, which is taken for zero
    assert_allclose(fitted.predict_proba(X), expected, atol=1e-6 + before.shape[1] * least)
    assert_array_equal(fitted.labels_, labels)
    assert_array_equal(fitted.predict(X), predicted)


@pytest.mark.parametrize("kind", ["directions", "tied"])
def test_stability_is_that_of_fits_with_limits(kind):
    fitted = mixture(kind, (0.8, 1.2)).fit(X)
    stability = component_stability(fitted, X, n_resamples=3, random_state=0)
    assert stability.components.min() > 0.3
    assert stability.temperature >= 1


@pytest.mark.parametrize("size_limits", [(None, 7), (6, 6), (0.5, 1.0), (6, None)])
def test_other_fits_have_room_for_rows_that_are_drawn_often(size_limits):
    """A limit of few rows is less than how often some row is drawn with replacement."""
    fitted = VonMisesFisherMixture(100, size_limits=size_limits, max_iter=5, random_state=0).fit(X)
    fitted.calibrate(X, n_resamples=20, random_state=0)
    assert fitted.membership_temperature_ > 1
    stability = component_stability(fitted, X, n_resamples=20, random_state=0)
    assert stability.temperature > 1
    heavy = np.where(np.arange(n) % 2 == 0, 2.5, 0.5)
    fitted.set_params(size_limits=(None, 1.5)).fit(X, sample_weight=heavy)
    stability = component_stability(fitted, X, n_resamples=5, sample_weight=heavy, random_state=0)
    assert stability.temperature > 1


def test_a_tracker_refuses_limits():
    with pytest.raises(ValueError, match="stream grow and fade: use size_limits=None"):
        ClusterTracker(mixture()).fit(X)


def test_skops_keeps_offsets():
    sio = pytest.importorskip("skops.io")
    fitted = mixture().fit(X)
    data = sio.dumps(fitted)
    again = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    assert_array_equal(again.size_offsets_, fitted.size_offsets_)
    assert again.size_limits == fitted.size_limits
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_predictions_of_dask_arrays_are_less_offsets():
    da = pytest.importorskip("dask.array")
    fitted = mixture().fit(X)
    chunks = da.from_array(X, chunks=(100, -1))
    assert_array_equal(fitted.predict(chunks).compute(), fitted.predict(X))
    assert_allclose(fitted.predict_proba(chunks).compute(), fitted.predict_proba(X))


def test_limits_that_cannot_be_met():
    refused("needs 6 times 101 = 606 rows, and there are 600", size_limits=(101, None))
    refused("room for 6 times 99 = 594 rows, and there are 600", size_limits=(None, 99))
    refused("least size is above", size_limits=(60, 50))
    refused("needs 6 times 120", size_limits=(1.2, None))
    copies = np.vstack([X, np.repeat(X[:1], 150, axis=0)])
    refused("allows 140 rows.*with its copies weighs 151", copies, size_limits=(None, 140))
    refused("weighs 151", sparse.csr_array(copies), size_limits=(None, 140))
    heavy = {"sample_weight": np.where(np.arange(n) == 7, 300.0, 1.0)}
    refused("weighs 300", fit=heavy, size_limits=(None, 200))


@pytest.mark.parametrize(
    "size_limits",
    [(1,), (1, 2, 3), ("a", 2), (-1, None), (True, None), (np.nan, None), 200, "balanced", [1, 2]],
)
def test_limits_that_are_none(size_limits):
    refused(
        "pair \\(least, most\\).*such as .*\\(None, 200\\) for at most 200", size_limits=size_limits
    )


def test_what_does_not_go_together():
    refused("background=True do not go together", background=True)
    refused("needs entmax_alpha=1", entmax_alpha=1.5)
    refused("a prior below 1 removes components", weight_concentration_prior=-5.0)
    refused("a prior below 1", kind="full", weight_concentration_prior=0.5)
    refused("does not take known_labels", fit={"known_labels": np.arange(n) % 2})
    weights = {"weights_init": [0.5, 0.5, 0, 0, 0, 0], "fixed": ("weights",)}
    refused("positive weights_init", **weights)
    with pytest.raises(ValueError, match="partial_fit sees one batch"):
        mixture().partial_fit(X)


def test_a_refused_fit_leaves_the_mixture_as_it_was():
    fitted = mixture().fit(X)
    before = pickle.dumps(fitted)
    fitted.size_limits = (200, None)
    with pytest.raises(ValueError, match="needs 6 times 200"):
        fitted.fit(X)
    fitted.size_limits = (0.5, 1.25)
    assert pickle.dumps(fitted) == before


def test_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array")
    refused("rows in memory", da.from_array(X, chunks=(100, -1)))


@pytest.mark.parametrize("kind", [StudentTMixture, RelativeGMM])
def test_others_have_no_limits(kind):
    with pytest.raises(TypeError, match="size_limits of VonMisesFisherMixture"):
        kind(2, size_limits=(1, 2))
