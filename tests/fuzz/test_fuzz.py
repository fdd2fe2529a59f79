"""A few cases of every estimator, the same ones every time; FUZZ_CASES says how many.

The long run, of other cases, takes an hour and prints the smallest code for every broken
promise: ``python -m tests.fuzz --cases 5000 --seed 1``, with ``--only`` and the name of an
estimator for one alone, and ``--promises 6`` for a quicker look at more cases.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ..conftest import FULL_SIZE
from .runs import check
from .strategies import STRATEGIES

CASES = int(os.environ.get("FUZZ_CASES", 15 if FULL_SIZE else 2))
QUICK = {"DependencyModelWithValence": 10}  # whose cases take so much less time


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_promise_is_kept(name):
    @settings(
        max_examples=CASES * QUICK.get(name, 1),
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # the command finds the smallest code
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[name])
    def run(case):
        check(case)

    run()
