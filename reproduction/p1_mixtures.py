"""P1, mixtures of Gaussians under the modified Dirichlet: Figures 1 to 5."""

from itertools import product

import numpy as np
from scipy.special import digamma, entr, logsumexp

from skvmf import SparseGaussianMixture

from .items import item
from .results import Record, Table, mean

FLOOR = 1e-5
ALPHAS = {
    4.0: [1.0, 0.5, 1e-5, -1.0, -2.0, -5.0, -10.0, -20.0, -50.0],
    8.0: [1.0, 0.5, 1e-5, -2.0, -5.0],
}
POSITIVE = [0.5, 1e-5]
ROOTS = np.linalg.cholesky([[[1, 0.5], [0.5, 1]], [[1, -0.5], [-0.5, 1]]])
# No ridge: a component whose covariance becomes singular is pruned, as in the paper.
OPTIONS = {"reg_covar": 0, "init_params": "random_from_data", "tol": 1e-6}


def sample(n_samples, rng, distance=4.0):
    """Return points of two correlated Gaussians of equal weight."""
    labels = rng.integers(2, size=n_samples)
    noise = rng.normal(size=(n_samples, 2, 1))
    means = np.array([[0.0, 0.0], [distance, 0.0]])
    return means[labels] + (ROOTS[labels] @ noise)[:, :, 0]


def by_prior(X, alpha, seed, max_iter=1000):
    """Fit five components under a modified Dirichlet prior: weights, means and covariances."""
    floor = 0 if alpha == 1 else FLOOR
    prior = {"weight_concentration_prior": alpha, "weight_floor": floor, "flat_start": False}
    limits = {"random_state": seed, "max_iter": max_iter}
    fitted = SparseGaussianMixture(5, **limits, **prior, **OPTIONS).fit(X)
    alive = fitted.weights_ > 0
    return fitted.weights_[alive], fitted.means_[alive], fitted.covariances_[alive]


def by_mean_field(X, alpha, seed, max_iter=1000, tol=1e-6):
    """Fit by variational Bayes on the weights alone: weights, means and covariances.

    The mean field posterior of the weights is a Dirichlet distribution with parameters alpha + N.
    It enters the expectation step as exp(digamma(alpha + N_k)), up to a factor. Means and
    covariances are those of maximum likelihood, from the start of the other methods.
    """
    means = X[np.random.default_rng(seed).choice(len(X), 5, replace=False)]
    covariances = np.tile(np.cov(X.T), (5, 1, 1))
    log_factors, resp = np.zeros(5), np.zeros((len(X), 5))
    for _ in range(max_iter):
        scores = log_factors + log_densities(X, means, covariances)
        new = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        if new.shape == resp.shape and np.abs(new - resp).max() < tol:
            break
        resp = new[:, new.sum(axis=0) > 1e-8]
        counts = resp.sum(axis=0)
        means = resp.T @ X / counts[:, np.newaxis]
        gaps = X - means[:, np.newaxis]
        covariances = np.einsum("nk,kni,knj->kij", resp, gaps, gaps) / counts[:, None, None]
        regular = ~singular(covariances)
        resp, counts = resp[:, regular], counts[regular]
        means, covariances = means[regular], covariances[regular]
        log_factors = digamma(alpha + counts)
    weights = np.exp(log_factors - log_factors.max())
    return weights / weights.sum(), means, covariances


def singular(covariances):
    """Return which covariances are numerically singular."""
    smallest, largest = np.linalg.eigvalsh(covariances).T
    return ~(smallest > 1e-12 * largest) | ~(largest > 1e-12)


def log_densities(X, means, covariances):
    """Return the log-density of each row under each Gaussian."""
    roots = np.linalg.cholesky(covariances)
    gaps = (X - means[:, np.newaxis]).transpose(0, 2, 1)
    z = np.linalg.solve(roots, gaps)
    log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return (-0.5 * (z * z).sum(axis=1) - log_det[:, np.newaxis]).T - np.log(2 * np.pi)


