"""P2, what expectation steps give: zeros, special cases and the bound (sections 3 and 4.1)."""

import numpy as np
from scipy.special import logsumexp, xlogy
from scipy.stats import norm

from skvmf.distributions.simplex import entmax

from .items import item
from .p2_expectation import FRESH, METHODS, PAPER, SECOND, VARIANCES, draw, fit
from .results import Record, Table


@item(
    "P2.steps",
    "expectation steps: zeros, special cases and the bound",
    needs=("torch",),
    small={"sets": 2, "limit": 10},
)
def steps(setting, sets=40, limit=200):
    """Count zeros in fits of Table 1, and hold single steps against what they should be."""
    zeros = Table("Share of memberships that are exactly 0, from the second start", ["of", "share"])
    for name in PAPER:
        found = []
        for seed in range(FRESH, FRESH + sets):
            X = draw(VARIANCES["standard deviations"], seed)
            mixture = fit(X, seed, SECOND, max_iter=limit, **METHODS[name])
            found.append(np.mean(mixture.predict_proba(X) == 0))
        zeros.add(name, found)
    rng = np.random.default_rng(0)
    weights, losses = rng.dirichlet(np.ones(4), 1000), rng.exponential(3, (1000, 4))
    bayes = np.exp(np.log(weights) - losses)
    bayes /= bayes.sum(axis=1, keepdims=True)
    special = Table("Largest distance of memberships", ["from", "distance"], "e")
    for rest in (0.1, 0.001, 1e-5):
        found = step(weights, losses, 1 + rest)
        special.add(f"Bayes's, alpha = {1 + rest:g}", np.abs(found - bayes).max())
    hard = np.eye(4)[bayes.argmax(axis=1)]
    clear = np.diff(np.sort(np.log(bayes), axis=1)[:, -2:], axis=1)[:, 0] > 0.01
    for size in (0.1, 0.001):
        found = step(weights, losses, 1, size)
        special.add(f"hard ones, regularizer times {size:g}", np.abs(found - hard)[clear].max())
    bound = Table(
        "Free energy of others less that of the step, and of the step at least",
        ["alpha", "others less the step, least", "step from -log evidence", "mass left out"],
        "e",
    )
    evidence = -logsumexp(np.log(weights) - losses, axis=1)
    for alpha in (1.0, 1.5, 2.0):
        best = free_energy(step(weights, losses, alpha), weights, losses, alpha)
        others = rng.dirichlet(np.full(4, 0.3), (100, 1000))
        rise = free_energy(others, weights, losses, alpha) - best
        gap = np.abs(best - evidence).max() if alpha == 1 else None
        bound.add(f"{alpha:g}", rise.min(), gap, left_out(alpha))
    return Record(
        "Zeros in memberships of P2.tab1's fits, with standard deviations; skvmf cuts to 0 what is "
        "below exp(-60) of the largest, which is all that standard EM has. Otherwise 1,000 random "
        "weights and losses of four components, and of those that are to become hard those whose "
        "best two log-posteriors are .01 apart. Mass left out is that of the standard normal "
        "outside the support of the density that has its score (1.5 biweight, 2 Epanechnikov).",
        f"data sets and starts, {sets} from {FRESH}; 0",
        [zeros, special, bound],
    )


def scores(weights, alpha):
    """Return the scores whose posterior without losses is the weights (equation 19, corrected)."""
    return np.log(weights) if alpha == 1 else (weights ** (alpha - 1) - 1) / (alpha - 1)


def step(weights, losses, alpha, size=1.0):
    """Return memberships by equation 15, for a regularizer that is scaled."""
    return entmax((scores(weights, alpha) - losses) / size, alpha)


def negentropy(q, alpha):
    """Return the Tsallis negentropy (equation 8)."""
    terms = xlogy(q, q) if alpha == 1 else (q**alpha - q) / (alpha * (alpha - 1))
    return terms.sum(axis=-1)


def free_energy(q, weights, losses, alpha):
    """Return the free energy of memberships (equations 6 and 11)."""
    eta = scores(weights, alpha)
    conjugate = (weights * eta).sum(axis=-1) - negentropy(weights, alpha)
    return (q * (losses - eta)).sum(axis=-1) + negentropy(q, alpha) + conjugate


def left_out(alpha):
    """Return the mass of the standard normal outside the support of the density of its score."""
    import torch

    from skvmf.neural import BetaGaussian

    return 2 * norm.sf(float(BetaGaussian(torch.zeros(()), torch.ones(()), alpha).radius))
