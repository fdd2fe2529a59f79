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

from skvmf import RelativeGMM
from skvmf.plotting import DynamicsDisplay

N_SAMPLES = 30
warnings.simplefilter("error", ConvergenceWarning)

truth = np.array([-5.1, -5.0])
methods = {
    "EM": {"coordinates": "absolute", "solver": "em"},
    "relative ECM": {},
    "relative ECM, clearance 0.5": {"clearance": 0.5},
    "relative EM, clearance 0.5": {"solver": "em", "clearance": 0.5},
}


def learn(seed, **method):
    """Learn the means alone, of one sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(truth[rng.integers(2, size=200)], 1)[:, np.newaxis]
    return RelativeGMM(
        2,
        means_init=[[-2.5], [2.0]],
        fixed=("weights", "covariances"),
        covariance_type="spherical",
        tol=1e-6 / 200,
        max_iter=5000,
        store_path=True,
        **method,
    ).fit(X)


# %%
# One sample
# ----------
# The trajectories in both planes, and by iteration the likelihood that is still missing and the
# distance to the true means. The latter ends where the sampling error is: the best means of 200
# rows are not the true ones.

shown = list(methods)[:3]
fits = {name: learn(4, **methods[name]) for name in shown}
best = max(fit.lower_bound_ for fit in fits.values())

figure, axes = plt.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
for (name, fit), style in zip(fits.items(), ("-", "-", "--"), strict=True):
    display = DynamicsDisplay.from_estimator(fit, truth=truth, name=name, ax=axes[0, 0], ls=style)
    display.plot(coordinates="relative", ax=axes[0, 1], ls=style)
    display.plot("log-likelihood", ax=axes[1, 0], ls=style)
    display.plot("distance", ax=axes[1, 1], ls=style)
for axis in axes[1]:
    axis.set_xscale("symlog", linthresh=1)
axes[1, 0].set_ylim(best - 0.1, best + 0.005)
axes[1, 1].set_ylim(0, 2)
for axis in axes.flat[1:]:
    axis.get_legend().remove()
figure.suptitle("Two means, as EM and relative ECM learn them")
plt.show()

# %%
# Many samples
# ------------
# Steps until the log-likelihood changes by less than 1e-6, and what it is short of EM's.

fits = {
    name: [learn(seed, **method) for seed in range(N_SAMPLES)] for name, method in methods.items()
}
reference = np.array([fit.n_iter_ for fit in fits["EM"]])
maximum = np.array([200 * fit.lower_bound_ for fit in fits["EM"]])
print(f"{'medians of ' + str(N_SAMPLES) + ' samples':28}   steps  ratio  loss (mean nats)")
for name, some in fits.items():
    steps = np.array([fit.n_iter_ for fit in some])
    loss = maximum - [200 * fit.lower_bound_ for fit in some]
    ratio = np.median(steps / reference)
    print(f"{name:28}  {np.median(steps):6.1f} {ratio:6.2f}  {loss.mean():8.4f}")
