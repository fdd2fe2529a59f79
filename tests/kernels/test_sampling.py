"""The rejection sampler: its law, its range, its stream."""

import numpy as np
import pytest
from scipy import stats

from skvmf._kernels import sampling as kernels
from skvmf.distributions.vonmises_fisher import mean_resultant_length, negentropy


def draw(dim, kappa, n, seed=0):
    out = np.empty(n)
    kernels.one_minus_cosines(np.random.default_rng(seed), kappa, dim, out)
    return out


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0, 30.0, 1e3, 1e12])
@pytest.mark.parametrize("dim", [2, 3, 10, 1000, 10**7])
def test_mean_and_variance(dim, kappa):
    gaps = draw(dim, kappa, 5000)
    assert gaps.min() >= 0 and gaps.max() <= 2
    q = mean_resultant_length(kappa, dim, complement=True)
    variance = 1 / negentropy(1 - q, dim, order=2, complement=q)
    assert abs(gaps.mean() - q) < 4.5 * np.sqrt(variance / len(gaps))
    assert gaps.var() == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("kappa", [0.01, 2.0, 50.0, 1e9])
def test_law_in_three_dimensions(kappa):
    """1 - m.x is an exponential variable cut off at 2."""
    law = stats.truncexpon(b=2 * kappa, scale=1 / kappa)
    assert stats.kstest(draw(3, kappa, 5000), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("kappa", [0.0, 0.5, 20.0])
def test_law_on_the_circle(kappa):
    angles = np.arccos(1 - draw(2, kappa, 5000))
    law = stats.vonmises(kappa) if kappa else stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angles, lambda x: 2 * (law.cdf(x) - 0.5)).pvalue > 1e-3


def test_seed_reproduces():
    assert (draw(5, 3.0, 50, seed=1) == draw(5, 3.0, 50, seed=1)).all()
    assert (draw(5, 3.0, 50, seed=1) != draw(5, 3.0, 50, seed=2)).any()


@pytest.mark.parametrize("dim", [2, 3, 50])
def test_same_stream_without_the_jit(dim):
    plain = getattr(kernels.one_minus_cosines, "py_func", kernels.one_minus_cosines)
    out = np.empty(200)
    plain(np.random.default_rng(3), 7.0, dim, out)
    assert out == pytest.approx(draw(dim, 7.0, 200, seed=3), rel=1e-12)


def test_one_signature():
    draw(3, 1.0, 1)
    if hasattr(kernels.one_minus_cosines, "signatures"):
        assert len(kernels.one_minus_cosines.signatures) == 1
