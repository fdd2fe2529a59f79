"""Rejection sampling of the cosine between a von Mises-Fisher vector and its mean direction."""

import math

from ._jit import kernel


@kernel
def one_minus_cosines(rng, kappa, dim, out):
    """Set out to draws of 1 - m.x for x von Mises-Fisher about m.

    Ulrich (1984) with the envelope of Wood (1994), in quantities that do not cancel: 1 - m.x
    keeps its digits when kappa is large. At least two in three proposals are accepted.
    """
    m = dim - 1.0
    b = m / (2.0 * kappa + math.sqrt(4.0 * kappa * kappa + m * m))
    x0 = (1.0 - b) / (1.0 + b)
    level = kappa * x0 + m * math.log(4.0 * b / ((1.0 + b) * (1.0 + b)))
    for i in range(len(out)):
        accepted = False
        while not accepted:
            z = rng.beta(0.5 * m, 0.5 * m)
            u = 1.0 - rng.random()  # never zero
            below = 1.0 - (1.0 - b) * z
            gap = min(2.0 * b * z / below, 2.0)
            bound = kappa * (1.0 - gap) + m * math.log(2.0 * b / ((1.0 + b) * below))
            accepted = bound - level >= math.log(u)
        out[i] = gap
