"""What a mixture says when it is used wrongly: each mistake with the words that help.

``python -m tests.mixture.test_messages`` prints the mistakes with their messages.
"""

import datetime
import re
import reprlib
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.model_selection import ComponentPath
from skvmf.preprocessing import DirectionWhitener

from .kinds import MIXTURES, PLANE

GAUSSIANS = [SparseGaussianMixture, RelativeGMM]
X = np.random.default_rng(0).normal(size=(40, 3))
FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0], "name": ["x", "y", "z"]})
DATES = pd.DataFrame({"a": [1.0, 2.0], "day": pd.to_datetime(["2024-01-01", "2024-01-02"])})
DAYS = pd.date_range("2024-01-01", periods=3)
VECTORS = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
EQUAL = np.tile([[1.0, 2.0]], (50, 1))

PARAMETERS = [  # of whom, the parameter, and what the message says
    *[(mixture, "n_clusters", "n_components") for mixture in MIXTURES],
    *[(mixture, "n_component", "did you mean 'n_components'") for mixture in MIXTURES],
    *[(VonMisesFisherMixture, name, "n_components") for name in ("k", "n_topics")],
    *[
        (VonMisesFisherMixture, name, "ComponentPath recommends")
        for name in ("min_cluster_size", "min_topic_size", "nr_topics", "eps")
    ],
    *[
        (mixture, name, "background=True")
        for mixture in MIXTURES
        for name in ("min_samples", "contamination")
    ],
    (VonMisesFisherMixture, "cluster_selection_method", "criterion"),
    (VonMisesFisherMixture, "random_seed", "random_state"),
    (SparseGaussianMixture, "df", "StudentTMixture has degrees_of_freedom"),
    (SparseGaussianMixture, "modelNames", "covariance_type"),
    (ComponentPath, "n_components", "max_components"),
    (ComponentPath, "min_cluster_size", "max_components"),
    (ComponentPath, "n_init", "a parameter of the estimator"),
    (ComponentPath, "max_component", "did you mean 'max_components'"),
    *[(VonMisesFisherMixture, name, "n_init") for name in ("nruns", "nredo")],
    *[(VonMisesFisherMixture, name, "max_iter") for name in ("n_iter", "niter")],
    (VonMisesFisherMixture, "seed", "random_state"),
    *[
        (mixture, name, "size_limits")
        for mixture in MIXTURES
        for name in ("size_min", "size_max", "min_cluster_size", "balanced")
    ],
    (VonMisesFisherMixture, "max_points_per_centroid", "size_limits"),
    (StudentTMixture, "size_limits", "of VonMisesFisherMixture and SparseGaussianMixture"),
    (VonMisesFisherMixture, "metric", "cosine"),
    (VonMisesFisherMixture, "spherical", "direction"),
    (VonMisesFisherMixture, "init", "init_params"),
    (VonMisesFisherMixture, "n_jobs", "threadpool_limits"),
    *[(mixture, "grow", "partial_fit keeps its number of components") for mixture in MIXTURES],
    (VonMisesFisherMixture, "posterior_type", "temperature=0 is hard"),
    (VonMisesFisherMixture, "covariance_type", "concentration_type='free' or 'tied'"),
    (VonMisesFisherMixture, "reg_covar", "concentration_prior"),
    (VonMisesFisherMixture, "precisions_init", "concentrations_init"),
    (VonMisesFisherMixture, "kappa", "concentrations_init"),
    (VonMisesFisherMixture, "degrees_of_freedom", "StudentTMixture"),
    (SparseGaussianMixture, "concentration_type", "covariance_type"),
    (SparseGaussianMixture, "concentration_prior", "reg_covar"),
    (SparseGaussianMixture, "clearance", "RelativeGMM"),
    (StudentTMixture, "precisions_init", "scale_matrices_init"),
    (StudentTMixture, "concentrations_init", "scale_matrices_init"),
    (RelativeGMM, "concentrations_init", "precisions_init"),
    (SparseGaussianMixture, "weight_concentration_prior_type", "modified Dirichlet"),
    *[
        (SparseGaussianMixture, name, "weight_concentration_prior is the prior on the weights")
        for name in [
            "mean_prior",
            "mean_precision_prior",
            "covariance_prior",
            "degrees_of_freedom_prior",
        ]
    ],
]
ATTRIBUTES = [
    *[(mixture, "inertia_", "lower_bound_") for mixture in MIXTURES],
    (VonMisesFisherMixture, "cluster_centers_", "mean_directions_"),
    (VonMisesFisherMixture, "components_", "mean_directions_"),
    (VonMisesFisherMixture, "covariances_", "concentrations_"),
    (VonMisesFisherMixture, "precisions_", "concentrations_"),
    (VonMisesFisherMixture, "kappa_", "concentrations_"),
    (VonMisesFisherMixture, "centroids", "mean_directions_"),
    (VonMisesFisherMixture, "row_labels_", "labels_"),
    *[(mixture, "outlier_scores_", "score_samples") for mixture in MIXTURES],
    *[(mixture, "approximate_predict", "predict_proba") for mixture in MIXTURES],
    *[(mixture, "condensed_tree_", "ComponentPath") for mixture in MIXTURES],
    *[(mixture, "get_topic_info", "component_summary") for mixture in MIXTURES],
    *[(mixture, "feature_names_in_", "names") for mixture in MIXTURES],
    *[(mixture, "lables_", "did you mean 'labels_'") for mixture in MIXTURES],
    *[(mixture, "cluster_centers_", "means_") for mixture in PLANE],
    *[(mixture, "components_", "means_") for mixture in PLANE],
    *[(mixture, "concentrations_", "covariances_") for mixture in GAUSSIANS],
    (StudentTMixture, "concentrations_", "scale_matrices_"),
    (StudentTMixture, "covariances_", "nu / (nu - 2) times scale_matrices_"),
    (StudentTMixture, "precisions_", "scale_matrices_"),
]
DATA = [  # what is given as X, the error, and what the message says
    ("rows.npy", ValueError, "X='rows.npy' is a text or a path"),
    (Path("rows.npy"), ValueError, "numpy.load"),
    (["a text", "another"], ValueError, "X holds texts"),
    *[
        (texts, ValueError, "TfidfVectorizer")
        for texts in (["a b"], np.array(["a b", "c d"]), "a b", pd.Series(["a b", "c d"]))
    ],
    ((row for row in X), TypeError, "X is a generator, which can be read only once"),
    (iter([X]), TypeError, "call partial_fit with each batch"),
    (FRAME, ValueError, "Column 'name' of X does not hold numbers: could not convert"),
    *[
        (frame, ValueError, "Column 'day' of X does not hold numbers: ")
        for frame in (
            DATES,
            DATES[["day"]],
            pd.DataFrame({"day": DAYS.tz_localize("UTC"), "next": DAYS}),
            pd.DataFrame({"day": DAYS - DAYS[0]}),
            pl.DataFrame({"day": DAYS.to_numpy()}),
            pl.DataFrame({"day": [datetime.date(2024, 1, 1)] * 3}),
        )
    ],
    (DATES[["day"]].to_numpy(), ValueError, "X does not hold numbers: its type is datetime64"),
    *[
        (column, ValueError, "X holds vectors, and X should hold their numbers: give np.vstack(X)")
        for column in (
            pd.Series(VECTORS),
            pd.Series(VECTORS).to_numpy(),
            pl.Series(VECTORS),
            pl.Series(VECTORS, dtype=pl.Array(pl.Float64, 2)),
        )
    ],
    *[
        (frame, ValueError, "Column 'of text' of X holds vectors, and X should hold their numbers")
        for frame in (
            pd.DataFrame({"of text": VECTORS}),
            pd.DataFrame({"id": ["a", "b"], "of text": VECTORS}),
            pl.DataFrame({"id": ["a", "b"], "of text": VECTORS}),
            pl.DataFrame({"of text": pl.Series(VECTORS, dtype=pl.Array(pl.Float64, 2))}),
        )
    ],
    (pl.DataFrame({"a": [1.0]}).lazy(), TypeError, "which holds no rows yet: give X.collect()"),
    (X[0], ValueError, "Expected 2D array, got 1D array"),
    (np.full((5, 2), np.nan), ValueError, "NaN"),
]
BY_POSITION = [  # what is made, and what the message says
    (partial(VonMisesFisherMixture, 3, "tied"), "concentration_type='tied'"),
    (partial(SparseGaussianMixture, 3, "diag"), "covariance_type='diag'"),
    (partial(ComponentPath, VonMisesFisherMixture(), 5), "max_components=5"),
]


