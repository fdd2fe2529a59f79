"""
============================
How many clusters are there?
============================

A mixture with far too many components is fitted once. Then the two components whose merge loses
the least likelihood are merged, again and again, with a few EM steps in between. This path has a
mixture for every number of components, and the order of the merges is a tree.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath
from skvmf.plotting import ComponentPathDisplay

MAX_COMPONENTS = 50

# %%
# Clusters that are there
# -----------------------
# Twelve clusters on the sphere, round around their directions. Every criterion finds them.

blobs, truth = make_vonmises_fisher_blobs(3000, 16, centers=12, concentration=40.0, random_state=0)
path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=MAX_COMPONENTS)
path.fit(blobs)
print(f"{'blobs, 12 clusters:':22}", end="")
for name in ["slope", "bic", "icl"]:
    best = path.results_["n_components"][path.results_[name].argmin()]
    print(f"  {name} {best}", end="")
print(f"  ARI {adjusted_rand_score(truth, path.labels_):.3f}")

# %%
# Topics
# ------
# The docstrings of 13 modules. Topics are not round, and more components always describe them
# better. With ``criterion="slope"``, a component must gain twice as much as a component gains in a
# mixture with far too many.

corpus = load_docstrings()
vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
)
X = vectorizer.fit_transform(corpus.data)
topics = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=MAX_COMPONENTS).fit(X)
print(f"{'docstrings, 13 modules:':22}", end="")
for name in ["slope", "bic", "icl"]:
    best = topics.results_["n_components"][topics.results_[name].argmin()]
    print(f"  {name} {best}", end="")
print(f"  ARI {adjusted_rand_score(corpus.target, topics.labels_):.3f}")
words = vectorizer.get_feature_names_out()
mixture = topics.best_estimator_
names = [", ".join(words[row.argsort()[:-4:-1]]) for row in mixture.mean_directions_]
for name, weight in zip(names, mixture.weights_, strict=True):
    print(f"  {weight:5.1%}  {name}")

# %%
# Cuts
# ----
# The tree gives labels for any number of clusters, without another fit; each cut divides a
# cluster of the one before.

for K in [2, 5, 10, 20]:
    sizes = np.sort(np.bincount(topics.cut(K)))[::-1]
    print(f"cut into {K:2d}: sizes {', '.join(map(str, sizes[:6]))}{' ...' if K > 6 else ''}")

# %%
# The pictures
# ------------
# The curves show how many nats per row each number of components is above the best one. Leaves of
# the tree are the components that the path began with, as large as their weights; colours are the
# components chosen, with their heaviest words. Heights are the nats per row that a merge loses.

figure, axes = plt.subplot_mosaic(
    [["blobs", "topics"], ["tree", "tree"]], figsize=(11, 8.5), layout="constrained"
)
ComponentPathDisplay.from_estimator(path, ax=axes["blobs"])
axes["blobs"].set_title("12 clusters")
ComponentPathDisplay.from_estimator(topics, ax=axes["topics"])
axes["topics"].set_title("docstrings of 13 modules")
ComponentPathDisplay.from_estimator(topics, kind="dendrogram", names=names, ax=axes["tree"])
axes["tree"].set_xlabel("")
plt.show()
