"""Figures of the user guide that are no paper's: backgrounds and streams."""

import time

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

from . import texts
from .items import item
from .results import Result, Table

NEWS = ("20news-bydate.jsonl.gz", "stoplist_smart.txt")


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
        table.add(f"{share:g}", *cells)
    return Result(
        "100 clusters on the sphere with 384 features and concentrations of 300, 25 of different "
        "sizes in the plane; 10,000 rows of clusters.",
        "three data sets, 0 to 2",
        [table],
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
    return Result(
        "50,000 rows of 64 clusters with 64 features, batches of 1,000.",
        "0",
        [table],
    )


def in_batches(learner, X, size):
    """Return an estimator after one pass over rows."""
    for start in range(0, X.shape[0], size):
        learner.partial_fit(X[start : start + size])
    return learner


def embeddings(setting):
    """Return rows of 100 blurred clusters, as many features as embeddings have, and labels."""
    n, d, K = setting.size((220_000, 384, 100), (600, 8, 4))
    rng, length = np.random.default_rng(0), 0.22
    centres = rng.normal(size=(K, d))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    X = rng.standard_normal((n, d), dtype=np.float32) * np.float32(np.sqrt((1 - length**2) / d))
    X += length * centres[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@item("guide.passes", "one pass beside whole fits", minutes=1, needs=NEWS)
def passes(setting):
    """Compare one pass of batches with whole fits, in what they find and what they cost."""
    for need in NEWS:
        setting.file(need)
    X, y = embeddings(setting)
    K, n = len(np.unique(y)), len(X) // 11 * 10
    batch, first = setting.size((4096, 10_000), (100, 200))

    def mixture(**options):
        return VonMisesFisherMixture(K, random_state=0, **options)

    def pass_with_more_at_first():
        return in_batches(mixture().partial_fit(X[:first]), X[first:n], batch)

    table = Table(
        f"{n:,} rows of {X.shape[1]} features, {K} clusters, batches of {batch:,}",
        ["method", "log-likelihood held out", "NMI held out", "CPU seconds"],
        2,
    )
    found = {}
    for name, make in (
        ("partial_fit, with the start", lambda: in_batches(mixture(), X[:n], batch)),
        (f"the same, the first batch of {first:,}", pass_with_more_at_first),
        ("fit, max_iter=5", lambda: mixture(max_iter=5).fit(X[:n])),
        (
            'the same, init_params="random_from_data"',
            lambda: mixture(max_iter=5, init_params="random_from_data").fit(X[:n]),
        ),
        (
            "MiniBatchKMeans",
            lambda: in_batches(MiniBatchKMeans(K, n_init=1, random_state=0), X[:n], batch),
        ),
    ):
        start = time.process_time()
        learner = make()
        seconds = time.process_time() - start
        score = learner.score(X[n:]) if isinstance(learner, VonMisesFisherMixture) else None
        found[name] = score, normalized_mutual_info_score(y[n:], learner.predict(X[n:]))
        table.add(name, *found[name], seconds)
    news = Table("20 newsgroups, tf-idf, 20 components, batches of 500", ["method", "NMI"])
    rows, labels = texts.news20(setting.data)
    k = setting.size(20, 4)
    online = {"partial_fit": VonMisesFisherMixture, "MiniBatchKMeans": MiniBatchKMeans}
    for name, kind in online.items():
        own = []
        for seed in (0, 1):
            order = np.random.default_rng(seed).permutation(rows.shape[0])
            learner = in_batches(kind(k, n_init=1, random_state=seed), rows[order], 500)
            own.append(normalized_mutual_info_score(labels, learner.predict(rows)))
        news.add(name, np.array(own))
    whole = [VonMisesFisherMixture(k, random_state=seed).fit(rows).labels_ for seed in (0, 1)]
    news.add("fit", np.array([normalized_mutual_info_score(labels, own) for own in whole]))
    return Result(
        "A mean resultant length of .22; the log-likelihood is the mean of 20,000 rows held out.",
        "0; on 20 newsgroups two orders of the rows, 0 and 1",
        [table, news],
    )
