"""BERTopic with a mixture, without UMAP, PyTorch and plotly: what its page says."""

import subprocess
import sys

import pytest

pytest.importorskip("bertopic", reason="needs BERTopic: pip install --no-deps bertopic")

SCRIPT = """
import sys
for name in {left_out}:
    sys.modules[name] = None
import numpy as np
from bertopic import BERTopic
from sklearn.feature_extraction.text import CountVectorizer
from skvmf import VonMisesFisherMixture
from skvmf.preprocessing import DirectionWhitener

rng = np.random.default_rng(0)
topics = ["ice puck goal", "butter pan oven", "moon orbit rocket"]
labels = np.repeat([0, 1, 2], [60, 50, 40])
texts = [" ".join(rng.permutation(topics[label].split())) for label in labels]
embeddings = 3 * np.eye(3, 8)[labels] + rng.normal(size=(150, 8))
model = BERTopic(
    umap_model=DirectionWhitener(),
    hdbscan_model=VonMisesFisherMixture(3, random_state=0),
    vectorizer_model=CountVectorizer(),
)
found, _ = model.fit_transform(texts, embeddings)
assert (np.array(found) == labels).mean() > 0.9, found  # topics are sorted by size
words = [set(word for word, _ in model.get_topic(k)[:3]) for k in range(3)]
assert words == [set(topic.split()) for topic in topics]
mixture = model.hdbscan_model
reduced = model.umap_model.transform(embeddings)
mixture.calibrate(reduced, random_state=0)
model.probabilities_ = mixture.probabilities_
shown = model.get_document_info(texts)["Probability"]
assert (shown == mixture.probabilities_).all()
topic_of = model.topic_mapper_.get_mappings()
components = sorted(set(topic_of) - {{-1}}, key=topic_of.get)
of_all_topics = mixture.predict_proba(reduced)[:, components]
assert (of_all_topics.argmax(axis=1) == found).all()
if "hdbscan" not in {left_out}:
    assert model.transform(texts[:5], embeddings[:5])[0] == found[:5]
"""


@pytest.mark.parametrize(
    "left_out",
    [
        ["umap", "plotly", "sentence_transformers"],
        ["umap", "hdbscan", "plotly", "sentence_transformers"],
    ],
)
def test_a_mixture_takes_the_place_of_hdbscan(left_out):
    script = SCRIPT.format(left_out=left_out)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
