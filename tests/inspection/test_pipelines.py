"""What inspects mixtures takes pipelines that end with one, in the columns of the first step."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skvmf import ComponentPath, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.inspection import component_stability, component_summary, membership_reliability

TEXTS = ["the puck is on the ice", "ice and a goal", "melt butter in a pan", "a pan of butter"] * 9
X = np.random.default_rng(0).normal(size=(90, 2)) * [1, 1e3] + np.repeat([[0, 0], [9, 9e3]], 45, 0)


def test_a_pipeline_of_texts_is_summarized_from_texts():
    pipeline = make_pipeline(TfidfVectorizer(), VonMisesFisherMixture(2, random_state=0))
    pipeline.fit(TEXTS)
    summary = component_summary(pipeline, TEXTS, texts=TEXTS)
    rows = pipeline[:-1].transform(TEXTS)
    names = pipeline[0].get_feature_names_out()
    same = component_summary(pipeline[-1], rows, texts=TEXTS, feature_names=names)
    assert summary.words == same.words
    assert summary.features == same.features
    assert str(summary) == str(same)


def test_features_of_a_frame_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["length", "weight"])
    mixture = SparseGaussianMixture(2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), mixture).fit(frame)
    summary = component_summary(pipeline, frame)
    assert {name.lstrip("+-") for name in summary.features[0]} == {"length", "weight"}
    assert component_summary(pipeline).features == summary.features
    path = make_pipeline(StandardScaler(), ComponentPath(mixture, max_components=4)).fit(frame)
    assert len(component_summary(path, frame).labels) == path[-1].best_n_components_


def test_steps_that_name_nothing_and_pipelines_of_a_mixture_alone():
    mixture = SparseGaussianMixture(2, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(np.abs), mixture).fit(X)
    assert component_summary(pipeline, X).features is None
    alone = make_pipeline(mixture).fit(X)
    assert str(component_summary(alone, X)) == str(component_summary(alone[-1], X))


def test_stability_of_a_pipeline_is_that_of_its_mixture():
    pipeline = make_pipeline(StandardScaler(), SparseGaussianMixture(2, random_state=0)).fit(X)
    options = {"n_resamples": 3, "random_state": 0}
    result = component_stability(pipeline, X, **options)
    expected = component_stability(pipeline[-1], pipeline[:-1].transform(X), **options)
    assert_array_equal(result.rows, expected.rows)
    assert_array_equal(result.components, expected.components)


def test_memberships_of_a_pipeline_are_those_of_its_mixture():
    pipeline = make_pipeline(StandardScaler(), SparseGaussianMixture(2, random_state=0)).fit(X)
    options = {"n_resamples": 2, "random_state": 0}
    result = membership_reliability(pipeline, X, **options)
    expected = membership_reliability(pipeline[-1], pipeline[:-1].transform(X), **options)
    assert_array_equal(result.before.prob_true, expected.before.prob_true)


def test_a_pipeline_without_a_fit_is_refused():
    pipeline = make_pipeline(StandardScaler(), SparseGaussianMixture(2))
    with pytest.raises(NotFittedError):
        component_summary(pipeline, X)
