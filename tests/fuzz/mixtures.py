"""Cases of mixtures, and what a mixture promises whatever it is given."""

import pickle
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.base import clone

import skvmf

from . import changes, uses
from .changes import Changeable, on_grid
from .common import Case, Subject, promises_in
from .data import Data, Known, Labels, Weights, resolve
from .runs import Refused, refusing
from .subjects import CLOSE, assert_finite, assert_refused_or_fitted, assert_same, has_moved, public

ROUNDING = {"float64": 1e-10, "float32": 1e-6}  # of a bound


@dataclass(frozen=True)
class MixtureCase(Case):
    """A fit, and rows that are predicted with it."""

    estimator: str
    params: dict = field(default_factory=dict)
    data: Data = Data()
    weights: Weights | None = None
    other: Data = Data()
    known: Known | None = None

    def subject(self):
        return MixtureSubject(self)

    @property
    def promises(self):
        return [*promises_in(uses.__name__), *promises_in(changes.__name__), *super().promises]


class MixtureSubject(Changeable, Subject):
    """A fitted mixture with its data."""

    def __init__(self, case):
        self.case = case
        self.X, self.dense = case.data.make(), case.data.dense()
        self.weights = None if case.weights is None else case.weights.make(case.data.n)
        self.params = resolve({"random_state": 0} | case.params, case.data.whole())
        self.rest = {"sample_weight": self.weights}
        if case.known is not None:
            K, background = self.params["n_components"], self.params.get("background", False)
            self.rest["known_labels"] = case.known.make(self.dense, K, background)
        self.close = CLOSE[case.data.dtype]
        self.mixture = self.estimator = self.fit(self.new())

    def new(self, **params):
        return getattr(skvmf, self.case.estimator)(**(self.params | params))

    def fit(self, mixture):
        return refusing(mixture.fit, self.X, **self.rest)

    def state(self, mixture):
        return public(mixture) | answers(mixture, self.X)

    def inputs(self):
        yield self.X, self.case.data.make()
        if self.weights is not None:
            yield self.weights, self.case.weights.make(self.case.data.n)

    def stages(self, change, grid=None, **params):
        X = on_grid(self.X, grid)
        mixture = change.estimator(self.new(**params))
        refusing(mixture.fit, change.rows(X), **self.rest)
        yield change.state(mixture, X, self.weights)

    @cached_property
    def all_rows(self):
        """Arrays to predict, all of the width of the fit."""
        return [self.X, replace(self.case.other, d=self.case.data.d).make()]

    def few_steps(self):
        """A mixture that begins with labels and takes few steps, so that rounding stays small.

        A flat start would take steps before the first.
        """
        start = Labels(7).make(self.dense, self.mixture.n_components, self.params)
        given = {"init_params": start, "means_init": None, "weights_init": None, "n_init": 1}
        given["flat_start"] = False
        return self.new(**given, max_iter=2, tol=0)


def answers(mixture, X):
    """Return all that a mixture says of rows."""
    names = ["predict_proba", "predict", "score_samples", "score", "aic", "bic"]
    return {name: getattr(mixture, name)(X) for name in names}


def finite_in_finite_out(subject):
    assert_finite(public(subject.mixture))
    for X in subject.all_rows:
        assert_finite(answers(subject.mixture, X))


def all_shares(mixture, X):
    """Return shares that sum to one: that of a background, whose label is -1, comes last."""
    resp = mixture.predict_proba(X)
    if not mixture.background:
        return resp
    rest = 1 - resp.sum(axis=1, keepdims=True)
    assert (rest > -CLOSE[resp.dtype.name]).all(), rest.min()
    return np.hstack([resp, rest])


def shares_are_probabilities(subject):
    for X in subject.all_rows:
        resp = subject.mixture.predict_proba(X)
        assert (resp >= 0).all(), resp.min()
        sums = all_shares(subject.mixture, X).sum(axis=1)
        np.testing.assert_allclose(sums, 1, rtol=CLOSE[resp.dtype.name])
        np.testing.assert_array_equal(subject.mixture.responsibilities(X).toarray(), resp)


def labels_have_the_largest_share(subject):
    mixture = subject.mixture
    for X in subject.all_rows:
        resp = all_shares(mixture, X)
        chosen = np.take_along_axis(resp, mixture.predict(X)[:, None], axis=1)[:, 0]
        largest = resp.max(axis=1)
        assert (chosen >= largest - CLOSE[resp.dtype.name]).all(), (chosen - largest).min()
    np.testing.assert_array_equal(mixture.labels_, mixture.predict(subject.X))


def dtypes_stay(subject):
    for X in subject.all_rows:
        for name in ("predict_proba", "score_samples"):
            assert getattr(subject.mixture, name)(X).dtype == X.dtype, name


def weights_are_a_distribution(subject):
    weights = subject.mixture.weights_
    assert (weights >= 0).all()
    total = weights.sum() + subject.mixture.background_weight_
    np.testing.assert_allclose(total, 1, rtol=1e-12)
    assert subject.mixture.n_active_components_ == np.count_nonzero(weights)


