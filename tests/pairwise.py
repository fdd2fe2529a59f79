"""Few cases in which any two options meet, where all combinations would be many."""

from itertools import combinations, product

import pytest


def pairwise(**factors):
    """Parametrize a test by cases in which every two values of two factors meet.

    Of the pairs that have not met, each case takes the first, and for the other factors the
    values that meet most others anew.
    """
    values = [list(factor) for factor in factors.values()]
    return pytest.mark.parametrize(
        tuple(factors), [tuple(map(list.__getitem__, values, case)) for case in cover(values)]
    )


def cover(values):
    """Return cases, as the number of the value of each factor."""
    factors = [[(f, a) for a in range(len(factor))] for f, factor in enumerate(values)]
    missing = {pair for two in combinations(factors, 2) for pair in product(*two)}
    cases = []
    while missing:
        case = dict(min(missing))
        for f in set(range(len(factors))) - case.keys():
            news = [
                sum(tuple(sorted([choice, other])) in missing for other in case.items())
                for choice in factors[f]
            ]
            case[f] = news.index(max(news))
        missing -= set(combinations(sorted(case.items()), 2))
        cases.append([case[f] for f in range(len(factors))])
    return cases
