"""A few cases of every estimator, the same ones every time."""

import inspect
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import skvmf
from skvmf.grammar import DependencyModelWithValence
from tests import fuzz

from . import Data, MixtureCase, check
from .known import known
from .runs import Refused, failures, refusing
from .shrinking import smallest
from .strategies import FISHER_VECTORS, GRAMMAR, MIXTURES, STRATEGIES

QUICKLY = settings(
    max_examples=50,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", STRATEGIES)
def test_promises_are_kept(name):
    @QUICKLY
    @given(STRATEGIES[name])
    def run(case):
        news = [failure for failure in failures(case) if known(failure) is None]
        if news:
            check(smallest(case, news[0], n_steps=50)[0])

    run()


GIVEN_OTHERWISE = {"mixture", "embeddings", "gradients", "tags", "n_components"}


@pytest.mark.parametrize(
    "kind, options",
    [
        *[(getattr(skvmf, name), options) for name, options in MIXTURES.items()],
        (skvmf.FisherVectorTransformer, FISHER_VECTORS),
        (DependencyModelWithValence, GRAMMAR),
    ],
)
def test_every_parameter_is_varied(kind, options):
    varied = set(options) | GIVEN_OTHERWISE
    assert set(inspect.signature(kind).parameters) <= varied


@dataclass(frozen=True)
class _Case(MixtureCase):
    """A case whose only promise is about itself."""

    @property
    def promises(self):
        return [is_no_grid]

    def subject(self):
        if self.data.n == 1:
            raise Refused("one row is too few")
        return self


def is_no_grid(case):
    warnings.warn("did not reach tol", UserWarning, stacklevel=1)  # a documented one
    if case.data.kind == "grid":
        warnings.warn(f"a grid of {case.data.n} rows", UserWarning, stacklevel=1)


def test_a_broken_promise_is_reported_with_the_smallest_code():
    case = _Case("x", {"n_components": 4, "tol": 0.0}, Data("grid", n=33, d=5, scale=1e9))
    (failure,) = failures(case)
    assert failure.promise == "is_no_grid"
    assert failure.message == "UserWarning: a grid of 33 rows"
    smaller, same = smallest(case, failure, n_steps=100)
    assert same.key == failure.key
    assert smaller == _Case("x", {}, Data("grid", n=2, d=2))
    with pytest.raises(AssertionError, match=r"check\(_Case.*Data\(kind='grid', n=33"):
        check(case)


def test_what_is_refused_or_keeps_its_promises_is_no_failure():
    refusals = Counter()
    assert failures(_Case("x", data=Data(n=1)), refusals) == []
    assert refusals == {"one row is too few": 1}
    assert failures(_Case("x")) == []


def test_errors_of_other_libraries_are_no_refusals():
    with pytest.raises(ValueError, match="operands"):
        refusing(np.add, np.ones(2), np.ones(3))
    with pytest.raises(Refused, match="n_components"):
        refusing(skvmf.SparseGaussianMixture(3).fit, [[1.0]])


@pytest.mark.parametrize("name", STRATEGIES)
def test_code_makes_the_case_again(name):
    names = vars(fuzz) | {"check": lambda case: case}

    @settings(QUICKLY, max_examples=5)
    @given(STRATEGIES[name])
    def run(case):
        assert eval(case.code().splitlines()[-1], names) == case

    run()
