"""
=================================
Many clusters: layers and indexes
=================================

Pieces of texts become rows, a mixture of hundreds of components describes them, and one path of
merges gives layers: few large clusters with names, and smaller ones inside. The same components
are the cells of an index for search.

With thousands of components and millions of rows the steps are the same
(:doc:`/user_guide/many_components`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skvmf import ComponentPath, VonMisesFisherMixture, component_summary
from skvmf.datasets import load_docstrings

N_COMPONENTS, LAYERS = 200, (12, 50)

# %%
# Pieces of texts become rows
# ---------------------------
# Windows of 20 words of the docstrings of 13 modules. A model of sentences makes
# better rows; here the words' weights are reduced to 64 numbers.

windows = []
for text in load_docstrings().data:
    words = text.split()
    windows += [" ".join(words[i : i + 20]) for i in range(0, len(words) - 10, 20)]
counted = {"stop_words": "english", "token_pattern": "[a-z]{3,}", "min_df": 5, "max_df": 0.03}
vectorizer = TfidfVectorizer(**counted)
embed = make_pipeline(vectorizer, TruncatedSVD(64, random_state=0), Normalizer())
rows = embed.fit_transform(windows)
known = np.linalg.norm(rows, axis=1) > 0  # a window may have no known word
windows, rows = np.array(windows)[known], rows[known]
rng = np.random.default_rng(0)
asked = rng.permutation(len(rows)) < 500  # rows to search with
queries, rows, windows = rows[asked], rows[~asked], windows[~asked]
print(f"{len(rows)} rows, {rows.shape[1]} numbers each")

# %%
# Layers with names
# -----------------
# The path begins with the mixture of all components. ``cut`` gives labels for any number of
# clusters, each inside one of those before.

estimator = VonMisesFisherMixture(concentration_type="tied", random_state=0)
path = ComponentPath(estimator, max_components=N_COMPONENTS).fit(rows)
labels = [path.cut(n_clusters) for n_clusters in LAYERS]
names = [
    [", ".join(words) for words in summary.words]
    for summary in (
        component_summary(
            X=rows, labels=layer, texts=windows, n_features=3, vectorizer=CountVectorizer(**counted)
        )
        for layer in labels
    )
]
for large, name in enumerate(names[0]):
    own = labels[0] == large
    inside, sizes = np.unique(labels[1][own], return_counts=True)
    print(f"{own.sum():6}  {name}")
    for small in inside[np.argsort(-sizes)][:3]:
        print(f"{(labels[1] == small).sum():12}  {names[1][small]}")

# %%
# Cells of an index
# -----------------
# An inverted file keeps the rows of each cell together and compares a query with the rows of the
# nearest cells. Those of the mixture need fewer comparisons than those of k-means. The mixture also
# says which rows lie between cells. Here few do, so it gains little to put them into every cell
# that has a responsibility above 0.02.

mixture = estimator.set_params(n_components=N_COMPONENTS).fit(rows)
kmeans = KMeans(N_COMPONENTS, n_init=1, random_state=0).fit(rows)
soft = mixture.responsibilities(rows).tocsc()
indexes = {
    "k-means": (
        kmeans.cluster_centers_ / np.linalg.norm(kmeans.cluster_centers_, axis=1, keepdims=True),
        [np.flatnonzero(kmeans.labels_ == k) for k in range(N_COMPONENTS)],
    ),
    "mixture": (
        mixture.mean_directions_,
        [np.flatnonzero(mixture.labels_ == k) for k in range(N_COMPONENTS)],
    ),
    "mixture, rows in several cells": (
        mixture.mean_directions_,
        [
            soft.indices[i:j][soft.data[i:j] > 0.02]
            for i, j in zip(soft.indptr[:-1], soft.indptr[1:], strict=True)
        ],
    ),
}
nearest = np.argsort(-queries @ rows.T, axis=1)[:, :10]


def search(centres, cells, n_cells):
    """Return the share of the ten nearest rows that are found, and how many rows are compared."""
    found, compared = 0.0, 0
    for query, wanted in zip(queries, nearest, strict=True):
        visited = np.argsort(-(centres @ query))[:n_cells].tolist()
        reached = np.unique(np.concatenate([cells[k] for k in visited]))
        found += np.isin(wanted, reached).mean()
        compared += len(reached)
    return found / len(queries), compared / len(queries)


figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, (centres, cells) in indexes.items():
    curve = np.array([search(centres, cells, n) for n in (1, 2, 3, 4, 6, 8, 12, 16)])
    ax.plot(curve[:, 1], curve[:, 0], marker="o", markersize=4, label=name)
    stored = sum(map(len, cells)) / len(rows)
    print(f"{name:32} {stored:.2f} places a row, recall {curve[3, 0]:.3f} in 4 cells")
ax.set(xlabel="rows compared with a query", ylabel="recall of the ten nearest", xscale="log")
ax.set_xticks([200, 400, 800, 1600], labels=["200", "400", "800", "1600"], minor=False)
ax.set_xticks([], minor=True)
ax.legend()
plt.show()
