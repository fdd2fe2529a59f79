"""Kernels do not grow unnoticed."""

import pytest

from . import instructions

GROWTH = 1.1


@pytest.mark.slow
def test_kernels_take_no_more_instructions_than_recorded():
    """Where they do for a reason, record them again: python -m tests.kernels.instructions."""
    reason = instructions.why_not()
    if reason:
        pytest.skip(reason)
    recorded = instructions.recorded()["counts"]
    growth = {name: n / recorded[name] for name, n in instructions.count().items()}
    assert {name: by for name, by in growth.items() if by > GROWTH} == {}


def test_every_kernel_that_is_counted_is_recorded():
    assert set(instructions.recorded()["counts"]) == set(instructions.calls())


def test_the_work_of_a_grammar_grows_with_the_cube_of_the_length():
    counts = instructions.recorded()["counts"]
    short, middle, long = (counts[f"inside_outside n={n}"] for n in (20, 40, 80))
    assert middle < 8 * short  # less, as long as what grows with the square counts
    assert long < 8 * middle
