"""FisherVectorTransformer through its public methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from skvmf import (
    FisherVectorTransformer,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)

from ..conftest import peak_of
from ..pairwise import pairwise
from .mixtures import KINDS, MIXTURES, TABLE, D, V, as_bags, counts, frozen, plane, sphere

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


C = counts()  # of words in documents


# Two kinds of input, one meaning


@pairwise(
    family=["vmf", "gaussian"],
    posterior=[{}, {"temperature": 0.0}, {"entmax_alpha": 2.0}],
    options=[
        {},
        {"geometry": "tangent", "power": 0.5},
        {"norm": None},
        {"norm": None, "normalization": None, "power": 0.5},
        {"normalization": "paper", "norm": None},
    ],
)
def test_counts_and_arrays_give_the_same_vectors(family, posterior, options):
    transformer = frozen(
        MIXTURES[family](**posterior), embeddings=TABLE, gradients=KINDS[family], **options
    ).fit(C)
    expected = transformer.transform(as_bags(C))
    scale = np.abs(expected).max()
    for X in [C, C.astype(float), C.toarray(), sparse.csc_array(C), sparse.csr_matrix(C)]:
        assert_allclose(transformer.transform(X), expected, rtol=1e-12, atol=1e-12 * scale)
    assert not expected[3].any()


def test_forms_of_a_list_of_arrays():
    rng = np.random.default_rng(0)
    transformer = frozen(sphere()).fit([rng.normal(size=(5, D))])
    bags = list(rng.normal(size=(6, 5, D)))
    expected = transformer.transform(bags)
    objects = np.empty(6, dtype=object)
    objects[:] = bags
    for X in [tuple(bags), objects, np.array(bags), [bag.tolist() for bag in bags]]:
        assert_array_equal(transformer.transform(X), expected)
    integers = [np.round(5 * bag).astype(np.int8) for bag in bags]
    assert_allclose(
        transformer.transform(integers), transformer.transform([x.astype(float) for x in integers])
    )
    empty = transformer.transform([np.empty((0, D)), bags[0], [], np.array([])])
    assert_array_equal(empty, [0 * expected[0], expected[0], 0 * expected[0], 0 * expected[0]])
    for n in (1, 3):  # nothing but empty bags
        zeros = np.zeros((n, expected.shape[1]))
        assert_array_equal(transformer.transform([np.empty((0, D))] * n), zeros)


def test_weights_count_like_repetition_and_size_does_not_matter_after_l2():
    tfidf = TfidfTransformer().fit_transform(C)
    transformer = frozen(sphere(), embeddings=TABLE).fit(C)
    assert_allclose(transformer.transform(3 * C), transformer.transform(C), atol=1e-14)
    assert_allclose(transformer.transform(tfidf), transformer.transform(0.01 * tfidf), atol=1e-14)
    plain = frozen(sphere(), embeddings=TABLE, norm=None).fit(C)
    assert_allclose(plain.transform(4 * C), 2 * plain.transform(C), rtol=1e-13)


def test_lists_longer_than_a_block_are_put_together():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, D)) for n in rng.integers(0, 90_000, size=9)]
    assert sum(map(len, bags)) * D * 8 > 1.5 * 2**21
    transformer = frozen(sphere()).fit(bags[:1])
    Z = transformer.transform(bags)
    for bag, row in zip(bags, Z, strict=True):
        assert_allclose(transformer.transform([bag])[0], row, atol=1e-13)


# Embeddings


@pytest.mark.parametrize("family", ["vmf", "gaussian"])
@pytest.mark.parametrize("posterior", [{}, {"temperature": 0.0}])
def test_words_without_a_vector_are_left_out(family, posterior):
    dense, partial = counts().toarray(), TABLE.copy()
    dense[5] = np.isin(np.arange(V), [2, 4])
    X = sparse.csr_array(dense)
    partial[2], partial[4], partial[6, 1] = np.nan, 0, np.nan
    given = partial.copy()
    with_vector = np.delete(np.arange(V), [2, 4, 6])
    mixture = MIXTURES[family](**posterior)
    options = {"norm": None, "gradients": KINDS[family]}
    transformer = frozen(mixture, embeddings=partial, **options).fit(X)
    assert transformer.n_missing_embeddings_ == 3
    assert_array_equal(partial, given)
    expected = frozen(mixture, embeddings=partial[with_vector], **options).fit_transform(
        X[:, with_vector]
    )
    assert_allclose(transformer.transform(X), expected, atol=1e-13)
    assert not expected[5].any()


def test_the_mixture_is_fitted_on_the_words_that_have_a_vector():
    table = np.vstack([np.full((5, D), np.nan), TABLE[5:]])
    mixture = VonMisesFisherMixture(2, random_state=0)
    fitted = FisherVectorTransformer(mixture, embeddings=table).fit(C).mixture_
    assert_allclose(fitted.means_, clone(mixture).fit(TABLE[5:]).means_)
    tokens = FisherVectorTransformer(mixture, embeddings=table, fit_on="tokens").fit(C).mixture_
    weights = np.asarray(C.sum(axis=0)).ravel()[5:]
    again = clone(mixture).fit(TABLE[5:], sample_weight=weights)
    assert_allclose(tokens.means_, again.means_)
    assert np.abs(tokens.means_ - fitted.means_).max() > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_teach_vectors_of_their_own(dtype):
    rng = np.random.default_rng(0)
    C = (rng.poisson(1, size=(50, 5)) @ rng.poisson(1, size=(5, 20))).astype(dtype)
    C[:, 7] = 0
    transformer = FisherVectorTransformer(
        VonMisesFisherMixture(3), embedding_dim=5, random_state=0
    ).fit(sparse.csr_array(C))
    learnt = transformer.embeddings_
    assert learnt.shape == (20, 5)
    assert learnt.dtype == dtype
    assert transformer.n_missing_embeddings_ == 1
    # latent semantic indexing keeps the inner products of columns: here all, as the rank is 5
    assert_allclose(learnt @ learnt.T, C.T @ C, rtol=1e-3 if dtype == np.float32 else 1e-10)
    fewer = clone(transformer).set_params(embedding_dim=2).fit(C)
    assert fewer.embeddings_.shape == (20, 2)


@pytest.mark.bits
@pytest.mark.parametrize("as_format", [np.asarray, sparse.csr_array])
def test_learnt_vectors_have_the_same_bits_on_any_number_of_threads(as_format):
    X = as_format(np.random.default_rng(0).poisson(0.3, size=(400, 900)).astype(float))
    tables = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            tables.append(FisherVectorTransformer(random_state=0).fit(X).embeddings_)
    assert_array_equal(tables[0], tables[1])
    assert_array_equal(tables[0], tables[2])


def test_learnt_vectors_have_no_more_dimensions_than_the_counts_have_rank():
    C = np.outer(np.arange(1, 9), np.arange(V)) + np.eye(8, V)[:, ::-1] * [[0]] * 3
    C[:3] += np.eye(3, V, dtype=int)
    assert np.linalg.matrix_rank(C) == 4
    assert FisherVectorTransformer().fit(C).embeddings_.shape == (V, 4)
    with pytest.raises(ValueError, match="rank 1"):
        FisherVectorTransformer().fit(np.ones((5, 4)))


# Output


@pytest.mark.parametrize("family", ["vmf", "gaussian"])
def test_float32_is_kept_and_close(family):
    options = {"gradients": KINDS[family], "power": 0.5}
    exact = frozen(MIXTURES[family](), embeddings=TABLE, **options).fit(C).transform(C)
    single = frozen(MIXTURES[family](), embeddings=TABLE.astype(np.float32), **options).fit(C)
    double = frozen(MIXTURES[family](), embeddings=TABLE, **options).fit(C)
    for transformer, X, dtype in [
        (single, C, np.float32),  # integer counts take the type of the vectors
        (single, C.astype(np.float32), np.float32),
        (single, C.astype(np.float64), np.float64),
        (double, C, np.float64),
        (double, C.astype(np.float32), np.float32),
        (double, as_bags(C), np.float64),
        (double, as_bags(C, TABLE.astype(np.float32)), np.float32),
    ]:
        Z = transformer.transform(X)
        assert Z.dtype == dtype
        assert_allclose(Z, exact, atol=2e-3)  # the root of what float32 makes of a zero


def test_blocks_come_in_the_order_of_gradients_with_names():
    both = frozen(plane(), embeddings=TABLE, gradients=("weights", "variances"), norm=None).fit(C)
    names = both.get_feature_names_out()
    assert names[:4].tolist() == ["weight0", "weight1", "weight2", "variance0_0"]
    assert names[-1] == "variance2_3"
    Z = both.transform(C)
    assert Z.shape == (12, len(names)) == (12, 3 + 12)
    for kind, block in [("weights", Z[:, :3]), ("variances", Z[:, 3:])]:
        alone = frozen(plane(), embeddings=TABLE, gradients=[kind], norm=None).fit_transform(C)
        assert_allclose(block, alone)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_as_a_data_frame(library):
    pytest.importorskip(library)
    transformer = frozen(sphere(), embeddings=TABLE).set_output(transform=library)
    frame = transformer.fit_transform(C)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == transformer.get_feature_names_out().tolist()
    assert_allclose(frame.to_numpy(), frozen(sphere(), embeddings=TABLE).fit_transform(C))
    assert transformer.transform(as_bags(C)).shape == (12, 12)


# In company


def test_a_frozen_mixture_and_embeddings_are_used_as_they_are():
    mixture = VonMisesFisherMixture(2, random_state=0).fit(-TABLE)
    transformer = frozen(mixture, embeddings=TABLE)
    assert transformer.fit(C).mixture_ is mixture
    assert transformer.embeddings_ is TABLE
    assert clone(transformer).fit(C).mixture_ is mixture


def test_the_mixture_given_is_not_fitted_and_the_seed_is_one():
    template = VonMisesFisherMixture(4)
    X = counts(40)
    a, b = [FisherVectorTransformer(template, random_state=3).fit(X).transform(X) for _ in range(2)]
    assert_array_equal(a, b)
    assert not hasattr(template, "means_")
    seeded = VonMisesFisherMixture(4, random_state=7)
    assert FisherVectorTransformer(seeded, random_state=3).fit(X).mixture_.random_state == 7


# Extremes


@pytest.mark.parametrize("norm", ["l2", None])
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e200, 1e300])
def test_counts_of_any_size(size, norm):
    transformer = frozen(sphere(), embeddings=TABLE, norm=norm).fit(C)
    expected = transformer.transform(C > 0) * (np.sqrt(size) if norm is None else 1)
    assert_allclose(transformer.transform((C > 0) * size), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_vectors_of_any_length_have_a_direction(size):
    expected = frozen(sphere(), embeddings=TABLE).fit_transform(C)
    mixed = TABLE * np.where(np.arange(V) % 2, size, 1.0)[:, None]
    for scaled in (TABLE * size, mixed):
        transformer = frozen(sphere(), embeddings=scaled).fit(C)
        assert_allclose(transformer.transform(C), expected, atol=1e-12)
        assert_allclose(transformer.transform(as_bags(C, scaled)), expected, atol=1e-12)


def test_memory_is_the_output_and_little_more():
    rng = np.random.default_rng(0)
    n, d, K = 4000, 50, 15
    table = rng.normal(size=(20_000, d))
    words = rng.integers(20_000, size=n * 60)
    C = sparse.csr_array((np.ones(n * 60), words, np.arange(n + 1) * 60), shape=(n, 20_000))
    bags = [rng.normal(size=(100, d)) for _ in range(2000)]
    mixture = sphere(K, d, (20.0, 40.0))
    transformer = frozen(mixture, embeddings=table).fit(C)
    for X in (C, bags):
        transformer.transform(X[:10])
        Z, peak = peak_of(transformer.transform, X)
        assert peak - Z.nbytes < 32 * 2**20  # V x K x d would be 114 MiB, the bags 76


# Bad input


def failing(match, X, transformer, method="fit", error=ValueError):
    with pytest.raises(error, match=match):
        getattr(transformer, method)(X)


def test_bad_parameters_are_named():
    F = FisherVectorTransformer

    failing("mixture should be", C, F(GaussianMixture(2)))
    failing("mixture should be", C, F(FrozenEstimator(GaussianMixture(2))))
    failing("covariance_type='full' have no Fisher vectors: use", C, F(SparseGaussianMixture(2)))
    failing("StudentT components have no Fisher vectors", C, F(StudentTMixture(2)))

    failing("4 dimensions", C, frozen(sphere(d=4), embeddings=TABLE[:, :3]))
    failing("not fitted", C, frozen(VonMisesFisherMixture(2)), error=NotFittedError)
    failing("embeddings out", as_bags(C), F(embeddings=TABLE))


def test_bad_data_is_named():
    transformer = FisherVectorTransformer(VonMisesFisherMixture(2), embeddings=TABLE).fit(C)
    on_arrays = FisherVectorTransformer(VonMisesFisherMixture(2)).fit(as_bags(C))
    for method in ("fit", "transform"):
        failing(r"Negative values.* bags .* \[X\], or X\[:, None\]", -C, transformer, method)
        failing("NaN", C * np.nan, transformer, method)
    failing("list of arrays", C, on_arrays, "transform")
    failing("all bags are empty", [np.empty((0, D))], FisherVectorTransformer())
    failing("not fitted", C, FisherVectorTransformer(), "transform", NotFittedError)
    with pytest.raises(NotFittedError):
        FisherVectorTransformer().get_feature_names_out()
