"""
=======================
Compare starts of a fit
=======================

EM converges to an optimum close to its start, which is rarely the global one. This example
compares five kinds of starts on known clusters: how close each comes to the best fit, and what it
costs.
"""

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from skvmf import SparseGaussianMixture
from skvmf.plotting import MixtureDisplay

# %%
# The clusters
# ------------
# Twenty-five of them in the plane, of different breadth; some touch. A fit that starts at the true
# labels shows how large the bound can be.

SEEDS = 5
rng = np.random.default_rng(4)
centres = rng.uniform(-30, 30, size=(25, 2))
X, labels = make_blobs(5000, centers=centres, cluster_std=rng.uniform(0.6, 1.8, 25), random_state=0)
precise = {"tol": 1e-5, "max_iter": 500}
oracle = SparseGaussianMixture(25, init_params=labels, **precise).fit(X)

# %%
# Five starts
# -----------
# ``"merging"``, the default, fits four times too many components to a sample and merges those that
# lose the least likelihood. ``"kmeans"`` takes the clusters of k-means, ``"k-means++"`` only its
# seeds, which are drawn far apart. ``"random_from_data"`` takes rows as first means, and
# ``"random"`` assigns rows at random.

starts = ["merging", "kmeans", "k-means++", "random_from_data", "random"]
missing, fits = {}, {}
print(f"{'':18} lost by each fit, nats a row      steps   seconds, all")
for name in starts:
    begin = process_time()
    fits[name] = [
        SparseGaussianMixture(25, init_params=name, random_state=seed, **precise).fit(X)
        for seed in range(SEEDS)
    ]
    seconds = process_time() - begin
    missing[name] = [oracle.lower_bound_ - fit.lower_bound_ for fit in fits[name]]
    steps = np.mean([fit.n_iter_ for fit in fits[name]])
    low, middle, high = np.percentile(missing[name], [0, 50, 100])
    print(f"{name:18} {low:6.3f} {middle:6.3f} {high:6.3f} {steps:18.0f} {seconds:12.1f}")

# %%
# What a bad start looks like
# ---------------------------
# Left, the loss of each of the five fits. In the middle a fit from random rows: two of them fell
# into one cluster, so two other clusters share a component, and EM cannot repair it. Right, the
# default.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for k, name in enumerate(starts):
    places = k + np.linspace(-0.2, 0.2, SEEDS)
    left.plot(places, missing[name], "o", alpha=0.7, markersize=5)
left.set_xticks(range(len(starts)), starts, rotation=30, ha="right")
left.set(ylabel="bound lost, nats a row", title="Five fits from each start")
for axis, name in [(middle, "random_from_data"), (right, "merging")]:
    fit = fits[name][int(np.argsort(missing[name])[SEEDS // 2])]
    MixtureDisplay.from_estimator(fit, X, ax=axis, scatter_kwargs={"s": 2})
    axis.set(title=f'A usual fit from "{name}"', aspect="equal", xlabel="", ylabel="")
plt.show()
