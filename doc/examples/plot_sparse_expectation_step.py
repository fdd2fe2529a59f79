"""
=========================================
Compare sparse, soft and hard memberships
=========================================

In expectation maximization, every component has a responsibility for every row. With
``entmax_alpha=2``, :class:`~skvmf.SparseGaussianMixture` assigns most rows to one or two
components, and the other responsibilities are exactly zero. This example reproduces Figure 1 and
Table 1 of Sklaviadis et al., "Fenchel-Young variational learning": four Gaussians that overlap,
and a hundred points that belong to none of them. It takes about ten seconds.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, silhouette_score

from skvmf import SparseGaussianMixture

N_SEEDS = 15  # of the data
warnings.simplefilter("ignore", ConvergenceWarning)  # 200 iterations are the paper's measure

# %%
# The data
# --------
# 250 points of each Gaussian, and 100 uniform ones. The paper says that the four numbers are
# covariances. Then, however, no method can do as well as its table; with standard deviations
# methods are about where the table has them. Both readings are tried.

MEANS = np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
NUMBERS = np.array([0.11, 0.5, 0.7, 0.9])
VARIANCES = {"as covariances": NUMBERS, "as standard deviations": NUMBERS**2}
CLASSES = np.repeat(np.arange(4), 250)


def draw(variances, seed):
    """Return 1000 points of the four classes and 100 of none."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(len(CLASSES), 2))
    inliers = MEANS[CLASSES] + np.sqrt(variances[CLASSES, np.newaxis]) * noise
    return np.vstack([inliers, rng.uniform(-3, 3, size=(100, 2))])


# %%
# Three expectation steps
# -----------------------
# They are one estimator with other parameters, and start from the same k-means. The fourth is
# not in the paper: hard EM whose weights a large prior holds equal.

METHODS = {
    "standard": {"weight_concentration_prior": 1},
    "hard": {"weight_concentration_prior": 1, "temperature": 0},
    "sparse": {"entmax_alpha": 2},
    "hard, equal": {"weight_concentration_prior": 1e6, "temperature": 0},
}


def fit(X, name, seed):
    """Fit a method; the tolerance only saves iterations that change nothing."""
    options = {"init_params": "kmeans", "max_iter": 200, "tol": 1e-10} | METHODS[name]
    return SparseGaussianMixture(4, random_state=seed, **options).fit(X)


def evaluate(X, labels):
    """Return AMI, ARI and silhouette of the points that have a class."""
    inliers, found = X[: len(CLASSES)], labels[: len(CLASSES)]
    return (
        adjusted_mutual_info_score(CLASSES, found),
        adjusted_rand_score(CLASSES, found),
        silhouette_score(inliers, found),
    )


# %%
# Table 1
# -------
# Means and standard deviations over the seeds, for the points that have a class; how often a
# method is ahead of standard EM on the same points; and what the true parameters give, to know
# how far one can get. The last columns say why: the largest weight, a quarter in truth, and the
# root of the largest determinant of a covariance.

METRICS = ["AMI", "ARI", "silhouette"]
scores, shapes, zeros = {}, {}, []
for reading, variances in VARIANCES.items():
    truth = SparseGaussianMixture.from_parameters(
        np.full(4, 0.25), MEANS, variances[:, np.newaxis, np.newaxis] * np.eye(2)
    )
    for name in [*METHODS, "true parameters"]:
        own_scores, own_shapes = [], []
        for seed in range(N_SEEDS):
            X = draw(variances, seed)
            mixture = truth if name == "true parameters" else fit(X, name, seed)
            own_scores.append(evaluate(X, mixture.predict(X)))
            areas = np.sqrt(np.linalg.det(mixture.covariances_))
            own_shapes.append([mixture.weights_.max(), areas.max()])
            if name == "sparse":
                zeros.append(np.mean(mixture.predict_proba(X) == 0))
        scores[reading, name] = np.array(own_scores)
        shapes[reading, name] = np.mean(own_shapes, axis=0)

for reading in VARIANCES:
    print(f"\nThe numbers {reading}, {N_SEEDS} seeds")
    heads = "".join(f"{metric:>16}" for metric in METRICS)
    print(f"{'':17}{heads[2:]}   ahead of standard   weight  size")
    for name in [*METHODS, "true parameters"]:
        own = scores[reading, name]
        cells = zip(own.mean(axis=0), own.std(axis=0), strict=True)
        line = "".join(f"   {mean:.3f} ± {spread:.3f}" for mean, spread in cells)
        ahead = (own > scores[reading, "standard"]).mean(axis=0)
        wins = "" if name == "standard" else " ".join(f"{share:5.0%}" for share in ahead)
        weight, area = shapes[reading, name]
        print(f"{name:17}{line[2:]}   {wins:17}   {weight:6.2f}  {area:4.2f}")

