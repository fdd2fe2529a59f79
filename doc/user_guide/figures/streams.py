"""Backgrounds, and learning in one pass."""

import time

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from reproduction import texts
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs

from .kmeans import FaissKMeans, SuperKMeans

NEWS = ("20news-bydate.jsonl.gz", "stoplist_smart.txt")


def on_sphere(n, seed, rows, K, d):
    """Return rows of clusters of directions, labels, uniform rows and a mixture."""
    X, y = make_vonmises_fisher_blobs(rows, d, centers=K, concentration=300.0, random_state=seed)
    uniform = np.random.default_rng(seed).normal(size=(int(n * len(X)), d))
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    return X, y, uniform, VonMisesFisherMixture(K, background=True, random_state=seed)


def in_plane(n, seed, rows, K, d):
    """Return rows of Gaussian clusters of different sizes, the same."""
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(rows, rng.dirichlet(np.full(K, 3.0)))
    centres = 12.0 * np.stack(np.divmod(np.arange(K), 5), axis=1)
    X, y = make_blobs(sizes, centers=centres, random_state=seed)
    low, high = X.min(axis=0) - 5, X.max(axis=0) + 5
    uniform = rng.uniform(low, high, size=(int(n * len(X)), d))
    mixture = SparseGaussianMixture(
        K, background=True, weight_concentration_prior=1.0, random_state=seed
    )
    return X, y, uniform, mixture


@item(
    "guide.background",
    "clusters among uniform rows",
    small={"rows": 500, "sphere": (5, 20), "plane": 4, "sets": 1, "every": 8},
)
def background(setting, rows=10_000, sphere=(100, 384), plane=25, sets=3, every=1):
    """Fit mixtures with a background to clusters with uniform rows added."""
    names = ["weight", "ARI of the clusters' rows"]
    table = Table(
        "The background's weight, and the agreement of the rows of clusters with these",
        ["uniform rows, share", *(f"{n}, sphere" for n in names), *(f"{n}, plane" for n in names)],
    )
    for share in (0.0, 0.05, 0.2, 0.5):
        cells = []
        for make, size in ((on_sphere, sphere), (in_plane, (plane, 2))):
            own = []
            for seed in range(sets):
                X, y, uniform, mixture = make(share / (1 - share), seed, rows, *size)
                mixture.fit(np.vstack([X, uniform]))
                labels = mixture.responsibilities(X).toarray().argmax(axis=1)
                own.append((mixture.background_weight_, adjusted_rand_score(y, labels)))
            cells += list(np.array(own).T)
        table.add(f"{share:g}", *cells)
    return Record(
        "100 clusters on the sphere with 384 features and concentrations of 300, 25 of different "
        "sizes in the plane; 10,000 rows of clusters. Docstrings in 50 latent dimensions.",
        "three data sets, 0 to 2; three starts on docstrings, 0 to 2",
        [table, background_of_texts(sets, every)],
    )


def background_of_texts(starts, every):
    """Return the table of what a background takes of texts that all have a topic."""
    table = Table("Docstrings: rows of the background, %", ["components", "share"], 0)
    X = latent_docstrings()[::every]
    for K in (13, 40):
        kinds = [VonMisesFisherMixture(K, background=True, random_state=s) for s in range(starts)]
        table.add(str(K), [100 * np.mean(kind.fit(X).labels_ == -1) for kind in kinds])
    return table


def latent_docstrings():
    """Return the docstrings as unit rows of 50 latent dimensions."""
    words = TfidfVectorizer(stop_words="english", min_df=3)
    svd = TruncatedSVD(50, random_state=0)
    return normalize(svd.fit_transform(words.fit_transform(load_docstrings().data)))


@item(
    "guide.streams", "one pass over a stream", small={"rows": 1000, "K": 5, "batch": 200, "sets": 2}
)
def streams(setting, rows=50_000, K=64, batch=1000, sets=5):
    """Learn clusters in one pass, in random order and class by class."""
    table = Table("NMI with the classes after one pass", ["method", "shuffled", "class by class"])
    kinds = {"partial_fit": VonMisesFisherMixture, "MiniBatchKMeans": MiniBatchKMeans}
    found = {name: [] for name in kinds}
    for seed in range(sets):
        kind = {"centers": K, "concentration": 60.0, "random_state": seed}
        X, y = make_vonmises_fisher_blobs(rows, 64, **kind)
        for name, kind in kinds.items():
            learners = (
                in_batches(kind(K, n_init=1, random_state=seed), data, batch)
                for data in (X, X[np.argsort(y, kind="stable")])
            )
            labels = [own.predict(X) for own in learners]
            found[name].append([normalized_mutual_info_score(y, own) for own in labels])
    for name, own in found.items():
        table.add(name, *np.transpose(own))
    settings = "50,000 rows of 64 clusters with 64 features, batches of 1,000."
    return Record(settings, "five data sets, 0 to 4", [table])


