"""P3: Algorithm 1 as printed, by each reading of its lost operator; Algorithm 2; information."""

import numpy as np
from sklearn.datasets import make_blobs

from skvmf import RelativeGMM, SparseGaussianMixture

from .instruments.path import path_of
from .items import item
from .p3_relative import START, TRUTH, sample
from .results import Result, Table

# The reference mean from the sums of rows T, the counts N and the gap.
READINGS = {
    "EM": None,
    "corrected": lambda T, N, gap: (T[0] + T[1] - N[1] * gap) / N.sum(),
    "lost operator as +": lambda T, N, gap: (T[0] + gap * N[0] + T[1]) / N.sum(),
    "lost operator as -": lambda T, N, gap: (T[0] - gap * N[0] + T[1]) / N.sum(),
    "a product": lambda T, N, gap: (T[0] * gap * N[0] + T[1]) / N.sum(),
}


@item("P3.printed", "Algorithm 1 as printed: what its lost operator does")
def printed(setting):
    """Learn the means by Algorithm 1 in every reading of its sixth line."""
    samples = [sample(seed)[:, 0] for seed in range(setting.size(30, 3))]
    table = Table(
        "Truth (-5.1, -5), start (-2.5, 2): until the log-likelihood changes by less than 1e-6",
        [
            "sixth line",
            "steps",
            "median",
            "distance to the truth after 3 steps",
            "after 40",
            "log-likelihood lost, nats",
            "last gap",
        ],
        digits=2,
    )
    paths = {name: [learn(x, START[:, 0], name) for x in samples] for name in READINGS}
    best = [log_likelihood(x, own[-1]) for x, own in zip(samples, paths["EM"], strict=True)]
    for name, some in paths.items():
        steps = np.array([len(path) - 1 for path in some])
        ends = [log_likelihood(x, path[-1]) for x, path in zip(samples, some, strict=True)]
        table.add(
            name,
            steps,
            np.median(steps),
            [np.linalg.norm(path[min(3, len(path) - 1)] - TRUTH) for path in some],
            [np.linalg.norm(path[min(40, len(path) - 1)] - TRUTH) for path in some],
            np.subtract(best, ends),
            [path[-1][1] - path[-1][0] for path in some],
        )
    others = Table(
        "Log-likelihood lost with truths farther apart, from the start (-2.5, 2), nats",
        ["truth", *list(READINGS)[1:]],
        digits=1,
    )
    for reach in (0.5, 1.0, 2.0):
        truth, lost = np.array([-reach, reach]), {name: [] for name in READINGS}
        for seed in range(setting.size(30, 3)):
            x = sample(seed, truth)[:, 0]
            for name in READINGS:
                lost[name].append(log_likelihood(x, learn(x, START[:, 0], name)[-1]))
        gaps = [np.subtract(lost["EM"], lost[name]) for name in list(READINGS)[1:]]
        others.add(f"(-{reach:g}, {reach:g})", *gaps)
    return Result(
        "200 rows of two unit Gaussians of equal weight; only the means are learned.",
        "30 samples, 0 to 29",
        [table, others],
        lambda figure: show(figure, paths),
    )


def learn(x, start, reading, *, tol=1e-6, max_iter=1000):
    """Return the path of the means."""
    path, value = [np.array(start)], log_likelihood(x, start)
    for _ in range(max_iter):
        mu = path[-1]
        first = 1 / (1 + np.exp(-0.5 * ((x - mu[1]) ** 2 - (x - mu[0]) ** 2)))
        N = np.array([first.sum(), (1 - first).sum()])
        T = np.array([first @ x, (1 - first) @ x])
        if reading == "EM":
            mu = T / N
        else:
            low = READINGS[reading](T, N, mu[1] - mu[0])
            mu = np.array([low, low + (T[1] - low * N[1]) / N[1]])
        if not np.isfinite(mu).all() or np.abs(mu).max() > 1e6:
            break
        path.append(mu)
        value, before = log_likelihood(x, mu), value
        if abs(value - before) < tol:
            break
    return np.array(path)


def log_likelihood(x, means):
    """Return the log-likelihood of rows."""
    z = -0.5 * (x[:, np.newaxis] - means) ** 2
    return np.logaddexp(z[:, 0], z[:, 1]).sum() - len(x) * np.log(2 * np.sqrt(2 * np.pi))


