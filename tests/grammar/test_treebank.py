"""A grammar of the English Web Treebank, from its trees."""

import pytest

from skvmf.datasets import load_conllu
from skvmf.grammar import DependencyModelWithValence, attachment_score


@pytest.mark.slow
def test_with_the_trees_the_model_parses_its_own_data(data_folder):
    path = data_folder / "en_ewt-ud-test.conllu.gz"
    treebank = load_conllu(path, tags="xpos", max_length=10)
    model = DependencyModelWithValence().fit(treebank.tags, treebank.heads)
    assert 0.68 <= attachment_score(treebank.heads, model.predict(treebank.tags)) <= 0.70
