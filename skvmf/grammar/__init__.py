"""Grammars learned from tagged sentences."""

from ._dmv import DependencyModelWithValence
from ._sentences import attachment_score

__all__ = ["DependencyModelWithValence", "attachment_score"]
