"""What a user gives to start from, or as a whole mixture, is checked by name and at once."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf._engine.search.overseeding import Overseeding
from skvmf.datasets import make_vonmises_fisher_blobs

from .kinds import MIXTURES, PLANE

GAUSSIANS = MIXTURES[1:3]
X = np.random.default_rng(0).normal(size=(60, 3))
EYES = np.array([np.eye(3)] * 2)
RAGGED = [[1.0, 2.0], [3.0]]

BAD_PARAMETERS = {  # of whom, what is given, and what the message says
    MIXTURES: [
        (dict(weights_init=[1.0]), r"shape \(2,\)"),
        *[
            (dict(weights_init=bad), "non-negative and sum to 1")
            for bad in ([np.nan, 1.0], [0.5, 0.6], [-0.5, 1.5])
        ],
        (dict(weights_init=RAGGED), "weights_init should be an array of numbers"),
        (dict(weights_init=["a", "b"]), "weights_init should hold real numbers"),
        (dict(means_init=[1.0, 2.0, 3.0]), r"shape \(2, 3\)"),
        (dict(means_init=np.ones((2, 3)) * 1j), "means_init should hold real numbers"),
        (dict(means_init=RAGGED), "means_init should be an array of numbers"),
        (dict(means_init=np.full((2, 3), np.nan)), "means_init contains nan or inf"),
        (dict(init_params=[]), r"labels from 0 to 1 .* got shape \(0,\)"),
        (dict(init_params=["a"] * 60), "init_params should hold real numbers"),
        (dict(init_params=RAGGED), "init_params should be an array of numbers"),
        (dict(init_params=np.full(60, 0.5)), "values from 0.5 to 0.5"),
        (dict(init_params=np.zeros(59)), r"got shape \(59,\)"),
        (dict(weight_concentration_prior=["a", "b"]), "weight_concentration_prior should hold"),
    ],
    GAUSSIANS: [
        (dict(precisions_init=[1.0, 1.0]), r"shape \(2, 3, 3\)"),
        (dict(precisions_init=RAGGED), "precisions_init should be an array of numbers"),
        (dict(precisions_init=-EYES), "positive definite"),
        (dict(precisions_init=np.ones((2, 3, 3))), "positive definite"),
        (dict(precisions_init=EYES + np.eye(3, k=1)), "symmetric"),
        (dict(covariance_type="tied", precisions_init=np.ones((3, 3))), "positive definite"),
        (dict(covariance_type="diag", precisions_init=np.zeros((2, 3))), "should be positive"),
        (dict(covariance_type="spherical", precisions_init=[1e-320, 1.0]), "finite inverses"),
    ],
    (VonMisesFisherMixture,): [
        (dict(means_init=np.zeros((2, 3))), "zero row"),
        (dict(init_params=np.arange(60)), "labels"),
        (dict(init_params=np.zeros((60, 3))), "responsibilities"),
        (dict(init_params="k-medoids"), "init_params"),
        (dict(concentration_prior=-1), "concentration_prior"),
        (dict(negentropy="refined"), "negentropy"),
        (dict(temperature=-0.1), "temperature"),
        (dict(concentrations_init=[3.0]), r"shape \(2,\)"),
        *[(dict(concentrations_init=bad), "from 0 to 1e") for bad in (-1.0, np.nan, 1e13)],
        (dict(concentrations_init=[1.0, 2.0], concentration_type="tied"), "one concentration"),
        (dict(fixed=("means",)), "give means_init"),
        (dict(fixed=("concentrations",)), "give concentrations_init"),
        (dict(fixed=("covariances",)), "'concentrations', 'means', 'weights'"),
        *[(dict(fixed=bad), "a tuple or list of some of") for bad in ("weights", ([],))],
        *[
            (dict(fixed=("weights",), **{name: value}), "keeps the weights")
            for name, value in [
                ("background", True),
                ("weight_floor", 0.1),
                ("weight_concentration_prior", 0.5),
            ]
        ],
        (
            dict(fixed=("concentrations",), concentrations_init=3.0, concentration_prior=1),
            "keeps the concentrations",
        ),
    ],
    (SparseGaussianMixture,): [
        (dict(weight_concentration_prior=[1, 2, 3]), "weight_concentration_prior"),
        (dict(weight_concentration_prior=np.inf), "weight_concentration_prior"),
        (dict(weight_floor=0.6), "at most 1/2"),
        (dict(weight_floor=0.4, background=True), "2 components and a background .* at most 1/3"),
        (dict(entmax_alpha=0.5), "entmax_alpha"),
        (dict(weight_concentration_prior=0.5, weight_floor=0), "weight_floor=0"),
        (dict(reg_covar=-1), "reg_covar"),
        (dict(covariance_type="round"), "covariance_type"),
    ],
    (StudentTMixture,): [
        (dict(degrees_of_freedom=0.0), "'tied', a number from 0.001 to 1e"),
        *[(dict(degrees_of_freedom=x), "freedom should be") for x in (-1, np.inf, np.nan)],
        (dict(degrees_of_freedom=[1.0, 2.0, 3.0]), "one for each of the 2 components"),
        (dict(degrees_of_freedom=["a", "b"]), "degrees_of_freedom should hold real numbers"),
        (dict(fixed=("covariances",)), "'scale_matrices'"),
        (dict(degrees_of_freedom="free"), "The 'degrees_of_freedom' parameter"),
        (dict(scale_matrices_init=np.ones(2)), r"scale_matrices_init .* shape \(2, 3, 3\)"),
        (dict(scale_matrices_init=np.ones((2, 3, 3))), "positive definite"),
        (dict(covariance_type="spherical", scale_matrices_init=[1e-320, 1.0]), "finite inverses"),
    ],
    (RelativeGMM,): [
        *[(dict(clearance=x), "clearance") for x in (-0.1, np.nan)],
        (dict(clearance=100.0), "too wide: 2 components need 100 along feature 0"),
        (dict(ordering_feature=3), "ordering_feature=3 is out of range: there are 3 features"),
        *[(dict(ordering_feature=x), "ordering_feature") for x in (-1, 0.5)],
        *[(dict(solver=x), "solver") for x in ("newton", "gradient")],
        (dict(order="sizes"), "order"),
        (dict(order="scales", covariance_type="tied"), "covariances are tied"),
        (dict(order="scales", clearance=100.0), "too wide"),
        (dict(order="both", fixed=("covariances",)), "covariances are fixed"),
        (dict(fixed=("weights",), weight_concentration_prior=2.0), "keeps the weights"),
        (dict(fixed=("means",)), "'covariances', 'weights'"),
        (dict(n_components=0), "n_components"),
        (dict(n_components=61), "n_samples >= n_components"),
    ],
}


@pytest.fixture
def no_work(capsys):
    """Check that no start was printed, which its first line is before it begins."""
    yield
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [(kind, *bad) for kinds, cases in BAD_PARAMETERS.items() for kind in kinds for bad in cases],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_before_any_work(estimator, options, message, method, no_work):
    with pytest.raises(ValueError, match=message):
        getattr(estimator(**{"n_components": 2, "verbose": 1} | options), method)(X)


@pytest.mark.parametrize("scales", [(1e-9, 1e-9), (1.0, 1.0), (1e9, 1e9), (1e-70, 1e70)])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize("estimator", PLANE)
def test_matrices_are_judged_alike_in_any_unit(estimator, covariance_type, scales):
    def mixture(gap):
        matrix = np.array([[1.0, 0.5 + gap], [0.5, 1.0]]) * np.outer(scales, scales)
        given = [matrix if covariance_type == "tied" else [matrix]]
        given += [3.0] if estimator is StudentTMixture else []
        return estimator.from_parameters([1.0], [[0, 0]], *given, covariance_type=covariance_type)

    mixture(1e-7)  # rounding of float32
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        mixture(0.1)


MEANS, ROUND = [[0.1, 0.2], [0.3, 0.1]], {"covariance_type": "spherical"}
TWO = {"weights": [0.5, 0.5], "means": MEANS}
SOUND = {
    VonMisesFisherMixture: TWO,
    SparseGaussianMixture: TWO | {"covariances": [1.0, 1.0]} | ROUND,
    RelativeGMM: TWO | {"covariances": [1.0, 1.0]} | ROUND,
    StudentTMixture: TWO | {"scale_matrices": [1.0, 1.0], "degrees_of_freedom": 3.0} | ROUND,
}
DIRECTED = {"means": None, "mean_directions": MEANS, "concentrations": [1.0, 2.0]}
BAD_MIXTURES = {
    MIXTURES: [
        (dict(means=sparse.csr_array(MEANS)), "means should be a dense array"),
        (dict(means=RAGGED), "means should be an array of numbers"),
        (dict(means=[["a", "b"], ["c", "d"]]), "means should hold real numbers"),
        (dict(means=3.0), r"means should have the shape \(n_components, n_features\)"),
        (dict(means=np.empty((0, 2))), r"got \(0, 2\)"),
        (dict(means=np.empty((2, 0))), r"got \(2, 0\)"),
        (dict(means=[[np.nan, 0.0], [0.0, 0.5]]), "means contains nan"),
        (dict(weights=[1.0]), r"weights should have the shape \(2,\)"),
        (dict(weights=RAGGED), "weights should be an array of numbers"),
        (dict(weights=[0.5, 0.4]), "sum to 1"),
        (dict(n_components=3), "n_components=3 does not agree"),
    ],
    (VonMisesFisherMixture,): [
        *[
            (given, "either means or mean_directions together")
            for given in (
                dict(concentrations=[1.0, 2.0]),
                dict(mean_directions=MEANS),
                dict(means=None, mean_directions=MEANS),
                dict(means=None, concentrations=[1.0, 2.0]),
                dict(means=None),
            )
        ],
        (DIRECTED | dict(mean_directions=[[0.0, 0.0], [1.0, 0.0]]), "zero row"),
        (DIRECTED | dict(concentrations=[1.0]), r"shape \(2,\)"),
        (DIRECTED | dict(concentrations="ab"), "concentrations should hold real numbers"),
        (DIRECTED | dict(concentrations=[1.0, np.nan]), "concentration"),
        (DIRECTED | dict(concentrations=[1.0, -1.0]), "from 0 to 1e"),
        (DIRECTED | dict(concentrations=[1.0, 1e13]), "from 0 to 1e"),
        (dict(means=[[1.0, 0.0], [0.1, 0.0]]), "unit ball"),
        (dict(means=[[0.1], [0.1]]), "two features"),
        (dict(concentration_type="tied"), "one concentration"),
    ],
    GAUSSIANS: [
        (dict(covariances=[1.0, 1.0, 1.0]), r"shape \(2,\)"),
        (dict(covariances=[[1.0], [1.0, 2.0]]), "covariances should be an array of numbers"),
        (dict(covariances=sparse.csr_array(np.eye(2))), "covariances should be a dense array"),
        (dict(covariances=[1.0, -1.0]), "positive"),
        (dict(covariances=[1e-320, 1.0]), "finite inverses"),
        (dict(tol=-1), "tol"),
    ],
    (RelativeGMM,): [
        (dict(fixed=["means"]), "fixed"),
        (dict(ordering_feature=5), "ordering_feature=5 is out of range"),
    ],
    (StudentTMixture,): [
        (dict(degrees_of_freedom="estimated"), "degrees_of_freedom should hold real numbers"),
        (dict(degrees_of_freedom=[1, 2, 3]), "one for each of the 2"),
        (dict(degrees_of_freedom=0), "a number from 0.001"),
        (dict(scale_matrices=[1.0, -1.0]), "scale_matrices should be positive"),
        (dict(scale_matrices=[1.0]), r"scale_matrices .* shape \(2,\)"),
        (dict(means=[[1e200], [0.0]]), r"means holds values up to 1e\+200"),
    ],
    PLANE: [(dict(background_bounds=[[-5.0] * 2, [5.0] * 2]), "bounds needs a background")],
}


@pytest.mark.parametrize(
    ("estimator", "given", "message"),
    [(kind, *bad) for kinds, cases in BAD_MIXTURES.items() for kind in kinds for bad in cases],
)
def test_bad_parameters_of_a_mixture_are_refused(estimator, given, message):
    with pytest.raises(ValueError, match=message):
        estimator.from_parameters(**SOUND[estimator] | given)


@pytest.mark.parametrize("estimator", MIXTURES)
def test_parameters_of_another_mixture_may_name_its_components(estimator):
    mixture = estimator.from_parameters(**SOUND[estimator], n_components=2, tol=0.5)
    assert (mixture.n_components, mixture.tol) == (2, 0.5)


@pytest.mark.parametrize("estimator", PLANE)
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


@pytest.mark.parametrize("kind", [VonMisesFisherMixture, SparseGaussianMixture])
def test_a_generator_is_a_random_state_that_goes_on(kind):
    rows, _ = make_blobs(300, 4, centers=3, cluster_std=3.0, random_state=0)
    options = {"init_params": "random", "max_iter": 3, "tol": 0}
    generator = np.random.default_rng(5)
    first, second = (kind(3, random_state=generator, **options).fit(rows) for _ in range(2))
    again = kind(3, random_state=np.random.default_rng(5), **options).fit(rows)
    assert_array_equal(first.means_, again.means_)
    assert not np.array_equal(first.means_, second.means_)
    draws = [first.sample(3)[0] for _ in range(2)]
    assert not np.array_equal(*draws)


def directions(mean_resultant_length, n_components=30, n_features=256, n_rows=20_000):
    """Return von Mises-Fisher rows around random centres, and the centres."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_components, n_features))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    r = mean_resultant_length
    kappa = r * (n_features - r**2) / (1 - r**2)  # Banerjee's estimate
    pole = np.eye(n_features)[0]
    cosines = stats.vonmises_fisher(pole, kappa, seed=rng).rvs(n_rows)[:, :1]
    own = centres[rng.integers(n_components, size=n_rows)]
    sides = rng.normal(size=own.shape)
    sides -= (sides * own).sum(axis=1, keepdims=True) * own
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    return (cosines * own + np.sqrt(1 - cosines**2) * sides).astype(np.float32), centres


