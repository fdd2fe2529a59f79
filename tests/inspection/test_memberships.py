"""What memberships say beside what other fits say, and scores of the surest rows."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf._engine.em.calibration import Judged, reliability
from skvmf.inspection import (
    component_stability,
    component_summary,
    coverage_curve,
    membership_reliability,
)

RNG = np.random.default_rng(0)
PIXELS, DIGITS = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def mixture():
    return VonMisesFisherMixture(10, random_state=0).fit(PIXELS)


@pytest.fixture(scope="module")
def calibrated(mixture):
    return deepcopy(mixture).calibrate(PIXELS, random_state=0)


# Reliability.


def test_bins_are_those_of_scikit_learn():
    """Other fits that are sure of one component are labels, as a classifier's curve takes them."""
    log_odds = np.column_stack([RNG.uniform(0.1, 3, size=600), np.zeros(600)])
    sure = softmax(log_odds, axis=1)[:, 0]
    is_first = RNG.uniform(size=600) < sure - 0.1
    others = np.column_stack([is_first, ~is_first]).astype(float)
    found = reliability([Judged(log_odds, others, np.ones(600))], 1.0, 6)
    prob_true, prob_pred = calibration_curve(is_first, sure, n_bins=6, strategy="quantile")
    assert_allclose(found.prob_true, prob_true, atol=0.02)
    assert_allclose(found.prob_pred, prob_pred, atol=0.02)
    assert_allclose(found.weights, 1 / 6, atol=0.01)
    expected = (found.weights * np.abs(found.prob_pred - found.prob_true)).sum()
    assert_allclose(found.error, expected)
    assert 0.05 < found.error < 0.15
    assert_allclose(found.log_loss, -np.log(np.where(is_first, sure, 1 - sure)).mean())


def test_equal_memberships_are_in_one_bin_and_weights_are_repetitions():
    log_odds = np.repeat([[500.0, 0], [1, 0]], [90, 10], axis=0)
    others = np.repeat([[0.7, 0.3], [0.5, 0.5]], [90, 10], axis=0)
    found = reliability([Judged(log_odds, others, np.ones(100))], 1.0, 15)
    assert_allclose(found.prob_pred, [softmax([1, 0])[0], 1])
    assert_allclose(found.prob_true, [0.5, 0.7])
    assert_allclose(found.weights, [0.1, 0.9])
    weighted = reliability(
        [Judged(log_odds[[0, -1]], others[[0, -1]], np.array([90.0, 10]))], 1.0, 15
    )
    assert_allclose(weighted.error, found.error)
    assert_allclose(weighted.log_loss, found.log_loss)


def test_calibrated_memberships_hold_better(mixture, calibrated):
    found = membership_reliability(calibrated, PIXELS, n_bins=5, random_state=1)
    assert found.temperature == calibrated.membership_temperature_ > 1
    assert found.after.error < 0.6 * found.before.error
    assert found.after.log_loss < found.before.log_loss
    for each in (found.before, found.after):
        assert_allclose(each.weights.sum(), 1)
        assert len(each.prob_pred) <= 5
        assert (np.diff(each.prob_pred) > 0).all()
    plain = membership_reliability(mixture, PIXELS, n_bins=5, random_state=1)
    assert plain.temperature == 1
    assert_array_equal(plain.before.prob_true, plain.after.prob_true)
    assert_array_equal(plain.before.prob_true, found.before.prob_true)


def test_known_labels_judge():
    known = np.where(RNG.uniform(size=len(DIGITS)) < 0.3, DIGITS, -1)
    mixture = VonMisesFisherMixture(10, random_state=0).fit(PIXELS, known_labels=known)
    found = membership_reliability(mixture, PIXELS, known_labels=known, random_state=0)
    is_right = (mixture.predict(PIXELS) == DIGITS).mean()
    held = (found.before.weights * found.before.prob_true).sum()
    assert abs(held - is_right) < 0.1


def test_what_cannot_be_compared_is_refused(mixture):
    with pytest.raises(TypeError, match="a mixture of skvmf, got GaussianMixture"):
        membership_reliability(GaussianMixture().fit(PIXELS[:, :2]), PIXELS[:, :2])
    with pytest.raises(ValueError, match="n_bins must be a positive integer"):
        membership_reliability(mixture, PIXELS, n_bins=0)


# One pass of fits gives stability, the temperature and reliability.


