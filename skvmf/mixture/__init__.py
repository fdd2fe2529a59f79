"""Floor 3: mixture estimators under the scikit-learn contract."""

from ._sparse_gaussian import SparseGaussianMixture
from ._vonmises_fisher import VonMisesFisherMixture

__all__ = ["SparseGaussianMixture", "VonMisesFisherMixture"]
