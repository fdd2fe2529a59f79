"""The slow, obvious twins of the posterior kernels, in float64."""

import numpy as np


def shifted_scores(scores, slopes, offsets):
    """z = slopes[n] * scores[n] + offsets."""
    return np.asarray(slopes, float)[:, None] * np.asarray(scores, float) + offsets


def softmax(z):
    """Softmax of one vector, with the kernels' cut: nothing below exp(-60) of the largest."""
    powers = np.where(z - z.max() > -60, np.exp(z - z.max()), 0.0)
    return powers / powers.sum()


def log_sum_exp(z):
    """log(sum(exp(z))) of one vector."""
    return z.max() + np.log(np.exp(z - z.max()).sum())


def add_labelled_rows(X, labels, factors, out):
    """out[labels[n]] += factors[n] * X[n]."""
    for row, label, factor in zip(X, labels, factors, strict=True):
        out[label] += factor * row.astype(float)


def modified_dirichlet_mode(alpha, floor):
    """x = max(floor, (alpha - 1) m), m by bisection such that x sums to one."""
    excess = alpha - 1
    low, high = 0.0, 1 / excess.max()
    while low < (middle := 0.5 * (low + high)) < high:
        if np.maximum(floor, excess * middle).sum() < 1:
            low = middle
        else:
            high = middle
    return np.maximum(floor, excess * high)