def components_are_what_they_are_called(subject):
    mixture = subject.mixture
    if isinstance(mixture, skvmf.VonMisesFisherMixture):
        assert (np.linalg.norm(mixture.means_, axis=1) < 1).all()
        lengths = np.linalg.norm(mixture.mean_directions_, axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=1e-12)
        assert (mixture.concentrations_ >= 0).all()
    if isinstance(mixture, skvmf.RelativeGMM):
        alive = mixture.weights_ > 0
        means = mixture.means_[alive, mixture.ordering_feature]
        if mixture.order != "scales":
            slack = 1e-9 * np.abs(means).max(initial=0)
            assert (np.diff(means) >= mixture.clearance - slack).all(), means
        if mixture.order != "means":
            variances = mixture._covariance_type.along(
                mixture.covariances_, len(alive), mixture.ordering_feature
            )
            scales = np.sqrt(variances[alive])
            assert (np.diff(scales) >= mixture.clearance).all(), scales


def bound_slack(mixture, X, bounds):
    """Return the rounding of bounds; float32 scores are rounded by the concentrations' size.

    Determinants are rounded by the condition of their matrices. Values are those of scores divided
    by the temperature, times the temperature.
    """
    slack = ROUNDING[X.dtype.name] * max(1, np.abs(bounds).max())
    slack = max(slack, np.finfo(X.dtype).eps * mixture.temperature)
    if X.dtype == np.float32 and isinstance(mixture, skvmf.VonMisesFisherMixture):
        slack += 6e-8 * min(mixture.concentrations_.max(), 16_000)
    if getattr(mixture, "covariance_type", None) in ("full", "tied"):
        slack += np.finfo(np.float64).eps * condition(shapes_of(mixture))
    return slack


def shapes_of(mixture):
    return getattr(mixture, "scale_matrices_", getattr(mixture, "covariances_", np.ones(1)))


def singular_but_for_rounding(mixture):
    if getattr(mixture, "covariance_type", None) not in ("full", "tied"):
        return False
    return not condition(shapes_of(mixture)) < 1e14


def condition(matrices):
    """Return the largest condition number of matrices (..., d, d), in the features' own units."""
    scales = np.sqrt(np.diagonal(matrices, axis1=-2, axis2=-1))
    correlations = matrices / (scales[..., :, None] * scales[..., None, :])
    values = np.linalg.eigvalsh(correlations)
    return (values[..., -1] / np.maximum(values[..., 0], np.finfo(np.float64).eps)).max()


def the_bound_never_falls(subject):
    mixture = subject.mixture
    if getattr(mixture, "reg_covar", 0) > 0 or has_moved(mixture):
        return
    if singular_but_for_rounding(mixture):
        return  # determinants have no digits
    if np.abs(shapes_of(mixture)).min() < 1e-250:
        return  # the likelihood has no bound, and floats end before it
    background_left = mixture.background and mixture.background_weight_ == 0
    if background_left and np.min(mixture._weight_prior().alpha) < 1:
        return  # the prior took more than all rows: bounds are of two models
    bounds = np.array(mixture.lower_bounds_)
    falls, slack = -np.diff(bounds), bound_slack(mixture, subject.X, bounds)
    assert (falls <= slack).all(), f"falls by {falls.max()} at {bounds[np.argmax(falls)]}"


def the_score_is_the_mean_of_the_scores(subject):
    mixture, X, weights = subject.mixture, subject.X, subject.weights
    scores = mixture.score_samples(X).astype(np.float64)
    if isinstance(mixture, skvmf.VonMisesFisherMixture):  # zero rows do not count
        counting = subject.dense.any(axis=1)
    else:
        counting = np.ones(len(scores), dtype=bool)
    weights = np.ones(len(scores)) if weights is None else weights.astype(np.float64)
    weights = np.where(counting, weights / weights.max(), 0)
    lowest = scores.min() <= np.finfo(X.dtype).min  # where scores stay, and their mean does not
    if weights.any() and not lowest:
        expected = np.average(scores, weights=weights)
        actual = mixture.score(X, sample_weight=subject.weights)
        slack = subject.close * np.abs(scores[weights > 0]).max()
        np.testing.assert_allclose(actual, expected, rtol=subject.close, atol=slack)


