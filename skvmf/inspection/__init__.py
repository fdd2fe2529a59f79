"""A closer look at mixtures: summaries, matches, and how well memberships and parameters hold."""

from ._fisher_information import fisher_information
from ._matching import component_stability, match_components, renumber_components
from ._memberships import coverage_curve, membership_reliability
from ._summary import ComponentSummary, component_summary

__all__ = [
    "ComponentSummary",
    "component_stability",
    "component_summary",
    "coverage_curve",
    "fisher_information",
    "match_components",
    "membership_reliability",
    "renumber_components",
]
