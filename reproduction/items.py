"""The items that can be run, by name, and what they need."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .results import GUIDE, kept

MODULES = [
    *(f".p0_{name}" for name in ("negentropy", "texts")),
    *(f".p1_{name}" for name in ("modes", "mixtures", "grammars")),
    *(f".p2_{name}" for name in ("expectation", "steps", "images", "documents")),
    *(f".p3_{name}" for name in ("theory", "trajectories")),
    ".p4_tables",
]


class Missing(Exception):
    """What an item needs is not there."""


@dataclass(frozen=True)
class Setting:
    """How an item is run."""

    data: Path | None = None  # the folder of the files of data
    cache: Path | None = None  # a folder that keeps word vectors from run to run
    trained: Path | None = None  # a file that keeps what has been found with trained networks
    small: bool = False  # whether to take the sizes of the tests: figures that mean nothing
    options: dict[str, Any] = field(default_factory=dict)  # the item's "epochs" or "seeds"

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
    function: Callable
    needs: tuple[str, ...]  # files of data, and packages that are no dependencies of skvmf
    small: dict  # arguments in place of the defaults, for the sizes of the tests
    draw: Callable | None  # draws the record on a matplotlib figure

    def run(self, setting):
        """Return what the function gives."""
        for need in self.needs:
            if "." in need:
                setting.file(need)
        known = inspect.signature(self.function).parameters
        chosen = {name: own for name, own in setting.options.items() if name in known}
        return self.function(setting, **(self.small if setting.small else {}) | chosen)

    @property
    def hours(self):
        """Hours of a core, and minutes of a GPU, of the run that its record is of."""
        record = kept(self.name)
        return (record.minutes / 60, record.gpu_minutes) if record else (0.0, 0.0)


ITEMS: dict[str, Item] = {}


def item(name, title, *, needs=(), small=None, draw=None):
    """Let a function of a `Setting` and of sizes that returns a `Record` be an item."""

    def register(function):
        ITEMS[name] = Item(name, title, function, tuple(needs), small or {}, draw)
        return function

    return register


def load():
    """Return all items, in the order of the papers, those of the user guide last."""
    figures = sorted(path.stem for path in GUIDE.parent.glob("figures/*.py"))
    names = [*MODULES, *(f"doc.user_guide.figures.{name}" for name in figures)]
    modules = [import_module(name, __package__) for name in names]
    # Not the order of registration: somebody may have imported a later module first.
    places = {module.__name__: place for place, module in enumerate(modules)}
    return dict(sorted(ITEMS.items(), key=lambda own: places[own[1].function.__module__]))
