"""
==================================
Classify images as bags of patches
==================================

An image can be described by any number of small patches. A Fisher vector turns such a bag of
patches into one row for a linear classifier. Here the patches come from handwritten digits; the
bag of visual words, which only counts the nearest cluster of each patch, has as many clusters and
stays far behind.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import normalize

from skvmf import FisherVectorTransformer, SparseGaussianMixture, VonMisesFisherMixture

# %%
# Bags of patches
# ---------------
# The mean of each 3 by 3 patch is subtracted, flat patches are left out, and the others are scaled
# to unit length: edges and corners of any contrast. A list of arrays, each as long as its image
# has patches, is what the transformer takes.

digits = load_digits()
images = np.pad(digits.images / 16, ((0, 0), (1, 1), (1, 1)))
patches = sliding_window_view(images, (3, 3), axis=(1, 2)).reshape(len(images), -1, 9)
patches = patches - patches.mean(axis=2, keepdims=True)
lengths = np.linalg.norm(patches, axis=2)
grid = np.linspace(-1, 1, 8)
positions = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
bags = [
    np.hstack([patch[keep] / length[keep, None], positions[keep]])
    for patch, length, keep in zip(patches, lengths, lengths > 0.3, strict=True)
]
print(f"{len(bags)} images, {min(map(len, bags))} to {max(map(len, bags))} patches each")

# %%
# Four ways to sum them up
# ------------------------
# The von Mises-Fisher mixture sees patch and position as one direction; the Gaussian mixture also
# describes how much they vary. Mixtures are fitted on the patches alone, without labels.


def visual_words(n_components):
    """Count the patches nearest to each center of k-means."""
    kmeans = KMeans(n_components, n_init=1, random_state=0).fit(np.concatenate(bags))
    labels = np.split(kmeans.labels_, np.cumsum([len(bag) for bag in bags])[:-1])
    counts = [np.bincount(own, minlength=n_components) for own in labels]
    return normalize(np.array(counts, dtype=float))


def directional(n_components):
    """Gradients along the sphere."""
    mixture = VonMisesFisherMixture(n_components)
    transformer = FisherVectorTransformer(mixture, geometry="tangent", power=0.5, random_state=0)
    return transformer.fit(bags[::3]).transform(bags)


def gaussian(n_components):
    """Gradients in means and variances."""
    mixture = SparseGaussianMixture(
        n_components, covariance_type="diag", weight_concentration_prior=1.0, reg_covar=1e-3
    )
    transformer = FisherVectorTransformer(
        mixture, gradients=("means", "variances"), power=0.5, random_state=0
    )
    return transformer.fit(bags[::3]).transform(bags)


def accuracy(features, C=10):
    """Return the mean accuracy over five folds, in %."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    classifier = LogisticRegression(C=C, max_iter=3000)
    return 100 * cross_val_score(classifier, features, digits.target, cv=folds).mean()


sizes = [4, 8, 16, 32]
pixels = accuracy(digits.data / 16, C=1)
methods = {
    "visual words": visual_words,
    "Fisher vectors, von Mises-Fisher": directional,
    "Fisher vectors, Gaussian": gaussian,
}
results = {name: [accuracy(method(K)) for K in sizes] for name, method in methods.items()}

print(f"\n{'components':34}" + "".join(f"{K:7}" for K in sizes))
for name, values in results.items():
    print(f"{name:34}" + "".join(f"{value:7.1f}" for value in values))
print(f"{'pixels':34}{pixels:7.1f}")

# %%
# What it takes
# -------------
# Four components are enough for Fisher vectors to know as much as counts of 32 visual words do;
# with sixteen they are better than the pixels.

figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for (name, values), color in zip(results.items(), ["0.5", "C0", "C1"], strict=True):
    axes.plot(sizes, values, color=color, marker="o", ms=4, label=name)
axes.axhline(pixels, color="0.3", ls=":", lw=1)
axes.annotate("pixels", (sizes[0], pixels), (0, 3), textcoords="offset points", va="bottom")
axes.set_xscale("log", base=2)
axes.set_xticks(sizes, sizes)
axes.set_xlabel("components")
axes.set_ylabel("accuracy, %")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
axes.set_title("Accuracy by number of components")
plt.show()
