"""What a fit promises, whatever the mixture: it is whole, checked, and what it is told.

Where options are read by code that all mixtures share, each mixture has one of them.
"""

import pickle
from functools import partial

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf._engine.search.sample import FoundStart
from skvmf.model_selection import ComponentPath

from ..hooks import merging_start_is, merging_starts
from ..pairwise import pairwise
from .checks import assert_finite
from .kinds import FLAT, MIXTURES, PLANE, TYPES, parameters_of

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(0, 1, (100, 3)) + [4, 0, 0], rng.normal(0, 1, (100, 3)) + [0, 6, 0]])
LABELS = np.repeat([0, 1], 100)


# Warm starts are checked as cold ones are.


def test_a_warm_start_takes_today_s_ordering_feature():
    mixture = RelativeGMM(2, warm_start=True, random_state=0).fit(X)
    assert_array_equal(np.argsort(mixture.means_[:, 0]), [0, 1])
    before = mixture.means_[::-1]  # the other way round along feature 1
    mixture.set_params(ordering_feature=1).fit(X)
    assert (np.diff(mixture.means_[:, 1]) > 0).all()
    order = np.argsort(before[:, 1])
    assert_allclose(mixture.means_, before[order], atol=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ordering_feature": 7}, "ordering_feature=7 is out of range"),
        ({"clearance": 1e3}, "clearance=1000.0 is too wide"),
        ({"fixed": ["means"]}, "fixed"),
        ({"n_components": 1}, "n_components is 1"),
        ({"weight_floor": 0.9}, "weight_floor=0.9 is too high"),
    ],
)
def test_a_warm_start_refuses_what_a_cold_one_refuses(changes, message):
    mixture = RelativeGMM(2, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match=message):
        mixture.set_params(**changes).fit(X)


@pytest.mark.parametrize(("estimator", "warm"), zip(PLANE, [False, True, True], strict=True))
def test_rows_whose_squares_overflow_are_refused_in_every_fit(estimator, warm):
    mixture = estimator(2, warm_start=warm, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"squares overflow.*StandardScaler"):
        mixture.fit(1e200 * X)


# A fit that fails leaves the one before.


def broken_loop(*arguments, **keywords):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("estimator", "warm"), zip(MIXTURES, [True, False] * 2, strict=True))
def test_a_failed_fit_leaves_the_earlier_one(estimator, warm, monkeypatch):
    mixture = estimator(2, warm_start=warm, random_state=0).fit(X)
    before = pickle.dumps(mixture)
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        mixture.fit(X[:1] if warm else X[:1, :2])
    for place in (
        "em.predictions.labels_and_probabilities",
        "em.mixture.Point.expect",
        "fit.run_em",
    ):
        monkeypatch.setattr(f"skvmf._engine.{place}", broken_loop)
        for fit in (mixture.fit, mixture.partial_fit):
            with pytest.raises(KeyboardInterrupt):
                fit(X[:150])
            assert pickle.dumps(mixture) == before
    monkeypatch.undo()
    assert_array_equal(mixture.predict(X), mixture.labels_)
    with pytest.raises(ValueError, match="expecting 3 features"):
        mixture.predict(X[:, :2])


@pytest.mark.parametrize("estimator", MIXTURES)
def test_a_first_fit_that_fails_leaves_nothing(estimator):
    mixture = estimator(2)
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        mixture.fit(X[:1])
    assert not hasattr(mixture, "n_features_in_")
    with pytest.raises(NotFittedError):
        mixture.predict(X)


# Fitted attributes are what predictions are made of.


@pytest.mark.bits
@pytest.mark.parametrize(("estimator", "background"), zip(MIXTURES, [False, True] * 2, strict=True))
def test_a_pickle_holds_arrays_and_public_names_and_the_same_bits(estimator, background):
    mixture = estimator(2, background=background, random_state=0).fit(X)
    state = mixture.__getstate__()
    kinds = {type(value).__module__.split(".")[0] for value in flat(state)}
    assert kinds <= {"builtins", "numpy"}
    again = pickle.loads(pickle.dumps(mixture))
    for name, value in vars(mixture).items():
        if name not in ("_fitted", "_running_statistics"):
            assert_array_equal(getattr(again, name), value, err_msg=name)
    assert_array_equal(again.predict_proba(X), mixture.predict_proba(X))
    assert_array_equal(again.score_samples(X), mixture.score_samples(X))
    assert_array_equal(again.sample(9)[0], mixture.sample(9)[0])
    with pytest.raises(ValueError, match="read-only"):
        again.means_[0] = 1
    again.set_params(warm_start=True).fit(X)


