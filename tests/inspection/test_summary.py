"""The summary says of components what public attributes and predictions say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.mixture import GaussianMixture

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.distributions import vonmises_fisher as vmf
from skvmf.inspection import component_summary, match_components

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
    result = component_summary(mixture, X, feature_names=NAMES, n_features=2, n_rows=4)
    assert_array_equal(result.sizes, [120, 90, 60, 30])
    assert result.features[:3] == [["tea", "ice"], ["ice", "puck"], ["puck", "goal"]]
    assert_array_equal(result.weights, mixture.weights_[result.labels])
    units = data() / np.linalg.norm(data(), axis=1, keepdims=True)
    for i, k in enumerate(result.labels):
        members = np.flatnonzero(mixture.predict(X) == k)
        cosines = units[members] @ mixture.mean_directions_[k]
        assert_allclose(np.cos(np.radians(result.angles[i])), cosines.mean(), atol=2e-3)
        assert_allclose(result.cosines[i], cosines.mean(), rtol=1e-6)
        assert result.typical[i][0] == members[cosines.argmax()]
        assert result.doubtful[i][0] == members[mixture.predict_proba(X)[members, k].argmin()]
        assert len(result.typical[i]) == len(result.doubtful[i]) == 4
    ice, both = result.labels[1], result.labels[3]
    assert result.nearest[1] == both
    assert result.nearest[3] == ice
    assert result.overlaps[1] == result.overlaps[3] == result.overlaps.max()


@pytest.mark.parametrize("concentrations", [[3.0, 5, 20, 50], [0.0, 0, 0, 2]])
def test_overlaps_are_bhattacharyya_coefficients(concentrations):
    """The mean root of the ratio of two densities, over draws of one."""
    directions = CENTRES / np.linalg.norm(CENTRES, axis=1, keepdims=True)
    components = list(zip(directions, concentrations, strict=True))
    alone = [
        VonMisesFisherMixture.from_parameters([1.0], mean_directions=[mu], concentrations=[kappa])
        for mu, kappa in components
    ]
    result = [[match_components(a, b).overlaps[0] for b in alone] for a in alone]
    assert_allclose(result, np.transpose(result))
    assert_allclose(np.diagonal(result), 1)
    for i, component in enumerate(components):
        X = vmf.rvs(*component, size=50_000, random_state=i)
        logs = np.transpose([vmf.logpdf(X, *each) for each in components])
        assert_allclose(result[i], np.exp((logs - logs[:, [i]]) / 2).mean(axis=0), atol=0.02)


@pytest.mark.parametrize(
    ("covariance_type", "make"),
    [
        ("full", StudentTMixture),
        ("tied", GaussianMixture),
        ("diag", RelativeGMM),
        ("spherical", SparseGaussianMixture),
    ],
)
def test_clusters_in_the_plane(make, covariance_type):
    X = data()
    mixture = make(4, covariance_type=covariance_type, random_state=0).fit(X)
    result = component_summary(mixture, X, feature_names=NAMES)
    assert result.angles is None
    assert result.features[0][0] == "+tea"
    assert_array_equal(np.sort(result.labels), np.arange(4))
    assert_array_equal(result.sizes, np.bincount(mixture.predict(X))[result.labels])
    assert "nearest" in str(result)


def test_pruned_components_and_the_background():
    mixture = VonMisesFisherMixture.from_parameters(
        [0.2, 0.0, 0.5, 0.1],
        mean_directions=CENTRES,
        concentrations=[50.0] * 4,
        background_weight=0.2,
    )
    X = np.vstack([data(), [[-1.0, -1, -1, -1]]])
    result = component_summary(mixture, X)
    assert_array_equal(result.labels, [2, 0, 3])
    assert result.n_outliers == np.count_nonzero(mixture.predict(X) == -1) > 0
    assert result.columns["component"] == ["2", "0", "3", "-1"]
    assert result.columns["rows"][-1] == str(result.n_outliers)
    assert result.features is None  # numbers of coordinates say nothing
    assert "features" not in result.columns
    assert result.columns["nearest"][-1] == "(background)"
    alone = component_summary(VonMisesFisherMixture().fit(data()), data())
    assert_array_equal(alone.nearest, [-1])
    assert alone.columns["nearest"] == [""]
    without = component_summary(mixture)
    assert without.sizes is None
    assert "rows" not in without.columns
    assert "angle" in without.columns  # what the concentrations say, without rows
    assert without.columns["weight"] == ["0.500", "0.200", "0.100", "0.200"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_tightness_is_that_of_the_rows_and_not_of_the_prior():
    rng = np.random.default_rng(0)
    spread = np.repeat([0.01, 0.3], 40)[:, np.newaxis]
    X = np.repeat(np.eye(2, 60), 40, axis=0) + spread * rng.normal(size=(80, 60))
    X = np.vstack([X, np.zeros((3, 60))])  # which have no direction
    shrunk = VonMisesFisherMixture(2, concentration_prior=1e6, random_state=0).fit(X)
    summary = component_summary(shrunk, X)
    assert np.ptp(summary.angles) < 0.1
    units = X[:80] / np.linalg.norm(X[:80], axis=1, keepdims=True)
    cosines = (units @ shrunk.mean_directions_.T)[:, summary.labels].reshape(2, 40, 2).mean(axis=1)
    assert_allclose(np.sort(summary.cosines), np.sort(cosines.max(axis=0)), rtol=1e-12)
    assert np.ptp(summary.cosines) > 0.5
    assert not set(np.concatenate(summary.typical)) & {80, 81, 82}
    nothing = component_summary(shrunk, np.zeros((1, 60)))
    assert np.isnan(nothing.cosines).all()
    assert nothing.columns["cosine"] == ["", ""]


def test_a_background_that_has_every_row_is_summed_up():
    X = data()
    mixture = SparseGaussianMixture.from_parameters(
        [0.0, 0.0], X[:2], np.eye(4)[[0, 0]] + 1, covariance_type="diag", background_weight=1.0,
        background_bounds=[X.min(axis=0), X.max(axis=0)],
    )  # fmt: skip
    summary = component_summary(mixture, X)
    assert len(summary.labels) == 0
    assert summary.n_outliers == 300
    assert str(summary).splitlines()[-1].split()[:3] == ["-1", "300", "1.000"]


def test_tables_hold_every_cell_and_escape_it():
    result = component_summary(directions(), data(), feature_names=["<b>", "ice", "puck", "goal"])
    html = result._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 5
    assert html.count("<td>") == 4 * html.count("<th>")
    lines = str(result).splitlines()
    assert "angle" not in result.columns  # rows say how tight they are
    assert repr(result) == str(result)
    assert len(lines) == 5
    assert lines[0].split() == list(result.columns)
    many = VonMisesFisherMixture.from_parameters(
        np.full(200, 1 / 200), np.random.default_rng(0).normal(size=(200, 9)) / 10
    )
    text = str(component_summary(many))
    assert text.endswith("... and 160 more")
    assert len(text.splitlines()) == 42
    assert component_summary(many)._repr_html_().count("<tr>") == 201


@pytest.mark.parametrize("make", [VonMisesFisherMixture, SparseGaussianMixture])
def test_names_of_a_frame_and_wrong_names(make):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(), columns=NAMES)
    mixture = make(4, random_state=0).fit(frame)
    assert component_summary(mixture, n_features=1).features[0][0].endswith("tea")
    assert component_summary(mixture, frame).sizes.sum() == 300  # without a warning
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
    result = component_summary(mixture, form((X * size).astype(dtype)))
    for rows, expected in zip(result.typical, component_summary(mixture, X).typical, strict=True):
        assert_array_equal(rows, expected)


def test_rows_of_a_dask_array_are_summed_up():
    da = pytest.importorskip("dask.array")
    mixture = directions()
    result = component_summary(mixture, da.from_array(data(), chunks=(100, 4)))
    assert str(result) == str(component_summary(mixture, data()))


EXTREME = {
    "the largest float32": (np.float32, np.finfo(np.float32).max),
    "subnormal float32": (np.float32, 1e-43),
    "squares underflow": (np.float64, 1e-160),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", EXTREME)
@pytest.mark.parametrize("cls", [VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture])
def test_rows_at_the_limits_of_floats_give_no_warnings(cls, case):
    dtype, size = EXTREME[case]
    X = data()
    X[150:] *= -1  # so that sums of the largest floats are infinite, of both signs
    X = (X * (0.999 / np.abs(X).max()) * size).astype(dtype)
    summary = component_summary(cls(4, random_state=0).fit(X), X)
    assert summary.sizes.sum() == 300
    assert np.isfinite(summary.overlaps).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_too_far_for_squares_are_not_typical():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 5, axis=0)
    X[7] = [1e10, 0.0]
    mixture = SparseGaussianMixture.from_parameters(
        [0.5, 0.5], [[0.0, 0.0], [1.0, 0.0]], [1e-300, 1e-300], covariance_type="spherical"
    )
    labels = mixture.predict(X)
    typical = component_summary(mixture, X, n_rows=10).typical
    assert [numbers[-1] == 7 for numbers in typical] == [labels[7] == 0, labels[7] == 1]


def test_typical_rows_with_missing_values_are_those_of_the_largest_expected_density():
    """A row that lacks features is not the most typical one for that."""
    X, rng = data(), np.random.default_rng(1)
    X[rng.random(X.shape) < 0.3] = np.nan
    mixture = SparseGaussianMixture(4, missing_values="marginal", random_state=0).fit(X)
    result = component_summary(mixture, X, n_rows=5)
    for k, rows in zip(result.labels, result.typical, strict=True):
        members, distances = np.flatnonzero(mixture.labels_ == k), []
        for x in X[members]:
            seen = ~np.isnan(x)
            gap, inner = x[seen] - mixture.means_[k, seen], mixture.covariances_[k][:, seen][seen]
            distances.append(gap @ np.linalg.solve(inner, gap) + np.count_nonzero(~seen))
        assert_array_equal(rows, members[np.argsort(distances)[:5]])


def test_clusters_of_a_relative_mixture_have_its_missing_values():
    X, labels = data(), np.repeat(np.arange(4), SIZES)
    X[::7, 1] = np.nan
    mixture = RelativeGMM(covariance_type="diag", missing_values="marginal")
    result = component_summary(mixture, X, labels=labels)
    assert_array_equal(result.sizes, SIZES)


def test_overlaps_of_components_that_are_infinitely_far_are_zero():
    means = [[0, 0], [1e30, 0], [1e30, 1e30]]
    covariances = [[5e58, 5e58], [1e-300, 1e-300], [2e45, 1e-300]]
    mixture = SparseGaussianMixture.from_parameters(
        [0.4, 0.3, 0.3], means, covariances, covariance_type="diag"
    )
    assert np.isfinite(component_summary(mixture).overlaps).all()
