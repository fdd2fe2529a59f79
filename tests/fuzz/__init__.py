"""Whatever estimators are given that is legal, they keep their promises.

A case is a dataclass whose repr is the code that makes it. ``pytest tests/fuzz`` tries a few,
the same ones every time; ``python -m tests.fuzz --cases 5000 --seed 0`` tries more, and prints
the smallest code for every way in which a promise is broken.
"""

from .data import (
    Data,
    Labels,
    Precisions,
    Range,
    Responsibilities,
    RowsAsMeans,
    Simplex,
    Weights,
)
from .fisher_vectors import FisherVectorCase
from .grammars import GrammarCase, Rules, Sentences
from .mixtures import MixtureCase
from .runs import check

__all__ = [
    "Range",
    "Data",
    "FisherVectorCase",
    "GrammarCase",
    "Labels",
    "MixtureCase",
    "Precisions",
    "Responsibilities",
    "RowsAsMeans",
    "Rules",
    "Sentences",
    "Simplex",
    "Weights",
    "check",
]