@pytest.mark.parametrize(("mixture", "name", "hint"), PARAMETERS)
def test_a_wrong_parameter(mixture, name, hint):
    with pytest.raises(TypeError, match=re.escape(f"{mixture.__name__} has no parameter '{name}'")):
        made(mixture, name)
    with pytest.raises(TypeError, match=re.escape(hint)):
        made(mixture, name)


@cache
def fitted(mixture):
    return mixture(2, random_state=0).fit(X)


def made(estimator, name):
    """Return what an estimator is with a wrong parameter."""
    return estimator(*[VonMisesFisherMixture()][: estimator is ComponentPath], **{name: 2})


@pytest.mark.parametrize("column", ["X['of text']", "X['id']"])
def test_the_rows_of_a_column_of_vectors(column):
    """What the message says to write can be fitted."""
    for frame in pd.DataFrame, pl.DataFrame:
        X = frame({"of text": VECTORS, "id": VECTORS})
        with pytest.raises(ValueError, match=r"np\.vstack\(X\['of text'\]\)"):
            SparseGaussianMixture().fit(X)
        SparseGaussianMixture().fit(eval(f"np.vstack({column})"))


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_parameter_without_any_hint(mixture):
    with pytest.raises(TypeError, match="unexpected keyword argument 'zebra'"):
        mixture(zebra=2)


