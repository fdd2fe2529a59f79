"""Pictures of mixtures, in displays like scikit-learn's, and a report of clusters to click on.

Displays need matplotlib: ``pip install "skvmf[plotting]"``.
"""

from ._cluster_tracker_display import ClusterTrackerDisplay
from ._component_path_display import ComponentPathDisplay
from ._displays import DirectionsDisplay, MixtureDisplay
from ._reliability_display import ReliabilityDisplay
from ._report import cluster_report

__all__ = [
    "ClusterTrackerDisplay",
    "ComponentPathDisplay",
    "DirectionsDisplay",
    "MixtureDisplay",
    "ReliabilityDisplay",
    "cluster_report",
]
