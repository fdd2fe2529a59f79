"""Grammars of the English Web Treebank: with its trees, and the time they take."""

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skvmf._kernels import inside_outside as charts
from skvmf.datasets import load_conllu
from skvmf.grammar import DependencyModelWithValence, attachment_score

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def treebank(data_folder):
    return load_conllu(data_folder / "en_ewt-ud-test.conllu.gz", tags="xpos", max_length=10)


def test_with_the_trees_the_model_parses_its_own_data(treebank):
    model = DependencyModelWithValence().fit(treebank.tags, treebank.heads)
    assert 0.68 <= attachment_score(treebank.heads, model.predict(treebank.tags)) <= 0.70


def process_time(function):
    """Return the median of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return sorted(times)[1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fifty_iterations_take_less_than_a_second_on_one_thread(treebank):
    model = DependencyModelWithValence(tol=0.0)
    model.fit(treebank.tags)
    with threadpool_limits(1):
        assert process_time(lambda: model.fit(treebank.tags)) < 1.0
    assert model.n_iter_ == 50


@pytest.mark.parametrize("length", [20, 40])
def test_time_grows_with_the_cube_of_the_length(length):
    def seconds(n, repeats):
        rng = np.random.default_rng(0)
        shapes = (32,), (32, 2, 2, 2), (32, 2, 32)
        rules = tuple(np.log(rng.dirichlet(np.ones(s[-1]), size=s[:-1])) for s in shapes)
        counts = tuple(map(np.zeros, shapes))
        tags, offsets = rng.integers(32, size=n * repeats), np.arange(0, n * repeats + 1, n)
        values = np.empty(repeats)
        arguments = tags, offsets, rules, False, counts, values
        return process_time(lambda: charts.inside_outside(*arguments)) / repeats

    seconds(4, 1)
    # Eight times as long, and sixteen if it grew with the fourth power.
    assert seconds(2 * length, 20) <= 11 * seconds(length, 160)
