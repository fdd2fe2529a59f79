"""Pictures of mixtures and of their training, in displays like scikit-learn's.

They need matplotlib: ``pip install "skvmf[plotting]"``.
"""

from ._component_path_display import ComponentPathDisplay
from ._displays import DirectionsDisplay, MixtureDisplay
from ._dynamics_display import DynamicsDisplay

__all__ = ["ComponentPathDisplay", "DirectionsDisplay", "DynamicsDisplay", "MixtureDisplay"]
