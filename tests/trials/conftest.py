"""Data of new users."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from skvmf.datasets import load_docstrings


@pytest.fixture(scope="session")
def documents():
    """Return texts, their modules, the encoder of the guide and their float32 embeddings."""
    corpus = load_docstrings()
    encoder = make_pipeline(
        TfidfVectorizer(stop_words="english", min_df=5, max_df=0.3, sublinear_tf=True),
        TruncatedSVD(50, random_state=0),
    )
    X = encoder.fit_transform(corpus.data).astype(np.float32)
    return SimpleNamespace(texts=corpus.data, target=corpus.target, encoder=encoder, X=X)
