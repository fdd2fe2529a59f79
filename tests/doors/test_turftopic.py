"""Turftopic with a mixture as its clustering: what the page on BERTopic says."""

import inspect

import numpy as np
import pytest

from skvmf import VonMisesFisherMixture
from skvmf.preprocessing import DirectionWhitener

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Turftopic's imports
turftopic = pytest.importorskip("turftopic", reason="needs Turftopic: pip install turftopic")


class NoEncoder:
    def encode(self, texts):
        raise AssertionError("embeddings are given")


def test_a_mixture_is_the_clustering():
    rng = np.random.default_rng(0)
    topics = ["ice puck goal", "butter pan oven", "moon orbit rocket"]
    labels = np.repeat([0, 1, 2], [60, 50, 40])
    texts = [" ".join(rng.permutation(topics[label].split())) for label in labels]
    embeddings = 3 * np.eye(3, 8)[labels] + rng.normal(size=(150, 8))
    model = turftopic.ClusteringTopicModel(
        encoder=NoEncoder(),
        dimensionality_reduction=DirectionWhitener(),
        clustering=VonMisesFisherMixture(3, random_state=0),
    )
    assert model.fit_transform(texts, embeddings=embeddings).shape == (150, 3)
    for topic, label in zip(topics, model.labels_[[0, 60, 110]], strict=True):
        words = model.get_vocab()[np.argsort(-model.components_[label])[:3]]
        assert set(words) == set(topic.split())


def test_its_mixture_is_none_to_be_replaced():
    assert "clustering" not in inspect.signature(turftopic.GMM).parameters