@pytest.mark.parametrize(("make", "advice"), BY_POSITION)
def test_an_argument_that_has_to_be_named(make, advice):
    with pytest.raises(TypeError, match=f"1 of its arguments by position, got 2: .*{advice}"):
        make()


def test_a_subclass_may_take_any_arguments():
    class Any(VonMisesFisherMixture):
        def __init__(self, *args, **options):
            super().__init__(2)
            self.received = args, options

    assert Any(1, 2, n_clusters=3).received == ((1, 2), {"n_clusters": 3})


@pytest.mark.parametrize(("mixture", "name", "hint"), ATTRIBUTES)
def test_a_wrong_attribute(mixture, name, hint):
    with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': ")):
        getattr(fitted(mixture), name)
    with pytest.raises(AttributeError, match=re.escape(hint)):
        getattr(fitted(mixture), name)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_an_attribute_without_any_hint(mixture):
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = mixture(2).nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense_'$"):
        _ = fitted(mixture).nonsense_


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_fitted_attribute_before_the_fit(mixture):
    with pytest.raises(AttributeError, match=r"no attribute 'labels_': .* before fit"):
        _ = mixture(2).labels_


@pytest.mark.parametrize(("data", "error", "message"), DATA)
def test_wrong_data(data, error, message):
    for estimator in (
        VonMisesFisherMixture(2),
        SparseGaussianMixture(2),
        ComponentPath(VonMisesFisherMixture(), max_components=2),
        DirectionWhitener(),
    ):
        with pytest.raises(error, match=re.escape(message)):
            estimator.fit(data)


@pytest.mark.parametrize("mixture", PLANE)
def test_sparse_rows_for_a_mixture_of_dense_ones(mixture):
    message = "Sparse data.*VonMisesFisherMixture takes sparse rows.*TruncatedSVD.*toarray"
    with pytest.raises(TypeError, match=message):
        mixture(2).fit(sparse.csr_array(X))


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize(("n_init", "subject"), [(1, "The fit"), (3, "The best of 3 starts")])
def test_a_fit_that_does_not_converge(mixture, n_init, subject):
    estimator = mixture(5, n_init=n_init, tol=1e-9, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=f"^{subject} did not reach tol=1e-09") as caught:
        estimator.fit(X)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("mixture", [VonMisesFisherMixture, *GAUSSIANS])
