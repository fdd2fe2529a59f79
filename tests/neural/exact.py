"""The slow, obvious twins of maps and densities, with as many digits as it takes."""

import mpmath
import numpy as np

from ..reference import make_tables

mpmath.mp.dps = 80


def numbers(values):
    """Return floats as numbers of many digits."""
    return [mpmath.mpf(float(value)) for value in values]


def entmax(z, alpha):
    z = numbers(z)
    if alpha != 1:
        return make_tables.entmax(z, mpmath.mpf(float(alpha)))[0]
    powers = [mpmath.exp(score - max(z)) for score in z]
    return [power / sum(powers) for power in powers]


def entmax_jacobian(shares, alpha):
    """Return the derivatives of each share in each score; rows add up to zero."""
    slopes = [p ** (2 - mpmath.mpf(float(alpha))) if p else mpmath.mpf(0) for p in shares]
    jacobian = [[-a * b / sum(slopes) for b in slopes] for a in slopes]
    for i, row in enumerate(jacobian):
        row[i] = -sum(row[:i] + row[i + 1 :])
    return jacobian


def floats(values, dtype=np.float64):
    """Return numbers of many digits as an array, the largest where they are beyond a dtype."""
    limit = np.finfo(dtype).max
    return np.clip(np.array(values, dtype=object), -limit, limit).astype(dtype)


class BetaGaussian:
    """The joint density of a vector by its formula, as functions of numbers of many digits."""

    def __init__(self, alpha, loc, scale):
        self.alpha, self.c = mpmath.mpf(float(alpha)), mpmath.mpf(float(alpha)) - 1
        self.loc, self.scale = loc, scale
        n, log_det = len(loc), 2 * sum(mpmath.log(s) for s in scale)
        if self.c:
            e = 1 / self.c
            gammas = mpmath.loggamma(mpmath.mpf(n) / 2 + e + 1) - mpmath.loggamma(e + 1)
            logs = gammas + e * mpmath.log(2 * e) - (n * mpmath.log(mpmath.pi) + log_det) / 2
            self.square = mpmath.exp(2 * logs / (n + 2 * e))  # of the radius
            self.shrinkage = self.square / (n + 2 + 2 * e)
        else:
            self.shrinkage = mpmath.mpf(1)
            self.log_peak = -(n * mpmath.log(2 * mpmath.pi) + log_det) / 2

    def log_prob(self, z):
        """Return the log-density, -inf outside the support."""
        squares = sum(((x - m) / s) ** 2 for x, m, s in zip(z, self.loc, self.scale, strict=True))
        if not self.c:
            return self.log_peak - squares / 2
        rest = self.c / 2 * (self.square - squares)
        return mpmath.log(rest) / self.c if rest > 0 else -mpmath.inf

    def negentropy(self):
        """Return (integral p^alpha - 1) / (alpha (alpha - 1)); that integral is alpha v."""
        if not self.c:
            return self.log_peak - mpmath.mpf(len(self.loc)) / 2
        return (self.alpha * self.shrinkage - 1) / (self.alpha * self.c)

    def divergence(self, loc, scale):
        """Return the mean score of the score's own less that of this, and entropies likewise."""
        other = BetaGaussian(self.alpha, loc, scale)

        def mean_score(bell):
            parts = zip(bell.loc, bell.scale, loc, scale, strict=True)
            return -sum(((m - a) ** 2 + bell.shrinkage * s**2) / b**2 for m, s, a, b in parts) / 2

        return mean_score(other) - other.negentropy() - mean_score(self) + self.negentropy()
