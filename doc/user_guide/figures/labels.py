"""Real data with labels: which method finds the classes, and in which time."""

import time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import FunctionTransformer, Normalizer, normalize
from threadpoolctl import threadpool_limits

from reproduction import texts
from reproduction.instruments.idx import load_idx
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.preprocessing import DirectionWhitener

from .components import MNIST
from .embeddings import FASHION, MESSAGES, embedded
from .kmeans import FaissKMeans
from .mixtures import scores

STOP_WORDS = "stoplist_smart.txt"
NEEDS = (MESSAGES, STOP_WORDS, *MNIST, *FASHION, "wordllama", "faiss", "umap", "hdbscan", "evoc")
COLUMNS = ["method", "clusters", "rows labelled, %", "NMI", "ARI", "CPU seconds"]
WINDOW = 20  # words
MANY = 5000  # rows of which UMAP and EVoC look for approximate neighbours, by other compiled code


def methods(K, n_features):
    """Return names of clusterings into K clusters, what is before them, and the estimator."""
    # Full covariances have as many parameters as the square of the features: of 50 at most.
    fewer = FunctionTransformer() if n_features <= 64 else PCA(50, random_state=0)
    as_they_are, directions = FunctionTransformer(), VonMisesFisherMixture(K)
    return [
        ("VonMisesFisherMixture", as_they_are, directions),
        ("DirectionWhitener before it", DirectionWhitener(0.25), directions),
        ("DirectionWhitener(0.5) before it", DirectionWhitener(0.5), directions),
        ("StudentTMixture", fewer, StudentTMixture(K)),
        ("SparseGaussianMixture", fewer, SparseGaussianMixture(K)),
        ("scikit-learn's GaussianMixture", fewer, GaussianMixture(K)),
        ("scikit-learn's KMeans", as_they_are, KMeans(K)),
        ("KMeans of unit rows", Normalizer(), KMeans(K)),
        ("FAISS, spherical", as_they_are, FaissKMeans(K)),
    ]


def images(setting, most):
    """Yield names, principal components and labels of images."""
    for name, files in (("MNIST", MNIST), ("Fashion-MNIST", FASHION)):
        pixels, y = (load_idx(setting.data / file)[:most] for file in files)
        flat = pixels.reshape(len(pixels), -1).astype(np.float32) / 255
        yield name, PCA(50, random_state=0).fit_transform(flat), y


def embedded_messages(setting):
    """Return the embeddings of messages without headers, and their groups."""
    messages = texts.read(setting.file(MESSAGES))
    X = embedded([message["text"].partition("\n\n")[2] for message in messages])
    known = X.any(axis=1)
    return X[known], np.array([message["label"] for message in messages])[known]


def windows(setting):
    """Return 64 dimensions of windows of 20 words of the messages, and their groups."""
    stop_words = set((setting.data / STOP_WORDS).read_text(encoding="utf-8").split())
    parts, y = [], []
    for message in texts.read(setting.file(MESSAGES)):
        body = message["text"].partition("\n\n")[2].lower()
        words = [word for word in _WORDS(body) if word not in stop_words]
        for start in range(0, len(words), WINDOW):
            parts.append(" ".join(words[start : start + WINDOW]))
            y.append(message["label"])
    counts = TfidfVectorizer(min_df=10, sublinear_tf=True).fit_transform(parts[::3])
    y = np.array(y[::3])
    enough = np.diff(sparse.csr_array(counts).indptr) >= 3
    latent = TruncatedSVD(64, random_state=0).fit_transform(counts[enough])
    return normalize(latent).astype(np.float32), y[enough]


_WORDS = TfidfVectorizer(token_pattern="[a-z][a-z]+").build_tokenizer()


@item("guide.labels", "real data with labels", needs=NEEDS, small={"most": 400, "starts": 1})
def labels(setting, most=20_000, starts=3):
    """Cluster images, messages and windows of messages by many methods, on one thread."""
    with threadpool_limits(1):
        data = [
            ("messages", *embedded_messages(setting)),
            *images(setting, most),
            ("windows", *windows(setting)),
        ]
        tables = [compared(name, X, y, starts) for name, X, y in data]
    sizes = ", ".join(f"{name} {X.shape[0]:,} x {X.shape[1]}" for name, X, _ in data)
    return Record(
        f"As many components as classes, defaults, one thread; means of {starts} fits. {sizes}. "
        "Images are in 50 principal components. Messages are embedded by wordllama without their "
        "headers, and in 50 principal components for Gaussian and Student-t mixtures; "
        "windows are every third one of 20 words, by latent semantic "
        "analysis. HDBSCAN has min_cluster_size = n / 200, EVoC approx_n_clusters = K; their NMI "
        "and ARI are of the rows that they label.",
        f"0 to {starts - 1}; of UMAP, HDBSCAN and EVoC 0",
        tables,
    )


def compared(name, X, y, starts):
    """Return the table of a data set."""
    K = len(np.unique(y))
    table = Table(f"{name}, {K} classes", COLUMNS)
    found = {}
    for method, before, estimator in methods(K, X.shape[1]):
        _fitted(estimator, before.fit_transform(X)[:500], 0)  # compiles
        own = []
        for seed in range(starts):
            begun = time.process_time()
            found[method] = _fitted(estimator, before.fit_transform(X), seed)
            own.append((*scores(y, found[method]), time.process_time() - begun))
        table.add(method, str(K), "100", *np.transpose(own))
    _add_after_umap(table, X, y, K, starts)
    _add_evoc(table, X, y, K, found["VonMisesFisherMixture"])
    return table


def _add_after_umap(table, X, y, K, starts):
    """Add rows of what clusters five dimensions by UMAP."""
    from hdbscan import HDBSCAN
    from umap import UMAP

    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    clone(reducer).fit(X[:MANY])  # compiles
    begun = time.process_time()
    five = reducer.fit_transform(X).astype(float)
    spent, own = time.process_time() - begun, []
    for seed in range(starts):
        begun = time.process_time()
        labels = _fitted(SparseGaussianMixture(K), five, seed)
        own.append((*scores(y, labels), spent + time.process_time() - begun))
    table.add("UMAP, SparseGaussianMixture", str(K), "100", *np.transpose(own))

    begun = time.process_time()
    labels = HDBSCAN(min_cluster_size=max(5, len(X) // 200)).fit(five).labels_
    _add_partial(table, "UMAP, HDBSCAN", y, labels, spent + time.process_time() - begun)


def _add_evoc(table, X, y, K, ours):
    """Add a row of EVoC, and one of a mixture on the rows that EVoC labels."""
    from evoc import EVoC

    clusterer = EVoC(approx_n_clusters=K, random_state=0)
    clone(clusterer).fit_predict(X[:MANY])  # compiles
    begun = time.process_time()
    labels = np.asarray(clusterer.fit_predict(X))
    _add_partial(table, "EVoC", y, labels, time.process_time() - begun)
    kept = np.where(labels >= 0, ours, -1)
    _add_partial(table, "VonMisesFisherMixture on the rows that EVoC labels", y, kept, None)


def _add_partial(table, method, y, labels, seconds):
    """Add a row of a method that leaves rows without a label, -1."""
    kept = labels >= 0
    n_clusters = len(np.unique(labels[kept]))
    share = f"{100 * kept.mean():.0f}"
    table.add(method, str(n_clusters), share, *scores(y[kept], labels[kept]), seconds)


def _fitted(estimator, rows, seed):
    """Return the labels of a fit."""
    fitted = clone(estimator).set_params(random_state=seed).fit(rows)
    return fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(rows)
