"""A closer look at mixtures: summaries, matches, and how well parameters are known."""

from ._fisher_information import fisher_information
from ._matching import component_stability, match_components, renumber_components
from ._summary import ComponentSummary, component_summary

__all__ = [
    "ComponentSummary",
    "component_stability",
    "component_summary",
    "fisher_information",
    "match_components",
    "renumber_components",
]