def test_stability_has_the_temperature_that_calibrate_finds():
    """Up to the chance of the draws, which twenty fits keep small."""
    rng = np.random.default_rng(0)
    clusters = 2.5 * np.eye(4)[rng.integers(4, size=600)] + rng.normal(size=(600, 4))
    rows = np.repeat(clusters, 8, axis=1) + 0.3 * rng.normal(size=(600, 32))
    mixture = SparseGaussianMixture(4, covariance_type="diag", random_state=0).fit(rows)
    found = component_stability(mixture, rows, n_resamples=20, random_state=0)
    mixture.calibrate(rows, n_resamples=20, random_state=0)
    assert found.temperature > 1.5
    assert_allclose(np.log(found.temperature), np.log(mixture.membership_temperature_), atol=0.3)
    assert found.reliability.temperature == found.temperature
    assert found.reliability.after.error < found.reliability.before.error


def test_known_labels_judge_stability_too():
    known = np.where(np.random.default_rng(1).uniform(size=len(DIGITS)) < 0.3, DIGITS, -1)
    mixture = VonMisesFisherMixture(10, random_state=0).fit(PIXELS, known_labels=known)
    options = {"known_labels": known, "n_resamples": 3, "random_state": 0}
    found = component_stability(mixture, PIXELS, **options)
    calibrated = deepcopy(mixture).calibrate(PIXELS, **options)
    assert_allclose(np.log(found.temperature), np.log(calibrated.membership_temperature_), atol=0.3)
    is_right = (mixture.predict(PIXELS) == DIGITS).mean()
    before = found.reliability.before
    assert abs((before.weights * before.prob_true).sum() - is_right) < 0.1


def test_stability_of_hard_memberships_has_no_temperature():
    rows = np.repeat([0.0, 6], 40)[:, None] + RNG.normal(size=(80, 1))
    hard = SparseGaussianMixture(2, temperature=0, random_state=0).fit(rows)
    found = component_stability(hard, rows, n_resamples=2, random_state=0)
    assert found.temperature is None
    assert found.reliability is None
    assert found.components.min() > 0.9


# Summaries.


def test_a_summary_says_what_memberships_say(mixture, calibrated):
    assert component_summary(mixture, PIXELS).memberships is None
    summary = component_summary(calibrated, PIXELS)
    expected = [calibrated.probabilities_[calibrated.labels_ == k].mean() for k in summary.labels]
    assert_allclose(summary.memberships, expected)
    assert summary.columns["membership"] == [f"{each:.2f}" for each in expected]
    assert_allclose(summary.to_frame()["membership"], expected)
    temperature = f"memberships at temperature {calibrated.membership_temperature_:.2f}"
    assert str(summary).splitlines()[-1].startswith(temperature)
    assert temperature in summary._repr_html_()
    assert component_summary(calibrated.fit(PIXELS), PIXELS).reliability is None


# Coverage.


def test_scores_are_those_of_the_surest_rows(mixture):
    curve = coverage_curve(mixture, PIXELS, DIGITS, n_points=10)
    largest = mixture.predict_proba(PIXELS).max(axis=1)
    for i, least in enumerate(curve.memberships):
        kept = largest >= least
        assert curve.shares[i] == kept.mean()
        labels = mixture.labels_[kept]
        assert curve.ari[i] == adjusted_rand_score(DIGITS[kept], labels)
        assert curve.nmi[i] == normalized_mutual_info_score(DIGITS[kept], labels)
    assert curve.shares[-1] == 1
    assert (np.diff(curve.shares) > 0).all()
    assert curve.nmi[0] > curve.nmi[-1]


def test_a_curve_does_not_depend_on_the_order_of_rows(mixture):
    order = RNG.permutation(len(PIXELS))
    curve = coverage_curve(mixture, PIXELS, DIGITS)
    shuffled = coverage_curve(mixture, PIXELS[order], DIGITS[order])
    for name, values in curve.items():
        assert_allclose(shuffled[name], values)


def test_outliers_come_last():
    rows = np.vstack([RNG.normal(size=(200, 2)), [[40.0, 40], [-40, 30]]])
    mixture = SparseGaussianMixture(1, background=True, random_state=0).fit(rows)
    assert (mixture.labels_[-2:] == -1).all()
    curve = coverage_curve(mixture, rows, np.repeat([0, 1], [200, 2]), n_points=101)
    assert curve.memberships[-1] == 0
    assert curve.ari[-1] > 0.5


def test_classes_of_another_length_are_refused(mixture):
    with pytest.raises(ValueError, match=r"y should be of shape \(1797,\), got \(3,\)"):
        coverage_curve(mixture, PIXELS, DIGITS[:3])
    with pytest.raises(ValueError, match="n_points must be a positive integer"):
        coverage_curve(mixture, PIXELS, DIGITS, n_points=0)
