"""Limits on sizes, for the user guide: what they cost, beside k-means, and what they do not buy."""

import time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings

from .embeddings import MESSAGES, embedded, windows_of_messages
from .kmeans import FaissKMeans, SuperKMeans

LIMITS = 0.4, 1.25
TIED = VonMisesFisherMixture(concentration_type="tied")
LIMITED = clone(TIED).set_params(size_limits=LIMITS)
# Steps on all rows: for an index one is enough.
STEPS = 1
# More components would take FAISS minutes, and the command takes half an hour as it is.
MOST_OF_FAISS = 4000
FREE_NAME, LIMITED_NAME = "mixture", "mixture with limits"
RUNS = (60_000, 400), (60_000, 1000), (120_000, 4000), (120_000, 16_000)
SIZES = ["largest / mean", "smallest / mean", "mean cosine", "pairs", "CPU seconds"]
SHARES = ["largest / mean, free", "largest / mean", "smallest / mean"]
READ = 0.02  # of the rows, by a query
RECALL = [
    "recall, 2 % of the rows read",
    "reads of the slowest hundredth / mean",
    "recall, slowest hundredth reads 4 %",
]


def draw_sizes(figure, record):
    """Draw the mean cosine against the largest size, a line for each method."""
    axis = figure.subplots()
    rows = record.tables[0].rows
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == name]
        axis.plot([row[2] for row in own], [row[4] for row in own], "o-", label=name)
    for _, K, largest, _, cosine, *_ in rows:
        if largest <= 1.3:
            axis.annotate(f"  K = {K}", (largest, cosine), ha="left", va="center")
    axis.set(xscale="log", xlabel="largest size / mean size", ylabel="mean cosine", xlim=(1, None))
    ticks = [1, 1.25, 2, 4, 8, 16, 32]
    axis.set_xticks(ticks, map(str, ticks))
    axis.minorticks_off()
    axis.legend(frameon=False)


