"""Clusterings of embeddings, for the user guide: whitening, word embeddings, UMAP and HDBSCAN."""

import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import FunctionTransformer, normalize

from reproduction import texts
from reproduction.instruments.idx import load_idx
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings
from skvmf.model_selection import ComponentPath
from skvmf.preprocessing import DirectionWhitener

from .components import MNIST
from .kmeans import FaissKMeans, SuperKMeans
from .mixtures import scores

STRENGTHS = (None, 0.0, 0.25, 0.5, 1.0)
ABSTRACTS = ("classic3.jsonl.gz", "stoplist_smart.txt")
SENTENCES = "subj.jsonl.gz"
MESSAGES = "20news-bydate.jsonl.gz"
FASHION = ("fashion-train-images-idx3-ubyte.gz", "fashion-train-labels-idx1-ubyte.gz")
WHITENED = (*ABSTRACTS, SENTENCES, MESSAGES, *MNIST, *FASHION)
MIXTURES = {
    "VonMisesFisherMixture": {},
    'with init_params="kmeans"': {"init_params": "kmeans"},
    'with concentration_type="tied"': {"concentration_type": "tied"},
    "with concentration_prior=1": {"concentration_prior": 1},
}


def collections(setting, images, most):
    """Yield names, unit rows and labels."""
    pixels, labels = load_digits(return_X_y=True)
    yield "digits", normalize(pixels), labels
    for name, files in (("MNIST", MNIST), ("Fashion-MNIST", FASHION)):
        pixels, labels = (load_idx(setting.data / file)[:images] for file in files)
        yield name, normalize(pixels.reshape(len(pixels), -1).astype(np.float32)), labels
    abstracts, kinds = texts.classic3(setting.data)
    messages, groups = texts.news20(setting.data)
    words = TfidfVectorizer(stop_words="english", min_df=3)
    docstrings, modules = load_docstrings(return_X_y=True)
    sentences = texts.read(setting.data / SENTENCES)
    subjective = [sentence["label"] for sentence in sentences]
    for name, X, y, d in (
        ("classic3", abstracts, kinds, 50),
        ("20 newsgroups", messages, groups, 50),
        ("20 newsgroups", messages, groups, 256),
        ("docstrings", words.fit_transform(docstrings), modules, 50),
        ("docstrings", words.fit_transform(docstrings), modules, 200),
        ("Subj", words.fit_transform([own["text"] for own in sentences]), subjective, 50),
    ):
        latent = TruncatedSVD(min(d, most), random_state=0).fit_transform(X)
        kept = latent.any(axis=1)
        yield f"{name}, LSA {d}", normalize(latent[kept]), np.asarray(y)[kept]


@item(
    "guide.whitening",
    "centred and whitened rows",
    needs=WHITENED,
    small={"starts": 1, "images": 300, "most": 8},
)
def whitening(setting, starts=4, images=10_000, most=256):
    """Cluster rows as they are, centred, and whitened by degrees."""
    heads = ["as they are" if strength is None else f"{strength:g}" for strength in STRENGTHS]
    table = Table("NMI with the classes, by strength", ["rows", "mean cosine", *heads])
    for name, X, y in collections(setting, images, most):
        cells = []
        for strength in STRENGTHS:
            rows = X if strength is None else DirectionWhitener(strength).fit_transform(X)
            mixture = VonMisesFisherMixture(len(np.unique(y)))
            cells.append([agreement(mixture, rows, y, seed)[0] for seed in range(starts)])
        table.add(name, (X.mean(axis=0) ** 2).sum(), *cells)
    return Record(
        "As many components as classes, default fits; of the images the first 10,000.",
        f"0 to {starts - 1}",
        [table],
    )


@item(
    "guide.embeddings",
    "word embeddings of newsgroups",
    needs=(MESSAGES, "wordllama", "faiss", "superkmeans"),
    small={"starts": 1, "K": 4, "sizes": (8,)},
)
def newsgroups(setting, starts=3, K=20, sizes=(40, 80)):
    """Cluster the word embeddings of messages by mixtures, k-means and paths."""
    messages = texts.read(setting.file(MESSAGES))[::6]
    X = embedded([message["text"].partition("\n\n")[2] for message in messages])
    kept, y = X.any(axis=1), np.array([message["label"] for message in messages])
    X, y = X[kept], y[kept]
    estimators = {name: VonMisesFisherMixture(K, **own) for name, own in MIXTURES.items()}
    estimators |= {f"KMeans, n_init={n}": KMeans(K, n_init=n) for n in (1, 10)}
    estimators |= {"FAISS, spherical": FaissKMeans(K), "SuperKMeans, spherical": SuperKMeans(K)}
    table = Table("Agreement with the newsgroups", ["method", "NMI", "ARI", "bound, nats per row"])
    for name, estimator in estimators.items():
        nmi, ari, bounds = np.transpose(
            [agreement(estimator, X, y, seed) for seed in range(starts)]
        )
        table.add(name, nmi, ari, None if np.isnan(bounds).any() else bounds)
    paths = Table("Paths", ["starts from", "components that slope chooses", "ARI"])
    for size in sizes:
        path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=size).fit(X)
        ari = adjusted_rand_score(y, path.labels_)
        paths.add(str(size), str(path.best_n_components_), ari)
    return Record(
        f"Every sixth message without headers: {len(X):,} unit rows of {X.shape[1]} features by "
        "wordllama.",
        f"0 to {starts - 1}; of the paths 0",
        [table, paths],
    )


