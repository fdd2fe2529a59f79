"""A closer look at mixtures: summaries, how well parameters are known, how they are learned."""

from ._dynamics import expected_gradient, park_ozeki_coordinates
from ._fisher_information import fisher_information
from ._singularity import singularity_distances
from ._summary import ComponentSummary, component_summary

__all__ = [
    "ComponentSummary",
    "component_summary",
    "expected_gradient",
    "fisher_information",
    "park_ozeki_coordinates",
    "singularity_distances",
]