print(
    "\nThe paper, 5 seeds\n"
    "standard          0.606 ± 0.012   0.531 ± 0.005   0.345 ± 0.032\n"
    "hard              0.537 ± 0.088   0.348 ± 0.043   0.207 ± 0.128\n"
    "sparse            0.636 ± 0.017   0.476 ± 0.037   0.393 ± 0.041\n"
)
print(f"responsibilities that are exactly zero in sparse EM: {np.mean(zeros):.0%}")

# %%
# Figure 1
# --------
# Above, one seed: points in the colours of their classes, grey crosses for those of none, the
# four Gaussians (dashed) and what is found (black), at two standard deviations. Below, every
# seed: sparse EM is better where a point lies above the line.

reading, seed = "as standard deviations", 1
X = draw(VARIANCES[reading], seed)
circles = VARIANCES[reading][:, np.newaxis, np.newaxis] * np.eye(2)
colors = np.array(["C0", "C1", "C2", "C4"])


def outline(axis, means, covariances, colors, **style):
    """Draw Gaussians at two standard deviations."""
    for mean, covariance, color in zip(means, covariances, colors, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 4 * np.sqrt(values[::-1])
        ellipse = Ellipse(mean, width, height, angle=angle, fill=False, edgecolor=color, **style)
        axis.add_patch(ellipse)


figure, axes = plt.subplots(2, 3, figsize=(11, 7.6), layout="constrained")
for axis, name in zip(axes[0], list(METHODS)[:3], strict=True):
    mixture = fit(X, name, seed)
    ari = evaluate(X, mixture.labels_)[1]
    axis.scatter(*X[: len(CLASSES)].T, c=colors[CLASSES], s=7, alpha=0.5, lw=0)
    axis.scatter(*X[len(CLASSES) :].T, c="0.5", s=14, marker="x", lw=0.8)
    outline(axis, MEANS, circles, colors, lw=1.4, ls="--")
    outline(axis, mixture.means_, mixture.covariances_, ["k"] * 4, lw=1.6)
    axis.set(title=f"{name} EM, ARI {ari:.2f}", aspect="equal", xticks=[], yticks=[])
    axis.set(xlim=(-3.7, 3.7), ylim=(-3.7, 3.7))

for index, (axis, metric) in enumerate(zip(axes[1], METRICS, strict=True)):
    for reading, color in zip(VARIANCES, ["C3", "0.35"], strict=True):
        standard, sparse = (scores[reading, name][:, index] for name in ("standard", "sparse"))
        axis.scatter(standard, sparse, s=16, color=color, lw=0, alpha=0.7, label=reading)
    pairs = [scores[r, n][:, index] for r in VARIANCES for n in ("standard", "sparse")]
    ends = np.min(pairs) - 0.02, np.max(pairs) + 0.02
    axis.plot(ends, ends, color="0.6", lw=1, zorder=0)
    axis.set(title=metric, xlabel="standard EM", aspect="equal", xlim=ends, ylim=ends)
    axis.locator_params(nbins=5)
axes[1, 0].set_ylabel("sparse EM")
axes[1, 0].legend(title="the numbers", frameon=False, loc="lower right", handletextpad=0.1)
plt.show()

# %%
# What holds
# ----------
# - *Sparse EM is better than standard and hard EM in AMI and silhouette.* It is better than
#   standard EM, on nearly all seeds and in both readings, and better than hard EM in AMI. In the
#   silhouette it ties with hard EM if the numbers are covariances.
# - *Standard EM is best in ARI.* It is not: there the gain of sparse EM is largest.
# - The numbers of the table cannot be reached with covariances: its AMI of .606 and .636 are far
#   above the .49 of the true parameters.
#
# There are two reasons, neither of them better memberships. With softmax, a component can lie
# beneath the others, with a small responsibility for all their points and for every point far out,
# and so grow wide. If most responsibilities are zero, it must be the best somewhere. And in
# standard and hard EM, weights enter as logarithms, so a large component wins even more points;
# under ``entmax_alpha=2`` they differ by one in the scores at most. Hard EM with equal weights,
# which has both properties, is as good as sparse EM here. But here the classes have equal sizes:
# if one class has a twentieth of the points, sparse EM makes its weight far too large.
