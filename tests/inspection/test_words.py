"""Clusters are named after the words of their texts."""

import io
import sys
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.inspection import component_summary
from skvmf.inspection._words import with_phrases

TEXTS = [
    "The puck is on the ice.",
    "A goal: the puck hit the net!",
    "Ice, a puck and\n  a <b>goal</b>.",
    "Melt butter in a pan.",
    "Salt the butter, then heat the pan.",
]
X = np.array([[5.0, 0.1, 0], [5, 0.3, 0], [5, 0, 0.3], [0, 5, 1], [0, 5, 1.1]])


def fitted():
    return VonMisesFisherMixture(2, random_state=0).fit(X)


def test_words_have_the_largest_class_based_tf_idf():
    """The formula, over dense counts."""
    rng = np.random.default_rng(0)
    alphabet = np.array(list("abcdefgh"))
    texts = [" ".join(rng.choice(alphabet, 9, p=rng.dirichlet(np.ones(8)))) for _ in range(30)]
    labels = rng.integers(-1, 3, size=30)  # the background's texts count as a class
    vectorizer = CountVectorizer(analyzer="char", lowercase=False, vocabulary="abcdefgh")
    options = {"texts": texts, "labels": labels, "vectorizer": vectorizer, "n_features": 8}
    summary = component_summary(X=rng.normal(size=(30, 3)), **options)
    counts = vectorizer.transform(texts).toarray()
    average = counts.sum() / 4
    for k, of_class in zip(summary.labels, summary.words, strict=True):
        scores = np.sqrt(counts[labels == k].sum(axis=0)) * np.log1p(average / counts.sum(axis=0))
        expected = alphabet[np.argsort(-scores, kind="stable")][: np.count_nonzero(scores)]
        assert of_class == expected.tolist()


@pytest.mark.parametrize("make", [list, tuple, lambda texts: np.array(texts, dtype=object)])
def test_words_and_beginnings(make):
    mixture = fitted()
    summary = component_summary(mixture, X, texts=make(TEXTS), n_rows=2, n_features=3)
    assert summary.words == [["goal", "ice", "puck"], ["butter", "pan", "heat"]]
    for rows, texts in zip(summary.typical, summary.texts, strict=True):
        assert texts == [" ".join(TEXTS[row].split()) for row in rows]
    assert summary.features is None
    assert list(summary.columns) == [
        *("component", "rows", "weight", "cosine", "nearest", "words", "texts")
    ]


def test_tables_show_texts():
    summary = component_summary(fitted(), X, texts=TEXTS)
    lines = str(summary).splitlines()
    assert len(lines) == 3  # a line shows the most typical text alone
    assert lines[1].endswith(summary.texts[0][0])
    html = summary._repr_html_()
    assert html.count("<br>") == 3
    assert "<b>" not in html


def test_a_frame_has_what_the_attributes_have():
    pandas = pytest.importorskip("pandas")
    summary = component_summary(fitted(), X, texts=TEXTS, feature_names=["a", "b", "c"])
    frame = summary.to_frame()
    assert_array_equal(frame.index, summary.labels)
    assert frame.index.name == "component"
    assert_array_equal(frame["cosine"], summary.cosines)
    assert_array_equal(frame["rows"], [3, 2])
    assert frame["words"].tolist() == summary.words
    assert frame["texts"].tolist() == summary.texts
    assert pandas.api.types.is_integer_dtype(frame["nearest"])
    bare = component_summary(SparseGaussianMixture(2, random_state=0).fit(X)).to_frame()
    assert list(bare.columns) == ["weight", "nearest", "overlap"]


def test_names_are_in_the_order_of_the_components():
    mixture = VonMisesFisherMixture.from_parameters(
        [0.4, 0.0, 0.6, 0.0], mean_directions=np.eye(4, 3) + 0.1, concentrations=[9.0] * 4
    )
    rows = X[:, [2, 1, 0]]
    summary = component_summary(mixture, X[:, [1, 2, 0]], texts=TEXTS)
    assert summary.names(2) == ["butter, pan", "1", "goal, ice", "3"]
    assert summary.names(2, "\n")[0] == "butter\npan"
    named = component_summary(mixture, rows, feature_names=["tea", "ice", "cup"])
    assert named.names(1) == ["tea", "1", "cup", "3"]
    assert component_summary(mixture).names() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("texts", [[""] * 5, ["the of", "a", "!", "", "and"]])
