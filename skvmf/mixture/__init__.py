"""Floor 3: mixture estimators under the scikit-learn contract."""

from ._vonmises_fisher import VonMisesFisherMixture

__all__ = ["VonMisesFisherMixture"]
