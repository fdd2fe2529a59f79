"""Mixture models as scikit-learn estimators."""

from ._relative_gmm import RelativeGMM
from ._sparse_gaussian import SparseGaussianMixture
from ._student_t import StudentTMixture
from ._vonmises_fisher import VonMisesFisherMixture

__all__ = ["RelativeGMM", "SparseGaussianMixture", "StudentTMixture", "VonMisesFisherMixture"]