@item(
    "guide.umap",
    "mixtures, UMAP and HDBSCAN",
    needs=(MESSAGES, "wordllama", "umap", "hdbscan"),
    small={"every": 8, "messages": 250, "starts": 1},
)
def umap_and_hdbscan(setting, every=1, messages=10**6, starts=3):
    """Cluster the embeddings of docstrings and of messages, themselves and after UMAP."""
    from hdbscan import HDBSCAN
    from umap import UMAP

    corpus = load_docstrings()
    raw, y = embedded(corpus.data[::every]), corpus.target[::every]
    X = raw - raw.mean(axis=0)
    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    five = clone(reducer).fit_transform(raw).astype(float)
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=60).fit(X)
    K = path.best_n_components_
    dense = HDBSCAN(min_cluster_size=15)
    labels = {
        "UMAP to 5 dimensions, HDBSCAN": clone(dense).fit(five).labels_,
        "HDBSCAN on the embeddings": clone(dense).fit(normalize(X)).labels_,
        "UMAP to 5 dimensions, Gaussian mixture": SparseGaussianMixture(K, random_state=0)
        .fit(five)
        .labels_,
        "von Mises-Fisher mixture of the embeddings": path.labels_,
        "the same, with a background": VonMisesFisherMixture(K, background=True, random_state=0)
        .fit(X)
        .labels_,
    }
    table = Table("Agreement", ["method", "clusters", "noise, %", "NMI", "ARI"], 2)
    for name, own in labels.items():
        kept = own >= 0
        noise = f"{100 * np.mean(~kept):.0f}"
        table.add(name, str(own.max() + 1), noise, *scores(y[kept], own[kept]))
    news = of_messages(setting, reducer, messages, starts)
    return Record(
        "256 features by wordllama: docstrings, and all messages of 20 newsgroups without headers, "
        "20 components.",
        f"0; on the newsgroups of the mixtures 0 to {starts - 1}",
        [table, news],
    )


def of_messages(setting, reducer, most, starts):
    """Return the table of mixtures of messages: as they are, whitened, and after UMAP."""
    messages = texts.read(setting.file(MESSAGES))
    messages = messages[:: max(1, len(messages) // most)]
    X = embedded([message["text"].partition("\n\n")[2] for message in messages])
    kept, y = X.any(axis=1), np.array([message["label"] for message in messages])
    X, y = X[kept], y[kept]
    table = Table("The 20 newsgroups", ["method", "NMI", "ARI", "CPU seconds"])
    for name, before, kind in (
        ("von Mises-Fisher mixture", FunctionTransformer(), VonMisesFisherMixture),
        ("DirectionWhitener before it", DirectionWhitener(0.25), VonMisesFisherMixture),
        ("UMAP to 5 dimensions, Gaussian mixture", reducer, SparseGaussianMixture),
    ):
        kind(20).fit(X[:100, :5])  # compiles, as UMAP does what it needs for many rows
        before.fit_transform(X[:5000])
        begun = time.process_time()
        rows = before.fit_transform(X)
        spent, own = time.process_time() - begun, []
        for seed in range(starts):
            begun = time.process_time()
            labels = kind(20, random_state=seed).fit(rows).labels_
            own.append((*scores(y, labels), spent + time.process_time() - begun))
        table.add(name, *np.transpose(own))
    return table


def windows_of_messages(setting, most):
    """Return windows of 28 words of the messages without headers, in an order that is drawn."""
    bodies = (
        each["text"].partition("\n\n")[2].split() for each in texts.read(setting.file(MESSAGES))
    )
    windows = [" ".join(own[i : i + 28]) for own in bodies for i in range(0, len(own) - 14, 17)]
    np.random.default_rng(0).shuffle(windows)
    return windows[:most]


def embedded(documents):
    """Return the unit row of each text, zero for one without a known word."""
    import wordllama

    folder = Path(wordllama.__file__).parent  # the weights and the tokenizer are in the package
    encoder = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    by_length = np.argsort([len(text) for text in documents], kind="stable")
    rows = np.empty((len(documents), 256), np.float32)  # batches of one length are faster
    rows[by_length] = encoder.embed([documents[i] for i in by_length], batch_size=8)
    return normalize(rows)


def agreement(estimator, X, y, seed):
    """Return NMI and ARI of a fit with the labels, and its bound if it has one."""
    fitted = clone(estimator).set_params(random_state=seed).fit(X)
    return *scores(y, fitted.labels_), getattr(fitted, "lower_bound_", np.nan)
