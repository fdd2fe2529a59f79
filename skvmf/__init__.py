"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from ._version import __version__
from .feature_extraction import FisherVectorTransformer
from .mixture import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

__all__ = [
    "FisherVectorTransformer",
    "RelativeGMM",
    "SparseGaussianMixture",
    "StudentTMixture",
    "VonMisesFisherMixture",
    "__version__",
]
