"""MixtureDisplay draws what the estimator says."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.plotting import ComponentPathDisplay, DirectionsDisplay, MixtureDisplay

from ..mixture.kinds import matrices
from ..pairwise import pairwise

to_rgba = pytest.importorskip("matplotlib.colors").to_rgba
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def blobs(d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, d)) @ rng.normal(size=(d, d))
    X[50:, 0] += 6
    return X


@pairwise(
    covariance_type=["full", "tied", "diag", "spherical"], make=[StudentTMixture, GaussianMixture]
)
def test_ellipses_have_the_covariances(make, covariance_type):
    X, features = blobs(), [2, 0]
    mixture = make(2, covariance_type=covariance_type, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(mixture, X, features=features, n_std=1.5)
    for ellipse, mean, full in zip(
        display.ellipses_, mixture.means_, matrices(mixture), strict=True
    ):
        angle = np.radians(ellipse.angle)
        axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        lengths = np.array([ellipse.width, ellipse.height]) / (2 * 1.5)
        result, expected = axes @ np.diag(lengths**2) @ axes.T, full[np.ix_(features, features)]
        assert_allclose(result, expected, rtol=1e-10, atol=1e-12)
        assert_allclose(ellipse.center, mean[features])
    assert_array_equal(display.scatter_.get_offsets(), X[:, features])
    assert display.ax_.get_xlabel() == "feature 2"
    assert display.figure_ is display.ax_.figure


def test_colours_are_labels_and_opacity_is_weight():
    X = blobs()
    mixture = RelativeGMM.from_parameters(
        [0.2, 0.8, 0.0], [[0.0] * 3, [6.0] * 3, [9.0] * 3], np.ones(3), covariance_type="spherical"
    )
    display = MixtureDisplay.from_estimator(mixture, X)
    expected = [to_rgba(f"C{label}") for label in mixture.predict(X)]
    assert_allclose(display.scatter_.get_facecolors()[:, :3], np.array(expected)[:, :3])
    light, dark = (ellipse.get_facecolor() for ellipse in display.ellipses_)  # one has no weight
    assert_allclose([light[:3], dark[:3]], [to_rgba("C0")[:3], to_rgba("C1")[:3]])
    assert_allclose(light[3] / dark[3], 0.2 / 0.8)
    truth = np.zeros(150, dtype=int)
    given = MixtureDisplay.from_estimator(mixture, X, labels=truth)
    assert len(np.unique(given.scatter_.get_facecolors(), axis=0)) == 1


def test_names_axes_and_options_are_passed_on(plt):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(blobs(), columns=["a", "b", "c"])
    mixture = RelativeGMM(2, random_state=0).fit(frame)
    _, ax = plt.subplots()
    options = {"scatter_kwargs": {"s": 3}, "ellipse_kwargs": {"linewidth": 7}}
    display = MixtureDisplay.from_estimator(mixture, frame, features=(1, 2), ax=ax, **options)
    assert display.ax_ is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b", "c")
    assert_array_equal(display.scatter_.get_sizes(), [3])
    assert display.ellipses_[0].get_linewidth() == 7
    again = display.plot()
    assert again is display
    assert again.ax_ is not ax


def test_what_cannot_be_drawn_is_refused():
    X = blobs()
    mixture = RelativeGMM(2, random_state=0).fit(X)
    sphere = VonMisesFisherMixture(2, random_state=0).fit(X)
    for estimator, options, message in [
        (mixture, dict(features=(0, 3)), "one or two of the 3 features"),
        (mixture, dict(features=(0, 1, 2)), "one or two of the 3 features"),
        (mixture, dict(features=(0, -1)), "one or two of the 3 features"),
        (mixture, dict(labels=[0]), r"shape \(150,\)"),
        (sphere, {}, "VonMisesFisherMixture has no covariance_type"),
        (RelativeGMM(), {}, "not fitted"),
    ]:
        with pytest.raises(ValueError, match=message):
            MixtureDisplay.from_estimator(estimator, X, **options)


@pytest.mark.parametrize(
    "display",
    [
        MixtureDisplay(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]),
        DirectionsDisplay(np.ones(1), np.eye(1, 4), np.ones(1)),
        ComponentPathDisplay(np.arange(1, 3), np.arange(2.0), 2, None, None, None),
    ],
)
def test_without_matplotlib_the_extra_is_named(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skvmf\[plotting\]'"):
        display.plot()


def test_rows_of_the_background_are_grey():
    X = np.vstack([np.random.default_rng(0).normal(size=(50, 2)), [[40, 40], [-40, 40], [40, -40]]])
    mixture = SparseGaussianMixture(1, background=True, random_state=0).fit(X)
    outliers = mixture.labels_ == -1
    assert outliers.sum() == 3
    colours = MixtureDisplay.from_estimator(mixture, X).scatter_.get_facecolors()[:, :3]
    assert_allclose(colours[outliers], np.tile(to_rgba("0.7")[:3], (3, 1)))
    assert_allclose(colours[~outliers], np.tile(to_rgba("C0")[:3], (50, 1)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, np.finfo(np.float32).max), (np.float32, 1e-43), (np.float64, 1e-160)],
)
def test_rows_at_the_limits_of_floats_give_no_warnings(dtype, size):
    X = blobs(5)
    X = (X * (0.999 / np.abs(X).max()) * size).astype(dtype)
    mixture = SparseGaussianMixture(2, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(mixture, X)
    assert_array_equal(display.X, X[:, :2])
    display.figure_.canvas.draw()


def test_rows_with_missing_values_are_drawn_where_both_features_are_known():
    X = blobs()
    X[3, 0] = X[5, 1] = X[7, 2] = np.nan
    mixture = SparseGaussianMixture(2, missing_values="marginal", random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(mixture, X)
    drawn = np.ma.filled(display.scatter_.get_offsets(), np.nan)
    assert_array_equal(np.isnan(drawn).any(axis=1).nonzero()[0], [3, 5])
    display.figure_.canvas.draw()


@pytest.mark.parametrize("make", [SparseGaussianMixture, StudentTMixture, GaussianMixture])
def test_one_feature_has_widths_and_no_heights(make):
    X = blobs()[:, :1]
    mixture = make(2, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(mixture, X, n_std=1.5)
    widths = [ellipse.width for ellipse in display.ellipses_]
    assert_allclose(widths, 3 * np.sqrt(matrices(mixture)[:, 0, 0]))
    centres = [ellipse.center[0] for ellipse in display.ellipses_]
    assert_allclose(centres, mixture.means_[:, 0])
    assert_array_equal(display.scatter_.get_offsets()[:, 0], X[:, 0])
    assert display.ax_.get_xlabel() == "feature 0"
    chosen = MixtureDisplay.from_estimator(mixture, X, features=[0])
    assert_array_equal(chosen.scatter_.get_offsets(), display.scatter_.get_offsets())


def test_frames_with_features_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(blobs(), columns=["a", "b", "c"])
    mixture = SparseGaussianMixture(2, random_state=0).fit(rows)
    labels = mixture.predict(rows)
    MixtureDisplay.from_estimator(mixture, rows, labels=labels)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        MixtureDisplay.from_estimator(mixture, rows[["c", "a", "b"]], labels=labels)
