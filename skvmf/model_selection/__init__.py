"""How many components: one path over all numbers, what speaks for each, and its tree."""

from ._component_path import ComponentPath

__all__ = ["ComponentPath"]
