"""A few cases of every estimator, the same ones every time; FUZZ_FACTOR multiplies their number.

The long run, of other cases, takes an hour and prints the smallest code for every broken
promise: ``python -m tests.fuzz --cases 5000 --seed 1``, with ``--only`` and the name of an
estimator for one alone, and ``--promises 6`` for a quicker look at more cases.
"""

import re

import pytest
from hypothesis import given

from ..conftest import fuzzing
from . import GrammarCase, check
from .__main__ import explore
from .strategies import STRATEGIES

QUICK = {"DependencyModelWithValence": 10}  # whose cases take so much less time


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_promise_is_kept(name):
    @fuzzing(2 * QUICK.get(name, 1))
    @given(STRATEGIES[name])
    def run(case):
        check(case)

    run()


def test_the_command_prints_the_smallest_code_for_each_broken_promise(monkeypatch, capsys):
    def sentences_are_short(case):
        if case.sentences.longest >= 12:
            raise AssertionError("a long sentence")

    def tolerances_are_small(case):
        if case.params.get("tol") == 1:
            raise AssertionError("a large tolerance")

    monkeypatch.setattr(GrammarCase, "subject", lambda case: case)  # without a fit
    monkeypatch.setattr(GrammarCase, "promises", [sentences_are_short, tolerances_are_small])
    printed = []
    for _ in range(2):
        assert explore("DependencyModelWithValence", 60, seed=0) == 2
        printed.append(re.sub(r"\d+ s$", "", capsys.readouterr().out, flags=re.MULTILINE))
    assert printed[0] == printed[1]
    assert "===== DependencyModelWithValence: 60 cases" in printed[0]
    codes = re.findall(r"^check\((.*)\)$", printed[0], re.MULTILINE)
    assert all("n=1, n_tags=1" in code for code in codes)
    least = [("params={}", "longest=12"), ("params={'tol': 1.0}", "longest=5")]
    for params, longest in least:
        assert sum(params in code and longest in code for code in codes) == 1
