"""P1, mixtures of Gaussians under the modified Dirichlet: algorithms 1 and 2, Figures 1 to 5."""

from itertools import product

import numpy as np
from scipy.special import digamma, entr, logsumexp

from skvmf import SparseGaussianMixture
from skvmf.distributions import modified_dirichlet

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
            found = []
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                X, others = sample(n, rng, distance), sample(tests, rng, distance)
                found.append(evaluate(others, *fit(X, alpha, seed, limit)))
            scores, numbers = np.transpose(found)
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


@item("P1.alg", "finding the mode (Algorithms 1 and 2)", small={"total": 100})
def algorithms(setting, total=2000):
    """Hold the printed algorithms against a search over what may be on the floor."""
    rng = np.random.default_rng(0)
    right = dict.fromkeys(["Algorithm 1", "Algorithm 2 as printed", "Algorithm 2, corrected"], 0)
    for _ in range(total):
        n = int(rng.integers(2, 8))
        alpha, floor = rng.normal(1, 3, size=n), rng.uniform(1e-6, 1 / n)
        alpha[0] = 1 + rng.exponential()  # the printed ones need one above 1
        best = mode_by_search(alpha, floor)
        for name, x in (
            ("Algorithm 1", modified_dirichlet.mode(alpha, floor)),
            ("Algorithm 2 as printed", as_printed(alpha, floor)),
            ("Algorithm 2, corrected", modified_dirichlet.mode(alpha, floor, method="sorting")),
        ):
            right[name] += bool(np.abs(x - best).max() < 1e-9)
    modes = Table("Right modes of random parameters", ["algorithm", "share", "right"], 4)
    for name, count in right.items():
        modes.add(name, count / total, f"{count} of {total}")
    rounds = Table("Share of random parameters at which one round is enough", ["floor", "share"])
    for floor in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        rng = np.random.default_rng(0)
        alphas = (rng.normal(1, 3, size=int(rng.integers(2, 38))) for _ in range(total))
        rounds.add(f"{floor:g}", np.mean([one_round(alpha, floor) for alpha in alphas]))
    return Record(
        "Two to seven entries, normal parameters, at least one of them above 1; rounds: two to 37 "
        "entries, of which none above 1 is below the floor after the first.",
        "0",
        [modes, rounds],
    )


def one_round(alpha, floor):
    """Return whether Algorithm 1 ends after one iteration."""
    free = alpha > 1
    x = (alpha[free] - 1) / (alpha[free] - 1).sum() * (1 - floor * (~free).sum())
    return bool((x >= floor).all())


def as_printed(alpha, floor):
    """Return what Algorithm 2 gives, line by line as printed."""
    order = np.argsort(alpha)
    sums = np.cumsum((alpha[order] - 1)[::-1])[::-1]
    x, t = np.empty(len(alpha)), 0
    for i, k in enumerate(order):
        with np.errstate(divide="ignore", invalid="ignore"):
            x[k] = (alpha[k] - 1) / sums[i] * (1 - floor * t)
        if x[k] < floor:
            x[k], t = floor, t + 1
    return x


def mode_by_search(alpha, floor):
    """Return the mode: entries on the floor are those of the smallest parameters, so try all."""
    order, n = np.argsort(alpha), len(alpha)
    best, value = None, -np.inf
    for count in range(n):
        free = order[count:]
        if (alpha[free] <= 1).any():
            continue
        x = np.full(n, floor)
        x[free] = (alpha[free] - 1) / (alpha[free] - 1).sum() * (1 - floor * count)
        own = modified_dirichlet.log_kernel(x, alpha)
        if x.min() >= floor * (1 - 1e-12) and own > value:
            best, value = x, own
    return best
