"""Contracts are kept: a part with something missing is refused by name, and statistics move."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from skvmf._engine import contracts
from skvmf._engine.contracts import DenseResponsibilities, Params, Statistics
from skvmf._engine.em import run_em
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.model import (
    Background,
    FenchelYoungPosterior,
    Mixture,
    ModifiedDirichlet,
)
from skvmf._engine.rows import RowSource, make_rows
from skvmf._engine.student_t import StudentT
from skvmf._engine.vonmises_fisher import VonMisesFisher

PARTS = [
    contracts.Family,
    RowSource,
]


@pytest.mark.parametrize("contract", PARTS)
def test_a_part_with_a_method_missing_cannot_be_made(contract):
    for missing in contract.__abstractmethods__:
        names = {
            name: property(lambda self: 0)
            for name in contract.__abstractmethods__
            if name != missing
        }
        part = type("Part", (contract,), names)
        with pytest.raises(TypeError, match=missing):
            part()
    whole = type("Part", (contract,), dict.fromkeys(contract.__abstractmethods__))
    whole()


def model(**parts):
    parts = {
        "family": Gaussian(2, "full"),
        "posterior": FenchelYoungPosterior(),
        "weight_prior": ModifiedDirichlet(),
    } | parts
    return Mixture(**parts)


def families():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + [5, 0, 0]
    tight = np.eye(1, 3) + 1e-6 * rng.normal(size=(60, 3))
    for kind in ("full", "tied", "diag", "spherical"):
        family = Gaussian(3, kind)
        yield f"Gaussian {kind}", family, X, family.from_centres(X[:2]), X[2:4] + 0.5
        family = StudentT(3, kind)
        yield f"Student-t {kind}", family, X, family.from_centres(X[:2]), X[2:4] + 0.5
    family = VonMisesFisher(3)
    some = family.from_natural(np.eye(2, 3), np.array([3.0, 4.0]))
    yield "directions", family, X, some, None
    some = family.from_natural(tight[:2], np.array([1e11, 3.0]))
    yield "tight directions", family, tight, some, tight[2:4]


@pytest.mark.bits
@pytest.mark.parametrize("case", families(), ids=lambda case: case[0])
def test_statistics_move_from_one_origin_to_another(case):
    _, family, X, components, points = case
    rows = make_rows(X, None, unit=isinstance(family, VonMisesFisher))
    resp = np.random.default_rng(1).dirichlet([1, 1], size=60)

    def statistics(about):
        block = rows.map_reduce(lambda block: block)
        responsibilities = DenseResponsibilities(resp * block.factors[:, None])
        moments, origins = family.moments(block, responsibilities, about), family.origins(about)
        return Statistics(0.0, 60.0, resp.sum(axis=0), moments, origins)

    here = statistics(components)
    elsewhere = components
    if points is not None and isinstance(family, VonMisesFisher):
        elsewhere = family.from_natural(points, np.array([1e11, 1e11]))
    elif points is not None:
        elsewhere = family.from_centres(points)
    there = family.origins(elsewhere)
    assert (there is None) == (points is None)
    moved = family.recenter(here, there)
    if points is not None:
        expected = statistics(elsewhere)
        for a, b in zip(moved.moments, expected.moments, strict=True):
            size = np.full(b.shape, max(1e-9 * np.abs(b).max(), 1e-15))
            if isinstance(family, VonMisesFisher) and b.ndim == 1:
                # Not by chords 1 - m.x is counts - m.sums, known up to the rounding of counts.
                loose = np.isnan(here.origins[:, 0])
                size[loose] = 4 * np.spacing(here.counts[loose])
            assert (np.abs(a - b) <= 1e-6 * np.abs(b) + size).all()
        assert_array_equal(moved.origins, expected.origins)
    fresh, _ = family.maximize(moved, components)
    plain, _ = family.maximize(here, components)
    assert_allclose(family.centres(fresh), family.centres(plain), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", families(), ids=lambda case: case[0])
def test_a_family_leaves_what_it_is_given_as_it_is(case):
    _, family, X, components, _ = case
    rows = make_rows(X, None, unit=isinstance(family, VonMisesFisher))
    params = Params.first(np.full(2, 0.5), components)
    whole = model(family=family)
    stats = rows.map_reduce(partial(whole.expect, params))
    before = [moment.copy() for moment in stats.moments], stats.counts.copy()
    first = family.maximize(stats, components)[0]
    assert all(map(np.array_equal, stats.moments, before[0]))
    assert_array_equal(stats.counts, before[1])
    again = family.maximize(stats, components)[0]
    assert_array_equal(family.centres(again), family.centres(first))


def test_statistics_of_heavier_rows_are_scaled():
    X = np.random.default_rng(0).normal(size=(50, 2))
    weights = np.random.default_rng(1).uniform(1, 2, size=50)
    params = Params.first(np.full(2, 0.5), Gaussian(2, "full").from_centres(X[:2]))
    plain, heavy = (
        make_rows(X, factor * weights, unit=False).map_reduce(partial(model().expect, params))
        for factor in (1.0, 3.0)
    )
    scaled = plain.scaled(3.0)
    assert_allclose([scaled.value, scaled.total], [heavy.value, heavy.total])
    for mine, theirs in zip(
        (scaled.counts, *scaled.moments), (heavy.counts, *heavy.moments), strict=True
    ):
        assert_allclose(mine, theirs)


# A background has a weight and no parameters.


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_background_takes_the_rows_that_no_component_explains(temperature):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 2)), rng.uniform(-20, 20, size=(100, 2))])
    rows = make_rows(X, None, unit=False)
    family = Gaussian(2, "full")
    log_density = -np.log(40.0**2)
    posterior = FenchelYoungPosterior(temperature=temperature)
    with_background = model(
        family=family, posterior=posterior, background=Background((log_density,))
    )
    params = Params.first(np.array([0.5, 0.5]), family.from_centres(np.zeros((1, 2))))
    stats = rows.map_reduce(partial(with_background.expect, params))
    own = family.scores(rows.map_reduce(lambda block: block), params.components).log_density()
    joint = np.column_stack([own, np.full(400, log_density)]) + np.log(0.5)
    value = joint.max(axis=1) if temperature == 0 else logsumexp(joint, axis=1)
    assert_allclose(stats.value, value.sum(), rtol=1e-12)
    assert stats.counts.shape == (2,)
    assert stats.moments[0].shape == (1, 2)
    result = run_em(with_background, rows, params, max_iter=100, tol=1e-9)
    assert (np.diff(result.bounds) >= -1e-12).all()
    assert_allclose(result.params.weights, [0.75, 0.25], atol=0.02)
    assert_allclose(result.params.components.covariances[0], np.eye(2), atol=0.2)


@pytest.mark.parametrize(
    ("log_density", "prior", "weights"),
    [(-1e4, ModifiedDirichlet(), [1, 0]), (-8.0, ModifiedDirichlet(-5, 0.1), [0.9, 0.1])],
)
def test_a_background_without_rows_is_left_or_rests_on_the_floor(log_density, prior, weights):
    X = np.random.default_rng(0).normal(size=(100, 2))
    rows, family = make_rows(X, None, unit=False), Gaussian(2, "full")
    params = Params.first(np.array([0.5, 0.5]), family.from_centres(np.zeros((1, 2))))
    whole = model(family=family, background=Background((log_density,)), weight_prior=prior)
    result = run_em(whole, rows, params, max_iter=50, tol=0)
    assert_allclose(result.params.weights, weights)
    assert not result.params.reseeded.any()
    if weights[1] == 0:
        alone = Params.first(np.ones(1), family.from_centres(np.zeros((1, 2))))
        plain = run_em(model(family=family), rows, alone, max_iter=50, tol=0)
        assert_allclose(result.bounds[-1], plain.bounds[-1], rtol=1e-12)
