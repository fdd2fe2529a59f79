"""Data sets: texts and samples for experiments, and a reader of treebanks."""

from ._corpora import load_conllu, load_docstrings
from ._samples import make_vonmises_fisher_blobs

__all__ = ["load_conllu", "load_docstrings", "make_vonmises_fisher_blobs"]
