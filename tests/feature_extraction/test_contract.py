"""What the transformer promises whatever is done to it: checks, whole fits, pickles, hints."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import InvalidParameterError

import skvmf
from skvmf import FisherVectorTransformer, RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture

from .mixtures import MIXTURES, TABLE, D, V, as_bags, counts, frozen, plane, sphere

COUNTS = counts()
BAGS = as_bags(COUNTS)


def transformer(**options):
    mixture = VonMisesFisherMixture(2, random_state=0, tol=1e9)
    return FisherVectorTransformer(mixture, **({"embeddings": TABLE} | options))


# Any mixture that has gradients


def test_a_mixture_with_fixed_weights_is_fitted_as_it_is():
    options = {"covariance_type": "diag", "fixed": ("weights",)}
    mixture = RelativeGMM(2, weights_init=[0.3, 0.7], random_state=0, tol=1e9, **options)
    fitted = FisherVectorTransformer(mixture, gradients=("means", "weights")).fit(BAGS)
    assert_array_equal(fitted.mixture_.weights_, [0.3, 0.7])
    assert fitted.transform(BAGS).shape == (12, 10)
    assert fitted.get_feature_names_out()[-1] == "weight1"


class Borrowed(BaseEstimator):
    """A mixture of somebody else's, of no class of skvmf's, without a seed."""

    def __init__(self, n_components=2):
        self.n_components = n_components

    def _skvmf_gradient_names(self):
        return {"means": "mean"}

    def _skvmf_vector_model(self):
        return self.own_._skvmf_vector_model()

    def fit(self, X, y=None, sample_weight=None):
        self.own_ = VonMisesFisherMixture(self.n_components, random_state=0, tol=1e9)
        self.own_.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = X.shape[1]
        return self


def test_a_mixture_is_what_keeps_the_protocol():
    given = FisherVectorTransformer(Borrowed(), embeddings=TABLE, random_state=3)
    assert_array_equal(given.fit_transform(COUNTS), transformer().fit_transform(COUNTS))
    again = frozen(Borrowed().fit(TABLE), embeddings=TABLE)
    assert_array_equal(again.fit_transform(COUNTS), transformer().fit_transform(COUNTS))
    with pytest.raises(ValueError, match="mixture should be"):
        FisherVectorTransformer(VonMisesFisherMixture).fit(COUNTS)


# Parameters changed after the fit


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("gradients", (), "gradients"),
        ("gradients", ("nonsense",), r"one or more of \['means', 'conc"),
        ("gradients", ("variances",), r"one or more of \['means', 'conc"),
        ("gradients", ("means", "means"), "each once"),
        ("gradients", "means", "'gradients' parameter"),
        *[("power", value, "'power' parameter") for value in (-1, 0.0, 1.5, np.nan)],
        ("norm", "l1", "'norm' parameter"),
        ("normalization", "eq12", "'normalization' parameter"),
        ("geometry", "sphere", "'geometry' parameter"),
        ("fit_on", "documents", "'fit_on' parameter"),
        ("embedding_dim", 1, "'embedding_dim' parameter"),
    ],
)
def test_parameters_are_checked_by_a_fit_and_after_it(name, value, match):
    fitted = transformer().fit(COUNTS)
    expected, before = fitted.transform(COUNTS), getattr(fitted, name)
    fitted.set_params(**{name: value})
    for call in (
        lambda: clone(fitted).fit(COUNTS),
        lambda: fitted.transform(COUNTS),
        lambda: fitted.transform(BAGS),
        fitted.get_feature_names_out,
    ):
        with pytest.raises(ValueError, match=match):
            call()
    assert_array_equal(fitted.set_params(**{name: before}).transform(COUNTS), expected)


def test_parameters_of_features_may_be_changed_after_the_fit():
    fitted = transformer().fit(COUNTS)
    mixture = fitted.mixture_
    changes = {"gradients": ["weights"], "power": 0.5, "norm": None, "normalization": None}
    result = fitted.set_params(**changes).transform(COUNTS)
    assert fitted.mixture_ is mixture
    assert_array_equal(result, transformer(**changes).fit_transform(COUNTS))
    assert fitted.get_feature_names_out().tolist() == ["weight0", "weight1"]


def test_parameters_of_the_mixture_changed_after_the_fit_are_checked():
    fitted = transformer().fit(COUNTS)
    fitted.mixture_.set_params(temperature=-3)
    for X in (COUNTS, BAGS):
        with pytest.raises(InvalidParameterError, match="'temperature' parameter"):
            fitted.transform(X)


# Whole fits


def refused(fitted, X, error=ValueError, **changes):
    """Check that a fit fails and leaves everything as it was; but for the parameters."""
    before = {name: getattr(fitted, name) for name in changes}
    state = dict(vars(fitted))
    counts, bags = fitted.transform(COUNTS), fitted.transform(BAGS)
    with pytest.raises(error):
        fitted.set_params(**changes).fit(X)
    fitted.set_params(**before)
    assert vars(fitted).keys() == state.keys()
    assert all(vars(fitted)[name] is state[name] for name in state)
    assert_array_equal(fitted.transform(COUNTS), counts)
    assert_array_equal(fitted.transform(BAGS), bags)


def test_a_refused_fit_leaves_the_earlier_one():
    fitted = transformer().fit(COUNTS)
    refused(fitted, -COUNTS)
    refused(fitted, COUNTS[:, :-1])  # as many columns as embeddings have no rows
    refused(fitted, ["a text"])
    refused(fitted, BAGS)  # embeddings are not for lists
    refused(fitted, [np.full((2, D), np.nan)], embeddings=None)
    refused(fitted, COUNTS[:, :5], embeddings=np.full((5, D), np.nan))
    refused(fitted, COUNTS[:, :5], embeddings=np.ones((5, 1)))  # the mixture's refusal
    refused(fitted, COUNTS[:, :1], embeddings=np.ones((1, D)))  # fewer vectors than components
    refused(fitted, [np.ones((1, 2))], embeddings=None)
    refused(fitted, COUNTS, mixture=SparseGaussianMixture(2))
    refused(fitted, COUNTS, power=2)
    with pytest.raises(ValueError, match="30 features"):
        fitted.transform(COUNTS[:, :-1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_leaves_the_earlier_one(error, monkeypatch):
    fitted = transformer().fit(COUNTS)

    def interrupt(self, X, y=None, **options):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(VonMisesFisherMixture, "fit", interrupt)
        refused(fitted, COUNTS[:, :9], error, embeddings=TABLE[:9, :3])
        refused(fitted, BAGS, error, embeddings=None)
    assert fitted.set_params(embeddings=TABLE[:9, :3]).fit(COUNTS[:, :9]).n_features_in_ == 9


def test_a_first_fit_that_fails_leaves_nothing():
    fresh = transformer(embeddings=TABLE[:-1])
    with pytest.raises(ValueError, match="30 columns"):
        fresh.fit(COUNTS)
    assert not [name for name in vars(fresh) if name not in fresh.get_params()]
    with pytest.raises(NotFittedError):
        fresh.transform(COUNTS)


# Pickles


def saved(value):
    """Yield everything in a state, down to the estimators in it."""
    yield value
    if isinstance(value, dict):
        for part in value.values():
            yield from saved(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from saved(part)
    elif isinstance(value, BaseEstimator):
        yield from saved(value.__getstate__())


@pytest.mark.parametrize("X", [COUNTS, BAGS])
@pytest.mark.parametrize("family", MIXTURES)
def test_what_is_saved_is_arrays_and_public_names(family, X):
    embeddings = TABLE if X is COUNTS else None
    encoder = frozen(MIXTURES[family](), embeddings=embeddings).fit(X)
    plain = (type(None), bool, int, float, str, dict, list, tuple, np.ndarray, np.generic)
    public = (*(getattr(skvmf, name) for name in skvmf.__all__ if name[0].isupper()),)
    for value in saved(encoder):
        assert isinstance(value, (*plain, FrozenEstimator, *public)), type(value)
        if isinstance(value, np.ndarray):
            assert value.dtype != object
    again = pickle.loads(pickle.dumps(encoder))
    assert_array_equal(again.transform(X), encoder.transform(X))
    assert_array_equal(copy.deepcopy(encoder).transform(X), encoder.transform(X))
    assert_array_equal(clone(encoder).fit(X).transform(X), encoder.transform(X))


# Mistakes


TEXTS = ["one text", "another"]


@pytest.mark.parametrize(
    "texts",
    [
        *[TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), "one text"],
        *[[["words", "of", "a"], ["text"]], [("words",)], [np.array(["words", "of"])]],
    ],
)
def test_texts_are_to_be_counted_first(texts):
    fitted = transformer().fit(COUNTS)
    for call in (fitted.fit, fitted.transform, FisherVectorTransformer().fit):
        with pytest.raises(ValueError, match=r"X holds texts.*\.CountVectorizer\(vocabulary=words"):
            call(texts)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="X holds texts"):
        FisherVectorTransformer().fit(pandas.Series(["one text", "another"], index=[3, 4]))


MODEL = r"embedding_table\(model.wv\)"
NO_MATRIX = "embeddings should (have the shape|hold|be)"


@pytest.mark.parametrize(
    ("embeddings", "match"),
    [
        (SimpleNamespace(vectors=TABLE, key_to_index={}), MODEL),  # as gensim's
        (SimpleNamespace(wv=None), MODEL),
        ({f"word{i}": row for i, row in enumerate(TABLE)}, MODEL),
        *[(bad, NO_MATRIX) for bad in (3, "words", [[1.0, 2.0], [3.0]], sparse.eye(V))],
        (TABLE[0], NO_MATRIX),
        (TABLE.astype(str), "embeddings should hold real numbers"),
        (TABLE[:-1], "30 columns: row i"),
        (np.where(TABLE > 1, np.inf, TABLE), "embeddings contain inf"),
        (np.full((V, D), np.nan), "No column"),
    ],
)
def test_embeddings_that_are_no_table_are_named(embeddings, match):
    with pytest.raises(ValueError, match=match):
        transformer(embeddings=embeddings).fit(COUNTS)


@pytest.mark.parametrize(
    ("bag", "match"),
    [
        (np.ones((2, D), dtype=complex), r"X\[1\] should hold real numbers, not complex"),
        (np.full((2, D), "a"), r"X\[1\] should hold real"),
        ([[1.0, 2.0], [3.0]], r"X\[1\] should be an array of numbers"),
        (np.ones(D), r"X\[1\] has 1 dimensions"),
        (np.ones((2, 3)), r"X\[1\] has vectors of dimension 3"),
        (np.ones((D, 0)), r"X\[1\] has vectors of dimension 0"),
        (np.ones((2, 3, D)), r"X\[1\] has 3 dimensions"),
        (sparse.eye(D), r"X\[1\] should be a dense array"),
        *[(np.full((2, D), bad), r"X\[1\] contains nan or inf") for bad in (np.nan, np.inf)],
        (np.full((2, D), -np.inf, dtype=np.float32), r"X\[1\] contains nan or inf"),
    ],
)
@pytest.mark.parametrize("mixture", [sphere(), plane()])
def test_a_bag_that_is_none_is_named(bag, match, mixture):
    given = frozen(mixture).fit(BAGS)
    for call in (given.fit, given.transform):
        with pytest.raises(ValueError, match=match):
            call([BAGS[0], bag, BAGS[1]])


@pytest.mark.parametrize("column", [-5, V, V + 1, 2**30])
def test_column_numbers_that_lead_out_of_the_table_are_refused(column):
    fitted = transformer().fit(COUNTS)
    X = COUNTS.copy().astype(float)
    X.indices[4] = column
    for call in (fitted.transform, fitted.fit, FisherVectorTransformer().fit):
        with pytest.raises(ValueError, match="not a valid CSR matrix"):
            call(X)
