"""Figures of the user guide that are no paper's: backgrounds and streams."""

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

from .items import item
from .results import Result, Table, judge


def on_sphere(n, seed, setting):
    """Return rows of clusters of directions, labels, uniform rows and a mixture."""
    K, d = setting.size((100, 384), (5, 20))
    X, y = make_vonmises_fisher_blobs(
        10_000 // setting.size(1, 20), d, centers=K, concentration=300.0, random_state=seed
    )
    uniform = np.random.default_rng(seed).normal(size=(int(n * len(X)), d))
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    return X, y, uniform, VonMisesFisherMixture(K, background=True, random_state=seed)


def in_plane(n, seed, setting):
    """Return rows of Gaussian clusters of different sizes, the same."""
    K, rng = setting.size(25, 4), np.random.default_rng(seed)
    sizes = rng.multinomial(10_000 // setting.size(1, 20), rng.dirichlet(np.full(K, 3.0)))
    centres = 12.0 * np.stack(np.divmod(np.arange(K), 5), axis=1)
    X, y = make_blobs(sizes, centers=centres, random_state=seed)
    low, high = X.min(axis=0) - 5, X.max(axis=0) + 5
    uniform = rng.uniform(low, high, size=(int(n * len(X)), 2))
    mixture = SparseGaussianMixture(
        K, background=True, weight_concentration_prior=1.0, random_state=seed
    )
    return X, y, uniform, mixture


@item("guide.background", "clusters among uniform rows", minutes=2)
def background(setting):
    """Fit mixtures with a background to clusters with uniform rows added."""
    names = ["weight", "ARI of the clusters' rows"]
    table = Table(
        "The background's weight, and the agreement of the rows of clusters with these",
        ["uniform rows, share", *(f"{n}, sphere" for n in names), *(f"{n}, plane" for n in names)],
    )
    worst = 0.0
    for share in (0.0, 0.05, 0.2, 0.5):
        cells = []
        for make in (on_sphere, in_plane):
            own = []
            for seed in range(setting.size(3, 1)):
                X, y, uniform, mixture = make(share / (1 - share), seed, setting)
                mixture.fit(np.vstack([X, uniform]))
                labels = mixture.responsibilities(X).toarray().argmax(axis=1)
                own.append((mixture.background_weight_, adjusted_rand_score(y, labels)))
            cells += list(np.array(own).T)
            worst = max(worst, abs(cells[-2].mean() - share))
        table.add(f"{share:g}", *cells)
    return Result(
        "100 clusters on the sphere with 384 features and concentrations of 300, 25 of different "
        "sizes in the plane; 10,000 rows of clusters, three data sets.",
        [table],
        [
            judge(
                "The weight of the background is the share of uniform rows.",
                worst < 0.01,
                f"It is at most {worst:.3f} from it.",
                else_="holds in part",
            )
        ],
    )


@item("guide.streams", "one pass over a stream", minutes=1)
def streams(setting):
    """Learn clusters in one pass, in random order and class by class."""
    K = setting.size(64, 5)
    X, y = make_vonmises_fisher_blobs(
        50_000 // setting.size(1, 50), 64, centers=K, concentration=60.0, random_state=0
    )
    table = Table("NMI with the classes after one pass", ["method", "shuffled", "class by class"])
    found = {}
    for name, make in (
        ("partial_fit", lambda: VonMisesFisherMixture(K, random_state=0)),
        ("MiniBatchKMeans", lambda: MiniBatchKMeans(K, n_init=1, random_state=0)),
    ):
        for order in (np.arange(len(X)), np.argsort(y, kind="stable")):
            learner, batch = make(), setting.size(1000, 200)
            for start in range(0, len(X), batch):
                learner.partial_fit(X[order[start : start + batch]])
            labels = learner.predict(X)
            found.setdefault(name, []).append(normalized_mutual_info_score(y, labels))
        table.add(name, *found[name])
    shuffled, sorted_ = found["partial_fit"]
    return Result(
        "50,000 rows of 64 clusters with 64 features, batches of 1,000.",
        [table],
        [
            judge(
                "Rows that come class by class ruin a pass.",
                sorted_ < shuffled - 0.1,
                f"NMI {sorted_:.2f} against {shuffled:.2f}.",
            )
        ],
    )
