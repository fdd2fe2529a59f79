"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from ._version import __version__
from .mixture import VonMisesFisherMixture

__all__ = ["VonMisesFisherMixture", "__version__"]
