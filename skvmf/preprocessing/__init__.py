"""Transformers of rows before they are clustered by direction."""

from ._whitener import DirectionWhitener

__all__ = ["DirectionWhitener"]
