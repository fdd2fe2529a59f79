"""The slow, obvious twins of the posterior kernels, in float64."""

import numpy as np
from scipy.special import ive


def shifted_scores(scores, slopes, offsets):
    """z = slopes[n] * scores[n] + offsets."""
    return np.asarray(slopes, float)[:, None] * np.asarray(scores, float) + offsets


def softmax(z, floor=-60):
    """Softmax of one vector, with the kernels' cut: nothing below exp(floor) of the largest."""
    powers = np.where(z - z.max() > floor, np.exp(z - z.max()), 0.0)
    return powers / powers.sum()


def log_sum_exp(z):
    return z.max() + np.log(np.exp(z - z.max()).sum())


def add_labelled_rows(X, labels, factors, out):
    """out[labels[n]] += factors[n] * X[n]."""
    for row, label, factor in zip(X, labels, factors, strict=True):
        out[label] += factor * row.astype(float)


def entmax(z, alpha):
    """alpha-entmax of one vector and its conjugate, by bisection on the threshold."""
    c = alpha - 1
    y = z - z.max()

    def responsibilities(T):
        b = np.maximum(1 + c * (y - T), 0.0)
        with np.errstate(divide="ignore"):
            return np.exp(np.log(b) / c)

    low, high = 0.0, 1 / c
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if responsibilities(middle).sum() >= 1 else (low, middle)
    p = responsibilities(low) / responsibilities(low).sum()
    on = p > 0
    negentropy = np.sum(p[on] * np.expm1(c * np.log(p[on]))) / (alpha * c)
    return p, z.max() + p[on] @ y[on] - negentropy


def vonmises_fisher_log_density(X, direction, kappa):
    """Log-density at unit rows with respect to surface area, from the scaled Bessel function."""
    d = len(direction)
    chords = 0.5 * ((X.astype(float) - direction) ** 2).sum(axis=1)  # 1 - m.x
    log_bessel = np.log(ive(d / 2 - 1, kappa))
    return (d / 2 - 1) * np.log(kappa) - d / 2 * np.log(2 * np.pi) - log_bessel - kappa * chords