@pytest.mark.parametrize(("mean_resultant_length", "grows"), [(0.2, True), (0.4, False)])
def test_a_start_takes_more_rows_where_clusters_are_weak(
    mean_resultant_length, grows, monkeypatch, capsys
):
    """As many as it needs to find what EM finds from the true centres, which 100 do not."""
    monkeypatch.setattr("skvmf.mixture._base._MIN_ROWS", 100)
    X, centres = directions(mean_resultant_length)
    K = len(centres)
    true = VonMisesFisherMixture(K, means_init=centres).fit(X).lower_bound_

    def shortfall(**options):
        fitted = VonMisesFisherMixture(K, n_init=2, random_state=0, verbose=1, **options).fit(X)
        return true - fitted.lower_bound_

    assert shortfall() < 0.01
    assert ("the sample grows to" in capsys.readouterr().out) == grows
    given = shortfall(init_size=100 * K)
    assert "the sample grows to" not in capsys.readouterr().out
    assert (given > 0.2) == grows


def test_several_starts_are_compared_on_the_same_rows(monkeypatch):
    """The first one says how many are needed; a start on fewer would seem to be better."""
    monkeypatch.setattr("skvmf.mixture._base._MIN_ROWS", 100)
    X, centres = directions(0.2, n_rows=10_000)
    sizes = []
    run = Overseeding.run

    def noted(search, *args):
        found = run(search, *args)
        sizes.append(found.sample.rows.n_rows)
        return found

    monkeypatch.setattr(Overseeding, "run", noted)
    VonMisesFisherMixture(len(centres), n_init=2, random_state=0, max_iter=0).fit(X)
    assert sizes == [9000, 9000]


