"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from ._version import __version__
from .mixture import SparseGaussianMixture, VonMisesFisherMixture

__all__ = ["SparseGaussianMixture", "VonMisesFisherMixture", "__version__"]
