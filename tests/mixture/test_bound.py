"""The penalised bound never falls, for every family, posterior and prior."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..pairwise import pairwise
from .checks import assert_bound_never_falls
from .kinds import TYPES

POSTERIORS = [
    (1, 1),
    (1 + 1e-12, 1),
    (1, 0),
    (1, 0.5),
    (1 + 1e-9, 0.5),  # equation 13, with the weights as they are
    (1.25, 1),
    (1.5, 0.3),
    (2, 1),
    (2, 3),
    (3, 1),
    (2, 0),
]
PRIORS = [  # parameter and floor
    (1.0, None),
    (0.5, None),
    (0.0, 0.1),
    (-2.0, None),
    (3.0, None),
    (1.0, 0.24),
    ((1.0, -1.0, 2.0), None),
]
FAMILIES = {
    "full": (SparseGaussianMixture, {"covariance_type": "full", "reg_covar": 0}),
    "tied": (SparseGaussianMixture, {"covariance_type": "tied", "reg_covar": 0}),
    "diag": (SparseGaussianMixture, {"covariance_type": "diag", "reg_covar": 0}),
    "spherical": (SparseGaussianMixture, {"covariance_type": "spherical", "reg_covar": 0}),
    "full t": (StudentTMixture, {"reg_covar": 0, "degrees_of_freedom": 3}),
    "tied t": (StudentTMixture, {"covariance_type": "tied", "reg_covar": 0}),
    "diag t": (StudentTMixture, {"covariance_type": "diag", "reg_covar": 0}),
    "spherical t": (
        StudentTMixture,
        {"covariance_type": "spherical", "reg_covar": 0, "degrees_of_freedom": "tied"},
    ),
    **{
        f"{kind} vMF, {prior}, {negentropy}": (
            VonMisesFisherMixture,
            {"concentration_type": kind, "concentration_prior": prior, "negentropy": negentropy},
        )
        for kind, prior, negentropy in [
            ("free", 1.0, "exact"),
            ("tied", 2.0, "ode"),
            ("free", 10.0, "rational"),
            ("tied", 0.0, "banerjee"),
            ("free", 10.0, "newton"),
        ]
    },
    "free vMF on CSR": (VonMisesFisherMixture, {"concentration_prior": 0}),
    **{
        f"{kind} in order, by {solver}": (
            RelativeGMM,
            {"covariance_type": kind, "reg_covar": 0, "solver": solver, "clearance": 0.1},
        )
        for kind, solver in zip(TYPES, ["ecm", "em", "em", "ecm"], strict=True)
    },
}


@pytest.mark.bits
@pairwise(
    posterior=POSTERIORS,
    prior=PRIORS,
    family=FAMILIES,
    background=[False, True],
    missing=[False, True],
)
def test_bound_never_falls(family, posterior, prior, background, missing):
    X, y = make_blobs(150, 3, centers=3, cluster_std=3, random_state=0)
    kind, options = FAMILIES[family]
    labels = np.where(np.arange(150) % 2, y, np.arange(150) % 3)
    if background:
        X[::5], labels[::5] = np.random.default_rng(1).uniform(-20, 20, size=(30, 3)), -1
    if missing and kind is not VonMisesFisherMixture:
        X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
        options = options | {"missing_values": "marginal"}
    alpha, temperature = posterior
    concentration, floor = prior
    mixture = kind(
        3,
        entmax_alpha=alpha,
        temperature=temperature,
        weight_concentration_prior=concentration,
        weight_floor=floor,
        init_params=labels,
        background=background,
        flat_start=False,
        max_iter=12,
        tol=0,
        **options,
    )
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=150)
    mixture.fit(sparse.csr_array(X) if "CSR" in family else X, sample_weight=weights)
    assert (
        not mixture._fitted.params.moved_or_pruned.any()
    )  # a re-seeded component may lower the bound
    assert_bound_never_falls(mixture)
    assert (mixture.background_weight_ > 0) == background


def copies(seed):
    """Return few distinct rows, some four times."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=(7, 2)) * rng.choice([1, 1e-2, 1e-4], size=2), 4, axis=0)


@pytest.mark.parametrize("kind", [RelativeGMM, StudentTMixture])
@pytest.mark.parametrize("seed", range(6))
def test_no_fit_is_worse_than_one_of_fewer_steps(kind, seed):
    """Although `reg_covar`, which counts where components have few distinct rows, lowers bounds."""
    options = {"init_params": "kmeans", "random_state": 0, "tol": 1e-6}
    bounds = [
        kind(5, max_iter=n, **options).fit(copies(seed)).lower_bound_ for n in (0, 1, 2, 4, 40)
    ]
    assert (np.diff(bounds) > -1e-6).all()


def test_a_fixed_mean_without_rows_leaves_and_the_bound_does_not_fall():
    X = np.random.default_rng(0).normal([1, 0, 0], 0.01, size=(100, 3))
    mixture = VonMisesFisherMixture(2, means_init=[[1, 0, 0], [-1, 0, 0]], fixed=("means",))
    with pytest.warns(match="1 of 2 components"):
        mixture.set_params(concentration_prior=0).fit(X)
    assert_bound_never_falls(mixture)
    np.testing.assert_array_equal(mixture.weights_, [1, 0])
