"""Free concentrations in many dimensions: warn of a broad component that swallows the rest."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings

MESSAGE = "by far the broadest"


@pytest.fixture(scope="module")
def texts():
    """Docstrings, by latent semantic analysis."""
    words = TfidfVectorizer(min_df=3, max_df=0.3, sublinear_tf=True, stop_words="english")
    return TruncatedSVD(64, random_state=0).fit_transform(
        words.fit_transform(load_docstrings().data)
    )


def clusters(seed, alpha, lengths, n=3000, d=64, K=20):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(K, d))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.choice(K, size=n, p=rng.dirichlet(np.full(K, alpha)))
    L = rng.uniform(*lengths, size=K)[labels, None]
    return L * means[labels] + rng.normal(size=(n, d)) * np.sqrt((1 - L**2) / d)


def warned(X, **params):
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("always")
        VonMisesFisherMixture(20, random_state=0, **params).fit(X)
    return any(MESSAGE in str(w.message) for w in result if w.category is not ConvergenceWarning)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0, 1.0])
def test_texts_with_concentrations_of_their_own(texts, prior):
    assert warned(texts, concentration_prior=prior)


@pytest.mark.parametrize("params", [{}, {"concentration_type": "tied"}, {"init_params": "kmeans"}])
def test_texts_with_pooled_concentrations(texts, params):
    assert not warned(texts, **params)


@pytest.mark.parametrize("alpha", [5.0, 1.0, 0.3])
@pytest.mark.parametrize("lengths", [(0.6, 0.6), (0.4, 0.8)])
def test_clusters_however_unequal(alpha, lengths):
    assert not warned(clusters(0, alpha, lengths), concentration_prior=0)


def test_the_message_says_what_to_do():
    rng = np.random.default_rng(0)
    X = np.vstack([clusters(0, 5.0, (0.8, 0.8)), rng.normal(size=(2000, 64))])
    mixture = VonMisesFisherMixture(21, concentration_prior=0, random_state=0)
    with pytest.warns(UserWarning, match=r"holds 4\d% .*='tied' or a larger .* background=True"):
        mixture.fit(X)
    assert not warned(X, background=True)
