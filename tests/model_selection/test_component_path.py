"""ComponentPath finds what is there, and says what fits of each number say."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath

from .. import hooks

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def plane_blobs(K=4, n=400, d=3, seed=0):
    """Gaussian blobs, apart, of unlike sizes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=(np.arange(K) + 2) / (np.arange(K) + 2).sum())
    centres = 12 * rng.permutation(np.eye(K, d) + np.arange(K)[:, np.newaxis])
    return centres[y] + rng.normal(size=(n, d)) * rng.uniform(0.7, 1.3, size=K)[y, np.newaxis], y


def many_blobs():
    """So many rows that chance gains less than a component costs: of 400, one set in six has 5."""
    return plane_blobs(n=1600)


def sphere_blobs(K=4, seed=0):
    return make_vonmises_fisher_blobs(500, 8, centers=K, concentration=60.0, random_state=seed)


def gaussians(kind):
    return SparseGaussianMixture(covariance_type=kind, random_state=0)


FAMILIES = {
    "directions": (VonMisesFisherMixture(random_state=0), sphere_blobs),
    "tied": (VonMisesFisherMixture(concentration_type="tied", random_state=0), sphere_blobs),
    "sparse steps": (
        VonMisesFisherMixture(entmax_alpha=1.5, temperature=2.0, random_state=0),
        sphere_blobs,
    ),
    "full": (gaussians("full"), many_blobs),
    "one covariance": (gaussians("tied"), plane_blobs),
    "diag": (gaussians("diag"), many_blobs),
    "spherical": (gaussians("spherical"), many_blobs),
    "in order": (RelativeGMM(random_state=0), many_blobs),
    "heavy tails": (StudentTMixture(covariance_type="diag", random_state=0), many_blobs),
}
X, Y = sphere_blobs()
SMALL = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=6)


@pytest.fixture(scope="module")
def small():
    return clone(SMALL).fit(X)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_finds_the_number(name):
    estimator, blobs = FAMILIES[name]
    X, y = blobs()
    path = ComponentPath(estimator, max_components=10).fit(X)
    assert path.best_n_components_ == 4
    assert adjusted_rand_score(y, path.labels_) > 0.97
    assert adjusted_rand_score(y, path.cut(4)) > 0.9
    assert path.best_estimator_.converged_
    assert path.best_estimator_.n_components == 4
    assert_array_equal(path.predict(X), path.best_estimator_.labels_)


def test_a_background_stays_beside_all_numbers_of_components():
    noise = np.random.default_rng(1).normal(size=(150, 8))
    rows = np.vstack([X, noise / np.linalg.norm(noise, axis=1, keepdims=True)])
    path = ComponentPath(VonMisesFisherMixture(background=True, random_state=0), max_components=10)
    best = path.fit(rows).best_estimator_
    assert path.best_n_components_ == 4
    assert abs(best.background_weight_ - 150 / len(rows)) < 0.02
    assert adjusted_rand_score(Y, best.labels_[: len(X)]) > 0.95