def show(figure, paths):
    """Draw one sample's trajectories, and distances to the truth by step."""
    axes = figure.subplots(1, 2)
    for name, some in list(paths.items())[:3]:
        path = some[0]
        axes[0].plot(*path.T, ".-", label=name)
        axes[1].plot(np.linalg.norm(path[:60] - TRUTH, axis=1), label=name)
    axes[0].plot(*TRUTH, "g+", ms=12)
    axes[0].set(title="(mu_1, mu_2)")
    axes[1].set(title="distance to the truth by step")
    axes[0].legend(frameon=False, fontsize="small")


@item("P3.general", "Algorithm 2: more components (appendix C)")
def general(setting):
    """Fit mixtures of four components in the plane by relative ECM and by EM."""
    table = Table(
        "Relative ECM of four components, against EM from the same start",
        ["order", "least change of the bound", "least gap", "steps, ratio to EM's", "nats lost"],
        digits="e",
    )
    for name, clearance in (("no clearance", 0.0), ("clearance .5", 0.5)):
        found = []
        for seed in range(setting.size(20, 2)):
            X, _, centres = make_blobs(400, centers=4, random_state=seed, return_centers=True)
            means = centres + np.random.default_rng(seed).normal(size=centres.shape)
            start = {"means_init": means, "tol": 1e-6, "max_iter": 500}
            start["fixed"] = ("weights", "covariances")
            own = RelativeGMM(4, clearance=clearance, **start).fit(X)
            em = SparseGaussianMixture(4, **start).fit(X)
            gaps = np.diff(path_of(own, X)[:, :, 0], axis=1)
            lost = len(X) * (em.lower_bound_ - own.lower_bound_)
            rise = np.diff(own.lower_bounds_).min()
            found.append([rise, gaps.min(), own.n_iter_ / em.n_iter_, lost])
        table.add(name, *np.transpose(found))
    return Result(
        "400 rows of four unit Gaussians in the plane, the means free; starts near the true means, "
        "in order of the first feature.",
        "20 data sets, 0 to 19",
        [table],
    )


@item("P3.information", "Fisher information, with the standard deviations (section 5.1)")
def information(setting):
    """Hold the information matrix in both coordinates against each other, by quadrature."""
    table = Table(
        "Two Gaussians of weights .3 and .7, parameters pi, mu_1, mu_2, sigma_1, sigma_2",
        [
            "means, deviations",
            "distance from J^T I J",
            "distance from I",
            "length element, relative change",
            "least eigenvalue",
            "least eigenvalue, relative",
        ],
        digits="e",
    )
    # d Theta / d Lambda, for Lambda = (pi, mu_1, Delta_mu, sigma_1, Delta_sigma)
    J = np.eye(5)
    J[2, 1] = J[4, 3] = 1
    steps = np.random.default_rng(0).normal(size=(100, 5))
    for means, deviations in (
        ((0.0, 1.0), (1.0, 1.5)),
        ((0.0, 0.0), (1.0, 2.0)),
        ((0.0, 1.5), (1.0, 1.0)),
        ((0.0, 0.0), (1.0, 1.0)),
    ):
        absolute = matrix(means, deviations, np.eye(5))
        relative = matrix(means, deviations, J)
        lengths = [
            np.einsum("ni,ij,nj->n", own, metric, own)
            for own, metric in ((steps @ J.T, absolute), (steps, relative))
        ]
        table.add(
            f"{means}, {deviations}",
            np.abs(relative - J.T @ absolute @ J).max(),
            np.abs(relative - absolute).max(),
            np.abs(lengths[1] / lengths[0] - 1).max(),
            max(np.linalg.eigvalsh(absolute)[0], 0.0),
            max(np.linalg.eigvalsh(relative)[0], 0.0),
        )
    return Result(
        "Scores by central differences of the log-density in each coordinates, integrals by the "
        "trapezoidal rule.",
        "none",
        [table],
    )


def matrix(means, deviations, J):
    """Return the Fisher information in coordinates of which J is the Jacobian."""
    x, dx = np.linspace(-20, 20, 20_001, retstep=True)
    point = np.array([0.3, *means, *deviations])

    def density(shift):
        pi, *mu, s1, s2 = point + J @ shift
        parts = [np.exp(-0.5 * ((x - m) / s) ** 2) / s for m, s in zip(mu, (s1, s2), strict=True)]
        return (pi * parts[0] + (1 - pi) * parts[1]) / np.sqrt(2 * np.pi)

    h = 1e-4
    slopes = [(density(h * e) - density(-h * e)) / (2 * h) for e in np.eye(5)]
    own = density(np.zeros(5))
    inside = own > 1e-250
    scores = np.array(slopes)[:, inside] / own[inside]
    return (own[inside] * scores) @ scores.T * dx