@pytest.mark.parametrize("seed", [13, 18])
def test_two_clusters_that_share_a_component_are_told_apart(seed, monkeypatch):
    """Rounds of seeds at rows had left two of thirty clusters in one component."""
    monkeypatch.setattr("skvmf.mixture._base._MIN_ROWS", 100)
    X, centres = directions(0.2)
    true = VonMisesFisherMixture(len(centres), means_init=centres).fit(X).lower_bound_
    found = VonMisesFisherMixture(len(centres), random_state=seed).fit(X).lower_bound_
    assert found > true - 0.01


@pytest.mark.parametrize("seed", [2, 4])
def test_the_best_of_several_starts_is_that_of_the_mixtures_own_components(seed):
    """Starts are of one concentration: among unequal clusters the best splits the widest one."""
    X, _ = make_vonmises_fisher_blobs(
        3000, 3, centers=4, concentration=[5.0, 20.0, 60.0, 100.0], random_state=seed
    )
    mixture = VonMisesFisherMixture(4, concentration_prior=1, random_state=0)
    first = mixture.fit(X).lower_bound_
    best = mixture.set_params(n_init=5).fit(X).lower_bound_
    assert best > first - mixture.tol


def test_starts_are_compared_with_the_prior_that_a_fit_takes():
    """Without it, all starts end in one place, and none is better than another."""
    X = load_digits().data
    bounds = [
        VonMisesFisherMixture(10, n_init=n_init, random_state=0).fit(X).lower_bound_
        for n_init in (1, 4)
    ]
    assert bounds[1] > bounds[0] + 0.03
