"""Pictures of mixtures, in displays like scikit-learn's.

They need matplotlib: ``pip install "skvmf[plotting]"``.
"""

from ._component_path_display import ComponentPathDisplay
from ._directions_display import DirectionsDisplay
from ._mixture_display import MixtureDisplay

__all__ = ["ComponentPathDisplay", "DirectionsDisplay", "MixtureDisplay"]
