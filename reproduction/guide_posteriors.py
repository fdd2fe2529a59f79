"""Sparse posteriors: classes of unequal size, dimensions, temperatures on texts."""

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

from . import texts
from .items import item
from .p2_expectation import METHODS
from .results import Result, Table


@item("guide.unequal", "sparse steps and classes of unequal size")
def unequal_classes(setting):
    """Fit a cluster of one point in twenty, four standard deviations from the rest."""
    centres, sizes = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([1900, 100])
    table = Table("Weight of the cluster that has .05 of the rows", ["method", "weight"], 3)
    for name in ("standard", "hard", "sparse, alpha 1.5", "sparse, alpha 2"):
        weights = []
        for seed in range(setting.size(20, 2)):
            rng = np.random.default_rng(seed)
            X = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
            start = {"means_init": centres, "weights_init": sizes / sizes.sum()}
            mixture = SparseGaussianMixture(
                2,
                random_state=seed,
                precisions_init=np.tile(np.eye(2), (2, 1, 1)),
                max_iter=300,
                tol=1e-8,
                **start,
                **METHODS[name],
            ).fit(X)
            near = np.linalg.norm(mixture.means_ - centres[1], axis=1).argmin()
            weights.append(mixture.weights_[near])
        table.add(name, weights)
    return Result(
        "2,000 points of two Gaussians in the plane, from the true parameters.",
        "20 data sets, 0 to 19",
        [table],
    )


@item("guide.dimension", "temperature by dimension")
def temperature_by_dimension(setting):
    """Count rows that have more than one share, under the true parameters."""
    table = Table(
        "Rows with more than one share above .001, %",
        ["features", "softmax", "sparsemax", "sparsemax, T = root of d"],
        0,
    )
    n = setting.size(4000, 200)
    for d in (2, 8, 32, 128):
        rng = np.random.default_rng(0)
        means = rng.normal(size=(4, d))
        X = means[rng.integers(4, size=n)] + 2 * rng.normal(size=(n, d))
        cells = []
        for options in ({}, {"entmax_alpha": 2}, {"entmax_alpha": 2, "temperature": np.sqrt(d)}):
            mixture = SparseGaussianMixture.from_parameters(
                np.full(4, 0.25), means, np.full(4, 4.0), covariance_type="spherical", **options
            )
            shares = mixture.predict_proba(X) > 1e-3
            cells.append(100 * np.mean(shares.sum(axis=1) > 1))
        table.add(str(d), *cells)
    return Result(
        f"{n} rows of four spherical Gaussians of standard deviation two, means standard normal.",
        "one data set a line, 0",
        [table],
    )


TEXT_VARIANTS = [(1, 1), (1, 20), (1, 80), (1, 169), (2, 80), (2, 169), (2, 300), (2, 28_571)]
FILES = ("20news-bydate.jsonl.gz", "stoplist_smart.txt")


@item("guide.texts", "temperatures on texts", needs=FILES)
def temperatures_on_texts(setting):
    """Cluster the 20 newsgroups at several temperatures."""
    for file in FILES:
        setting.file(file)
    X, y = texts.news20(setting.data)
    table = Table(
        "Tied mixtures of the 20 newsgroups",
        ["entmax_alpha", "temperature", "NMI", "ARI", "shares a row"],
    )
    for alpha, temperature in TEXT_VARIANTS[: setting.size(8, 2)]:
        rows = []
        for seed in range(setting.size(5, 1)):
            mixture = VonMisesFisherMixture(
                20,
                concentration_type="tied",
                concentration_prior=0,
                init_params="random",
                entmax_alpha=alpha,
                temperature=temperature,
                max_iter=100,
                tol=1e-7,
                random_state=seed,
            ).fit(X)
            shares = (mixture.predict_proba(X) > 1e-3).sum(axis=1).mean()
            rows.append(
                [
                    normalized_mutual_info_score(y, mixture.labels_),
                    adjusted_rand_score(y, mixture.labels_),
                    shares,
                ]
            )
        table.add(f"{alpha}", f"{temperature:,}", *np.transpose(rows))
    return Result(
        "18,803 x 28,571, random partitions, at most 100 iterations.",
        "0 to 4",
        [table],
    )