@item(
    "guide.sizes",
    "limits on sizes",
    needs=(MESSAGES, "wordllama", "faiss", "superkmeans"),
    small={"runs": ((600, 5),), "queries": 20},
    draw=draw_sizes,
)
def sizes(setting, runs=RUNS, queries=2000):
    """Compare fits with and without limits and k-means: sizes, cosines, times, recall."""
    n_rows = max(n for n, _ in runs) + queries
    windows = windows_of_messages(setting, n_rows + n_rows // 6)
    rows = embedded(windows)
    rows = rows[rows.any(axis=1)]
    # Components of few rows have no room for all copies of one.
    _, first = np.unique(rows, axis=0, return_index=True)
    rows = rows[np.sort(first)]
    asked, rows = rows[:queries], rows[queries:n_rows]
    table = Table("Sizes and cosines", ["method", "components", *SIZES], digits=4)
    recall = Table("Recall of an index", ["method", "components", *RECALL], digits=3)
    methods(5)[LIMITED_NAME].fit(rows[:500])  # compiles
    for n, K in runs:
        X = rows[:n]
        nearest = neighbours(X, asked)
        for name, estimator in methods(K).items():
            labels, seconds = timed(estimator, X)
            table.add(name, str(K), *measures(X, labels, K), seconds)
            recall.add(name, str(K), *index_of(X, asked, nearest, labels, K))
    return Record(
        "Windows of 28 words of the 20 newsgroups' messages, without copies, 256 features by "
        "wordllama: 60,000 rows, 120,000 for 4,000 and 16,000 components, 5,000 with weights. "
        "Limits of .4 and 1.25 times the mean size; tied concentrations, one step on all rows, "
        "otherwise defaults. FAISS, up to 4,000, and SuperKMeans: spherical, 25 iterations on all "
        "rows. Pairs are the sum of squared sizes, over that of equal sizes. "
        "Cells of the index are visited in the order of the cosines of their mean directions with "
        f"a query, {queries:,} queries that no fit has seen, ten neighbours each.",
        "0",
        [table, recall, other_rows(rows[:5000])],
    )


def methods(K):
    """Return the estimators by name."""
    estimators = {
        FREE_NAME: clone(TIED).set_params(n_components=K, max_iter=STEPS, random_state=0),
        LIMITED_NAME: clone(LIMITED).set_params(n_components=K, max_iter=STEPS, random_state=0),
        "SuperKMeans": SuperKMeans(K),
    }
    if K <= MOST_OF_FAISS:
        estimators["FAISS"] = FaissKMeans(K)
    return estimators


def timed(estimator, X):
    """Return labels and CPU seconds."""
    begun = time.process_time()
    labels = estimator.fit(X).labels_
    return labels, time.process_time() - begun


def measures(X, labels, K):
    """Return the largest and the smallest size, the mean cosine, and pairs within clusters."""
    counts = np.bincount(labels, minlength=K)
    mean = len(X) / K
    cosines = np.einsum("nd,nd->n", X, centres_of(X, labels, K)[labels])
    pairs = np.sum(counts.astype(float) ** 2) / (K * mean**2)
    return counts.max() / mean, counts.min() / mean, cosines.mean(), pairs


def centres_of(X, labels, K):
    """Return the directions of the means of clusters."""
    members = sparse.csr_array((np.ones(len(X), X.dtype), (labels, np.arange(len(X)))), (K, len(X)))
    return normalize(members @ X)


def index_of(X, queries, nearest, labels, K):
    """Return recall and reads of an index whose cells are clusters, in the columns of RECALL."""
    counts = np.bincount(labels, minlength=K)
    order = np.argsort(-(queries @ centres_of(X, labels, K).T), axis=1)
    reads = counts[order].cumsum(axis=1) / len(X)  # after one cell, after two, and so on
    places = np.argsort(order, axis=1)  # of cells among those of a query
    of_nearest = np.take_along_axis(places, labels[nearest], axis=1)
    recall = np.bincount(of_nearest.ravel(), minlength=K).cumsum() / of_nearest.size
    slowest = np.quantile(reads, 0.99, axis=0)
    means = reads.mean(axis=0)
    return (
        np.interp(READ, means, recall),
        np.interp(READ, means, slowest) / READ,
        np.interp(2 * READ, slowest, recall),
    )


def neighbours(X, queries):
    """Return the ten rows that are nearest to each query."""
    parts = np.array_split(queries, max(1, len(queries) // 100))
    return np.vstack([np.argpartition(-(part @ X.T), 10, axis=1)[:, :10] for part in parts])


def other_rows(X):
    """Return the table of weights, sparse rows and Gaussians."""
    table = Table("Other rows", ["rows, components", *SHARES, "nats lost per row"], digits=2)
    tfidf = TfidfVectorizer(min_df=3).fit_transform(load_docstrings().data)
    drawn = np.random.default_rng(0).integers(1, 6, len(X)).astype(float)
    diagonal = SparseGaussianMixture(covariance_type="diag", reg_covar=0.1)
    for name, rows, weights, estimator, K in (
        ("sentences of weights 1 to 5, 50", X, drawn, TIED, 50),
        ("docstrings, CSR, 13", tfidf, None, TIED, 13),
        ("digits, diagonal Gaussians, 10", load_digits().data, None, diagonal, 10),
    ):
        shares, bounds = [], []
        for limits in (None, LIMITS):
            own = clone(estimator).set_params(n_components=K, size_limits=limits, random_state=0)
            own.fit(rows, sample_weight=weights)
            counts = np.bincount(own.labels_, weights, K)
            shares.append(counts / counts.mean())
            bounds.append(own.lower_bound_)
        lost = bounds[0] - bounds[1]
        table.add(name, shares[0].max(), shares[1].max(), shares[1].min(), lost)
    return table


@item(
    "guide.balanced",
    "limits on sizes beside k-means-constrained",
    needs=(MESSAGES, "wordllama", "k_means_constrained"),
    small={"runs": ((300, 5),), "seeds": 1},
)
def balanced(setting, runs=((5000, 50), (10_000, 100)), seeds=3):
    """Compare fits with limits and k-means with the same limits by minimum-cost flow."""
    from k_means_constrained import KMeansConstrained

    rows = embedded(windows_of_messages(setting, max(n for n, _ in runs)))
    table = Table("The same limits", ["method", "components", *SIZES], digits=4)
    for n, K in runs:
        X = rows[:n]
        X = X[X.any(axis=1)]
        least, most = int(LIMITS[0] * len(X) / K), int(np.ceil(LIMITS[1] * len(X) / K))
        limited = clone(TIED).set_params(size_limits=(least, most))
        estimators = {
            FREE_NAME: clone(TIED).set_params(n_components=K),
            LIMITED_NAME: limited.set_params(n_components=K),
            "k-means-constrained": KMeansConstrained(K, size_min=least, size_max=most, n_init=1),
        }
        clone(estimators[FREE_NAME]).fit(X)  # compiles
        for name, estimator in estimators.items():
            found = []
            for seed in range(seeds):
                labels, seconds = timed(clone(estimator).set_params(random_state=seed), X)
                found.append((*measures(X, labels, K), seconds))
            table.add(name, str(K), *np.transpose(found))
    return Record(
        "Windows of 28 words of the 20 newsgroups' messages, 256 features by wordllama: 5,000 "
        "rows, 10,000 for 100 components. Limits of .4 and 1.25 times the mean size; tied "
        "concentrations, otherwise defaults. k-means-constrained (pip install "
        "k-means-constrained) on one processor, one start.",
        f"0 to {seeds - 1}",
        [table],
    )
