"""Responsibilities as features: a mixture as any step of a pipeline."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvmf import VonMisesFisherMixture

from .kinds import MIXTURES

SPARSE = [{"entmax_alpha": 2.0}, {"temperature": 0.0}]
X, CLUSTERS = make_blobs(120, centers=6 * np.eye(3), random_state=0)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_features_are_the_probabilities(mixture):
    fitted = mixture(3, random_state=0).fit(X)
    for rows in (X, X.astype(np.float32)):
        features = fitted.transform(rows)
        assert isinstance(features, np.ndarray)
        assert features.dtype == rows.dtype
        assert_array_equal(features, fitted.predict_proba(rows))
    name = mixture.__name__.lower()
    assert list(fitted.get_feature_names_out()) == [f"{name}{k}" for k in range(3)]


@pytest.mark.parametrize("options", SPARSE)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_features_with_exact_zeros_are_sparse_unless_frames_are_requested(mixture, options):
    fitted = mixture(3, random_state=0, **options).fit(X)
    features = fitted.transform(X)
    assert sparse.issparse(features)
    assert features.format == "csr"
    assert features.nnz < features.shape[0] * features.shape[1]
    assert_array_equal(features.toarray(), fitted.predict_proba(X))
    assert_array_equal(fitted.set_output(transform="pandas").transform(X), features.toarray())


def test_the_number_of_features_is_that_of_the_fit():
    fitted = VonMisesFisherMixture(3, random_state=0).fit(X).set_params(n_components=2)
    assert fitted.transform(X).shape == (120, 3)
    assert len(fitted.get_feature_names_out()) == 3


@pytest.mark.parametrize("options", [{}, *SPARSE])
def test_in_the_middle_of_a_pipeline(options):
    y = CLUSTERS == 1
    mixture = VonMisesFisherMixture(3, random_state=0, **options)
    pipeline = make_pipeline(StandardScaler(with_mean=False), mixture, LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.95
    assert len(pipeline[:-1].get_feature_names_out()) == 3
