"""Pictures of mixtures, in displays like scikit-learn's.

They need matplotlib: ``pip install "skvmf[plotting]"``.
"""

from ._component_path_display import ComponentPathDisplay
from ._displays import DirectionsDisplay, MixtureDisplay

__all__ = ["ComponentPathDisplay", "DirectionsDisplay", "MixtureDisplay"]
