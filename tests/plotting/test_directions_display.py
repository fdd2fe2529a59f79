"""DirectionsDisplay draws what the mixture says."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.distributions import vonmises_fisher as vmf
from skvmf.model_selection import ComponentPath
from skvmf.plotting import DirectionsDisplay, MixtureDisplay

to_rgba = pytest.importorskip("matplotlib.colors").to_rgba


def fitted(d, K=3, n=150):
    rng = np.random.default_rng(0)
    means = np.vstack([np.eye(d), -np.eye(d)])[:K]
    X = 4 * means[np.arange(n) % K] + 0.5 * rng.normal(size=(n, d))
    return VonMisesFisherMixture(K, init_params=np.arange(n) % K).fit(X), X


def test_the_circle_has_the_densities_outside():
    mixture, X = fitted(2)
    display = DirectionsDisplay.from_estimator(mixture, X)
    lengths = np.linalg.norm(display.scatter_.get_offsets(), axis=1)
    assert_allclose(lengths, 0.925, atol=0.0751)  # a little inside
    heights = [np.nanmax(np.hypot(*line.get_data())) - 1 for line in display.components_]
    directions, kappas = mixture.mean_directions_, mixture.concentrations_
    at_centres = np.diagonal(vmf.logpdf(directions[:, None], directions, kappas))
    peaks = mixture.weights_ * np.exp(at_centres)
    assert_allclose(heights, peaks / max(peaks), rtol=1e-3)
    for line, mu in zip(display.components_, directions, strict=True):
        x, y = line.get_data()
        top = np.nanargmax(np.hypot(x, y))
        assert_allclose(np.array([x[top], y[top]]) / np.hypot(x[top], y[top]), mu, atol=0.01)


def test_rings_on_the_sphere_are_as_far_as_rows_are():
    mixture, X = fitted(3)
    display = DirectionsDisplay.from_estimator(mixture, sparse.csr_array(X))
    assert display.ax_.name == "3d"
    lengths = np.linalg.norm(mixture.means_, axis=1)
    for k, ring in enumerate(display.components_):
        points = np.array(ring.get_data_3d())
        assert_allclose(np.linalg.norm(points, axis=0), 1)
        assert_allclose(mixture.mean_directions_[k] @ points, lengths[k], rtol=1e-6)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(np.column_stack(display.scatter_._offsets3d), units)
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2"]


def test_discs_on_a_map_have_the_weights_and_hold_their_rows():
    mixture, X = fitted(6, K=5)
    names = ["tea", "ice", "fog", "sun", "sea"]
    display = DirectionsDisplay.from_estimator(mixture, X, names=names)
    radii = np.array([disc.radius for disc in display.components_])
    assert_allclose(radii**2, mixture.weights_)
    centres = np.array([disc.center for disc in display.components_])
    assert_array_equal(centres, display.positions_)
    places = np.asarray(display.scatter_.get_offsets())
    gaps = np.linalg.norm(places - centres[mixture.labels_], axis=1)
    sure = mixture.probabilities_ > 0.999
    assert sure.sum() > 100
    assert (gaps[sure] < radii[mixture.labels_][sure]).all()
    assert [text.get_text() for text in display.texts_] == names
    colours = np.array([to_rgba(f"C{label}") for label in mixture.labels_])
    assert_allclose(display.scatter_.get_facecolors()[:, :3], colours[:, :3])


@pytest.mark.parametrize(
    ("K", "equal"), [(1, False), (2, True), (5, False), (5, True), (200, False), (200, True)]
)
def test_discs_do_not_cover_each_other(K, equal):
    rng = np.random.default_rng(0)
    directions = np.tile(np.eye(1, 20), (K, 1)) if equal else rng.normal(size=(K, 20))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    weights = rng.dirichlet(np.full(K, 2.0))
    display = DirectionsDisplay(weights, directions, np.full(K, 50.0)).plot()
    places, radii = display.positions_, np.sqrt(weights)
    gaps = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert places.shape == (K, 2)
    assert (gaps >= 0.99 * (radii[:, None] + radii)).all()
    assert np.abs(places - places.mean(axis=0)).max() < 6 * np.sqrt((radii**2).sum())  # compact


def named_map(n_components, name="window, filter, frequency", **options):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(n_components, 20))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    weights = rng.dirichlet(np.full(n_components, 3.0))
    names = [f"{name} {k}".strip() for k in range(n_components)]
    display = DirectionsDisplay(weights, directions, np.full(n_components, 50.0), names=names)
    display.plot(**options).figure_.canvas.draw()
    return display


def boxes_of(display):
    return [text.get_window_extent() for text in display.texts_]


@pytest.mark.parametrize(
    ("n_components", "name"),
    [(1, ""), (5, "bessel\nwindow"), (40, "window, filter, frequency"), (40, "bessel\nwindow")],
)
def test_a_new_figure_has_room_for_all_names(n_components, name):
    display = named_map(n_components, name)
    found = [text.get_text().split() for text in display.texts_]  # lines are broken between words
    assert found == [str(each).split() for each in display.names]
    assert min(text.get_fontsize() for text in display.texts_) >= 7
    boxes, figure = boxes_of(display), display.figure_.bbox
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert all(figure.x0 <= b.x0 and b.x1 <= figure.x1 for b in boxes)
    assert all(figure.y0 <= b.y0 and b.y1 <= figure.y1 for b in boxes)


def test_given_axes_have_names_of_heavy_components_and_count_the_others(plt):
    ax = plt.figure().add_subplot()
    display = named_map(40, ax=ax)
    assert not any(a.overlaps(b) for a, b in combinations(boxes_of(display), 2))
    assert 5 < len(display.texts_) < 35
    numbers = [int(text.get_text().split()[-1]) for text in display.texts_]
    assert display.weights.argmax() in numbers
    assert display.weights[numbers].mean() > display.weights.mean()
    [note] = set(ax.texts) - set(display.texts_)
    assert note.get_text() == f"{40 - len(display.texts_)} of 40 names have no room"


@pytest.mark.parametrize("d", [2, 3, 5])
def test_pruned_components_are_left_out_and_outliers_are_grey(d, plt):
    directions = np.eye(d)[[0, 1, 1]] + 0.1
    weights, kappas = [0.4, 0.0, 0.4], np.full(3, 30.0)
    mixture = VonMisesFisherMixture.from_parameters(
        weights, mean_directions=directions, concentrations=kappas, background_weight=0.2
    )
    X = np.vstack([np.eye(d)[:2], -np.ones(d)])
    ax = plt.figure().add_subplot(projection="3d" if d == 3 else None)
    options = {"ax": ax, "scatter_kwargs": {"s": 7}, "text_kwargs": {"color": "k"}}
    display = DirectionsDisplay.from_estimator(mixture, X, **options)
    assert display.ax_ is ax
    assert len(display.components_) == 2
    assert [text.get_text() for text in display.texts_] == ["0", "2"]
    assert {text.get_color() for text in display.texts_} == {"k"}
    assert_array_equal(display.scatter_.get_sizes(), [7])
    assert display.labels[2] == -1
    if d != 3:  # there colours are known when it is drawn
        assert_allclose(display.scatter_.get_facecolors()[2, :3], to_rgba("0.7")[:3])
    again = display.plot()
    assert again is display
    assert again.ax_ is not ax


def test_what_cannot_be_drawn_is_refused():
    mixture, X = fitted(4)
    plane = SparseGaussianMixture().fit(X)
    for estimator, options, message in [
        (plane, {}, "SparseGaussianMixture has no mean directions"),
        (mixture, {"names": ["a"]}, "names should be those of 3 components, got 1"),
        (mixture, {"labels": [0, 1]}, r"labels should be of shape \(150,\)"),
        (VonMisesFisherMixture(), {}, "not fitted"),
    ]:
        with pytest.raises(ValueError, match=message):
            DirectionsDisplay.from_estimator(estimator, X, **options)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("K", [1, 2])
def test_a_background_that_has_every_row_is_drawn(d, K):
    means = 0.5 * np.eye(K, d)
    mixture = VonMisesFisherMixture.from_parameters(np.zeros(K), means, background_weight=1.0)
    for rows in (None, np.random.default_rng(0).normal(size=(20, d))):
        assert DirectionsDisplay.from_estimator(mixture, rows).components_ == []


@pytest.mark.parametrize(
    ("drawn", "kind", "d"),
    [
        *[(DirectionsDisplay, VonMisesFisherMixture, d) for d in (2, 3, 5)],
        (MixtureDisplay, SparseGaussianMixture, 3),
    ],
)
def test_rows_of_a_dask_array_and_names_of_classes(drawn, kind, d):
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(60, d))
    mixture = kind(2, random_state=0).fit(X)
    numbers = np.arange(60) % 2
    expected = drawn.from_estimator(mixture, X, labels=numbers)
    lazy = drawn.from_estimator(mixture, da.from_array(X, chunks=(20, d)))
    assert_array_equal(lazy.labels, mixture.labels_)
    assert_array_equal(lazy.X, expected.X)
    assert len(np.unique(expected.scatter_.get_facecolors(), axis=0)) == 2
    for labels in (np.array(["a", "b"])[numbers], np.array(["a", "b"], object)[numbers]):
        display = drawn.from_estimator(mixture, X, labels=labels)
        assert_array_equal(display.scatter_.get_facecolors(), expected.scatter_.get_facecolors())


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("size", [np.finfo(np.float64).max, 1e-200])
def test_rows_of_any_size_have_the_same_directions(size, d):
    mixture, X = fitted(d)
    expected = DirectionsDisplay.from_estimator(mixture, X).X
    scaled = X * (0.999 / np.abs(X).max()) * size
    assert_allclose(DirectionsDisplay.from_estimator(mixture, scaled).X, expected, rtol=1e-12)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("concentrations", [[1e6], [1e15], [1e6, 1e9], [0.0, 1e12]])
def test_narrow_components_have_an_outline_on_the_circle(concentrations):
    """Its points may all lie where a density underflows."""
    K = len(concentrations)
    directions = np.array([[np.cos(0.3), np.sin(0.3)], [0.0, 1.0]])[:K]
    display = DirectionsDisplay(np.full(K, 1 / K), directions, np.array(concentrations)).plot()
    heights = np.hstack([np.hypot(*curve.get_data()) for curve in display.components_])
    assert_allclose(np.nanmax(heights), 2)


def test_a_path_is_drawn_as_its_best_mixture():
    _, X = fitted(4)
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=6).fit(X)
    drawn, best = (
        DirectionsDisplay.from_estimator(each, X) for each in (path, path.best_estimator_)
    )
    assert_array_equal(drawn.mean_directions, best.mean_directions)
    assert_array_equal(drawn.labels, path.labels_)