def flat(value):
    """Yield the leaves of nested dicts, lists and tuples."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        yield value
        return
    for part in value:
        yield from flat(part)


@pytest.mark.parametrize("estimator", MIXTURES)
def test_parameters_set_after_a_fit_are_checked(estimator):
    mixture = estimator(2, random_state=0).fit(X).set_params(temperature=-3)
    means, asking = mixture.means_, ["predict", "predict_proba", "responsibilities", "score"]
    for method in (*asking, "score_samples", "partial_fit"):
        with pytest.raises(InvalidParameterError, match="temperature"):
            getattr(mixture, method)(X)
    assert mixture.means_ is means


@pytest.mark.parametrize("estimator", MIXTURES)
def test_predictions_check_only_the_parameters_that_they_read(estimator, monkeypatch):
    mixture = estimator(2, random_state=0).fit(X)
    row = X[:1]
    expected = mixture.predict_proba(row)
    # To check all of them takes longer than one row does.
    monkeypatch.setattr(estimator, "_validate_params", lambda self: pytest.fail("checked again"))
    np.testing.assert_array_equal(mixture.predict_proba(row), expected)
    assert mixture.predict(row).shape == mixture.score_samples(row).shape == (1,)


# Starts.


GIVEN = {
    "k-means": {},
    "random": {"init_params": "random"},
    "rows": {"init_params": "random_from_data"},
    "labels": {"init_params": np.arange(200) % 3},
    "means": {"means_init": [[4, 0, 0], [0, 6, 0], [2, 3, 0]]},
}
DIAGONAL = {"covariance_type": "diag"}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (VonMisesFisherMixture, {}),
        (SparseGaussianMixture, {}),
        (RelativeGMM, DIAGONAL | {"precisions_init": np.ones((3, 3))}),
        (StudentTMixture, DIAGONAL | {"scale_matrices_init": np.ones((3, 3))}),
    ],
)
def test_a_component_of_first_weight_zero_is_pruned(estimator, options, given):
    options = options | GIVEN[given] | FLAT
    mixture = estimator(3, weights_init=[0.5, 0, 0.5], random_state=0, max_iter=5, **options)
    mixture.fit(X)
    assert mixture.n_active_components_ == 2
    assert np.count_nonzero(mixture.weights_) == 2
    assert not (mixture.labels_ == np.argmin(mixture.weights_)).any()


@pytest.mark.parametrize(
    ("estimator", "given"),
    zip(
        MIXTURES, [{"means_init": [[4, 0, 0], [0, 6, 0]]}, {"init_params": LABELS}] * 2, strict=True
    ),
)
def test_equal_starts_are_made_once(estimator, given):
    with pytest.warns(RuntimeWarning, match="n_init=5 has no effect") as caught:
        several = estimator(2, n_init=5, random_state=0, **given).fit(X)
    assert caught[0].filename == __file__
    once = estimator(2, random_state=0, **given).fit(X)
    assert_array_equal(several.means_, once.means_)


@pytest.mark.parametrize(
    ("estimator", "init"),
    zip(MIXTURES, ["kmeans", "k-means++", "random_from_data", "random"], strict=True),
)
def test_the_final_bounds_of_starts_decide(estimator, init):
    options = {"init_params": init, "random_state": 0, **FLAT}
    rows = np.random.default_rng(0).normal(size=(200, 3))
    bounds = [estimator(4, n_init=n_init, **options).fit(rows).lower_bound_ for n_init in (1, 2, 5)]
    assert (np.diff(bounds) >= 0).all()


@pytest.mark.parametrize("estimator", [VonMisesFisherMixture, SparseGaussianMixture])
def test_bounds_of_its_own_components_on_the_sample_decide_between_starts_by_merging(
    estimator, monkeypatch
):
    """As the docstring says: final bounds are not compared."""
    rows = np.random.default_rng(0).normal(size=(200, 3))
    bounds, rescored = [], FoundStart.rescored

    def noted(self, *arguments):
        result = rescored(self, *arguments)
        bounds.append(result.bound)
        return result

    with monkeypatch.context() as patched, merging_starts() as begun:
        patched.setattr(FoundStart, "rescored", noted)
        several = estimator(4, n_init=5, random_state=1, **FLAT).fit(rows)
    best = int(np.argmax(bounds))
    assert len(begun) == len(bounds) == 5
    assert best > 0
    with merging_start_is(begun[best][1]):
        alone = estimator(4, random_state=1, **FLAT).fit(rows)
    assert_array_equal(several.means_, alone.means_)


@pairwise(
    estimator=PLANE,
    init=["merging", "kmeans", "k-means++", "random_from_data", "random"],
    dtype=[np.float32, np.float64],
)
def test_rows_without_weight_have_no_say_in_a_start(estimator, init, dtype):
    far = X.astype(dtype)
    far[:7] = 1e30 if dtype == np.float32 else 1e90
    weights = (np.arange(200) >= 7).astype(float)
    options = dict(init_params=init, random_state=0, max_iter=0, covariance_type="diag")
    mixture = estimator(2, **options).fit(far, sample_weight=weights)
    assert np.abs(mixture.means_).max() < 10
    assert np.isfinite(mixture.lower_bound_)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_means_given_far_away_find_their_rows(covariance_type):
    """Covariances about means 1e8 away would be all rounding."""
    means = np.array([[1e8, 0, 0], [0, 1e8, 0]])
    relative = partial(RelativeGMM, solver="em")
    estimator = relative if covariance_type in ("tied", "diag") else SparseGaussianMixture
    options = dict(covariance_type=covariance_type, random_state=0, tol=1e-8, **FLAT)
    far = estimator(2, means_init=means, max_iter=300, **options).fit(X)
    near = estimator(2, means_init=[[4, 0, 0], [0, 6, 0]], max_iter=300, **options).fit(X)
    assert np.isfinite(far.lower_bounds_).all()
    assert_allclose(far.lower_bound_, near.lower_bound_, atol=1e-3)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_singular_data_without_a_regularizer_is_refused_before_the_first_step(covariance_type):
    point = np.ones((10, 2))
    for given in ({"means_init": point[:2]}, {"init_params": "random_from_data"}, {}):
        mixture = SparseGaussianMixture(
            2, covariance_type=covariance_type, reg_covar=0, max_iter=0, random_state=0, **given
        )
        with pytest.raises(ValueError, match=r"singular.*reg_covar"):
            mixture.fit(point)


@pytest.mark.parametrize("estimator", MIXTURES)
def test_weights_all_on_the_floor_are_no_reason_to_leave(estimator):
    mixture = estimator(4, weight_floor=0.25, random_state=0)
    mixture.fit(X[::20])
    assert_allclose(mixture.weights_, 0.25)


# Weights of rows.


@pytest.mark.bits
@pairwise(
    kind=[
        (VonMisesFisherMixture, {}),
        (SparseGaussianMixture, {}),
        (StudentTMixture, {}),
        *((RelativeGMM, {"solver": each, "clearance": 0.5}) for each in ("ecm", "em")),
        (StudentTMixture, {"background": True, "degrees_of_freedom": 5.0}),
        *((each, {"background": True}) for each in MIXTURES[:3]),
    ],
    covariance_type=TYPES,
    posterior=[{}, {"entmax_alpha": 2.0}, {"temperature": 0}],
    form=["dense", "csr", "with missing values"],
)
def test_weight_equals_repetition(kind, covariance_type, posterior, form):
    estimator, options = kind
    lowest = -1 if "background" in options else 0
    options = options | posterior | FLAT | {"max_iter": 6, "tol": 0}
    whole, cast = X, np.asarray
    if estimator is VonMisesFisherMixture:
        cast = sparse.csr_array if form == "csr" else np.asarray
    else:
        options["covariance_type"] = covariance_type
        if form == "with missing values":
            whole = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
            options["missing_values"] = "marginal"
    times = np.random.default_rng(0).integers(0, 4, size=200)
    labels = np.random.default_rng(1).integers(lowest, 3, size=200)
    rows = np.repeat(whole, times, axis=0)
    a = estimator(3, init_params=labels, **options)
    b = estimator(3, init_params=np.repeat(labels, times), **options)
    a.fit(cast(whole), sample_weight=times)
    b.fit(cast(rows))
    names = "means_", "covariances_", "scale_matrices_", "concentrations_", "degrees_of_freedom_"
    for name in (*names, "background_weight_", "background_bounds_"):
        if getattr(a, name, None) is not None:
            result, expected = getattr(a, name), getattr(b, name)
            assert_allclose(result, expected, rtol=1e-8, atol=1e-9, err_msg=name)
    assert_allclose(a.score(cast(whole), sample_weight=times), b.score(cast(rows)), rtol=1e-10)


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(200), "[Nn]egative"),
        (np.zeros(200), "all zero|at least one non-zero"),
        (np.full(200, np.nan), "NaN"),
        (np.ones(199), "shape"),
    ],
)
def test_bad_weights_are_refused(estimator, weights, message):
    with pytest.raises(ValueError, match=message):
        estimator(2).fit(X, sample_weight=weights)


@pairwise(dtype=[np.float32, np.float64], size=[1e-320, 1e-60, 1e300], estimator=MIXTURES)
def test_without_priors_the_size_of_weights_does_not_matter(estimator, size, dtype):
    options = dict(FLAT, init_params=LABELS, max_iter=10, tol=0)
    if estimator is VonMisesFisherMixture:
        options["concentration_prior"] = 0
    rows, weights = X.astype(dtype), rng.integers(1, 5, size=200).astype(float)
    plain = estimator(2, **options).fit(rows, sample_weight=weights)
    sized = estimator(2, **options).fit(rows, sample_weight=size * weights)
    tolerance = 1e-4 if size < 1e-307 or dtype == np.float32 else 1e-9
    assert_allclose(sized.weights_, plain.weights_, rtol=tolerance)
    assert_allclose(sized.means_, plain.means_, rtol=tolerance, atol=tolerance)
    assert_allclose(sized.lower_bound_, plain.lower_bound_, rtol=tolerance)
    score = plain.score(rows, sample_weight=weights)
    assert_allclose(plain.score(rows, sample_weight=size * weights), score, rtol=tolerance)


@pytest.mark.filterwarnings("ignore:weight_concentration_prior", "ignore:The sample weights sum")
@pytest.mark.parametrize("estimator", [SparseGaussianMixture, VonMisesFisherMixture])
def test_a_prior_that_outweighs_tiny_weights_leaves_the_bound_finite(estimator):
    X = np.random.default_rng(0).normal(size=(20, 3))
    for size in (1e300, -1e300):
        mixture = estimator(2, weight_concentration_prior=size, flat_start=False, random_state=0)
        mixture.fit(X, sample_weight=np.full(20, 1e-30))
        assert np.isfinite(mixture.lower_bounds_).all()
        assert mixture.converged_


def test_a_row_without_weight_may_be_without_density():
    far = np.vstack([X, [[1e99, 0, 0]]])
    weights = np.append(np.ones(200), 0.0)
    options = dict(init_params=np.append(LABELS, 0), covariance_type="diag", **FLAT)
    fitted = SparseGaussianMixture(2, **options).fit(far, sample_weight=weights)
    plain = SparseGaussianMixture(2, **options | {"init_params": LABELS}).fit(X)
    assert_allclose(fitted.lower_bound_, plain.lower_bound_, rtol=1e-12)
    assert_allclose(fitted.score(far, sample_weight=weights), plain.score(X), rtol=1e-12)


# What is seen of a fit.


def test_a_hard_fit_that_stands_still_has_converged():
    mixture = VonMisesFisherMixture(2, temperature=0, tol=0, max_iter=300, random_state=0).fit(X)
    assert mixture.converged_
    assert mixture.n_iter_ < 50


# Given parameters.


@pytest.mark.parametrize("estimator", MIXTURES)
def test_given_parameters_bring_every_attribute_that_needs_no_rows(estimator):
    pandas = pytest.importorskip("pandas")
    fitted = estimator(2, random_state=0).fit(pandas.DataFrame(X[:, :2], columns=["u", "v"]))
    given = parameters_of(fitted)
    means = "mean_directions" if estimator is VonMisesFisherMixture else "means"
    given[means] = pandas.DataFrame(given[means], columns=["u", "v"])
    mixture = estimator.from_parameters(**given)
    needs_rows = {"labels_", "probabilities_", "lower_bound_", "lower_bounds_"}
    assert {name for name in vars(fitted) if not hasattr(mixture, name)} <= needs_rows
    assert list(mixture.feature_names_in_) == ["u", "v"]
    assert mixture.n_iter_ == 0
    assert not mixture.converged_
    rows = pandas.DataFrame(2 * X[:, 1:], columns=["u", "v"])
    assert_allclose(mixture.score_samples(rows), fitted.score_samples(rows), rtol=1e-9)


# Extremes.


@pytest.mark.parametrize("size", [1e-300, 1e300])
@pytest.mark.parametrize("estimator", [VonMisesFisherMixture, StudentTMixture])
def test_first_responsibilities_may_have_any_scale(estimator, size):
    resp = rng.dirichlet([1, 1], size=200)
    options = dict(max_iter=0, **FLAT)
    plain, sized = (
        estimator(2, init_params=given, **options).fit(X) for given in (resp, size * resp)
    )
    assert_allclose(sized.means_, plain.means_, rtol=1e-6)
    assert_allclose(sized.weights_, plain.weights_, rtol=1e-6)


# What nobody would see go wrong.


def test_all_starts_have_the_anchor_of_the_first():
    """A prior that moved with the start would make bounds of starts incomparable."""
    rows = np.random.default_rng(5).normal(size=(200, 4))
    options = dict(init_params="random_from_data", concentration_prior=5.0)
    won_later = []
    for seed in range(3):
        several, first = (
            VonMisesFisherMixture(6, n_init=n, random_state=seed, **options).fit(rows)
            for n in (6, 1)
        )
        assert several._fitted.family.prior_length == first._fitted.family.prior_length
        won_later.append(several.lower_bound_ > first.lower_bound_)
    assert any(won_later)


@pytest.mark.parametrize("prior", [1e9, 1e300])
def test_the_prior_on_concentrations_is_centred_on_the_start(prior):
    """Many pseudo-rows have the pooled length of the first partition, whatever it is."""
    spread, tight = X, X + [50, 0, 0]
    lengths = []
    for rows in (spread, tight):
        mixture = VonMisesFisherMixture(1, concentration_prior=prior).fit(rows)
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        lengths.append(np.linalg.norm(mixture.means_))
        assert_allclose(lengths[-1], np.linalg.norm(unit.mean(axis=0)), rtol=1e-6)
    assert lengths[1] > lengths[0] + 0.1


SIZES = {"full": 12, "tied": 6, "diag": 6, "spherical": 2}  # of two covariances


@pytest.mark.parametrize(
    ("estimator", "options", "free"),
    [
        (VonMisesFisherMixture, {}, 1 + 2 * 2 + 2),
        (VonMisesFisherMixture, {"concentration_type": "tied"}, 1 + 2 * 2 + 1),
        *[
            (estimator, {"covariance_type": kind}, 1 + 2 * 3 + size + tails)
            for kind, size in SIZES.items()
            for estimator, tails in zip(PLANE, [0, 0, 2], strict=True)
        ],
        (StudentTMixture, {"degrees_of_freedom": "tied"}, 1 + 2 * 3 + 12 + 1),
        (StudentTMixture, {"degrees_of_freedom": 5.0}, 1 + 2 * 3 + 12),
        (RelativeGMM, {"fixed": ("weights",)}, 2 * 3 + 12),
        (RelativeGMM, {"fixed": ("covariances",)}, 1 + 2 * 3),
        (RelativeGMM, {"fixed": ("weights", "covariances")}, 2 * 3),
    ],
)
def test_criteria_count_the_parameters_of_active_components(estimator, options, free):
    options = dict(random_state=0, max_iter=3, **FLAT, **options)
    pruned = estimator(3, weights_init=[0.5, 0.5, 0], init_params=LABELS, **options).fit(X)
    if estimator is StudentTMixture:
        pruned.set_params(degrees_of_freedom=3.0)  # says nothing about this fit
    log_likelihood = pruned.score_samples(X).sum()
    assert_allclose(pruned.aic(X), 2 * free - 2 * log_likelihood, rtol=1e-12)
    assert_allclose(pruned.bic(X), free * np.log(200) - 2 * log_likelihood, rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "options"),
    zip(MIXTURES, [{}, {"background": True}, {"entmax_alpha": 2.0}, {}], strict=True),
)
def test_criteria_of_weighted_rows_are_those_of_repeated_rows(estimator, options):
    counts = np.random.default_rng(1).integers(0, 4, len(X))
    repeated = np.repeat(X, counts, axis=0)
    mixture = estimator(2, random_state=0, **options).fit(X)
    for name in ("score", "aic", "bic", "icl"):
        criterion = getattr(mixture, name)
        assert_allclose(criterion(X, sample_weight=counts), criterion(repeated), rtol=1e-10)
    resp = mixture.predict_proba(X)
    resp = np.column_stack([resp, np.maximum(1 - resp.sum(axis=1), 0)])
    entropy = -np.sum(resp[resp > 0] * np.log(resp[resp > 0]))
    assert_allclose(mixture.icl(X), mixture.bic(X) + 2 * entropy, rtol=1e-9)


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.parametrize("weight", [1e-250, 1e-22, 1e22, 1e250])
def test_criteria_grow_with_weights_of_any_size(estimator, weight):
    """The log-likelihood and the entropy do, the penalty of BIC by its logarithm."""
    mixture = estimator(2, random_state=0).fit(X)
    weights = np.full(len(X), weight)
    score, p = mixture.score(X), mixture.n_parameters_
    aic = 2 * p - 2 * weight * len(X) * score
    bic = p * np.log(max(weight * len(X), 1)) - 2 * weight * len(X) * score
    entropy = mixture.icl(X) - mixture.bic(X)
    assert_allclose(mixture.score(X, weights), score, rtol=1e-12)
    assert_allclose(mixture.aic(X, weights), aic, rtol=1e-12)
    assert_allclose(mixture.bic(X, weights), bic, rtol=1e-12)
    assert_allclose(mixture.icl(X, weights), bic + weight * entropy, rtol=1e-12)


@pytest.mark.parametrize(("estimator", "background"), zip(MIXTURES, [False, True] * 2, strict=True))
def test_a_flat_prior_by_component_is_a_flat_prior(estimator, background):
    """Also beside a background, which has no number in it."""
    options = {"background": background, "random_state": 0}
    flat = estimator(2, weight_concentration_prior=1.0, **options).fit(X)
    each = estimator(2, weight_concentration_prior=np.ones(2), **options).fit(X)
    assert_array_equal(each.weights_, flat.weights_)
    assert each.lower_bounds_ == flat.lower_bounds_


@pytest.mark.parametrize("estimator", MIXTURES)
def test_a_subclass_with_fewer_parameters(estimator):
    """What needs other parameters works: given parameters, Dask arrays and paths."""
    options = {"degrees_of_freedom": 5.0} if estimator is StudentTMixture else {}

    class Narrow(estimator):
        def __init__(self, n_components=2, random_state=0):
            super().__init__(n_components, random_state=random_state, **options)

    mixture = Narrow().fit(X)
    lazy = Narrow().fit(da.from_array(X, chunks=(90, 3)))
    assert_array_equal(lazy.labels_.compute(), mixture.labels_)
    names = ["weights_", "means_", "covariances_"]
    if estimator is StudentTMixture:
        names[2:] = ["scale_matrices_", "degrees_of_freedom_"]
    names = names[:2] if estimator is VonMisesFisherMixture else names
    built = Narrow.from_parameters(*(getattr(mixture, name) for name in names))
    assert_allclose(built.score_samples(X), mixture.score_samples(X), rtol=1e-9)
    assert_array_equal(built.predict(da.from_array(X)).compute(), mixture.labels_)
    path = ComponentPath(Narrow(), max_components=3).fit(X)
    assert path.best_estimator_.get_params()["n_components"] == path.best_n_components_


def test_a_path_says_what_a_subclass_lacks():
    class Three(VonMisesFisherMixture):
        def __init__(self):
            super().__init__(3)

    with pytest.raises(TypeError, match="n_components, which the constructor of Three should take"):
        ComponentPath(Three()).fit(X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_k_means_starts_go_on_until_they_stand(form):
    """One step from far seeds is not k-means: its losses are those of Lloyd's fixed points."""
    rows = np.random.default_rng(5).normal(size=(400, 4))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    start = VonMisesFisherMixture(6, init_params="kmeans", random_state=0, max_iter=0)
    start.fit(form(rows))
    labels = (unit @ start.mean_directions_.T).argmax(axis=1)
    sums = np.array([unit[labels == k].sum(axis=0) for k in range(6)])
    again = (unit @ (sums / np.linalg.norm(sums, axis=1, keepdims=True)).T).argmax(axis=1)
    assert np.mean(labels != again) < 0.02


