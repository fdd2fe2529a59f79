"""Families of the package, of the pages for contributors and broken ones under `check_family`."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from skvmf._engine.families.covariance import COVARIANCE_TYPES
from skvmf._engine.families.gaussian import Gaussian
from skvmf._engine.families.responsibilities import DenseResponsibilities
from skvmf._engine.families.student_t import StudentT
from skvmf._engine.families.vonmises_fisher import VonMisesFisher
from skvmf._engine.rows.blocks import DenseBlock
from skvmf.families import Scores, as_dense
from skvmf.testing import check_family

FAMILIES = [
    *(VonMisesFisher(dim) for dim in (2, 300)),
    VonMisesFisher(5, tied=True),
    VonMisesFisher(5, method="newton"),
    VonMisesFisher(5, prior_strength=1.0),
    *(Gaussian(3, kind) for kind in COVARIANCE_TYPES),
    *(StudentT(3, kind, tied=kind == "diag") for kind in COVARIANCE_TYPES),
    StudentT(3, "full", degrees_of_freedom=1.0, estimated=False),
]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_families_of_the_package_pass(family):
    check_family(family)


def test_a_family_is_checked_on_given_rows():
    check_family(VonMisesFisher(3), np.random.default_rng(0).normal(size=(200, 3)))


@pytest.mark.parametrize("dim", [2, 20])
def test_families_of_the_pages_for_contributors_pass(page, dim):
    check_family(page("watson").Watson(dim))
    check_family(page("watson").Watson(dim, tied=True))
    check_family(page("spherical_cauchy").SphericalCauchy(dim))


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_the_density_of_the_spherical_cauchy_has_an_integral_of_one(page, dim):
    module, rng = page("spherical_cauchy"), np.random.RandomState(0)
    family = module.SphericalCauchy(dim)
    centre = np.full((1, dim), 0.4 / np.sqrt(dim))
    X = rng.normal(size=(200_000, dim))
    block = type("Block", (), {"X": X, "scales": 1 / np.linalg.norm(X, axis=1)})
    scores = family.scores(block, module.CauchyComponents(centre)).log_density()
    assert abs(np.exp(scores - family.zero_row_log_density).mean() - 1) < 0.02
    # The inverse Moebius transformation makes samples uniform again: their mean is zero.
    own = family.sample(module.CauchyComponents(centre), np.array([200_000]), rng)
    stretch = (1 - (centre**2).sum()) / ((own - centre) ** 2).sum(axis=1)
    assert np.abs((stretch[:, None] * (own - centre) - centre).mean(axis=0)).max() < 0.01


class ForgottenScale(VonMisesFisher):
    """Adds responsibilities without their rows, and does not divide by the scale."""

    def moments(self, block, responsibilities, components, cache=None):
        moments = super().moments(block, responsibilities, components, cache)
        return (*moments, as_dense(responsibilities, len(components)).sum(axis=0))


class SquaredLength(VonMisesFisher):
    def scores(self, block, components):
        scores = super().scores(block, components)
        return Scores(scores.log_density() / block.scales[:, None], scores.bias)


class Overshooting(VonMisesFisher):
    def maximize(self, stats, components):
        better, broken = super().maximize(stats, components)
        return self.from_natural(better.directions.T, 9 * better.concentrations), broken


class CountedTwice(VonMisesFisher):
    def moments(self, block, responsibilities, components, cache=None):
        moments = super().moments(block, responsibilities, components, cache)
        return (moments[0] + 1, *moments[1:])


class GainingMerges(VonMisesFisher):
    def merge_cost(self, stats, components, parts):
        cost = super().merge_cost(stats, components, parts)
        own = cost.losses
        cost.losses = lambda i, parts=slice(None): own(i, parts) - 1e3
        return cost


class OffPeak(VonMisesFisher):
    def proposal(self):
        proposal = super().proposal()
        return replace(proposal, seeds=LowPeaks(self.dim, tied=True))


class LowPeaks(VonMisesFisher):
    def peaks(self, components):
        return super().peaks(components) - 1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ForgottenScale, "Responsibilities carry the scale of the row: divide by it"),
        (SquaredLength, "scores without the rows' lengths"),
        (Overshooting, "lowers the bound"),
        (CountedTwice, "is the sum over the rows"),
        (GainingMerges, "a merge cannot gain"),
        (OffPeak, "peaks"),
    ],
)
def test_broken_families_are_found(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_family(kind(4))


class Inflated(Gaussian):
    factor = 1.1

    def moments(self, block, responsibilities, components, cache=None):
        first, second = super().moments(block, responsibilities, components, cache)
        return first, self.factor * second


def test_a_second_moment_with_a_wrong_factor_is_found_where_the_bound_never_falls():
    with pytest.raises(AssertionError, match=r"beside those where steps end fit .* a factor"):
        check_family(Inflated(3, "full"))


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
@pytest.mark.parametrize("factor", [1.1, 1.02])
def test_second_moments_with_a_wrong_factor_are_found(kind, factor, monkeypatch):
    monkeypatch.setattr(Inflated, "factor", factor)
    with pytest.raises(AssertionError, match=r"beside those where steps end|lowers the bound"):
        check_family(Inflated(3, kind))


def test_a_scatter_matrix_with_a_wrong_factor_is_found(page):
    class Shrunk(page("watson").Watson):
        def moments(self, block, responsibilities, components, cache=None):
            (scatter,) = super().moments(block, responsibilities, components, cache)
            return (0.9 * scatter,)

    with pytest.raises(AssertionError, match=r"beside those where steps end|lowers the bound"):
        check_family(Shrunk(4))


def test_a_class_or_anything_else_in_place_of_a_family_is_refused():
    with pytest.raises(TypeError, match=r"not its class: check_family\(VonMisesFisher\(dim\)\)"):
        check_family(VonMisesFisher)
    with pytest.raises(TypeError, match=r"derives from skvmf\.families\.Family, not one of str"):
        check_family("vonmises-fisher")


@pytest.mark.parametrize("sharpness", [1.0, 30.0])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_sums_of_many_features_are_those_of_all_responsibilities(sharpness, offset):
    """Whether few components or all have a share in a row, and one has next to none in any."""
    rng = np.random.default_rng(0)
    K, d = 8, 40
    X = rng.normal(size=(500, d)) + offset
    resp = softmax(sharpness * rng.normal(size=(500, K)), axis=1)
    resp[:, 0] *= 1e-30
    family = Gaussian(d, "full")
    components = family.from_centres(rng.normal(size=(K, d)) + offset)
    block = DenseBlock(X, np.ones(500), None, 0)
    first, second = family.moments(block, DenseResponsibilities(resp), components)
    gaps = X[:, None] - components.centred_at
    assert_allclose(first, np.einsum("nk,nkd->kd", resp, gaps), rtol=1e-9, atol=1e-14 * offset)
    expected = np.einsum("nk,nki,nkj->kij", resp, gaps, gaps)
    sizes = np.sqrt(np.einsum("kii->ki", expected))
    assert (np.abs(second - expected) < 1e-12 * sizes[:, :, None] * sizes[:, None]).all()
