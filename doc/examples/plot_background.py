"""
=====================================
Leave out what belongs to no cluster
=====================================

Real data have rows that belong to no cluster, and these rows distort the components of a mixture.
With a background, rows can also belong to a uniform density, whose weight is estimated from the
data.
"""

import matplotlib.pyplot as plt
import numpy as np

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.plotting import DirectionsDisplay, MixtureDisplay

# %%
# In the plane
# ------------
# Three clusters, and the same number of rows spread over the whole plane.

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])
clusters = np.repeat(centres, 150, axis=0) + rng.normal(size=(450, 2))
X = np.vstack([clusters, rng.uniform([-12, -12], [20, 19], size=(450, 2))])
plain = SparseGaussianMixture(3, random_state=0).fit(X)
clear = SparseGaussianMixture(3, background=True, random_state=0).fit(X)
for name, mixture in [("without", plain), ("with", clear)]:
    gaps = np.linalg.norm(mixture.means_[:, None] - centres, axis=2).min(axis=0)
    print(f"{name} a background: means are off by", *gaps.round(2))
print(f"weight of the background: {clear.background_weight_:.2f}, in truth 0.50")

# %%
# On the sphere
# -------------
# The same with directions. The background is uniform on the sphere.

blobs, _ = make_vonmises_fisher_blobs(400, 3, centers=4, concentration=60.0, random_state=3)
noise = rng.normal(size=(400, 3))
rows = np.vstack([blobs, noise / np.linalg.norm(noise, axis=1, keepdims=True)])
sphere = VonMisesFisherMixture(4, background=True, random_state=0).fit(rows)
print(f"on the sphere: {sphere.background_weight_:.2f}, in truth 0.50")
print("labels of clusters' rows that are right to be kept:", (sphere.labels_[:400] >= 0).mean())

# %%
# The pictures
# ------------
# Ellipses and rings are the components; grey rows have the label -1.

figure = plt.figure(figsize=(12, 4.2), layout="constrained")
for place, mixture, title in [(1, plain, "No background"), (2, clear, "With a background")]:
    axis = figure.add_subplot(1, 3, place)
    MixtureDisplay.from_estimator(mixture, X, ax=axis)
    axis.set(title=title, xlim=(-13, 21), ylim=(-13, 20), aspect="equal")
axis = figure.add_subplot(1, 3, 3, projection="3d")
DirectionsDisplay.from_estimator(sphere, rows, ax=axis)
axis.set_title("Directions, with a background")
plt.show()
