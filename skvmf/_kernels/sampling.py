"""Rejection sampling of the cosine between a von Mises-Fisher vector and its mean direction."""

import math

from ._jit import kernel

MAKES_ARRAYS = True


@kernel
def one_minus_cosines(rng, kappa, dim, out):
    """Set out to draws of 1 - m.x for x von Mises-Fisher about m.

    Ulrich (1984) with the envelope of Wood (1994), in quantities that do not cancel, however
    large kappa is. A proposal is the gap 2 b z / below, with below = 1 - (1 - b) z and z from a
    beta distribution; z = 1/2 is the one that is never refused, and in s = 2 z - 1 the logarithm
    of the chance of acceptance is m log(1 + (1 - b) s / (2 below)) - 2 b kappa s / ((1 + b) below).
    """
    m = dim - 1.0
    b = m / (2.0 * kappa + math.sqrt(4.0 * kappa * kappa + m * m))
    pull = 2.0 * b * kappa / (1.0 + b)
    for i in range(len(out)):
        accepted = False
        while not accepted:  # two in three are
            z = rng.beta(0.5 * m, 0.5 * m)
            u = 1.0 - rng.random()  # never zero
            below = max(1.0 - (1.0 - b) * z, b)
            s = (2.0 * z - 1.0) / below
            accepted = m * math.log1p(0.5 * (1.0 - b) * s) - pull * s >= math.log(u)
            out[i] = min(2.0 * b * z / below, 2.0)
