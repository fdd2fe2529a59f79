"""
====================
A stream that drifts
====================

``partial_fit`` takes one batch of rows at a time, and gradually forgets earlier batches.
``learning_decay`` sets how fast. In this example, four clusters move along a circle, and then the
same clusters stop moving.
"""

import matplotlib.pyplot as plt
import numpy as np

from skvmf import SparseGaussianMixture

N_BATCHES, SIZE, RADIUS = 150, 100, 6.0
DECAYS = {0.3: "C2", 0.7: "C0", 1.0: "C1"}


def centres(batch, turn):
    """Return where the clusters are (4, 2), on a circle that turns while rows come in."""
    angles = np.pi / 2 * np.arange(4) + turn * batch / N_BATCHES
    return RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])


def follow(decay, turn, seed=0):
    """Return the means after each batch (n, 4, 2), and how far they are from the clusters (n,)."""
    rng = np.random.default_rng(seed)
    mixture = SparseGaussianMixture(
        4,
        covariance_type="spherical",
        weight_concentration_prior=1.0,
        learning_decay=decay,
        random_state=0,
    )
    means, errors = [], []
    for batch in range(N_BATCHES):
        truth = centres(batch, turn)
        rows = truth[rng.integers(4, size=SIZE)] + rng.normal(size=(SIZE, 2))
        mixture.partial_fit(rows)
        gaps = np.linalg.norm(truth[:, np.newaxis] - mixture.means_, axis=2)
        means.append(mixture.means_)
        errors.append(gaps.min(axis=1).mean())
    return np.array(means), np.array(errors)


# %%
# How far behind?
# ---------------
# If a batch is the proportion w of the rows so far, it gets the weight ``w ** learning_decay`` in
# the running average. With 1, all rows count equally, as in a fit, and the means are the average
# positions of the clusters. The default of 0.7 forgets the start soon, but lags if the stream
# keeps moving. 0.3 keeps up, but if the stream is stationary, its means fluctuate with every
# batch.

stages = {"moving": np.pi / 3, "standing still": 0.0}
paths, errors = {}, {}
for stage, turn in stages.items():
    for decay in DECAYS:
        paths[stage, decay], errors[stage, decay] = follow(decay, turn)

print("distance of the means, last 50 batches   " + "".join(f"{stage:>16s}" for stage in stages))
for decay in DECAYS:
    last = [errors[stage, decay][-50:].mean() for stage in stages]
    print(f"learning_decay={decay:<26}" + "".join(f"{error:16.2f}" for error in last))

# %%
# The picture
# -----------
# On the left are the paths of the clusters, in grey, and of the means that follow them.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
turned = np.array([centres(batch, stages["moving"]) for batch in range(N_BATCHES)])
for k in range(4):
    axes[0].plot(*turned[:, k].T, c="0.85", linewidth=10, solid_capstyle="round", zorder=1)
    axes[0].plot(*turned[-1, k], "o", c="0.6", markersize=10, zorder=2)
for decay, colour in DECAYS.items():
    for k in range(4):
        way = paths["moving", decay][:, k]
        axes[0].plot(*way.T, c=colour, linewidth=1, zorder=3)
        axes[0].plot(*way[-1], "o", c=colour, markersize=5, zorder=4)
axes[0].set(title="Means on the way, and at the end", aspect="equal")
for axis, stage in zip(axes[1:], stages, strict=True):
    for decay, colour in DECAYS.items():
        axis.plot(errors[stage, decay], c=colour, linewidth=1.2, label=f"learning_decay={decay}")
    axis.set(title=f"Clusters {stage}", xlabel="batch", ylabel="mean distance to a cluster")
axes[1].legend(frameon=False)
plt.show()