@pytest.mark.parametrize("estimator", [SparseGaussianMixture, StudentTMixture])
def test_a_negative_prior_removes_components(estimator):
    mixture = estimator(
        8, weight_concentration_prior=-20, random_state=0, tol=1e-6, max_iter=500
    ).fit(X)
    assert mixture.n_active_components_ == 2
    assert 1.9 < mixture.effective_n_components_ < 2.1
    assert_finite(mixture, X)
    assert mixture.means_.shape == (8, 3)
    assert mixture.predict_proba(X)[:, mixture.weights_ == 0].max() == 0


# What it warns of.


@pytest.mark.parametrize(
    ("estimator", "entmax_alpha"), zip(MIXTURES, [1.0, 1.5, 2.0, 1.0], strict=True)
)
def test_a_fit_warns_where_the_temperature_makes_shares_alike(estimator, entmax_alpha):
    options = {"entmax_alpha": entmax_alpha, "random_state": 0}
    with pytest.warns(UserWarning, match="temperature=10000.0 is far too large"):
        estimator(2, temperature=10000.0, **options).fit(X)
    fitted = estimator(2, temperature=2.0, **options).fit(X).labels_  # warnings are errors
    assert_array_equal(fitted == fitted[0], LABELS == LABELS[0])


# Numbers of any kind: parameters, and rows as they are stored.


