"""P3: trajectories of EM (Figure 2), by Algorithm 1 corrected and in every reading of it."""

import numpy as np

from skvmf import RelativeGMM, SparseGaussianMixture

from .instruments.path import path_of
from .items import item
from .p3_theory import COORDINATES, start_points, velocity
from .results import Record, Table

TRUTH, START = np.array([-5.1, -5.0]), np.array([[-2.5], [2.0]])
N_ROWS = 200
METHODS = {
    "EM": {"make": SparseGaussianMixture},
    "ECM in relative coordinates": {},
    "ECM, clearance 0.5": {"clearance": 0.5},
    "EM, clearance 0.5": {"solver": "em", "clearance": 0.5},
}


def sample(seed, truth=TRUTH):
    """Return rows of the paper's mixture."""
    rng = np.random.default_rng(seed)
    return rng.normal(np.array(truth)[rng.integers(2, size=N_ROWS)], 1)[:, np.newaxis]


def learn(seed, truth=TRUTH, make=RelativeGMM, **options):
    """Learn the means alone."""
    return make(
        2,
        means_init=START,
        fixed=("weights", "covariances"),
        covariance_type="spherical",
        tol=1e-6 / N_ROWS,
        max_iter=20_000,
        **options,
    ).fit(sample(seed, truth))


def path(fit, seed):
    """Return the means (n_iter + 1, 2) of every iteration."""
    return path_of(fit, sample(seed))[:, :, 0]


def distance(path, n_iter):
    """Return the distance to the truth after so many steps, the last where there were fewer."""
    return np.linalg.norm(path[min(n_iter, len(path) - 1)] - TRUTH)


def draw_trajectories(figure, record):
    """Draw trajectories of one sample in both planes, and distances by step."""
    axes = figure.subplots(1, 3)
    paths = {name: path(learn(4, **METHODS[name]), 4) for name in list(METHODS)[:2]}
    paths["printed, lost operator as +"] = by_reading(sample(4)[:, 0], "lost operator as +")
    for name, means in paths.items():
        axes[0].plot(*means.T, ".-", label=name)
        axes[1].plot(means[:, 0], means[:, 1] - means[:, 0], ".-")
        axes[2].plot(np.linalg.norm(means - TRUTH, axis=1))
    axes[0].plot(*TRUTH, "g+", ms=12)
    axes[0].set(title="(mu_1, mu_2)")
    axes[1].set(title="(mu_1, Delta)")
    axes[2].set(title="distance to the truth by step", xscale="symlog")
    axes[0].legend(frameon=False, fontsize="x-small")


@item(
    "P3.fig2",
    "trajectories of EM and relative ECM (Figure 2)",
    small={"sets": 2, "few": 2, "truths": ((-1.0, 1.0),)},
    draw=draw_trajectories,
)
def figure_2(setting, sets=30, few=10, truths=((-0.5, 0.5), (-1.0, 1.0), (-2.0, 2.0))):
    """Learn the means of many samples from the paper's start, and of other truths."""
    fits = {name: [learn(s, **own) for s in range(sets)] for name, own in METHODS.items()}
    steps = {name: np.array([fit.n_iter_ for fit in some]) for name, some in fits.items()}
    ends = {name: N_ROWS * np.array([f.lower_bound_ for f in some]) for name, some in fits.items()}
    table = Table(
        "Truth (-5.1, -5), start (-2.5, 2): steps until the log-likelihood changes by less than "
        "1e-6",
        ["method", "steps", "median", "ratio to EM's", "log-likelihood lost, nats", "least gap"],
        2,
    )
    paths = {name: [path(fit, s) for s, fit in enumerate(some)] for name, some in fits.items()}
    for name, own in steps.items():
        gaps = [np.diff(means).min() for means in paths[name]]
        table.add(name, own, np.median(own), own / steps["EM"], ends["EM"] - ends[name], gaps)
    marks = (3, 5, 8, 12, 40)
    distances = Table("Distance to the truth after steps", ["method", *map(str, marks)])
    for name in list(METHODS)[:2]:
        cells = ([distance(means, n) for means in paths[name]] for n in marks)
        distances.add(name, *cells)
    others = Table("Other truths, ten samples each", ["truth", "ratio of steps, ECM to EM"], 2)
    for truth in truths:
        pairs = ((learn(s, truth), learn(s, truth, solver="em")) for s in range(few))
        others.add(str(truth), [ecm.n_iter_ / em.n_iter_ for ecm, em in pairs])
    return Record(
        "200 rows of two unit Gaussians of equal weight; only the means are learned, by Algorithm "
        "1 with its reference mean corrected, see the errata.",
        "30 samples, 0 to 29",
        [table, distances, others],
    )


