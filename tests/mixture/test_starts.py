"""What a user gives to start from, or as a whole mixture, is checked by name and at once."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

MIXTURES = [VonMisesFisherMixture, SparseGaussianMixture, RelativeGMM, StudentTMixture]
GAUSSIANS = MIXTURES[1:3]
X = np.random.default_rng(0).normal(size=(60, 3))
EYES = np.array([np.eye(3)] * 2)
RAGGED = [[1.0, 2.0], [3.0]]

BAD_STARTS = [
    ("weights_init", [1.0], r"shape \(2,\)"),
    *[
        ("weights_init", bad, "non-negative and sum to 1")
        for bad in ([np.nan, 1.0], [0.5, 0.6], [-0.5, 1.5])
    ],
    ("weights_init", RAGGED, "weights_init should be an array of numbers"),
    ("weights_init", ["a", "b"], "weights_init should hold real numbers"),
    ("means_init", [1.0, 2.0, 3.0], r"shape \(2, 3\)"),
    ("means_init", np.ones((2, 3)) * 1j, "means_init should hold real numbers"),
    ("means_init", RAGGED, "means_init should be an array of numbers"),
    ("means_init", np.full((2, 3), np.nan), "means_init contains nan or inf"),
    ("init_params", [], r"labels from 0 to 1 .* got shape \(0,\)"),
    ("init_params", ["a"] * 60, "init_params should hold real numbers"),
    ("init_params", RAGGED, "init_params should be an array of numbers"),
    ("init_params", np.full(60, 0.5), "values from 0.5 to 0.5"),
    ("init_params", np.zeros(59), r"got shape \(59,\)"),
    ("weight_concentration_prior", ["a", "b"], "weight_concentration_prior should hold"),
]
BAD_PRECISIONS = [
    ("full", [1.0, 1.0], r"shape \(2, 3, 3\)"),
    ("full", RAGGED, "precisions_init should be an array of numbers"),
    ("full", -EYES, "positive definite"),
    ("full", np.ones((2, 3, 3)), "positive definite"),
    ("full", EYES + np.eye(3, k=1), "symmetric"),
    ("tied", np.ones((3, 3)), "positive definite"),
    ("diag", np.zeros((2, 3)), "should be positive"),
    ("spherical", [1e-320, 1.0], "finite inverses"),
]


@pytest.fixture
def no_work(capsys):
    """Check that no start was printed, which its first line is before it begins."""
    yield
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.parametrize(("name", "value", "message"), BAD_STARTS)
def test_bad_starts_are_refused_before_any_work(estimator, name, value, message, no_work):
    with pytest.raises(ValueError, match=message):
        estimator(2, verbose=1, **{name: value}).fit(X)


@pytest.mark.parametrize("estimator", GAUSSIANS)
@pytest.mark.parametrize(("covariance_type", "value", "message"), BAD_PRECISIONS)
def test_bad_precisions_are_refused_before_any_work(
    estimator, covariance_type, value, message, no_work
):
    with pytest.raises(ValueError, match=message):
        estimator(2, verbose=1, covariance_type=covariance_type, precisions_init=value).fit(X)


@pytest.mark.parametrize("scales", [(1e-9, 1e-9), (1.0, 1.0), (1e9, 1e9), (1e-70, 1e70)])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("estimator", [*GAUSSIANS, StudentTMixture])
def test_matrices_are_judged_alike_in_any_unit(estimator, covariance_type, scales):
    def mixture(gap):
        matrix = np.array([[1.0, 0.5 + gap], [0.5, 1.0]]) * np.outer(scales, scales)
        given = [matrix if covariance_type == "tied" else [matrix]]
        given += [3.0] if estimator is StudentTMixture else []
        return estimator.from_parameters([1.0], [[0, 0]], *given, covariance_type=covariance_type)

    mixture(1e-7)  # rounding of float32
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        mixture(0.1)


def from_parameters(estimator, means, weights=(0.5, 0.5), **parameters):
    if estimator in GAUSSIANS:
        parameters = {"covariances": [1.0, 1.0], "covariance_type": "spherical"} | parameters
    if estimator is StudentTMixture:
        parameters |= {"scale_matrices": EYES[0, :2, :2], "degrees_of_freedom": 3}
        parameters["covariance_type"] = "tied"
    return estimator.from_parameters(weights, means, **parameters)


MEANS = [[0.1, 0.2], [0.3, 0.1]]


@pytest.mark.parametrize("estimator", MIXTURES)
def test_parameters_of_another_mixture_may_name_its_components(estimator):
    mixture = from_parameters(estimator, MEANS, n_components=2, tol=0.5)
    assert (mixture.n_components, mixture.tol) == (2, 0.5)
    with pytest.raises(ValueError, match="n_components=3 does not agree"):
        from_parameters(estimator, MEANS, n_components=3)


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.parametrize(
    ("means", "message"),
    [
        (sparse.csr_array(MEANS), "means should be a dense array"),
        (RAGGED, "means should be an array of numbers"),
        ([["a", "b"], ["c", "d"]], "means should hold real numbers"),
        (3.0, r"means should have the shape \(n_components, n_features\)"),
        (np.empty((0, 2)), r"got \(0, 2\)"),
        (np.empty((2, 0)), r"got \(2, 0\)"),
        ([[np.nan, 0.0], [0.0, 0.5]], "means contains nan"),
    ],
)
def test_bad_means_of_a_mixture_are_refused(estimator, means, message):
    with pytest.raises(ValueError, match=message):
        from_parameters(estimator, means)


@pytest.mark.parametrize("estimator", MIXTURES)
def test_weights_that_do_not_fit_the_means_are_refused(estimator):
    with pytest.raises(ValueError, match=r"weights should have the shape \(2,\)"):
        from_parameters(estimator, MEANS, weights=[1.0])
    with pytest.raises(ValueError, match="weights should be an array of numbers"):
        from_parameters(estimator, MEANS, weights=RAGGED)


@pytest.mark.parametrize("estimator", GAUSSIANS)
@pytest.mark.parametrize(
    ("covariances", "message"),
    [
        ([1.0, 1.0, 1.0], r"shape \(2,\)"),
        ([[1.0], [1.0, 2.0]], "covariances should be an array of numbers"),
        (sparse.csr_array(np.eye(2)), "covariances should be a dense array"),
        ([1.0, -1.0], "positive"),
        ([1e-320, 1.0], "finite inverses"),
    ],
)
def test_bad_covariances_are_refused(estimator, covariances, message):
    with pytest.raises(ValueError, match=message):
        from_parameters(estimator, MEANS, covariances=covariances)


def test_constructor_parameters_of_a_mixture_are_checked():
    with pytest.raises(ValueError, match="tol"):
        from_parameters(SparseGaussianMixture, MEANS, tol=-1)
    with pytest.raises(ValueError, match="fixed"):
        from_parameters(RelativeGMM, MEANS, fixed=["means"])
    with pytest.raises(ValueError, match="ordering_feature=5 is out of range"):
        from_parameters(RelativeGMM, MEANS, ordering_feature=5)


@pytest.mark.parametrize(
    "parameters",
    [
        {"means": MEANS, "concentrations": [1.0, 2.0]},
        {"means": MEANS, "mean_directions": MEANS},
        {"mean_directions": MEANS},
        {"concentrations": [1.0, 2.0]},
        {},
    ],
)
def test_a_von_mises_fisher_mixture_takes_one_set_of_parameters(parameters):
    with pytest.raises(ValueError, match="either means or mean_directions together"):
        VonMisesFisherMixture.from_parameters([0.5, 0.5], **parameters)


def test_bad_concentrations_are_refused():
    for concentrations, message in [
        ([1.0], r"shape \(2,\)"),
        ("ab", "concentrations should hold real numbers"),
        ([1.0, np.nan], "concentration"),
        ([1.0, -1.0], "at least 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            VonMisesFisherMixture.from_parameters(
                [0.5, 0.5], mean_directions=MEANS, concentrations=concentrations
            )


@pytest.mark.parametrize("estimator", [SparseGaussianMixture, StudentTMixture, RelativeGMM])
def test_many_empty_components_are_moved_in_one_step(estimator):
    """Half of the means given are far from all rows."""
    rng = np.random.default_rng(0)
    centres = 50.0 * np.arange(40)[:, None] * [1, 0]
    X = np.repeat(centres, 25, axis=0) + rng.normal(size=(1000, 2))
    means = np.concatenate([centres[:20], centres[:20] + [0, 1e9]])
    options = {"precisions_init": np.ones(40), "weight_concentration_prior": 1.0}
    if estimator is StudentTMixture:
        options = {"scale_matrices_init": np.ones(40), "degrees_of_freedom": 1e6}
    mixture = estimator(
        40, means_init=means, covariance_type="spherical", max_iter=2, tol=1e9, **options
    )
    assert mixture.fit(X).n_active_components_ == 40


def test_a_fit_that_ends_with_fewer_components_warns():
    """Unless a prior removes them, or they had no weight from the beginning."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"temperature": 0, "tol": 1e9, "max_iter": 9, "covariance_type": "spherical"}
    options |= {"means_init": [[0.0, 0], [0, 0], [0, 0]], "fixed": ("means",)}
    with pytest.warns(ConvergenceWarning, match="ended with 1 of 3 components"):
        SparseGaussianMixture(3, weight_concentration_prior=1, **options).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseGaussianMixture(3, weight_concentration_prior=-1, **options).fit(X)
        SparseGaussianMixture(
            3, weight_concentration_prior=1, weights_init=[1, 0, 0], **options
        ).fit(X)


@pytest.mark.parametrize("partition", ["kmeans", "k-means++"])
@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, SparseGaussianMixture])
def test_kmeans_starts_on_a_sample_that_is_drawn_by_weight(mixture, partition):
    rows, y = make_blobs(3000, 4, centers=5, cluster_std=0.2, random_state=3)
    options = {"init_params": partition, "max_iter": 0, "random_state": 0}
    for init_size in (200, 3000, None, 1):
        fit = mixture(5, init_size=init_size, **options).fit(rows)
        assert_allclose(fit.weights_.sum(), 1)
        if init_size == 200:
            assert adjusted_rand_score(y, fit.labels_) > 0.99
            counts = np.bincount(fit.labels_, minlength=5)
            assert_allclose(fit.weights_, counts / 3000, atol=0.01)  # of all rows
    fit = mixture(3, init_size=100, **options).fit(rows, sample_weight=(y < 3).astype(float))
    assert adjusted_rand_score(y[y < 3], fit.labels_[y < 3]) > 0.99