@pytest.mark.filterwarnings("ignore:weight_concentration_prior=-200.0 outweighs the data")
@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, StudentTMixture])
def test_a_background_that_has_every_row_leaves_no_path(mixture):
    X = np.random.default_rng(0).normal(size=(100, 4))
    estimator = mixture(background=True, weight_concentration_prior=-200.0, random_state=0)
    path = ComponentPath(estimator, max_components=6)
    message = (
        r"With 6 components, all rows belong to the background, .*"
        r"Raise weight_concentration_prior \(now -200.0\), or set background=False"
    )
    with pytest.raises(ValueError, match=message):
        path.fit(X)
    assert not hasattr(path, "results_")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_background_that_has_every_row_of_components_with_weight_leaves_no_path():
    """Weights of components are positive here after one iteration; their shares are zero."""
    X = np.array([[1.0, 0.0], [0.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]) / 3
    options = {"background": True, "entmax_alpha": 2.0, "max_iter": 1, "random_state": 0}
    estimator = SparseGaussianMixture(precisions_init=np.full((4, 2, 2), np.eye(2)), **options)
    with pytest.raises(ValueError, match="With 4 components, all rows belong to the background"):
        ComponentPath(estimator, max_components=4).fit(X)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_path_ends_where_the_background_has_every_row():
    """A single component over the corners of a cube is less likely there than their box."""
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    X = np.repeat(np.hstack([corners, np.zeros((8, 3))]), 20, axis=0)
    X += 0.01 * np.random.default_rng(0).normal(size=X.shape)
    estimator = gaussians("spherical").set_params(background=True)
    path = ComponentPath(estimator, max_components=8).fit(X)
    assert path.results_["n_components"].min() > 1
    assert all(np.isfinite(values).all() for values in path.results_.values())
    assert hierarchy.is_valid_linkage(path.linkage_)
    assert set(path.cut(8)) == {*range(8)}
    assert set(path.cut(1)) == {0}


@pytest.mark.parametrize("criterion", ["slope", "held_out"])
@pytest.mark.parametrize("K", [1, 2, 7])
def test_every_criterion_finds_the_number(criterion, K):
    X, y = make_vonmises_fisher_blobs(900, 8, centers=K, concentration=90.0, random_state=K + 2)
    path = ComponentPath(
        VonMisesFisherMixture(random_state=0),
        max_components=3 * K + 3,
        criterion=criterion,
        random_state=0,
    ).fit(X)
    # held-out rows hardly speak against one component more
    assert 0 <= path.best_n_components_ - K <= (criterion == "held_out")
    assert adjusted_rand_score(y, path.labels_) > 0.95
    for other in ("bic", "icl"):
        assert path.results_["n_components"][path.results_[other].argmin()] == K


def test_results_are_those_of_the_mixtures_and_near_those_of_direct_fits():
    X, _ = plane_blobs(K=5)
    estimator = gaussians("diag").set_params(weight_concentration_prior=1.0)
    path = ComponentPath(estimator, max_components=9, criterion="bic").fit(X)
    results = path.results_
    assert_array_equal(results["n_components"], np.arange(1, 10))
    assert_array_equal(results["criterion"], results["bic"])
    assert results["bic"].argmin() == path.best_index_
    for K, bic, log_likelihood, p in zip(
        *(results[name] for name in ("n_components", "bic", "log_likelihood", "n_parameters")),
        strict=True,
    ):
        assert p == K - 1 + 2 * K * 3
        assert_allclose(bic, -2 * log_likelihood + p * np.log(len(X)))
        if K <= 5:  # above, there is more than one optimum
            direct = clone(estimator).set_params(n_components=K, n_init=5, tol=1e-6).fit(X)
            assert_allclose(log_likelihood / len(X), direct.score(X), atol=0.01)
    best = path.best_estimator_
    assert best.score(X) * len(X) >= results["log_likelihood"][path.best_index_] - 1e-9
    assert_allclose(best.bic(X), results["bic"][path.best_index_], rtol=1e-3)


@pytest.mark.parametrize(("max_components", "n_large"), [(20, 0), (6, 1)])
def test_the_slope_that_a_prior_leaves_nothing_of_is_told(max_components, n_large):
    X, _ = plane_blobs()
    estimator = gaussians("diag").set_params(weight_concentration_prior=-20.0)
    path = ComponentPath(estimator, max_components=max_components)
    message = rf"not estimate a slope .* of max_components={max_components}, only \d were left"
    with pytest.warns(UserWarning, match=message):
        path.fit(X)
    large = path.results_["n_components"] >= 2 / 3 * max_components
    assert np.count_nonzero(large) == n_large
    path.set_params(criterion="bic").fit(X)  # which needs no slope


@pytest.mark.parametrize(("background", "temperature"), [(False, 1), (True, 0), (True, 1)])
def test_icl_adds_to_bic_what_that_of_the_mixture_adds(background, temperature):
    X, _ = plane_blobs()
    if background:
        others = np.random.default_rng(0).uniform(X.min(), X.max(), size=(len(X) // 2, 3))
        X = np.vstack([X, others])
    estimator = gaussians("spherical").set_params(background=background, temperature=temperature)
    path = ComponentPath(estimator, max_components=3, min_components=3).fit(X)
    first = clone(estimator).set_params(n_components=3).fit(X)
    added = path.results_["icl"] - path.results_["bic"]
    assert_allclose(added, first.icl(X) - first.bic(X), rtol=1e-6, atol=1e-9)


def test_the_tree_is_of_the_components():
    path = clone(SMALL).set_params(max_components=9).fit(X)
    assert path.linkage_.shape == (8, 4)
    assert_allclose(path.leaf_weights_.sum(), 1)
    first = VonMisesFisherMixture(9, random_state=0).fit(X)
    assert_array_equal(path.leaf_labels_, first.labels_)
    assert adjusted_rand_score(path.cut(9), path.leaf_labels_) == 1
    for bad in (0, 10, 2.5):
        with pytest.raises(ValueError, match="whole number from 1 to the 9"):
            path.cut(bad)


@pytest.mark.parametrize("name", ["directions", "full"])
def test_best_nodes_are_the_components(name):
    estimator, blobs = FAMILIES[name]
    X, _ = blobs()
    path = ComponentPath(estimator, max_components=9).fit(X)
    members = {k: {k} for k in range(9)}
    for i, (a, b) in enumerate(path.linkage_[:, :2].astype(int)):
        members[9 + i] = members[a] | members[b]
    of_leaf = np.full(9, -1)
    for k, node in enumerate(path.best_nodes_):
        of_leaf[list(members[node])] = k
    assert (of_leaf >= 0).all()
    assert np.mean(of_leaf[path.leaf_labels_] == path.labels_) > 0.95


@pytest.mark.slow
def test_long_paths_take_steps():
    X, _ = make_vonmises_fisher_blobs(600, 6, centers=3, concentration=30.0, random_state=0)
    path = clone(SMALL).set_params(max_components=100, min_components=50).fit(X)
    numbers = path.results_["n_components"]
    assert numbers[0] == 50
    assert numbers[-1] == 100
    assert_array_equal(np.diff(numbers[numbers < 60]), 1)
    assert (np.diff(numbers) <= np.maximum(1, (numbers[1:] - 1) // 30)).all()
    assert path.linkage_.shape == (99, 4)


@pytest.mark.filterwarnings("ignore:criterion='slope' could not estimate a slope")
def test_components_that_have_left_are_joined_for_nothing():
    X, _ = plane_blobs()
    estimator = gaussians("spherical").set_params(weight_concentration_prior=-8.0)
    path = ComponentPath(estimator, max_components=10).fit(X)
    n_left = 10 - np.count_nonzero(path.leaf_weights_)
    assert n_left > 0
    assert path.results_["n_components"].max() == 10 - n_left
    assert (path.linkage_[:n_left, 2] < 1e-9).all()
    assert path.best_n_components_ == 4
    assert hierarchy.is_valid_linkage(path.linkage_)


@pytest.mark.bits
def test_the_same_bits_for_any_number_of_threads():
    X, _ = make_vonmises_fisher_blobs(12_000, 8, centers=4, concentration=20.0, random_state=0)
    paths = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads):
            paths.append(clone(SMALL).fit(X))
    for name, values in paths[0].results_.items():
        assert_array_equal(paths[1].results_[name], values, err_msg=name)
    assert_array_equal(paths[1].linkage_, paths[0].linkage_)
    assert_array_equal(paths[1].best_estimator_.means_, paths[0].best_estimator_.means_)


@pytest.mark.parametrize("kind", ["full", "spherical"])
def test_weights_are_repetitions(kind):
    X, _ = plane_blobs(n=200)
    times = np.random.default_rng(1).integers(0, 4, size=200)
    start = np.random.default_rng(2).integers(0, 6, size=200)
    positive = times > 0

    def fitted(X, start, weights):
        estimator = gaussians(kind).set_params(init_params=start, tol=1e-8)
        return ComponentPath(estimator, max_components=6).fit(X, sample_weight=weights)

    weighted = fitted(X[positive], start[positive], times[positive].astype(float))
    repeated = fitted(np.repeat(X, times, axis=0), np.repeat(start, times), None)
    assert weighted.best_n_components_ == repeated.best_n_components_
    for name in weighted.results_:
        assert_allclose(weighted.results_[name], repeated.results_[name], rtol=1e-6, err_msg=name)
    assert_allclose(weighted.linkage_, repeated.linkage_, rtol=1e-4, atol=1e-6)


def test_held_out_rows_are_not_seen_by_the_path(small):
    path = clone(SMALL).set_params(validation_fraction=0.25, random_state=3).fit(X)
    rng_rows = clone(path).fit(X)
    assert_array_equal(path.results_["held_out"], rng_rows.results_["held_out"])
    n_seen = 375
    p, bic, L = (path.results_[name] for name in ("n_parameters", "bic", "log_likelihood"))
    assert_allclose(bic + 2 * L, p * np.log(n_seen))
    assert path.labels_.shape == path.leaf_labels_.shape == (500,)
    assert "held_out" not in small.results_


@pytest.mark.parametrize("n_weighted", [5, 40])
def test_rows_without_weight_are_not_held_out(n_weighted):
    X, _ = plane_blobs()
    weights = np.zeros(len(X))
    weights[-n_weighted:] = 1
    path = ComponentPath(gaussians("diag"), max_components=2, criterion="held_out", random_state=0)
    path.fit(X, sample_weight=weights)
    alone = clone(path).fit(X[-n_weighted:]).results_["held_out"]
    assert_allclose(path.results_["held_out"], alone, rtol=1e-9)
    weights[:-1] = 0
    with pytest.raises(ValueError, match="at least two must have weight, got n_samples = 1"):
        path.fit(X, sample_weight=weights)


def test_a_callable_chooses():

    def near_two(results):
        return np.abs(results["n_components"] - 2)

    path = clone(SMALL).set_params(criterion=near_two).fit(X)
    assert path.best_n_components_ == 2
    assert_array_equal(path.results_["criterion"], [1, 0, 1, 2, 3, 4])
    for bad in (lambda results: 0.0, lambda results: np.full(6, np.nan)):
        with pytest.raises(ValueError, match="one number for each of the 6 steps"):
            clone(SMALL).set_params(criterion=bad).fit(X)


def test_it_prints_every_tenth_mixture_and_the_last(capsys):
    path = ComponentPath(gaussians("diag"), max_components=25, verbose=1).fit(plane_blobs()[0])
    lines = capsys.readouterr().out.splitlines()
    found = [
        re.fullmatch(r"  Step (\d+) of 25, K=(\d+): .* s, bound (\S+)", line) for line in lines
    ]
    assert [match.group(1) for match in found] == ["10", "20", "25"]
    K, bounds = path.results_["n_components"], path.results_["lower_bound"]
    assert [int(match.group(2)) for match in found] == K[[15, 5, 0]].tolist() == [16, 6, 1]
    printed = [float(match.group(3)) for match in found]
    np.testing.assert_allclose(printed, bounds[[15, 5, 0]], rtol=1e-5)
    path.set_params(verbose=0).fit(plane_blobs()[0])
    assert not capsys.readouterr().out


def test_a_path_that_takes_long_says_once_that_it_is_at_work(capsys):
    path = ComponentPath(gaussians("diag"), max_components=25)
    with hooks.patience_of_a_path(0.001):
        path.fit(plane_blobs()[0])
        (line,) = capsys.readouterr().err.splitlines()
        assert "it fits 25 components and then merges them, down to 1." in line
        assert "verbose=1" in line
        path.set_params(verbose=1).fit(plane_blobs()[0])
        assert not capsys.readouterr().err
    with hooks.patience_of_a_path(600):
        path.set_params(verbose=0).fit(plane_blobs()[0])
    assert not capsys.readouterr().err


def test_it_says_what_its_best_estimator_says(small):
    assert "best_n_components_" not in repr(SMALL)
    path = clone(SMALL)
    assert_array_equal(path.fit_predict(X), small.labels_)
    best = path.best_estimator_
    assert repr(path).endswith(f" with best_n_components_={best.n_components}")
    assert_array_equal(path.predict_proba(X), best.predict_proba(X))
    assert_array_equal(path.score_samples(X), best.score_samples(X))
    weights = np.arange(500.0)
    assert path.score(X, sample_weight=weights) == best.score(X, sample_weight=weights)
    assert not best.warm_start
    assert not path.estimator.warm_start


def test_without_refit_there_is_nothing_to_ask():
    path = clone(SMALL).set_params(refit=False).fit(X)
    assert path.best_n_components_ == 4
    assert not hasattr(path, "predict")
    assert not hasattr(path, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=True"):
        path.fit_predict(X)
    with pytest.raises(NotFittedError):
        clone(SMALL).cut(2)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimator": KMeans()}, TypeError, "mixture of skvmf.* got KMeans"),
        ({"estimator": VonMisesFisherMixture}, TypeError, "mixture of skvmf"),
        ({"max_components": 501}, ValueError, "max_components=501 is more than .*= 500"),
        ({"min_components": 7}, ValueError, "min_components=7 is larger than max_components=6"),
        ({"max_components": 0}, ValueError, "max_components"),
        ({"criterion": "aic"}, ValueError, "criterion"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction"),
        ({"estimator__weight_concentration_prior": np.ones(6)}, ValueError, "one for all"),
        (
            {"estimator": StudentTMixture(degrees_of_freedom=[3, 4, 5, 6, 7, 8])},
            ValueError,
            "degrees_of_freedom should be one for all",
        ),
    ],
)
def test_clear_errors(parameters, error, message):
    with pytest.raises(error, match=message):
        clone(SMALL).set_params(**parameters).fit(X)


def test_fixed_parameters_are_refused_unless_nothing_is_merged():
    estimator = VonMisesFisherMixture(fixed=("weights",), random_state=0)
    with pytest.raises(ValueError, match=r"fixed=\('weights',\) does not go with a path"):
        ComponentPath(estimator, max_components=4).fit(X)
    path = ComponentPath(estimator, max_components=4, min_components=4).fit(X)
    assert_array_equal(path.best_estimator_.weights_, np.full(4, 0.25))


def test_tails_are_carried_along_a_path():
    """Normal clusters keep their large degrees of freedom, so that BIC finds as many as there are.

    Each step is as good as a fit of its own but for what three steps of EM lack.
    """
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(c, 1, (300, 2)) for c in ([0, 0], [8, 0], [0, 8])])
    path = ComponentPath(StudentTMixture(random_state=0), max_components=8, criterion="bic").fit(X)
    assert path.best_n_components_ == 3
    alone = StudentTMixture(3, random_state=0, tol=1e-6, max_iter=500).fit(X)
    assert path.results_["bic"][2] - alone.bic(X) < 10  # twice 5 nats


@pytest.mark.parametrize(
    ("mixture", "attribute", "value"),
    [
        (VonMisesFisherMixture(concentrations_init=500.0), "concentrations_", 500.0),
        (
            SparseGaussianMixture(covariance_type="spherical", precisions_init=np.full(6, 100.0)),
            "covariances_",
            0.01,
        ),
    ],
)
def test_fixed_parameters_stay_where_components_are_pruned(mixture, attribute, value):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(c, 0.1, (100, 3)) for c in np.eye(3)])
    mixture.set_params(fixed=(attribute[:-1],), weight_concentration_prior=-20.0, random_state=0)
    path = ComponentPath(mixture, max_components=6, min_components=6).fit(X)
    assert path.best_n_components_ < 6  # some were pruned
    assert_allclose(getattr(path.best_estimator_, attribute), value)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_components_of_one_row_each_may_have_no_extent():
    """Beside such rows the smallest regularization vanishes."""
    X = np.outer([4.5, -4.8, 23.0, 3.8, -19.0], [1e28, 3.6e28])
    options = {"background": True, "reg_covar": 1e-300, "random_state": 3, "flat_start": False}
    options |= {"weight_concentration_prior": 3.0, "entmax_alpha": 3.0}
    path = ComponentPath(SparseGaussianMixture(**options), max_components=4, random_state=0).fit(X)
    assert np.isfinite(path.linkage_).all()
