"""A closer look at mixtures: how well their parameters are known, and how they are learnt."""

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
