"""Fisher vectors of texts classify and retrieve better than what the paper holds against them.

``python -m reproduction P4`` has the tables; here is what must hold, with one seed of word2vec.
"""

import numpy as np
import pytest

from reproduction import p4_representations as representations
from reproduction.items import Setting
from reproduction.p4_tables import folds, retrieval

from ..conftest import FULL_SIZE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_fisher_vectors_classify_better_than_averages_and_than_gaussian_ones(data_folder):
    pytest.importorskip("gensim")
    texts, y = representations.sentences(data_folder / "subj.jsonl.gz")
    epochs, accurate, ahead = (30, 90.3, 1.0) if FULL_SIZE else (10, 89.5, 0.2)
    training = {"seed": 1, "epochs": epochs, "window": 10, "min_count": 1}
    words, vectors = representations.word_vectors(texts, **training)
    counts = representations.counter(words).transform(texts)

    def accuracy(transformer):
        return folds(transformer.fit_transform(counts), y).mean()

    ours = accuracy(representations.fisher(vectors, 1))
    assert ours >= accurate
    assert ours >= folds(representations.averaged(counts, vectors), y).mean() + 0.2
    assert ours >= accuracy(representations.fisher_gaussian(vectors, 1)) + ahead
    # what is not centred helps
    assert ours >= accuracy(representations.fisher(vectors, 1, geometry="tangent")) + 1.0


@pytest.mark.parametrize(
    ("name", "gain", "low", "high"),
    [("med", 3, 49, 53), ("cran", 0.7, 27, 30)] if FULL_SIZE else [("med", 3, 49, 53)],
)
def test_fisher_vectors_add_to_bm25(data_folder, name, gain, low, high):
    pytest.importorskip("gensim")
    pytest.importorskip("bm25s")
    sizes = {"epochs": 40 if FULL_SIZE else 10, "models": ["FV-moVMF"]}
    precisions = retrieval(Setting(data_folder), name, **sizes)
    result = {title: np.mean(values[0]) for title, values in precisions.items()}
    assert low <= result["BM25"] <= high
    assert result["BM25 + FV-moVMF"] >= result["BM25"] + gain
    assert result["BM25 + FV-moVMF"] >= result["BM25 + cBow"] - 0.3