def evaluate(test, weights, means, covariances):
    """Return the mean log-likelihood of other points and the effective number of components."""
    used = weights > 0
    scores = log_densities(test, means[used], covariances[used]) + np.log(weights[used])
    return logsumexp(scores, axis=1).mean(), np.exp(entr(weights).sum())


def scored(fit, n, alpha, distance, runs, tests, limit):
    """Return log-likelihoods of other points and numbers of components, of many data sets."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X, others = sample(n, rng, distance), sample(tests, rng, distance)
        found.append(evaluate(others, *fit(X, alpha, seed, limit)))
    return np.transpose(found)


def draw_mixtures(figure, record):
    """Draw log-likelihoods and numbers over alpha, and a typical model of each size."""
    axes = figure.subplots(2, 3)
    for row, (n, alpha) in zip(axes, ((20, -2.0), (200, -5.0)), strict=True):
        table = record.table(f"{n} points, means 4 apart")
        for column, axis in zip((1, 2), row, strict=False):
            for kind in ("mDir", "VB"):
                own = [line for line in table.rows if line[0].startswith(kind)]
                at = [float(line[0].split()[1]) for line in own]
                axis.plot(at, [mean(line[column]) for line in own], ".-", label=kind)
            axis.set_xscale("symlog", linthresh=1)
            axis.invert_xaxis()
            axis.set_title(f"{n} points: {table.columns[column]}", fontsize="small")
        X = sample(n, np.random.default_rng(0))
        weights, means, _ = by_prior(X, alpha, 0)
        row[2].plot(*X.T, "k.", ms=2)
        row[2].scatter(*means.T, s=300 * weights)
        row[2].set_title(f"a model, mDir {alpha:g}: means and weights", fontsize="small")
    axes[0, 0].legend(frameon=False, fontsize="x-small")


@item(
    "P1.fig1",
    "five components for two Gaussians (Figures 1 to 5)",
    small={"runs": 2, "tests": 500, "limit": 20},
    draw=draw_mixtures,
)
def figures_1_to_5(setting, runs=300, tests=10_000, limit=1000):
    """Fit 20 and 200 points by every method, and look at 10,000 others."""
    tables = []
    for distance, n in product((4.0, 8.0), (20, 200)):
        lines = {f"mDir {alpha:g}": (by_prior, alpha) for alpha in ALPHAS[distance]}
        lines |= {f"VB {alpha:g}": (by_mean_field, alpha) for alpha in POSITIVE}
        table = Table(
            f"{n} points, means {distance:g} apart: log-likelihood of 10,000 others, "
            "effective number of components",
            ["method", "log-likelihood", "components", "median log-likelihood"],
        )
        for name, (fit, alpha) in lines.items():
            scores, numbers = scored(fit, n, alpha, distance, runs, tests, limit)
            table.add(name, scores, numbers, np.median(scores))
        tables.append(table)
    return Record(
        "Two Gaussians of weights one half, variances 1, correlations .5 and -.5; starts at "
        "random points with the covariance of the data. mDir 1 is EM. VB is mean field with a "
        "Dirichlet on the weights and point estimates of the Gaussians. No ridge: a component "
        "whose covariance is singular to rounding is pruned (of VB: whose smallest eigenvalue is "
        "below 1e-12 of the largest).",
        f"a data set and a start each, {runs} from 0",
        tables,
    )


@item(
    "P1.small",
    "variational Bayes at ever smaller parameters",
    small={"runs": 2, "tests": 500, "limit": 20},
)
def small_parameters(setting, runs=300, tests=10_000, limit=1000):
    """Fit by variational Bayes below the smallest parameter of the paper's figures."""
    table = Table(
        "Means 4 apart: log-likelihood of 10,000 others, effective number of components",
        ["points and parameter", "log-likelihood", "components"],
    )
    for n, alpha in product((20, 200), (1e-5, 1e-8, 1e-12)):
        table.add(f"{n}, {alpha:g}", *scored(by_mean_field, n, alpha, 4.0, runs, tests, limit))
    return Record("Data sets and starts of P1.fig1.", f"{runs} from 0", [table])
