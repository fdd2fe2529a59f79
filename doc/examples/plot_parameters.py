"""
============================
What each parameter does
============================

One picture for each parameter that is worth a thought: the same rows, fitted with two values of it.
The guide's page on :doc:`choosing parameters </user_guide/choosing_parameters>` says which to take.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from skvmf import SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.plotting import DirectionsDisplay, MixtureDisplay

# %%
# Rows in the plane, and on a circle
# ----------------------------------
# Four clusters that touch; three elongated ones; and directions in two dimensions.

X, _ = make_blobs(400, centers=[[0, 0], [5, 0], [0, 5], [5, 4]], random_state=1)
stretched = np.vstack([X[:150] @ [[2.0, 1.2], [0.0, 0.5]], X[:150] @ [[0.5, 0], [0, 2]] + [12, 0]])
circle, _ = make_vonmises_fisher_blobs(
    300, 2, centers=[[1, 0.2], [-0.3, 1], [-0.5, -1]], concentration=[5, 60, 200], random_state=0
)
rng = np.random.default_rng(0)
tails = np.vstack([X, rng.standard_t(1, size=(30, 2)).clip(-30, 30) + [2, 2]])
dirty = np.vstack([X, rng.uniform(-15, 20, size=(60, 2))])


def pair(title, rows, *mixtures):
    """Draw fits of the same rows side by side; the titles are the values of the parameter."""
    figure, axes = plt.subplots(1, len(mixtures), figsize=(9, 3.6), layout="constrained")
    for axis, (name, mixture) in zip(axes, mixtures, strict=True):
        mixture.fit(rows)
        draw = DirectionsDisplay if hasattr(mixture, "concentrations_") else MixtureDisplay
        draw.from_estimator(mixture, rows, ax=axis)
        axis.set(title=name, xlabel="", ylabel="", aspect="equal")
    figure.suptitle(title)


gaussian = {"random_state": 0, "tol": 1e-5, "max_iter": 500}

# %%
# ``n_components``
# ----------------
# Too few components put together what is apart, and too many cut what belongs together.

pair(
    "n_components",
    X,
    ("2", SparseGaussianMixture(2, **gaussian)),
    ("4", SparseGaussianMixture(4, **gaussian)),
    ("10", SparseGaussianMixture(10, **gaussian)),
)

# %%
# ``covariance_type``
# -------------------
# Which shapes a component can have: circles, ellipses along the axes, any ellipses, or one for all.

pair(
    "covariance_type",
    stretched,
    *(
        (name, SparseGaussianMixture(3, covariance_type=name, **gaussian))
        for name in ["spherical", "diag", "tied", "full"]
    ),
)

# %%
# ``concentration_type``
# ----------------------
# Outside the circle is the density of each component: of one breadth, or each of its own.

pair(
    "concentration_type",
    circle,
    ("tied", VonMisesFisherMixture(3, concentration_type="tied", random_state=0)),
    ("free", VonMisesFisherMixture(3, random_state=0)),
)

# %%
# ``concentration_prior``
# -----------------------
# Pseudo-rows of the common breadth: none, and a thousand, which is nearly tied.

pair(
    "concentration_prior",
    circle,
    ("0", VonMisesFisherMixture(3, concentration_prior=0, random_state=0)),
    ("1000", VonMisesFisherMixture(3, concentration_prior=1000, random_state=0)),
)

# %%
# ``weight_concentration_prior``
# ------------------------------
# Below zero it is what a component must be worth in rows, and those that are not disappear.

pair(
    "weight_concentration_prior",
    X,
    ("1", SparseGaussianMixture(12, **gaussian)),
    ("-20", SparseGaussianMixture(12, weight_concentration_prior=-20, **gaussian)),
)

# %%
# ``background``
# --------------
# Rows that belong to no component are grey.

pair(
    "background",
    dirty,
    ("False", SparseGaussianMixture(4, **gaussian)),
    ("True", SparseGaussianMixture(4, background=True, **gaussian)),
)

# %%
# ``degrees_of_freedom``
# ----------------------
# The fewer, the heavier are the tails, and the less a row far away moves a component.

pair(
    "degrees_of_freedom",
    tails,
    *(
        (
            str(freedom),
            StudentTMixture(
                4, degrees_of_freedom=freedom, init_params="k-means++", n_init=5, **gaussian
            ),
        )
        for freedom in [100, 2]
    ),
)

# %%
# ``temperature`` and ``entmax_alpha``
# ------------------------------------
# How a row between two clusters is shared: its share of the cluster on the right, on the way from
# one to the other.

line = np.column_stack([np.linspace(-2, 7, 400), np.zeros(400)])
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, given, style in [
    ("temperature=1, entmax_alpha=1", {}, "-"),
    ("temperature=5", {"temperature": 5}, "--"),
    ("temperature=5, entmax_alpha=2", {"entmax_alpha": 2, "temperature": 5}, "-."),
    ("temperature=0", {"temperature": 0}, ":"),
]:
    mixture = SparseGaussianMixture.from_parameters(
        [0.5, 0.5], means=[[0, 0], [5, 0]], covariances=[np.eye(2)] * 2, **given
    )
    axis.plot(line[:, 0], mixture.predict_proba(line)[:, 1], style, label=name)
axis.set(title="temperature, entmax_alpha", xlabel="place", ylabel="share of the right one")
axis.legend()

# %%
# ``n_init``
# ----------
# A start may put two means into one cluster, and EM does not part with them again. Of ten starts
# the best fit is kept. Starts are random rows here, the poorest way, to show the difference.

grid, _ = make_blobs(450, centers=[[i, j] for i in (0, 6, 12) for j in (0, 6, 12)], random_state=0)
poor = {"covariance_type": "spherical", "init_params": "random_from_data", **gaussian}
pair(
    "n_init",
    grid,
    ("1", SparseGaussianMixture(9, **poor)),
    ("10", SparseGaussianMixture(9, n_init=10, **poor)),
)

# %%
# ``tol`` and ``max_iter``
# ------------------------
# EM gains less with each step. It stops where a step gains less than ``tol``, or with a warning
# after ``max_iter`` steps. These clusters overlap, where EM is slowest: the first steps settle most
# labels, many more the last digits of the parameters.

overlapping, _ = make_blobs(2000, centers=[[0, 0], [2.5, 0], [0, 2.5]], random_state=0)


def fit_to(tol):
    """Fit three components until a step gains less than this."""
    return SparseGaussianMixture(
        3,
        weight_concentration_prior=1,
        init_params="k-means++",
        tol=tol,
        max_iter=2000,
        random_state=1,
    ).fit(overlapping)


last = fit_to(1e-10)
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
missing = last.lower_bound_ - np.array(last.lower_bounds_[:-1])
axis.loglog(np.arange(1, len(missing) + 1), missing)
for tol in [1e-3, 1e-5, 1e-7]:
    stopped = fit_to(tol)
    moved = np.mean(stopped.labels_ != last.labels_)
    label = f"tol={tol:g}: {moved:.1%} of labels change later"
    axis.plot(stopped.n_iter_, last.lower_bound_ - stopped.lower_bound_, "o", label=label)
axis.axvline(100, color="0.6", ls="--", label="max_iter=100")
axis.set(title="tol, max_iter", xlabel="steps", ylabel="log-likelihood yet to gain")
axis.legend()
plt.show()
