"""Pairwise covering leaves out no pair of options."""

from itertools import combinations

import pytest

from .pairwise import cover


@pytest.mark.parametrize("sizes", [(1, 1), (4, 3), (11, 7, 11), (2, 3, 4, 4), (2,) * 6])
def test_any_two_options_meet_in_few_cases(sizes):
    cases = cover([range(size) for size in sizes])
    for f, g in combinations(range(len(sizes)), 2):
        assert len({(case[f], case[g]) for case in cases}) == sizes[f] * sizes[g]
    largest, second = sorted(sizes)[:-3:-1]
    assert len(cases) <= 2 * largest * second
