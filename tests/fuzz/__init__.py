"""Whatever estimators are given that is legal, they keep their promises.

A case is a dataclass whose repr is the code that makes it. ``pytest tests/fuzz`` tries a few,
the same ones every time; ``python -m tests.fuzz --cases 5000 --seed 0`` tries more, and prints
the smallest code for every way in which a promise is broken.
"""

from .compositions import CompositionCase
from .data import (
    Data,
    Known,
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
from .paths import PathCase
from .runs import check
from .steps import StepsCase
from .streams import StreamCase

__all__ = [
    "CompositionCase",
    "Data",
    "FisherVectorCase",
    "GrammarCase",
    "Known",
    "Labels",
    "MixtureCase",
    "PathCase",
    "Precisions",
    "Range",
    "Responsibilities",
    "RowsAsMeans",
    "Rules",
    "Sentences",
    "Simplex",
    "StepsCase",
    "StreamCase",
    "Weights",
    "check",
]
