"""Mixture models as scikit-learn estimators."""

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
