"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from ._version import __version__

__all__ = ["__version__"]
