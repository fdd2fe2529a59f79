"""Mixtures whose parameters the tests choose."""

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from skvmf import FisherVectorTransformer, SparseGaussianMixture, VonMisesFisherMixture


def sphere(K=3, d=4, kappa=(3.0, 8.0, 20.0), seed=0, **options):
    """A von Mises-Fisher mixture with random directions."""
    rng = np.random.default_rng(seed)
    return VonMisesFisherMixture.from_parameters(
        rng.dirichlet(np.full(K, 5.0)),
        mean_directions=rng.normal(size=(K, d)),
        concentrations=np.resize(kappa, K),
        **options,
    )


def plane(K=3, d=4, seed=0, kind=SparseGaussianMixture, **options):
    """A diagonal Gaussian mixture with random means and variances."""
    rng = np.random.default_rng(seed)
    return kind.from_parameters(
        rng.dirichlet(np.full(K, 5.0)),
        rng.normal(size=(K, d)),
        rng.uniform(0.5, 2, size=(K, d)),
        covariance_type="diag",
        **options,
    )


def frozen(mixture, **options):
    return FisherVectorTransformer(FrozenEstimator(mixture), **options)


V, D = 30, 4  # words and dimensions
TABLE = np.random.default_rng(0).normal(size=(V, D))


def counts(n=12, dtype=np.int64):
    """Counts with an empty document."""
    C = np.random.default_rng(1).poisson(0.4, size=(n, V))
    C[3] = 0
    return sparse.csr_array(C.astype(dtype))


def as_bags(C, table=TABLE):
    """The same documents as lists of vectors, a word as often as it is counted."""
    return [np.repeat(table, row.astype(int), axis=0) for row in C.toarray()]


KINDS = {
    "vmf": ("means", "concentrations", "weights"),
    "gaussian": ("means", "variances", "weights"),
}
MIXTURES = {"vmf": sphere, "gaussian": plane}
