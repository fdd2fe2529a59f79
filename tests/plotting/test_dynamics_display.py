"""DynamicsDisplay draws paths, fields and curves in either coordinates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, SparseGaussianMixture
from skvmf.plotting import DynamicsDisplay

TRUTH = [-5.1, -5.0]


@pytest.fixture(scope="module")
def mixture():
    X = np.random.default_rng(0).normal(-5, 1, size=(200, 1))
    options = {"means_init": [[-2.5], [2.0]], "fixed": ("weights", "covariances"), "clearance": 0.3}
    return RelativeGMM(2, store_path=True, **options).fit(X)


def background(ax):
    return [artist for artist in ax.get_children() if artist.get_gid() == "skvmf-singular"]


def test_the_path_in_both_coordinates(mixture):
    display = DynamicsDisplay.from_estimator(mixture, truth=TRUTH, name="ECM")
    assert_array_equal(display.line_.get_xydata(), mixture.path_[:, :, 0])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (r"$\mu_1$", r"$\mu_2$")
    assert display.ax_.get_legend().get_texts()[0].get_text() == "ECM"
    again = display.plot(coordinates="relative")
    assert again is display
    assert display.figure_ is display.ax_.figure
    _x, y = display.line_.get_xydata().T
    assert_allclose(y, np.diff(mixture.path_[:, :, 0])[:, 0])
    assert display.ax_.get_ylabel() == r"$\Delta$"
    assert display.ax_.get_ylim()[0] < 0  # the singular line is in sight
    shown = {tuple(np.round(line.get_xydata()[0], 6)) for line in display.ax_.lines}
    assert (-5.1, 0.1) in shown


@pytest.mark.parametrize("coordinates", ["absolute", "relative"])
def test_the_singular_line_and_the_clearance(mixture, coordinates):
    display = DynamicsDisplay.from_estimator(mixture, coordinates=coordinates)
    excluded, line = sorted(background(display.ax_), key=lambda one: type(one).__name__ == "Line2D")
    slope = 1 if coordinates == "absolute" else 0
    x, y = line.get_xydata().T
    assert_allclose(y, slope * x)
    assert_allclose(excluded.get_xy()[:2, 1], slope * x + 0.3)
    assert x[0] < display.ax_.get_xlim()[0]
    assert x[1] > display.ax_.get_xlim()[1]


def test_displays_share_axes(mixture):
    first = DynamicsDisplay.from_estimator(mixture)
    far = DynamicsDisplay(np.array([[0.0, 1.0], [50.0, 60.0]])).plot(ax=first.ax_)
    assert len(background(far.ax_)) == 2
    low, high = far.ax_.get_xlim()
    assert low < mixture.path_[:, 0].min()
    assert high > 50


def test_curves_by_iteration(mixture):
    display = DynamicsDisplay.from_estimator(mixture, kind="log-likelihood")
    x, y = display.line_.get_xydata().T
    assert_array_equal(x, np.arange(mixture.n_iter_ + 1))
    assert_allclose(y, mixture.lower_bounds_)
    display = DynamicsDisplay.from_estimator(mixture, truth=TRUTH, kind="distance", color="C3")
    expected = np.linalg.norm(mixture.path_[:, :, 0] - TRUTH, axis=1)
    assert_allclose(display.line_.get_ydata(), expected)
    assert display.line_.get_color() == "C3"
    assert display.ax_.get_xlabel() == "iteration"


@pytest.mark.parametrize("coordinates", ["absolute", "relative"])
def test_a_field_has_its_arrows(coordinates):
    axis = np.linspace(-1, 1, 3)
    points = np.stack(np.meshgrid(axis, axis), axis=-1)
    velocity = np.random.default_rng(0).normal(size=points.shape)
    display = DynamicsDisplay.from_velocity(
        points, velocity, coordinates=coordinates, truth=[0, 0], quiver_kwargs={"scale": 9}
    )
    u, v = velocity[..., 0].ravel(), velocity[..., 1].ravel()
    if coordinates == "relative":
        v = v - u
        points = np.stack([points[..., 0], points[..., 1] - points[..., 0]], axis=-1)
    assert_allclose(display.quiver_.U, u)
    assert_allclose(display.quiver_.V, v)
    assert_allclose(display.quiver_.get_array(), np.hypot(u, v))
    assert_allclose(display.quiver_.get_offsets(), points.reshape(-1, 2))
    assert display.quiver_.scale == 9
    assert display.line_ is None


def test_other_components_and_features(mixture):
    X = np.random.default_rng(0).normal(size=(100, 2)) + [0, 3]
    options = {"ordering_feature": 1, "clearance": 0.1, "random_state": 0, "tol": 1}
    mixture = RelativeGMM(3, store_path=True, **options).fit(X)
    display = DynamicsDisplay.from_estimator(mixture, components=(0, 2))
    assert_array_equal(display.line_.get_xydata(), mixture.path_[:, [0, 2], 1])
    assert display.clearance == 0.2
    display = DynamicsDisplay.from_estimator(mixture, feature=0)
    assert_array_equal(display.line_.get_xydata(), mixture.path_[:, :2, 0])


def test_what_cannot_be_drawn_is_refused(mixture):
    X = np.zeros((10, 1)) + np.arange(10)[:, None]
    no_path = RelativeGMM(2, random_state=0).fit(X)
    for call, message in [
        (lambda: DynamicsDisplay.from_estimator(no_path), "store_path=True"),
        (lambda: DynamicsDisplay.from_estimator(SparseGaussianMixture().fit(X)), "no path_"),
        (lambda: DynamicsDisplay.from_estimator(RelativeGMM()), "not fitted"),
        (lambda: DynamicsDisplay.from_estimator(mixture, components=(0, 2)), "not among the 2"),
        (lambda: DynamicsDisplay.from_estimator(mixture, feature=1), "not among the 2"),
        (lambda: DynamicsDisplay.from_estimator(mixture, kind="distance"), "needs"),
        (lambda: DynamicsDisplay().plot("log-likelihood"), "needs lower_bounds"),
        (lambda: DynamicsDisplay().plot("phase"), "kind should be"),
        (lambda: DynamicsDisplay().plot(coordinates="polar"), "coordinates"),
        (lambda: DynamicsDisplay.from_velocity(np.zeros((3, 2)), np.zeros((4, 2))), "same shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
