"""
=============================
Compare with UMAP and HDBSCAN
=============================

Topic models of embeddings often reduce them with UMAP and then look for dense regions with
HDBSCAN, as BERTopic does. A mixture of von Mises-Fisher distributions clusters the embeddings
themselves. Both get the same rows here, and are compared with the modules of the texts.
"""

from pathlib import Path

import hdbscan
import matplotlib.pyplot as plt
import numpy as np
import umap
import wordllama
from matplotlib.colors import to_rgba_array
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings
from skvmf.model_selection import ComponentPath

corpus = load_docstrings()
folder = Path(wordllama.__file__).parent  # weights and tokenizer come with the package
encoder = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
embeddings = encoder.embed(corpus.data)
X = normalize(embeddings) - normalize(embeddings).mean(axis=0)

# %%
# Two ways to clusters
# --------------------
# Five dimensions are BERTopic's choice. HDBSCAN needs a minimum cluster size instead of a number
# of clusters; a path of mixtures needs neither. HDBSCAN on the embeddings themselves shows why
# UMAP comes first: in hundreds of dimensions it finds hardly any row dense enough.


def reduced(n_components):
    """Return what UMAP makes of the embeddings, with BERTopic's settings."""
    reducer = umap.UMAP(
        n_neighbors=15, n_components=n_components, min_dist=0.0, metric="cosine", random_state=0
    )
    return reducer.fit_transform(embeddings).astype(float)


five = reduced(5)
path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=60).fit(X)
K = path.best_n_components_
background = VonMisesFisherMixture(K, background=True, random_state=0)
labels = {
    "UMAP, HDBSCAN": hdbscan.HDBSCAN(min_cluster_size=15).fit(five).labels_,
    "HDBSCAN alone": hdbscan.HDBSCAN(min_cluster_size=15).fit(normalize(X)).labels_,
    "UMAP, Gaussian mixture": SparseGaussianMixture(K, random_state=0).fit(five).labels_,
    "von Mises-Fisher mixture": path.labels_,
    "the same, with a background": background.fit(X).labels_,
}

# %%
# What they find
# --------------
# The agreement is that of the rows that a method clusters, so read it together with how many it
# leaves out.

print(f"{'':28} clusters  left out   NMI   ARI")
for name, own in labels.items():
    kept = own >= 0
    truth = corpus.target[kept]
    nmi = normalized_mutual_info_score(truth, own[kept])
    ari = adjusted_rand_score(truth, own[kept])
    print(f"{name:28} {own.max() + 1:8} {np.mean(~kept):9.0%}  {nmi:.2f}  {ari:.2f}")

# %%
# On UMAP's plane
# ---------------
# UMAP is a good map for the clusters of every method. Colours are clusters (eight colours are
# repeated), and grey rows are noise.

COLORS = to_rgba_array([f"C{k}" for k in range(8)])  # the last two of the cycle are greys
places = reduced(2)
limits = np.percentile(places, [1, 99], axis=0) + [[-1], [1]]  # some rows are very far away
figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
shown = ["UMAP, HDBSCAN", "von Mises-Fisher mixture", "the same, with a background"]
titles = ["HDBSCAN after UMAP", "Mixture of the embeddings", "Mixture with a background"]
for axis, name, title in zip(axes, shown, titles, strict=True):
    own = labels[name]
    colors = COLORS[own % len(COLORS)]
    colors[own < 0] = [0.7, 0.7, 0.7, 0.5]
    axis.scatter(*places.T, s=4, c=colors, linewidths=0)
    axis.set(title=title, xlim=limits[:, 0], ylim=limits[:, 1])
    axis.set_axis_off()
plt.show()
