"""The slow, obvious twins of maps and densities, with as many digits as it takes."""

import mpmath
import numpy as np

mpmath.mp.dps = 60


def numbers(values):
    """Return floats as numbers of many digits."""
    return [mpmath.mpf(float(value)) for value in values]


def entmax(z, alpha):
    """Return alpha-entmax of one vector.

    For alpha > 1 shares are (c (z - z_last) + v^c)^(1/c), where v is that of the last score with
    one: the share that this would have to give up for the sum to be 1, by bisection.
    """
    z, c = numbers(z), mpmath.mpf(float(alpha)) - 1
    top = max(z)
    if c == 0:
        powers = [mpmath.exp(score - top) for score in z]
        return [power / sum(powers) for power in powers]

    def shares(last, v):
        gaps = [c * (score - last) if score >= last else None for score in z]
        return [0 if gap is None else (gap + v**c) ** (1 / c) if gap else v for gap in gaps]

    last = min(score for score in z if sum(shares(score, mpmath.mpf(0))) < 1)
    low, high = mpmath.mpf(0), mpmath.mpf(1)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(shares(last, middle)) >= 1 else (middle, high)
    return shares(last, high)


def entmax_jacobian(z, alpha):
    """Return the derivatives of each share in each score; rows add up to zero."""
    slopes = [p ** (2 - mpmath.mpf(float(alpha))) if p else mpmath.mpf(0) for p in entmax(z, alpha)]
    jacobian = [[-a * b / sum(slopes) for b in slopes] for a in slopes]
    for i, row in enumerate(jacobian):
        row[i] = -sum(row[:i] + row[i + 1 :])
    return jacobian


def floats(values, dtype=np.float64):
    """Return numbers of many digits as an array, the largest where they are beyond a dtype."""
    limit = np.finfo(dtype).max
    return np.clip(np.array(values, dtype=object), -limit, limit).astype(dtype)