def sparse_is_dense(subject):
    """The same mixture of the same rows, and then the same fit."""
    if not subject.mixture.__sklearn_tags__().input_tags.sparse:
        return
    dense, mixture = subject.dense, subject.mixture
    as_csr = sparse.csr_array(dense)
    atol = {"float64": 1e-7, "float32": 2e-3}[dense.dtype.name]
    largest = np.max(getattr(mixture, "concentrations_", 0))  # what rounding grows by
    atol = max(atol, 4 * np.finfo(np.float64).eps * largest)
    scale = np.maximum(1, np.abs(mixture.score_samples(dense)))
    gaps = np.abs(mixture.score_samples(dense) - mixture.score_samples(as_csr)) / scale
    assert (gaps <= atol).all(), f"score_samples differ by {gaps.max()}"
    if not subject.is_smooth:
        return
    gaps = np.abs(mixture.predict_proba(dense) - mixture.predict_proba(as_csr))
    assert (gaps <= atol).all(), f"predict_proba differ by {gaps.max()}"
    first = refusing(subject.few_steps().fit, dense, sample_weight=subject.weights)
    second = subject.few_steps().fit(as_csr, sample_weight=subject.weights)
    if has_moved(first) or has_moved(second):
        return
    np.testing.assert_allclose(first.weights_, second.weights_, atol=atol)
    np.testing.assert_allclose(first.means_, second.means_, atol=atol)


def weights_are_repetitions(subject):
    counts = np.random.default_rng(3).integers(0, 4, size=len(subject.dense))
    if np.count_nonzero(counts) < subject.mixture.n_components:
        return
    once, often = subject.few_steps(), subject.few_steps()
    often.set_params(init_params=np.repeat(once.init_params, counts))
    refusing(once.fit, subject.dense, sample_weight=counts)
    repeated = np.repeat(subject.dense, counts, axis=0)
    refusing(often.fit, repeated)
    atol = {"float64": 1e-6, "float32": 1e-3}[subject.case.data.dtype]
    on_sphere = isinstance(once, skvmf.VonMisesFisherMixture)
    if subject.is_smooth or on_sphere:
        bounds = once.lower_bounds_[0], often.lower_bounds_[0]
        np.testing.assert_allclose(*bounds, rtol=atol, atol=atol)
    if not subject.is_smooth or has_moved(once) or has_moved(often):
        return
    np.testing.assert_allclose(once.weights_, often.weights_, atol=atol)
    scale = np.abs(once.means_).max() or 1
    np.testing.assert_allclose(once.means_ / scale, often.means_ / scale, atol=atol)


def samples_are_rows(subject):
    X, y = subject.mixture.sample(5)
    assert X.shape == (5, subject.case.data.d)
    assert np.isfinite(X).all()
    weights = np.append(subject.mixture.weights_, subject.mixture.background_weight_)
    assert (weights[y] > 0).all()  # -1 is the background


def warm_starts_go_on(subject):
    mixture = subject.fit(clone(subject.mixture).set_params(warm_start=True))
    bound, alive = mixture.lower_bound_, mixture._fitted.params.weights > 0
    subject.fit(mixture)
    assert_finite(public(mixture))
    if not np.array_equal(mixture._fitted.params.weights > 0, alive):
        return  # pruned: bounds are of two models
    if getattr(mixture, "reg_covar", 0) == 0 and not has_moved(mixture):
        assert bound - mixture.lower_bound_ <= bound_slack(mixture, subject.X, bound)


def streams_go_on(subject):
    """Batches of any size, from a start of their own or after the fit."""
    X, other = subject.X, subject.all_rows[1]
    cut = len(subject.dense) // 2
    for mixture in (subject.new(), pickle.loads(pickle.dumps(subject.mixture))):
        begun = hasattr(mixture, "_fitted")
        refusing(mixture.partial_fit, X, **subject.rest)
        seen = mixture.weight_seen_
        for batch in (X[:cut], X[:1], other):
            before = public(mixture)
            try:
                refusing(mixture.partial_fit, batch)
            except Refused:
                assert_same(before, public(mixture))
            assert seen <= mixture.weight_seen_
            seen = mixture.weight_seen_
        assert_finite(public(mixture))
        assert begun or mixture.n_steps_ <= 4
        total = mixture.weights_.sum() + mixture.background_weight_
        np.testing.assert_allclose(total, 1, rtol=1e-9)
        again = pickle.loads(pickle.dumps(mixture))
        assert_same(public(mixture), public(again))


def a_refused_fit_changes_nothing(subject):  # the last, for it fits again
    mixture, X = subject.mixture, subject.dense
    broken = X.copy()
    broken[-1, -1] = np.nan
    n, K = len(X), mixture.n_components
    mistakes = [
        ([broken], {}),
        ([X[:, :1]], {}),
        ([np.hstack([X, broken])], {}),
        ([X, None, -np.ones(n)], {}),
        ([X, None, np.zeros(n)], {}),
        ([X, None, np.ones(3 + n)], {}),
        ([np.ones((K, subject.case.data.d))], {"n_components": K + 1}),
        ([X], {"weights_init": np.full(K, 2.0)}),
        ([X], {"means_init": np.ones((K + 1, 1))}),
        ([X], {"init_params": np.full(n, -1)}),
        ([X], {"temperature": -1.0}),
        ([np.zeros_like(X)], {"warm_start": True}),
    ]
    assert_refused_or_fitted(subject, mistakes)
