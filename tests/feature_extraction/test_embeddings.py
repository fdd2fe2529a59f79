"""Words and their vectors from models and mappings."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer

from skvmf import FisherVectorTransformer, VonMisesFisherMixture
from skvmf.feature_extraction import embedding_table

VECTORS = {"puck": [1.0, 0.0], "ice": [0.8, 0.6], "oven": [0.0, 1.0]}


def keyed(dtype=np.float32):
    """A model in the form of gensim's, with words that are not in the order of its rows."""
    return SimpleNamespace(
        key_to_index={"ice": 1, "oven": 2, "puck": 0},
        vectors=np.array(list(VECTORS.values()), dtype=dtype),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_keeps_the_order_and_the_type_of_its_rows(dtype):
    words, matrix = embedding_table(keyed(dtype))
    assert words == ["puck", "ice", "oven"]  # and those of a set are sorted:
    assert embedding_table(VECTORS, {"puck", "ice"})[0] == ["ice", "puck"]
    assert embedding_table({"a": [1, 2], "b": [3, 4]})[1].dtype == np.float64
    assert matrix.dtype == dtype
    assert_array_equal(matrix, np.array(list(VECTORS.values()), dtype=dtype))


@pytest.mark.parametrize("model", [VECTORS, keyed(np.float64)])
@pytest.mark.parametrize(
    "vocabulary",
    [["ice", "snow", "puck"], np.array(["ice", "snow", "puck"]), {"puck": 2, "ice": 0, "snow": 1}],
)
def test_a_vocabulary_says_which_words_and_in_what_order(model, vocabulary):
    words, matrix = embedding_table(model, vocabulary)
    assert words == ["ice", "snow", "puck"]
    assert_array_equal(matrix, [VECTORS["ice"], [np.nan, np.nan], VECTORS["puck"]])


def test_what_is_no_model_is_an_error():
    for model, match in [
        ({"a": [1.0, 2.0], "b": [1.0]}, "different shapes"),
        ({}, "no vectors"),
        ({"a": 1.0}, "no vectors"),
        ([[1.0, 2.0]], "a list does not"),
        (SimpleNamespace(wv=keyed()), "Give its wv"),
    ]:
        with pytest.raises(ValueError, match=match):
            embedding_table(model)
    with pytest.raises(ValueError, match="list of words, got the text 'ice'"):
        embedding_table({"ice": [0.8, 0.6]}, vocabulary="ice")


def test_a_gensim_model_and_a_count_vectorizer_agree_on_columns():
    word2vec = pytest.importorskip("gensim.models").Word2Vec
    rng = np.random.default_rng(0)
    topics = [["puck", "ice", "rink", "goal"], ["salt", "pan", "oven", "flour"]]
    sentences = [list(rng.choice(topics[i % 2], 8)) for i in range(60)]
    model = word2vec(sentences, vector_size=8, min_count=1, seed=0, workers=1)
    words, matrix = embedding_table(model.wv)
    assert sorted(words) == sorted(topics[0] + topics[1])
    assert matrix.dtype == np.float32
    for word, row in zip(words, matrix, strict=True):
        assert_array_equal(row, model.wv[word])

    texts = [" ".join(sentence) for sentence in sentences]
    counts = CountVectorizer(vocabulary=words).transform(texts)
    transformer = FisherVectorTransformer(
        VonMisesFisherMixture(2), embeddings=matrix, random_state=0
    )
    result = transformer.fit_transform(counts)
    assert result.dtype == np.float32
    arrays = [model.wv[sentence] for sentence in sentences]
    np.testing.assert_allclose(transformer.transform(arrays), result, atol=1e-6)

    fitted = CountVectorizer().fit([*texts, "snow"])
    words, matrix = embedding_table(model.wv, fitted.vocabulary_)
    assert words == fitted.get_feature_names_out().tolist()
    assert_array_equal(np.flatnonzero(np.isnan(matrix).any(axis=1)), [words.index("snow")])
