"""A few cases of every estimator, the same ones every time.

The long run, of other cases, takes an hour and prints the smallest code for every broken
promise: ``python -m tests.fuzz --cases 5000 --seed 1``, with ``--only`` and the name of an
estimator for one alone.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from ..conftest import CI
from .runs import check
from .strategies import STRATEGIES


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_promise_is_kept(name):
    @settings(
        max_examples=30 if CI else 4,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # the command finds the smallest code
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[name])
    def run(case):
        check(case)

    run()
