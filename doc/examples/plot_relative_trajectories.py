"""
=====================================
Watch EM find two means, step by step
=====================================

When two components nearly coincide EM becomes slow. Two hundred rows come from two unit Gaussians
with the means -5.1 and -5, and EM and the relative ECM algorithm learn these from the same start,
(-2.5, 2): figure 2 of Esser and Nielsen, "On the influence of enforcing model identifiability on
learning dynamics of Gaussian mixture models".

The paper reports faster convergence in relative coordinates. In its printed update of the
reference mean, a sign is missing and a count is wrong. The corrected update reaches the same
likelihood in about twice as many steps. A clearance does stop early, at its boundary.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skvmf import RelativeGMM, SparseGaussianMixture

N_SAMPLES = 30

truth = np.array([-5.1, -5.0])
methods = {
    "EM": {"make": SparseGaussianMixture},
    "relative ECM": {},
    "relative ECM, clearance 0.5": {"clearance": 0.5},
    "relative EM, clearance 0.5": {"solver": "em", "clearance": 0.5},
}


def problem(seed, *, make=RelativeGMM, **method):
    """Return a sample, and a mixture that learns the means alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(truth[rng.integers(2, size=200)], 1)[:, np.newaxis]
    mixture = make(
        2,
        means_init=[[-2.5], [2.0]],
        fixed=("weights", "covariances"),
        covariance_type="spherical",
        tol=1e-6 / 200,
        max_iter=5000,
        **method,
    )
    return X, mixture


def path(X, mixture):
    """Return the means and the log-likelihood per row at the start and after each step."""
    mixture.set_params(warm_start=True, max_iter=0).fit(X)
    means, values = [mixture.means_.ravel()], [mixture.lower_bound_]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after each step but the last
        while not mixture.converged_:
            mixture.set_params(max_iter=1).fit(X)
            means.append(mixture.means_.ravel())
            values.append(mixture.lower_bound_)
    return np.array(means), np.array(values)


# %%
# One sample
# ----------
# Every step is a fit with ``warm_start=True`` and ``max_iter=1``. The trajectories in both planes,
# and by iteration the likelihood that is still missing and the distance to the true means. The
# latter ends where the sampling error is: the best means of 200 rows are not the true ones.

shown = list(methods)[:3]
paths = {name: path(*problem(4, **methods[name])) for name in shown}
best = max(values[-1] for _, values in paths.values())

figure, axes = plt.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
for (name, (means, values)), style in zip(paths.items(), ("-", "-", "--"), strict=True):
    axes[0, 0].plot(*means.T, ".", linestyle=style, label=name)
    axes[0, 1].plot(means[:, 0], means[:, 1] - means[:, 0], ".", linestyle=style)
    axes[1, 0].plot(values, linestyle=style)
    axes[1, 1].plot(np.linalg.norm(means - truth, axis=1), linestyle=style)
for axis, height in zip(axes[0], (truth[1], truth[1] - truth[0]), strict=True):
    axis.plot(truth[0], height, "+", color="tab:green", markersize=12, markeredgewidth=2)
axes[0, 0].axline((-4, -4), slope=1, linestyle=":", color="black", linewidth=1)  # the overlap
axes[0, 1].axhline(0, linestyle=":", color="black", linewidth=1)
for axis in axes[1]:
    axis.set_xscale("symlog", linthresh=1)
axes[0, 0].set(xlabel="$\\mu_1$", ylabel="$\\mu_2$")
axes[0, 1].set(xlabel="$\\mu_1$", ylabel="$\\Delta$")
axes[1, 0].set(xlabel="iteration", ylabel="log-likelihood per row", ylim=(best - 0.1, best + 0.005))
axes[1, 1].set(xlabel="iteration", ylabel="distance to the truth", ylim=(0, 2))
axes[0, 0].legend()
figure.suptitle("Two means, as EM and relative ECM learn them")
plt.show()

# %%
# Many samples
# ------------
# Steps until the log-likelihood changes by less than 1e-6, and what it is short of EM's.

fits = {
    name: [mixture.fit(X) for X, mixture in (problem(seed, **method) for seed in range(N_SAMPLES))]
    for name, method in methods.items()
}
reference = np.array([fit.n_iter_ for fit in fits["EM"]])
maximum = np.array([200 * fit.lower_bound_ for fit in fits["EM"]])
print(f"{'medians of ' + str(N_SAMPLES) + ' samples':28}   steps  ratio  loss (mean nats)")
for name, some in fits.items():
    steps = np.array([fit.n_iter_ for fit in some])
    loss = maximum - [200 * fit.lower_bound_ for fit in some]
    ratio = np.median(steps / reference)
    print(f"{name:28}  {np.median(steps):6.1f} {ratio:6.2f}  {loss.mean():8.4f}")
