"""The summary says of components what public attributes and predictions say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.mixture import GaussianMixture

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.inspection import component_summary
from skvmf.inspection._components import log_affinities, read_components

CENTRES = np.array([[6.0, 1, 0, 0], [0, 6, 1, 0], [0, 0, 6, 1], [0, 5, 3, 0]])
SIZES = [120, 90, 60, 30]
NAMES = ["tea", "ice", "puck", "goal"]


def data():
    rng = np.random.default_rng(0)
    return np.repeat(CENTRES, SIZES, axis=0) + 0.3 * rng.normal(size=(300, 4))


def directions(**params):
    return VonMisesFisherMixture(4, concentration_prior=0, random_state=0, **params).fit(data())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.float32])
def test_directions(form):
    X = form(data())
    mixture = directions()
    found = component_summary(mixture, X, feature_names=NAMES, n_features=2, n_rows=4)
    assert_array_equal(found.sizes, [120, 90, 60, 30])
    assert found.features[:3] == [["tea", "ice"], ["ice", "puck"], ["puck", "goal"]]
    assert_array_equal(found.weights, mixture.weights_[found.labels])
    units = data() / np.linalg.norm(data(), axis=1, keepdims=True)
    for i, k in enumerate(found.labels):
        own = np.flatnonzero(mixture.predict(X) == k)
        cosines = units[own] @ mixture.mean_directions_[k]
        assert_allclose(np.cos(np.radians(found.angles[i])), cosines.mean(), atol=2e-3)
        assert found.typical[i][0] == own[cosines.argmax()]
        assert found.doubtful[i][0] == own[mixture.predict_proba(X)[own, k].argmin()]
        assert len(found.typical[i]) == len(found.doubtful[i]) == 4
    ice, both = found.labels[1], found.labels[3]
    assert found.nearest[1] == both and found.nearest[3] == ice
    assert found.overlaps[1] == found.overlaps[3] == found.overlaps.max()


@pytest.mark.parametrize("concentrations", [[3.0, 5, 20, 50], [0.0, 0, 0, 2]])
def test_overlaps_are_bhattacharyya_coefficients(concentrations):
    """The mean root of the ratio of two densities, over draws of one."""
    rng = np.random.default_rng(0)
    mixture = VonMisesFisherMixture.from_parameters(
        [0.25] * 4, mean_directions=CENTRES, concentrations=concentrations
    )
    components = read_components(mixture)
    found = np.exp(log_affinities(components))
    assert_allclose(found, found.T)
    assert_allclose(np.diagonal(found), 1)
    for i in range(4):
        drawn = components.draw(i, 200_000, rng)
        logs = components.log_densities(drawn)
        assert_allclose(found[i], np.exp((logs - logs[:, [i]]) / 2).mean(axis=0), atol=0.02)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(
    "make", [RelativeGMM, SparseGaussianMixture, StudentTMixture, GaussianMixture]
)
def test_clusters_in_the_plane(make, covariance_type):
    X = data()
    mixture = make(4, covariance_type=covariance_type, random_state=0).fit(X)
    found = component_summary(mixture, X, feature_names=NAMES)
    assert found.angles is None
    assert found.features[0][0] == "+tea"
    assert_array_equal(np.sort(found.labels), np.arange(4))
    assert_array_equal(found.sizes, np.bincount(mixture.predict(X))[found.labels])
    assert "nearest" in str(found)


def test_pruned_components_and_the_background():
    mixture = VonMisesFisherMixture.from_parameters(
        [0.2, 0.0, 0.5, 0.1],
        mean_directions=CENTRES,
        concentrations=[50.0] * 4,
        background_weight=0.2,
    )
    X = np.vstack([data(), [[-1.0, -1, -1, -1]]])
    found = component_summary(mixture, X)
    assert_array_equal(found.labels, [2, 0, 3])
    assert found.n_outliers == np.count_nonzero(mixture.predict(X) == -1) > 0
    assert found.columns["component"] == ["2", "0", "3", "-1"]
    assert found.columns["rows"][-1] == str(found.n_outliers)
    assert found.features[0][:1] == ["2"]  # features have numbers where they have no names
    without = component_summary(mixture)
    assert without.sizes is None and "rows" not in without.columns
    assert without.columns["weight"] == ["0.500", "0.200", "0.100", "0.200"]


def test_one_component_has_no_neighbour():
    found = component_summary(VonMisesFisherMixture().fit(data()), data())
    assert_array_equal(found.nearest, [-1])
    assert found.columns["nearest"] == [""]


def test_tables_hold_every_cell_and_escape_it():
    found = component_summary(directions(), data(), feature_names=["<b>", "ice", "puck", "goal"])
    html = found._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert html.count("<tr>") == 5 and html.count("<td>") == 4 * html.count("<th>")
    lines = str(found).splitlines()
    assert repr(found) == str(found) and len(lines) == 5
    assert lines[0].split() == list(found.columns)
    many = VonMisesFisherMixture.from_parameters(
        np.full(200, 1 / 200), np.random.default_rng(0).normal(size=(200, 9)) / 10
    )
    text = str(component_summary(many))
    assert text.endswith("... and 160 more") and len(text.splitlines()) == 42
    assert component_summary(many)._repr_html_().count("<tr>") == 201


def test_names_of_a_frame_and_wrong_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(), columns=NAMES)
    mixture = VonMisesFisherMixture(4, random_state=0).fit(frame)
    assert component_summary(mixture, n_features=1).features[0] == ["tea"]
    with pytest.raises(ValueError, match="feature_names should be 4 names, got 2"):
        component_summary(mixture, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="not fitted"):
        component_summary(VonMisesFisherMixture())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1e20), (np.float32, 1e-25), (np.float64, 1e160), (np.float64, 1e-170)],
)
def test_typical_rows_are_the_same_at_any_size(form, dtype, size):
    mixture, X = directions(), data().astype(dtype)
    found = component_summary(mixture, form((X * size).astype(dtype)))
    for own, expected in zip(found.typical, component_summary(mixture, X).typical, strict=True):
        assert_array_equal(own, expected)


@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture])
def test_rows_of_a_frame_keep_their_names(cls):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(), columns=NAMES)
    mixture = cls(4, random_state=0).fit(frame)
    assert component_summary(mixture, frame).sizes.sum() == 300  # without a warning


def test_rows_of_a_dask_array_are_summed_up():
    da = pytest.importorskip("dask.array")
    mixture = directions()
    found = component_summary(mixture, da.from_array(data(), chunks=(100, 4)))
    assert str(found) == str(component_summary(mixture, data()))