# The reference mean from the sums of rows T, the counts N and the gap.
READINGS = {
    "EM": None,
    "corrected": lambda T, N, gap: (T[0] + T[1] - N[1] * gap) / N.sum(),
    "lost operator as +": lambda T, N, gap: (T[0] + gap * N[0] + T[1]) / N.sum(),
    "lost operator as -": lambda T, N, gap: (T[0] - gap * N[0] + T[1]) / N.sum(),
    "a product": lambda T, N, gap: (T[0] * gap * N[0] + T[1]) / N.sum(),
}


@item("P3.printed", "Algorithm 1 as printed: what its lost operator does", small={"sets": 3})
def printed(setting, sets=30):
    """Learn the means by Algorithm 1 in every reading of its sixth line."""
    samples = [sample(seed)[:, 0] for seed in range(sets)]
    columns = ["sixth line", "steps", "median", "distance to the truth after 3 steps", "after 40"]
    table = Table(
        "Truth (-5.1, -5), start (-2.5, 2): until the log-likelihood changes by less than 1e-6",
        [*columns, "log-likelihood lost, nats", "last gap"],
        2,
    )
    paths = {name: [by_reading(x, name) for x in samples] for name in READINGS}
    best = [log_likelihood(x, own[-1]) for x, own in zip(samples, paths["EM"], strict=True)]
    for name, some in paths.items():
        steps = np.array([len(path) - 1 for path in some])
        ends = [log_likelihood(x, path[-1]) for x, path in zip(samples, some, strict=True)]
        near = ([distance(path, n) for path in some] for n in (3, 40))
        lost, gaps = np.subtract(best, ends), [path[-1][1] - path[-1][0] for path in some]
        table.add(name, steps, np.median(steps), *near, lost, gaps)
    others = Table(
        "Log-likelihood lost with truths farther apart, from the start (-2.5, 2), nats",
        ["truth", *list(READINGS)[1:]],
        1,
    )
    for reach in (0.5, 1.0, 2.0):
        samples = [sample(seed, (-reach, reach))[:, 0] for seed in range(sets)]
        ends = [[log_likelihood(x, by_reading(x, n)[-1]) for x in samples] for n in READINGS]
        others.add(f"(-{reach:g}, {reach:g})", *(np.subtract(ends[0], own) for own in ends[1:]))
    return Record(
        "200 rows of two unit Gaussians of equal weight; only the means are learned.",
        "30 samples, 0 to 29",
        [table, others],
    )


@item("P3.attractors", "what slows learning down near the singularity", small={"sets": 2, "few": 3})
def attractors(setting, sets=30, few=25):
    """Count short steps of EM in every reading, and measure ascent to equal means."""
    short = Table(
        "Steps shorter than a hundredth of the way, from (-2.5, 2) to (-5.1, -5)",
        ["sixth line", "steps", "share of all"],
        2,
    )
    for name in list(READINGS)[:-1]:
        found = []
        for seed in range(sets):
            path = by_reading(sample(seed)[:, 0], name)
            lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
            small = lengths < 0.01 * np.linalg.norm(path[-1] - path[0])
            found.append([small.sum(), small.mean()])
        short.add(name, *np.transpose(found))
    columns = ["coordinates", *map(str, marks := (10, 100, 300))]
    ascent = Table("Ascent to equal means: median distance at the best rate, by steps", columns)
    for name in COORDINATES:
        reached = [nearest(name, rate, marks) for rate in np.geomspace(0.25, 16, few)]
        ascent.add(name, *np.min(reached, axis=0))
    return Record(
        "The paper's figures: samples of Figure 2, 200 rows each; expected gradients of Figure 1 "
        "from 16 points, as in P3.fig1.",
        f"{sets} samples, from 0",
        [short, ascent],
    )


def nearest(coordinates, rate, marks):
    """Return the median distances from equal means after some steps of ascent."""
    points, distances = start_points(), []
    for n_steps in range(1, max(marks) + 1):
        points = points + rate * velocity(points, (0, 0), coordinates)
        if not np.abs(points).max() < 100:
            return np.full(len(marks), np.inf)
        if n_steps in marks:
            distances.append(np.median(np.linalg.norm(points, axis=1)))
    return distances


def by_reading(x, reading, start=START[:, 0], *, tol=1e-6, max_iter=1000):
    """Return the path of the means by a reading of Algorithm 1."""
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