@pytest.mark.parametrize(
    ("estimator", "kind"), zip(MIXTURES, [np.int8, np.uint8, np.int16, np.uint64], strict=True)
)
@pytest.mark.parametrize(("n_components", "init"), [(3, "merging"), (100, "kmeans")])
def test_integers_of_any_type_are_parameters(estimator, n_components, init, kind):
    names = ["n_components", "n_init", "init_size", "max_iter", "random_state", "verbose_interval"]
    values = [n_components, 2, 120, 127, 0, 3]
    rows = np.random.default_rng(0).normal(size=(300, 4))
    expected, fitted = (
        estimator(init_params=init, tol=0.1, **dict(zip(names, map(to, values), strict=True)))
        .fit(rows)
        .partial_fit(rows)
        for to in (int, kind)
    )
    assert_array_equal(fitted.means_, expected.means_)
    assert_array_equal(fitted.weights_, expected.weights_)
    assert pickle.loads(pickle.dumps(fitted)).bic(rows) == expected.bic(rows)


def test_a_polars_frame_of_float32_is_read_as_it_is():
    pl = pytest.importorskip("polars", reason="needs polars")
    frame = pl.DataFrame(X.astype(np.float32), schema=["a", "b", "c"])
    mixture = VonMisesFisherMixture(2, random_state=0).fit(frame)
    assert mixture.probabilities_.dtype == np.float32
    expected = VonMisesFisherMixture(2, random_state=0).fit(X.astype(np.float32))
    assert mixture.lower_bound_ == expected.lower_bound_
    assert list(mixture.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="NaN"):  # a missing integer is none
        VonMisesFisherMixture(2).fit(pl.DataFrame({"a": [1, None, 3], "b": [1, 2, 3]}))