def in_batches(learner, X, size):
    """Return an estimator after one pass over rows."""
    for start in range(0, X.shape[0], size):
        learner.partial_fit(X[start : start + size])
    return learner


def embeddings(n=220_000, d=384, K=100, seed=0):
    """Return rows of blurred clusters, as many features as embeddings have, and labels."""
    rng, length = np.random.default_rng(seed), 0.22
    centres = rng.normal(size=(K, d))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    X = rng.standard_normal((n, d), dtype=np.float32) * np.float32(np.sqrt((1 - length**2) / d))
    X += length * centres[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@item(
    "guide.passes",
    "one pass beside whole fits",
    needs=(*NEWS, "faiss", "superkmeans"),
    small={"sets": 1, "n": 540, "d": 8, "K": 4, "batch": 100, "first": 200, "k": 4},
)
def passes(setting, sets=3, n=200_000, d=384, K=100, batch=4096, first=10_000, k=20):
    """Compare one pass of batches with whole fits, in what they find and what they cost."""
    in_batches(VonMisesFisherMixture(2), embeddings(100, d, 2)[0], 50)  # compiles
    found = [learned(embeddings(n // 10 * 11, d, K, s), K, n, batch, first, s) for s in range(sets)]
    table = Table(
        f"{n:,} rows of {d} features, {K} clusters, batches of {batch:,}",
        ["method", "log-likelihood held out", "NMI held out", "CPU seconds"],
        2,
    )
    for name in found[0]:
        score, nmi, seconds = zip(*(own[name] for own in found), strict=True)
        table.add(name, None if None in score else score, nmi, seconds)
    return Record(
        "A mean resultant length of .22; the log-likelihood is the mean of 20,000 rows held out.",
        f"data sets 0 to {sets - 1}; on 20 newsgroups two orders of the rows, 0 and 1",
        [table, passes_of_news(setting, k)],
    )


def learned(data, K, n, batch, first, seed):
    """Return the log-likelihood, the NMI and the seconds of each method, on one data set."""
    X, y = data

    def mixture(**options):
        return VonMisesFisherMixture(K, random_state=seed, **options)

    found = {}
    for name, make in (
        ("partial_fit, with the start", lambda: in_batches(mixture(), X[:n], batch)),
        (
            f"the same, the first batch of {first:,}",
            lambda: in_batches(mixture().partial_fit(X[:first]), X[first:n], batch),
        ),
        ("fit, max_iter=5", lambda: mixture(max_iter=5).fit(X[:n])),
        (
            'the same, init_params="random_from_data"',
            lambda: mixture(max_iter=5, init_params="random_from_data").fit(X[:n]),
        ),
        (
            "MiniBatchKMeans",
            lambda: in_batches(MiniBatchKMeans(K, n_init=1, random_state=seed), X[:n], batch),
        ),
        ("fit", lambda: mixture().fit(X[:n])),
        ("KMeans, n_init=1", lambda: KMeans(K, n_init=1, random_state=seed).fit(X[:n])),
        ("FAISS, spherical, 25 iterations", lambda: FaissKMeans(K, seed).fit(X[:n])),
        (
            "FAISS, the same, its sample of 256 rows a centre",
            lambda: FaissKMeans(K, seed, samples=True).fit(X[:n]),
        ),
        ("SuperKMeans, the same", lambda: SuperKMeans(K, seed).fit(X[:n])),
    ):
        start = time.process_time()
        learner = make()
        seconds = time.process_time() - start
        score = learner.score(X[n:]) if isinstance(learner, VonMisesFisherMixture) else None
        nmi = normalized_mutual_info_score(y[n:], learner.predict(X[n:]))
        found[name] = score, nmi, seconds
    return found


def passes_of_news(setting, k):
    """Return the table of the 20 newsgroups."""
    news = Table("20 newsgroups, tf-idf, 20 components, batches of 500", ["method", "NMI"])
    rows, labels = texts.news20(setting.data)
    online = {"partial_fit": VonMisesFisherMixture, "MiniBatchKMeans": MiniBatchKMeans}
    for name, kind in online.items():
        own = []
        for seed in (0, 1):
            order = np.random.default_rng(seed).permutation(rows.shape[0])
            learner = in_batches(kind(k, n_init=1, random_state=seed), rows[order], 500)
            own.append(normalized_mutual_info_score(labels, learner.predict(rows)))
        news.add(name, own)
    whole = [VonMisesFisherMixture(k, random_state=seed).fit(rows).labels_ for seed in (0, 1)]
    news.add("fit", [normalized_mutual_info_score(labels, own) for own in whole])
    return news
