"""P2, sparse expectation steps: Table 1 and Figure 1."""

import numpy as np
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    silhouette_score,
)

from skvmf import SparseGaussianMixture

from .items import item
from .results import Result, Table

MEANS = np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
NUMBERS = np.array([0.11, 0.5, 0.7, 0.9])
VARIANCES = {"covariances": NUMBERS, "standard deviations": NUMBERS**2}
CLASSES = np.repeat(np.arange(4), 250)
METHODS = {
    "standard": {"weight_concentration_prior": 1},
    "hard": {"weight_concentration_prior": 1, "temperature": 0},
    "sparse, alpha 1.5": {"entmax_alpha": 1.5},
    "sparse, alpha 2": {"entmax_alpha": 2},
    "hard, equal weights": {"weight_concentration_prior": 1e6, "temperature": 0},
}
PAPER = {
    "standard": (0.606, 0.531, 0.345),
    "hard": (0.537, 0.348, 0.207),
    "sparse, alpha 2": (0.636, 0.476, 0.393),
}
TABLE_1 = [
    "method",
    "AMI",
    "paper, AMI",
    "ARI",
    "paper, ARI",
    "silhouette",
    "paper, silhouette",
    "converged",
]


def draw(variances, seed):
    """Return 1000 points of the four classes and 100 of none."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(len(CLASSES), 2))
    inliers = MEANS[CLASSES] + np.sqrt(variances[CLASSES, np.newaxis]) * noise
    return np.vstack([inliers, rng.uniform(-3, 3, size=(100, 2))])


def fit(X, seed, start="kmeans", **options):
    """Fit four components, from k-means or as the paper starts."""
    options = {"init_params": "kmeans", "max_iter": 200, "tol": 1e-8} | options
    if start == "paper":
        rng = np.random.default_rng(1000 + seed)
        variances = rng.uniform(0, 0.1, size=(4, 2))
        options |= {
            "weights_init": np.full(4, 0.25),
            "init_params": papers_shares(X, rng, variances),
        }
    return SparseGaussianMixture(4, random_state=seed, **options).fit(X)


def papers_shares(X, rng, variances):
    """Return responsibilities under means and variances uniform in [0, 0.1]."""
    means = rng.uniform(0, 0.1, size=(4, 2))
    start = SparseGaussianMixture.from_parameters(
        np.full(4, 0.25), means, variances, covariance_type="diag"
    )
    return start.predict_proba(X)


def evaluate(X, labels):
    """Return AMI, ARI and silhouette of the points that have a class."""
    inliers, found = X[: len(CLASSES)], labels[: len(CLASSES)]
    one = len(np.unique(found)) == 1
    return (
        adjusted_mutual_info_score(CLASSES, found),
        adjusted_rand_score(CLASSES, found),
        0.0 if one else silhouette_score(inliers, found),
    )


STARTS = {"kmeans": "from k-means", "paper": "from means and variances uniform in [0, 0.1]"}


@item("P2.tab1", "expectation steps: four Gaussians and outliers (also Figure 1)")
def table_1(setting):
    """Fill the table in both readings of the four numbers, and from the paper's start."""
    tables, found = [], {}
    for reading, variances in VARIANCES.items():
        data = [draw(variances, seed) for seed in range(setting.size(40, 2))]
        for start, described in STARTS.items():
            table = Table(f"The four numbers as {reading}, {described}", TABLE_1)
            for name, options in METHODS.items():
                if name not in PAPER and (start == "paper" or name == "sparse, alpha 1.5"):
                    continue
                fits = [fit(X, seed, start, **options) for seed, X in enumerate(data)]
                own = np.transpose(
                    [evaluate(X, m.labels_) for X, m in zip(data, fits, strict=True)]
                )
                found[reading, start, name] = own
                paper = PAPER.get(name, (None,) * 3)
                cells = [c for pair in zip(own, paper, strict=True) for c in pair]
                table.add(name, *cells, [m.n_iter_ < 200 for m in fits])
            tables.append(table)
        truth = SparseGaussianMixture.from_parameters(
            np.full(4, 0.25), MEANS, variances[:, np.newaxis, np.newaxis] * np.eye(2)
        )
        own = np.transpose([evaluate(X, truth.predict(X)) for X in data])
        for table in tables[-2:]:
            table.add("true parameters", *(c for v in own for c in (v, None)), None)
    return Result(
        "250 points of each of four Gaussians and 100 uniform ones, full covariances, at most 200 "
        "iterations, ended before where the bound changes by less than 1e-8; metrics of the "
        "points that have a class.",
        f"{len(data)} data sets and starts, 0 to {len(data) - 1}",
        tables,
        lambda figure: show_table_1(figure, found),
    )


def show_table_1(figure, found):
    """Draw sparse against standard EM over data sets."""
    axes = figure.subplots(1, 3)
    for index, (axis, name) in enumerate(zip(axes, ("AMI", "ARI", "silhouette"), strict=True)):
        for reading in VARIANCES:
            pair = [found[reading, "paper", m][index] for m in ("standard", "sparse, alpha 2")]
            axis.plot(*pair, ".", label=reading)
        axis.axline((0.4, 0.4), slope=1, color="0.6", lw=1)
        axis.set(title=name, xlabel="standard EM", ylabel="sparse EM")
    axes[0].legend(frameon=False, fontsize="small")
