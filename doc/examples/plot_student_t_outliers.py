"""
============================
Find clusters among outliers
============================

Outliers make Gaussian components move or grow wide. A Student-t component has heavy tails: it
expects rows far away and gives them little influence. The data are three round clusters with
uniform outliers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skvmf import SparseGaussianMixture, StudentTMixture
from skvmf.plotting import MixtureDisplay

N_SEEDS = 3  # data sets a point of the curves is from

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])


def rows(share, seed):
    """Return 200 rows of each cluster and outliers, a share of all rows."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(CENTRES, 200, axis=0) + rng.normal(size=(600, 2))
    return np.vstack([clusters, rng.uniform(-20, 28, size=(round(600 * share / (1 - share)), 2))])


# With a flat prior SparseGaussianMixture is what scikit-learn's GaussianMixture is.
FLAT = {"weight_concentration_prior": 1.0, "max_iter": 300}
MIXTURES = {
    "3 Gaussians": SparseGaussianMixture(3, **FLAT),
    "4 Gaussians": SparseGaussianMixture(4, **FLAT),
    "3 Student-t": StudentTMixture(3, max_iter=300),
    "3 Student-t, nu = 1": StudentTMixture(3, degrees_of_freedom=1, max_iter=300),
}


def fitted(name, share, seed):
    return clone(MIXTURES[name]).set_params(random_state=seed).fit(rows(share, seed))


def furthest(mixture):
    """Return how far the cluster that is found worst is from the nearest mean."""
    gaps = np.linalg.norm(mixture.means_[:, np.newaxis] - CENTRES, axis=2)
    return gaps.min(axis=0).max()


# %%
# More and more outliers
# ----------------------
# How far is a cluster's centre from the nearest mean, in its standard deviations? The worst of
# three clusters, and the median of some data sets. A fourth Gaussian takes the outliers, which
# here spread like one wide Gaussian; without it, estimated degrees of freedom tolerate three
# outliers in ten rows, and a Cauchy distribution more.

shares = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4])
errors = {
    name: [
        np.median([furthest(fitted(name, share, seed)) for seed in range(N_SEEDS)])
        for share in shares
    ]
    for name in MIXTURES
}
print("share of outliers    " + "".join(f"{share:8.0%}" for share in shares))
for name, row in errors.items():
    print(f"{name:21s}" + "".join(f"{error:8.2f}" for error in row))

# %%
# The pictures
# ------------
# One row in five is an outlier. Ellipses are two standard deviations, or two roots of the scale
# matrix, wide in each direction.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for axis, name in zip(axes, ["3 Gaussians", "3 Student-t"], strict=False):
    mixture = fitted(name, 0.2, seed=0)
    outline = {"facecolor": "none", "edgecolor": "k", "linewidth": 1, "zorder": 3}
    MixtureDisplay.from_estimator(mixture, rows(0.2, 0), ax=axis, ellipse_kwargs=outline)
    axis.scatter(*CENTRES.T, marker="+", s=40, c="k", linewidths=1)
    axis.set(title=name, xlim=(-20, 28), ylim=(-20, 28), aspect="equal")
tails = ", ".join(f"{nu:.1f}" for nu in np.sort(mixture.degrees_of_freedom_))
print(f"\ndegrees of freedom of the Student-t components: {tails}")
for name, row in errors.items():
    axes[2].plot(100 * shares, row, marker="o", markersize=4, label=name)
axes[2].set(xlabel="outliers in 100 rows", ylabel="worst distance of a mean", title="Errors")
axes[2].legend(frameon=False, loc=(0.12, 0.4), fontsize="small")
plt.show()
