"""Mixture models as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # else imported when they are asked for
    from ._cluster_tracker import ClusterTracker
    from ._relative_gmm import RelativeGMM
    from ._sparse_gaussian import SparseGaussianMixture
    from ._student_t import StudentTMixture
    from ._vonmises_fisher import VonMisesFisherMixture

__all__ = [
    "ClusterTracker",
    "RelativeGMM",
    "SparseGaussianMixture",
    "StudentTMixture",
    "VonMisesFisherMixture",
]

# The file of each: it is imported when the mixture is first asked for, with the families that only
# this mixture needs.
_FILES = {
    "ClusterTracker": "_cluster_tracker",
    "RelativeGMM": "_relative_gmm",
    "SparseGaussianMixture": "_sparse_gaussian",
    "StudentTMixture": "_student_t",
    "VonMisesFisherMixture": "_vonmises_fisher",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FILES[name]}", __name__), name)
