"""The items that can be run, by name, and what they need."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .results import read

RECORDS = Path(__file__).parent / "records"
MODULES = [
    "p0_negentropy",
    "p0_operations",
    "p0_texts",
    "p1_mixtures",
    "p1_grammars",
    "p2_expectation",
    "p2_images",
    "p2_documents",
    "p3_relative",
    "p3_printed",
    "p3_layers",
    "p4_tables",
    "guide_concentrations",
    "guide_mixtures",
    "guide_mode",
    "guide_posteriors",
    "guide_figures",
    "guide_densities",
    "guide_cluster",
    "guide_components",
    "guide_embeddings",
]


class Missing(Exception):
    """What an item needs is not there."""


@dataclass(frozen=True)
class Setting:
    """How an item is run."""

    data: Path | None = None
    cache: Path | None = None  # keeps what has been trained from run to run
    small: bool = False  # sizes of the tests: seconds, and figures that mean nothing
    epochs: int | None = None  # fewer than the papers', to save time
    seeds: int | None = None

    def size(self, full, small):
        """Return one of two sizes."""
        return small if self.small else full

    def file(self, name):
        """Return the path of a file of data."""
        if self.data is None:
            raise Missing(f"It needs {name}: give the folder that holds it as --data.")
        path = self.data / name
        if not path.exists():
            raise Missing(
                f"There is no {name} in {self.data}: python -m reproduction.prepare makes it."
            )
        return path


@dataclass(frozen=True)
class Item:
    """A table, figure or claim of a paper that a command reproduces."""

    name: str
    title: str
    run: Callable
    needs: tuple[str, ...]

    @property
    def record(self):
        """Where its record is kept."""
        return RECORDS / f"{self.name}.json"

    @property
    def minutes(self):
        """CPU time of the run that its record is of; 0 without a record."""
        return read(self.record).minutes if self.record.exists() else 0.0


ITEMS: dict[str, Item] = {}


def item(name, title, *, needs=()):
    """Let a function of a `Setting` that returns a `Result` be an item.

    Parameters
    ----------
    name : str
        The paper, a dot and the item, as "P0.fig3".
    title : str
        What it is, for the list and the page.
    needs : tuple of str
        Files of data and packages that are no dependencies of skvmf.
    """

    def register(function):
        ITEMS[name] = Item(name, title, function, tuple(needs))
        return function

    return register


def load():
    """Return all items, in the order of the papers."""
    for module in MODULES:
        importlib.import_module(f".{module}", __package__)
    return ITEMS
