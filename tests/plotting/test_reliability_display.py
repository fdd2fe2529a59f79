"""ReliabilityDisplay draws what `membership_reliability` returns."""

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from skvmf import VonMisesFisherMixture
from skvmf.inspection import component_stability, membership_reliability
from skvmf.plotting import ReliabilityDisplay, cluster_report

PIXELS = load_digits().data[:600]


@pytest.fixture(scope="module")
def mixture():
    return VonMisesFisherMixture(6, random_state=0).fit(PIXELS)


def test_both_lines_of_a_calibrated_mixture(mixture):
    calibrated = deepcopy(mixture).calibrate(PIXELS, random_state=0)
    display = ReliabilityDisplay.from_estimator(calibrated, PIXELS, n_bins=4, random_state=1)
    expected = membership_reliability(calibrated, PIXELS, n_bins=4, random_state=1)
    for line, curve in zip(display.lines_, [expected.before, expected.after], strict=True):
        assert_array_equal(line.get_xdata(), curve.prob_pred)
        assert_array_equal(line.get_ydata(), curve.prob_true)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names[0] == "memberships that hold"
    assert names[1] == f"VonMisesFisherMixture, as fitted (error {expected.before.error:.2f})"
    assert f"at temperature {calibrated.membership_temperature_:.1f}" in names[2]


def test_one_line_of_others_and_options(mixture, plt):
    axes = plt.subplots()[1]
    display = ReliabilityDisplay.from_estimator(
        mixture, PIXELS, random_state=1, ax=axes, name="digits", ref_line=False, color="C3"
    )
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert len(axes.lines) == len(display.lines_) == 1
    assert display.lines_[0].get_color() == "C3"
    assert display.lines_[0].get_label().startswith("digits, as fitted")


def test_the_reliability_of_stability_is_drawn(mixture):
    stability = component_stability(mixture, PIXELS, n_resamples=2, random_state=0)
    display = ReliabilityDisplay(stability.reliability).plot()
    assert len(display.lines_) == 2
    assert display.lines_[0].get_label().startswith("as fitted")


def test_a_report_says_how_memberships_hold(mixture, tmp_path):
    file = tmp_path / "report.html"
    cluster_report(mixture, PIXELS, file=file)
    assert '"reliability":null' in file.read_text(encoding="utf-8")
    calibrated = deepcopy(mixture).calibrate(PIXELS, random_state=0)
    cluster_report(calibrated, PIXELS, file=file)
    text = file.read_text(encoding="utf-8")
    assert f"memberships at temperature {calibrated.membership_temperature_:.2f}" in text
    largest = calibrated.probabilities_[calibrated.labels_ == np.argmax(calibrated.weights_)]
    assert f'"membership":{round(float(largest.mean()), 4)}' in text