def test_texts_without_a_word_to_count(texts):
    summary = component_summary(fitted(), X, texts=texts)
    assert summary.words == [[], []]
    assert summary.names() == ["0", "1"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_tables_print_on_every_console(encoding, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    long = ["p\u00e2t\u00e9 \u4e2d " * 20] * 5
    print(component_summary(fitted()), component_summary(fitted(), X, texts=long))
    out.flush()
    printed = out.buffer.getvalue().decode(encoding)
    assert "angle" in printed
    assert ("\u4e2d" in printed) == (encoding == "utf-8")


def test_words_are_counted_as_the_vectorizer_says():
    vectorizer = TfidfVectorizer(stop_words=None, ngram_range=(2, 2)).fit(["not these texts"])
    before = clone(vectorizer).fit(["not these texts"]).vocabulary_
    summary = component_summary(fitted(), X, texts=TEXTS, vectorizer=vectorizer)
    assert all(len(word.split()) == 2 for words in summary.words for word in words)
    assert vectorizer.vocabulary_ == before


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (TEXTS[:3], ValueError, "one per row: X has 5 rows, got 3"),
        ("one text", TypeError, "got one string"),
        ([*TEXTS[:4], None], TypeError, "should be strings, got NoneType at index 4"),
    ],
)
def test_wrong_texts(texts, error, message):
    with pytest.raises(error, match=message):
        component_summary(fitted(), X, texts=texts)
    with pytest.raises(ValueError, match="texts need X"):
        component_summary(fitted(), texts=texts)


def test_beginnings_are_one_short_line():
    texts = [" a\n\tb ", "", "word " * 10_000, "x" * 61, "x" * 60]
    summary = component_summary(X=np.eye(5), texts=texts, labels=np.arange(5))
    shown = dict(zip(summary.labels, [text for (text,) in summary.texts], strict=True))
    assert (shown[0], shown[1], shown[3]) == ("a b", "", "x" * 57 + "...")
    assert len(shown[2]) <= 60
    assert shown[4] == texts[4]


def many_classes():
    """Texts of six classes that share words, with phrases, lines and numbers."""
    rng = np.random.default_rng(0)
    topics = ["neural network", "ice puck", "butter pan", "violin bow", "copper zinc", "moon orbit"]
    texts, labels = [], []
    for label, topic in enumerate(topics):
        for _ in range(30):
            common = rng.permutation(["der", "und", "schreibt", "____", "1234", "42nd"])
            texts.append(f"{common[0]} {topic} {' '.join(common[1:])} {topic.split()[1]}")
            labels.append(label)
    return texts, np.array(labels)


def test_words_that_all_clusters_share_and_tokens_without_letters_name_none():
    texts, labels = many_classes()
    summary = component_summary(X=np.eye(6)[labels], texts=texts, labels=labels)
    found = {word for words in summary.words for word in words}
    assert not found & {"der", "und", "schreibt", "____", "1234", "42nd"}
    given = CountVectorizer()
    options = {"labels": labels, "vectorizer": given, "n_features": 20}
    as_given = component_summary(X=np.eye(6)[labels], texts=texts, **options)
    assert {"der", "1234"} <= {word for words in as_given.words for word in words}
    # Of fewer classes, words that all have are kept: these may be of one topic.
    few = labels < 3
    kept = np.array(texts)[few].tolist()
    options = {"labels": labels[few], "n_features": 20}
    summary = component_summary(X=np.eye(6)[labels[few]], texts=kept, **options)
    assert "der" in summary.words[0]


def test_two_words_that_follow_each_other_are_one():
    texts, labels = many_classes()
    summary = component_summary(X=np.eye(6)[labels], texts=texts, labels=labels)
    words = dict(zip(summary.labels, summary.words, strict=True))
    assert words[0] == ["neural network"]
    apart = [text.replace("neural network", "network of a neural") for text in texts]
    summary = component_summary(X=np.eye(6)[labels], texts=apart, labels=labels)
    words = dict(zip(summary.labels, summary.words, strict=True))
    assert set(words[0]) == {"neural", "network"}


def test_a_phrase_takes_the_place_of_its_words():
    phrases = Counter({("neural", "network"): 9, ("deep", "neural"): 3, ("a", "b"): 2})
    uses = {"neural": 10, "network": 30, "deep": 40, "a": 2, "b": 2}
    names = with_phrases(["deep", "neural", "network", "a"], phrases, uses)
    assert names == ["deep", "neural network", "a"]
    assert with_phrases(["network", "neural"], phrases, uses) == ["network"]
