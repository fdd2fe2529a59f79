"""Toponymy and datamapplot with the cuts of a path: the code of their page."""

import re

import numpy as np
import pytest

from skvmf import ComponentPath, VonMisesFisherMixture

from ..conftest import ROOT

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # those of their imports
TOPICS = ["ice puck goal", "butter pan oven", "moon orbit rocket", "court judge law"]


def code(package):
    """Return the code of the page that imports a package."""
    page = (ROOT / "doc" / "user_guide" / "toponymy.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page)
    [block] = [own for own in blocks if f"import {package}\n" in own or f"from {package} " in own]
    return re.sub("^   ", "", block, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def topics():
    """Return texts of four topics, their embeddings, a path and its cuts, by the page's names."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), [60, 50, 40, 30])
    texts = [" ".join(rng.permutation(TOPICS[label].split())) for label in labels]
    X = 3 * np.eye(4, 8)[labels] + rng.normal(size=(180, 8))
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=8).fit(X)
    layers = [path.cut(n) for n in (4, 2)]
    return {"texts": texts, "X": X, "path": path, "layers": layers, "plane": X[:, :2]}


def test_toponymy_names_the_cuts_of_a_path(topics):
    toponymy = pytest.importorskip("toponymy", reason="needs Toponymy: pip install toponymy")

    class Answers(toponymy.llm_wrappers.LLMWrapper):
        """Names a cluster without a language model."""

        def _call_llm(self, prompt, temperature, max_tokens):
            counts = [sum(map(prompt["user"].count, topic.split())) for topic in TOPICS]
            name = TOPICS[int(np.argmax(counts))]
            return f'{{"topic_name": "{name}", "topic_specificity": 0.5}}'

        _call_llm_with_system_prompt = _call_llm

    class Encoder:
        """Embeds keyphrases by the topic of their words."""

        def encode(self, texts, **options):
            return np.array([[word in text for word in TOPICS] + [1] * 4 for text in texts], float)

    names = topics | {"llm_wrapper": Answers(), "encoder": Encoder()}
    exec(code("toponymy"), names)
    found = names["model"].topic_names_
    assert [len(layer) for layer in found] == [4, 2]
    assert set(found[0]) == set(TOPICS)


def test_datamapplot_shows_the_names_of_the_cuts(topics, tmp_path, monkeypatch):
    pytest.importorskip("datamapplot", reason="needs datamapplot: pip install datamapplot")
    monkeypatch.chdir(tmp_path)
    names = dict(topics)
    exec(code("datamapplot"), names)
    # The page keeps its labels compressed, so what it is given is looked at.
    found = set(names["named"](topics["layers"][0]))
    assert all(
        any(set(topic.split()) & set(re.findall(r"\w+", own)) for own in found) for topic in TOPICS
    )
    assert (tmp_path / "map.html").stat().st_size > 1e4
