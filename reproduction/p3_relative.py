"""P3: averaged learning dynamics (Figure 1) and trajectories of EM (Figure 2)."""

import numpy as np

from skvmf import RelativeGMM, SparseGaussianMixture

from .instruments.path import path_of
from .instruments.two_gaussians import expected_gradient
from .items import item
from .results import Result, Table

TRUTH, START = np.array([-5.1, -5.0]), np.array([[-2.5], [2.0]])
N_ROWS = 200
METHODS = {
    "EM": {"make": SparseGaussianMixture},
    "ECM in relative coordinates": {},
    "ECM, clearance 0.5": {"clearance": 0.5},
    "EM, clearance 0.5": {"solver": "em", "clearance": 0.5},
}


@item("P3.fig1", "averaged dynamics of gradient ascent")
def figure_1(setting):
    """Compare expected gradients in both coordinates, over the paper's two grids."""
    table = Table(
        "Expected gradient over the grid, relative coordinates against absolute",
        [
            "truth",
            "ratio of mean lengths",
            "share of the grid that is longer",
            "cosine to the truth, absolute",
            "cosine, relative",
            "speed along mu_2 - mu_1, ratio",
        ],
        digits=2,
    )
    fields = {}
    for centre, reach in ((0.0, 2.0), (20.0, 10.0)):
        line = np.linspace(centre - reach, centre + reach, setting.size(41, 9))
        grid = np.stack(np.meshgrid(line, line), axis=-1)
        absolute, relative = (
            expected_gradient(grid, ([0.5, 0.5], [centre, centre]), coordinates=name).velocity
            for name in ("absolute", "relative")
        )
        fields[centre] = grid, absolute, relative
        lengths = [np.linalg.norm(v, axis=-1) for v in (absolute, relative)]
        moving = lengths[0] > 1e-9
        away = centre - grid
        cosines = [
            ((away * v).sum(-1)[moving] / (np.linalg.norm(away, axis=-1) * n)[moving]).mean()
            for v, n in zip((absolute, relative), lengths, strict=True)
        ]
        apart = [(v[..., 1] - v[..., 0])[moving] for v in (absolute, relative)]
        fast = np.abs(apart[0]) > 1e-6
        table.add(
            f"({centre:g}, {centre:g})",
            lengths[1].mean() / lengths[0].mean(),
            np.mean((lengths[1] > lengths[0])[moving]),
            *cosines,
            np.median(apart[1][fast] / apart[0][fast]),
        )

    def draw(figure):
        axes = figure.subplots(1, 2)
        grid, *both = fields[0.0]
        for axis, velocity, name in zip(axes, both, ("absolute", "relative"), strict=True):
            axis.quiver(*grid[::3, ::3].T, *velocity[::3, ::3].T, angles="xy")
            axis.set(title=f"ascent in {name} coordinates", aspect="equal")

    settings = (
        "Two unit Gaussians of equal weight, whose means are learned; integrals by quadrature."
    )
    return Result(settings, "none", [table], draw)


def sample(seed, truth=TRUTH):
    """Return rows of the paper's mixture."""
    rng = np.random.default_rng(seed)
    return rng.normal(truth[rng.integers(2, size=N_ROWS)], 1)[:, np.newaxis]


def learn(seed, truth=TRUTH, start=START, tol=1e-6 / N_ROWS, make=RelativeGMM, **options):
    """Learn the means alone."""
    return make(
        2,
        means_init=start,
        fixed=("weights", "covariances"),
        covariance_type="spherical",
        tol=tol,
        max_iter=20_000,
        **options,
    ).fit(sample(seed, truth))


