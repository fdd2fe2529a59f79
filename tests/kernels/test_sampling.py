"""The rejection sampler accepts with the right chance; its law is tested where it is public."""

import mpmath as mp
import numpy as np
import pytest

from skvmf._kernels import rows as kernels


class Script:
    """A generator that proposes z and draws u, and then what is accepted at once."""

    def __init__(self, dim, z, u):
        self.half, self.proposals, self.draws = (dim - 1) / 2, [z, 0.5], [u, 0.5]

    def beta(self, a, b):
        assert a == b == self.half
        return self.proposals.pop(0)

    def random(self):
        return 1 - self.draws.pop(0)


def proposal(dim, kappa, z):
    """Return the gap that Wood proposes for z, and the log of density over envelope there."""
    m, kappa, z = mp.mpf(dim - 1), mp.mpf(kappa), mp.mpf(z)
    b = m / (2 * kappa + mp.sqrt(4 * kappa**2 + m**2))
    below = 1 - (1 - b) * z
    gap = 2 * b * z / below
    density = -kappa * gap + (m / 2 - 1) * mp.log(gap * (2 - gap))
    envelope = (m / 2 - 1) * mp.log(z * (1 - z)) + 2 * mp.log(below) - mp.log(2 * b)
    return gap, density - envelope


@pytest.mark.parametrize("kappa", [0.3, 20.0, 1e6, 1e17, 1e150])
@pytest.mark.parametrize("dim", [2, 3, 50, 10**6])
@pytest.mark.parametrize("z", [0.02, 0.4, 0.4999, 0.501, 0.7, 0.98])
def test_accepts_with_the_chance_that_makes_the_law_exact(dim, kappa, z):
    """Density over envelope, over its largest value, which is that of z = 1/2."""
    plain = getattr(kernels.one_minus_cosines, "py_func", kernels.one_minus_cosines)
    with mp.workdps(200):
        gap, height = proposal(dim, kappa, z)
        safest, top = proposal(dim, kappa, 0.5)
        chance = float(mp.exp(height - top))
    assert 0 <= chance <= 1
    draws = [(0.9999999 * chance, gap), (min(1.0000001 * chance, 1), safest)]
    if not 1e-12 < chance < 1 - 1e-9:  # all are taken, or none
        draws = [(0.5, gap if chance > 0.5 else safest)]
    for u, expected in draws:
        out = np.empty(1)
        plain(Script(dim, z, 1 - (1 - u)), kappa, dim, out)
        assert out[0] == pytest.approx(float(expected), rel=1e-12)