def test_fewer_distinct_rows_than_components(mixture):
    message = r"fewer distinct rows \(1 among 50\) than n_components=3"
    with pytest.warns(ConvergenceWarning, match=message):
        mixture(3, random_state=0).fit(EQUAL)


PACKED = np.packbits(np.random.default_rng(1).normal(size=(300, 384)) > 0, axis=1)
WORDS = np.random.default_rng(2).poisson(np.append(8, np.full(200, 0.2)), (300, 201))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("bits", [PACKED, PACKED.view(np.int8)])
def test_bits_packed_into_bytes(bits, method):
    with pytest.warns(UserWarning, match=r"unpack them, 2\.0 \* np\.unpackbits") as caught:
        getattr(VonMisesFisherMixture(2, random_state=0, tol=1), method)(bits)
    code = re.search(r"unpack them, (.*)\.$", str(caught[0].message))[1]
    unpacked = eval(code, {"np": np, "X": bits})
    assert unpacked.shape == (300, 384)
    getattr(VonMisesFisherMixture(2, random_state=0, tol=1), method)(unpacked)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_counts_that_one_word_dominates(form):
    mixture = VonMisesFisherMixture(2, random_state=0, tol=1)
    with pytest.warns(UserWarning, match=r"feature 0 alone makes up 5\d% .*TfidfTransformer"):
        mixture.fit(form(WORDS).astype(np.float64))
    mixture.fit(TfidfTransformer().fit_transform(form(WORDS)))


QUANTIZED = np.random.default_rng(3).normal(128, 35, (300, 128)).clip(0, 255)


@pytest.mark.parametrize(
    "rows",
    [
        QUANTIZED.astype(np.uint8),
        (QUANTIZED - 128).astype(np.int8),
        np.random.default_rng(4).integers(0, 256, (300, 3)).astype(np.uint8),  # colours
        np.random.default_rng(5).poisson(30, (300, 128)).astype(np.uint8),  # SIFT
        np.minimum(WORDS, 1),
        WORDS[:, 1:],
        WORDS + 0.5,
    ],
)
def test_numbers_that_are_what_they_are(rows):
    VonMisesFisherMixture(2, random_state=0, tol=1).fit(rows)  # warnings are errors


def mistakes():
    """Yield each mistake, as code and as a function that makes it."""
    for mixture, name, _ in PARAMETERS:
        yield f"{mixture.__name__}({name}=2)", partial(made, mixture, name)
    for make, _ in BY_POSITION:
        yield f"{make.func.__name__}({', '.join(map(repr, make.args))})", make
    for mixture, name, _ in ATTRIBUTES:
        yield f"{mixture.__name__}().fit(X).{name}", partial(getattr, fitted(mixture), name)
    for data, _, _ in DATA:
        yield (
            f"VonMisesFisherMixture().fit({reprlib.repr(data)})",
            partial(VonMisesFisherMixture().fit, data),
        )
    for mixture in PLANE:
        yield f"{mixture.__name__}().fit(sparse)", partial(mixture().fit, sparse.csr_array(X))
    stream = VonMisesFisherMixture(5)
    yield "VonMisesFisherMixture(5).partial_fit(X[:3])", partial(stream.partial_fit, X[:3])
    yield "VonMisesFisherMixture(2).labels_", partial(getattr, VonMisesFisherMixture(2), "labels_")


def messages():
    """Yield each mistake, as code, and its message."""
    for code, make in mistakes():
        with pytest.raises((AttributeError, TypeError, ValueError)) as caught:
            make()
        yield code, f"{caught.typename}: {caught.value}"


def test_about_sixty_mistakes_are_listed_with_messages_that_can_be_read():
    listed = dict(messages())
    assert len(listed) > 55
    assert max(map(len, listed.values())) < 500


if __name__ == "__main__":
    for mistake, message in messages():
        print(f"{mistake}\n    {message}\n")