@item("P3.fig2", "trajectories of EM and relative ECM")
def figure_2(setting):
    """Learn the means of many samples from the paper's start, and of other truths."""
    seeds = range(setting.size(30, 2))
    fits = {name: [learn(seed, **options) for seed in seeds] for name, options in METHODS.items()}
    steps = {name: np.array([fit.n_iter_ for fit in some]) for name, some in fits.items()}
    ends = {name: N_ROWS * np.array([f.lower_bound_ for f in some]) for name, some in fits.items()}
    table = Table(
        "Truth (-5.1, -5), start (-2.5, 2): steps until the log-likelihood changes by less than "
        "1e-6",
        ["method", "steps", "median", "ratio to EM's", "log-likelihood lost, nats", "least gap"],
        digits=2,
    )
    paths = {
        name: [path_of(fit, sample(seed))[:, :, 0] for seed, fit in zip(seeds, some, strict=True)]
        for name, some in fits.items()
    }
    gaps = {name: [np.diff(path).min() for path in some] for name, some in paths.items()}
    for name in METHODS:
        table.add(
            name,
            steps[name],
            np.median(steps[name]),
            steps[name] / steps["EM"],
            ends["EM"] - ends[name],
            gaps[name],
        )
    distances = Table("Distance to the truth after steps", ["method", "3", "5", "8", "12", "40"])
    for name in list(METHODS)[:2]:
        distances.add(
            name,
            *(
                np.array(
                    [np.linalg.norm(path[min(n, len(path) - 1)] - TRUTH) for path in paths[name]]
                )
                for n in (3, 5, 8, 12, 40)
            ),
        )
    others = Table("Other truths, ten samples each", ["truth", "ratio of steps, ECM to EM"], 2)
    for truth in setting.size([(-0.5, 0.5), (-1.0, 1.0), (-2.0, 2.0)], [(-1.0, 1.0)]):
        ratios = [
            learn(seed, np.array(truth)).n_iter_ / learn(seed, np.array(truth), solver="em").n_iter_
            for seed in range(setting.size(10, 2))
        ]
        others.add(str(truth), ratios)
    return Result(
        "200 rows of two unit Gaussians of equal weight; only the means are learned, by Algorithm "
        "1 with its reference mean corrected, see the errata.",
        "30 samples, 0 to 29",
        [table, distances, others],
        lambda figure: show(figure, paths),
    )


@item("P3.scales", "standard deviations in relative coordinates (section 3.1)")
def scales(setting):
    """Learn mixtures of a narrow and a wide Gaussian, all parameters free, in four ways."""
    table = Table(
        "Means 0 and a gap, standard deviations 1 and sigma_2: median steps until the "
        "log-likelihood changes by less than 1e-6, and its loss against EM, nats",
        [
            "gap and sigma_2",
            "EM",
            "ECM",
            "EM, both",
            "ECM, both",
            "ratio of steps, ECM to EM",
            "ECM, lost",
            "ECM, both, lost",
        ],
        digits=2,
    )
    ways = [("scales", "em"), ("scales", "ecm"), ("both", "em"), ("both", "ecm")]
    for gap, wide in ((2.0, 2.0), (4.0, 1.5), (4.0, 3.0), (4.0, 0.5)):
        fits = [
            [learn_scales(seed, gap, wide, *way) for seed in range(setting.size(20, 2))]
            for way in ways
        ]
        ends = [N_ROWS * np.array([fit.lower_bound_ for fit in some]) for some in fits]
        steps = [np.array([fit.n_iter_ for fit in some]) for some in fits]
        medians = [float(np.median(own)) for own in steps]
        lost = [ends[0] - own for own in (ends[1], ends[3])]
        table.add(f"{gap:g} and {wide:g}", *medians, steps[1] / steps[0], *lost)
    return Result(
        "200 rows of two Gaussians of equal weight, the second at the gap; weights, means and "
        "variances are learned, from the true parameters made alike by half. EM of ordered "
        "standard deviations is EM wherever they differ.",
        "20 samples, 0 to 19",
        [table],
    )


def learn_scales(seed, gap, wide, order, solver):
    """Learn all parameters of a mixture of two widths."""
    rng = np.random.default_rng(seed)
    second = rng.integers(2, size=N_ROWS)
    X = rng.normal(gap * second, np.where(second, wide, 1.0))[:, np.newaxis]
    means, variances = gap * np.array([[0.25], [0.75]]), ((np.array([1, wide]) + 1) / 2) ** 2
    return RelativeGMM(
        2,
        order=order,
        solver=solver,
        means_init=means,
        precisions_init=1 / variances,
        covariance_type="spherical",
        tol=1e-6 / N_ROWS,
        max_iter=20_000,
    ).fit(X)


def show(figure, paths):
    """Draw trajectories of one sample in both planes, and distances by step."""
    axes = figure.subplots(1, 3)
    for name in list(METHODS)[:3]:
        means = paths[name][min(4, len(paths[name]) - 1)]
        axes[0].plot(*means.T, ".-", label=name)
        axes[1].plot(means[:, 0], means[:, 1] - means[:, 0], ".-")
        axes[2].plot(np.linalg.norm(means - TRUTH, axis=1))
    axes[0].plot(*TRUTH, "g+", ms=12)
    axes[0].set(title="(mu_1, mu_2)")
    axes[1].set(title="(mu_1, Delta)")
    axes[2].set(title="distance to the truth by step", xscale="symlog")
    axes[0].legend(frameon=False, fontsize="x-small")
