"""EM for von Mises-Fisher components, written as in the textbook."""

import numpy as np
from scipy.special import logsumexp

from skvmf.distributions.vonmises_fisher import mean_resultant_length

from .. import oracles


def concentrations(lengths, d):
    """Return the concentrations of mean resultant lengths, by bisection."""
    low, high = np.full(len(lengths), 1e-9), np.full(len(lengths), 1e4)
    for _ in range(60):
        middle = (low + high) / 2
        above = mean_resultant_length(middle, d) < lengths
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


def em_on_the_sphere(X, sample_weight, weights, directions, kappa, n_iter, fixed=(), tied=False):
    """Run EM for some steps, without what is fixed; return the parameters and all bounds."""
    bounds = []
    for step in range(n_iter + 1):
        components = zip(directions, kappa, strict=True)
        densities = [oracles.vonmises_fisher_log_density(X, *component) for component in components]
        joint = np.column_stack(densities) + np.log(weights)
        total = logsumexp(joint, axis=1)
        bounds.append(sample_weight @ total / sample_weight.sum())
        if step == n_iter:
            return weights, directions, kappa, bounds
        resp = np.exp(joint - total[:, None]) * sample_weight[:, None]
        counts, sums = resp.sum(axis=0), resp.T @ X
        if "weights" not in fixed:
            weights = counts / counts.sum()
        if "means" not in fixed:
            directions = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        if "concentrations" not in fixed:
            lengths = (sums * directions).sum(axis=1)
            pooled = np.full(len(counts), lengths.sum() / counts.sum())
            kappa = concentrations(pooled if tied else lengths / counts, X.shape[1])
