"""Data sets: texts and samples for experiments, and readers for your own files."""

from ._corpora import load_conllu, load_docstrings, load_jsonl
from ._samples import make_vonmises_fisher_blobs

__all__ = ["load_conllu", "load_docstrings", "load_jsonl", "make_vonmises_fisher_blobs"]
