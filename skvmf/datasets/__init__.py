"""Floor 5: corpora and samples for examples and tests, and readers for files of your own."""

from ._corpora import load_docstrings, load_jsonl

__all__ = ["load_docstrings", "load_jsonl"]
