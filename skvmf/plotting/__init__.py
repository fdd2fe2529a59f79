"""Floor 5: pictures of mixtures, by scikit-learn's Display conventions; needs matplotlib."""

from ._dynamics_display import DynamicsDisplay
from ._mixture_display import MixtureDisplay

__all__ = ["DynamicsDisplay", "MixtureDisplay"]
