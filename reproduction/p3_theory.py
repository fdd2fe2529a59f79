"""P3: averaged dynamics (Figure 1), standard deviations, Algorithm 2, information, layers."""

import numpy as np
from sklearn.datasets import make_blobs

from skvmf import RelativeGMM, SparseGaussianMixture

from .instruments.path import path_of
from .instruments.two_gaussians import expected_gradient
from .items import item
from .results import Record, Table

COORDINATES = ("absolute", "relative")
TRUTHS = ((-0.5, 0.5), (-1.0, 1.0), (-2.0, 2.0))


def velocity(points, truth, coordinates):
    """Return the expected ascent of the means."""
    return expected_gradient(points, ([0.5, 0.5], list(truth)), coordinates=coordinates).velocity


def grid(centre, reach, size):
    """Return the points of a square grid."""
    line = np.linspace(centre - reach, centre + reach, size)
    return np.stack(np.meshgrid(line, line), axis=-1)


def draw_fields(figure, record):
    """Draw both fields around zero."""
    points = grid(0.0, 2.0, 14)
    for axis, name in zip(figure.subplots(1, 2), COORDINATES, strict=True):
        axis.quiver(*points.T, *velocity(points, (0, 0), name).T, angles="xy")
        axis.set(title=f"ascent in {name} coordinates", aspect="equal")


@item(
    "P3.fig1",
    "averaged dynamics of gradient ascent (Figure 1)",
    small={"size": 9, "truths": ((-1.0, 1.0),), "max_iter": 20},
    draw=draw_fields,
)
def figure_1(setting, size=41, truths=TRUTHS, max_iter=3000):
    """Compare expected gradients in both coordinates, over the paper's two grids."""
    table = Table(
        "Expected gradient over the grid, relative coordinates against absolute",
        [
            "truth",
            "ratio of mean lengths",
            "share of the grid that is longer",
            "speed along mu_2 - mu_1, ratio",
        ],
        2,
    )
    for centre, reach in ((0.0, 2.0), (20.0, 10.0)):
        points = grid(centre, reach, size)
        absolute, relative = (velocity(points, (centre, centre), name) for name in COORDINATES)
        lengths = [np.linalg.norm(v, axis=-1) for v in (absolute, relative)]
        apart = [v[..., 1] - v[..., 0] for v in (absolute, relative)]
        fast = np.abs(apart[0]) > 1e-6
        table.add(
            f"({centre:g}, {centre:g})",
            lengths[1].mean() / lengths[0].mean(),
            np.mean((lengths[1] > lengths[0])[lengths[0] > 1e-9]),
            np.median(apart[1][fast] / apart[0][fast]),
        )
    columns = [
        f"{what}, {name}" for what in ("steps", "fastest over slowest") for name in COORDINATES
    ]
    best = Table(
        "Ascent from 16 points at the best rate of each, and its valley", ["truth", *columns], 1
    )
    for truth in truths:
        steps = [fewest_steps(truth, name, max_iter) for name in COORDINATES]
        best.add(f"({truth[0]:g}, {truth[1]:g})", *steps, *(valley(truth, c) for c in COORDINATES))
    return Record(
        "Two unit Gaussians of equal weight, whose means are learned; integrals by quadrature. "
        "Steps until the means are within .001 of the truth, from points that have the order of "
        "the truth, medians at the rate that has the smallest; a valley is how much faster "
        "ascent is in its fastest than in its slowest direction at the truth.",
        "none",
        [table, best],
    )


def start_points():
    """Return 16 points (mu_1, mu_2) that have the order of the truth."""
    low, high = np.meshgrid(np.linspace(-3, -0.5, 4), np.linspace(0.2, 3, 4))
    return np.stack([low.ravel(), high.ravel()], axis=-1)


def fewest_steps(truth, coordinates, max_iter):
    """Return the median steps of ascent to a truth, at the best of many learning rates."""
    start, best = start_points(), np.inf
    for rate in np.geomspace(0.25, 16, 25):
        points, steps = start.copy(), np.full(len(start), np.inf)
        for step in range(1, int(min(max_iter, best)) + 1):
            points = points + rate * velocity(points, truth, coordinates)
            if not np.isfinite(points).all() or np.abs(points).max() > 100:
                break
            arrived = np.linalg.norm(points - truth, axis=1) < 1e-3
            steps[arrived & np.isinf(steps)] = step
            if np.isfinite(steps).all():
                break
        best = min(best, np.median(steps))
    return best


def valley(truth, coordinates, step=1e-4):
    """Return the ratio of the largest to the least speed of ascent near a truth."""
    shifts = np.concatenate([step * np.eye(2), -step * np.eye(2)])
    ahead = velocity(np.array(truth) + shifts, truth, coordinates)
    rates = np.abs(np.linalg.eigvals((ahead[:2] - ahead[2:]).T / (2 * step)))
    return rates.max() / rates.min()


@item("P3.general", "Algorithm 2: more components (appendix C)", small={"sets": 2})
def general(setting, sets=20):
    """Fit mixtures of four components in the plane by relative ECM and by EM."""
    table = Table(
        "Relative ECM of four components, against EM from the same start",
        ["order", "least change of the bound", "least gap", "steps, ratio to EM's", "nats lost"],
        "e",
    )
    for name, clearance in (("no clearance", 0.0), ("clearance .5", 0.5)):
        found = []
        for seed in range(sets):
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
    return Record(
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
        "e",
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
        absolute, relative = (matrix(means, deviations, own) for own in (np.eye(5), J))
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
    return Record(
        "Scores by central differences of the log-density in each coordinates, integrals by the "
        "trapezoidal rule.",
        "none",
        [table],
    )


def matrix(means, deviations, J, weight=0.3):
    """Return the Fisher information in coordinates of which J is the Jacobian."""
    x, dx = np.linspace(-20, 20, 20_001, retstep=True)
    point = np.array([weight, *means, *deviations])

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


@item(
    "P3.layers",
    "units of a layer in order (section 6)",
    needs=("torch",),
    small={"networks": 2, "steps": 20},
)
def layers(setting, networks=10, steps=1000):
    """Train small networks with the first weights of their units in order, and without."""
    import torch

    from .instruments.layers import relative_units

    table = Table(
        "Networks of eight tanh units on sine waves",
        ["units", "least gap of the first weights", "loss"],
        "e",
    )
    x = torch.linspace(-3, 3, 200)[:, None]
    y = torch.sin(2 * x)
    for name in ("free", "in order"):
        found = []
        for seed in range(networks):
            torch.manual_seed(seed)
            network = torch.nn.Sequential(
                torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
            )
            if name == "in order":
                relative_units(network[0], network[2], clearance=0.05)
            optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
            for _ in range(steps):
                optimizer.zero_grad()
                loss = ((network(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
            first = np.sort(network[0].weight.detach().numpy()[:, 0])
            found.append([np.diff(first).min(), float(loss)])
        table.add(name, *np.transpose(found))
    return Record("Adam at .01, 1,000 steps, clearance .05.", "10 networks, 0 to 9", [table])
