"""The arithmetic of Watson distributions, as plain functions: what the family is built on."""

import numpy as np

LARGEST = 1e4  # concentration of rows all on one axis


def log_kummer(kappa, dim):
    """Return log M(1/2; dim/2; kappa) and the means of (m.x)^2 and (m.x)^4; kappa (K,) >= 0.

    The terms of the series are positive; relative to the largest, none overflows.
    """
    kappa = np.maximum(kappa, 1e-100)
    k = np.arange(int(kappa.max() + 12 * np.sqrt(kappa.max())) + 60)
    log_ratios = np.log((k[:-1] + 0.5) / ((dim / 2 + k[:-1]) * k[1:]) * kappa[:, None])
    log_terms = np.cumsum(np.insert(log_ratios, 0, 0.0, axis=1), axis=1)
    largest = log_terms.max(axis=1)
    terms = np.exp(log_terms - largest[:, None])
    total = terms.sum(axis=1)
    second, fourth = terms @ k / total / kappa, terms @ (k * (k - 1.0)) / total / kappa**2
    return largest + np.log(total), second, fourth


def concentration(squares, dim):
    """Return the kappa (K,) in [0, LARGEST] that make `squares` the means of (m.x)^2.

    Newton's method starts at the approximation B of Sra and Karp, 2013.
    """
    r, half = np.clip(squares, 1 / dim, 1 - 1e-12), dim / 2
    root = np.sqrt(1 + 8 * (half + 1) * r * (1 - r) / (half - 0.5))
    kappa = (r * half - 0.5) / (2 * r * (1 - r)) * (1 + root)
    for _ in range(6):
        kappa = np.clip(kappa, 0.0, LARGEST)
        _, second, fourth = log_kummer(kappa, dim)
        kappa += (squares - second) / (fourth - second**2)
    return np.clip(kappa, 0.0, LARGEST)


def draw(axis, kappa, size, rng):
    """Draw unit rows (size, d): projected Gaussian rows, cut down to the density.

    The envelope is that of Kent, Ganeiban and Mardia, 2018, for the Bingham distribution.
    """
    d, drawn = len(axis), np.empty((0, len(axis)))
    b = (d - 2 * kappa + np.hypot(d - 2 * kappa, np.sqrt(8 * kappa))) / 2
    narrow = 1 / np.sqrt(1 + 2 * kappa / b)
    while len(drawn) < size:
        rows = narrow * rng.normal(size=(size, d))
        rows += (1 / narrow - 1) * (rows @ axis)[:, None] * axis
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        gaps = kappa * (1 - (rows @ axis) ** 2)
        log_accept = d / 2 * np.log((b + 2 * gaps) / d) - gaps + (d - b) / 2
        drawn = np.vstack([drawn, rows[np.log(rng.uniform(size=size)) < log_accept]])
    return drawn[:size]
