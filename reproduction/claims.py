"""Claims of the papers: what is said and where, and what the records tell about it.

A claim is a function of a record. It returns effects: figures with 95 % intervals over seeds, sets
or folds, each with the values that would support the claim. The verdict follows from them.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from .results import NotMeasured, read

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be judged")
PARTS = dict(zip(VERDICTS, ("hold", "hold in part", "do not hold", "are undecided"), strict=True))
MODULES = ["claims_p0", "claims_p1", "claims_p2", "claims_p3", "claims_p4", "claims_ours"]


@dataclass(frozen=True)
class Effect:
    """A figure with its interval, and where it must lie for a claim to hold.

    Parameters
    ----------
    what : str
        What was measured.
    value, low, high : float
        The figure and its interval; all three are equal for what is exact.
    at_least, at_most : float, default=-inf, inf
        Where a claim wants it.
    partly_at_least, partly_at_most : float, default=None
        Wider limits, for a claim that is then borne out in part.
    doubt : str, default=""
        Why the figure decides nothing, if it does not.
    """

    what: str
    value: float
    low: float
    high: float
    at_least: float = -np.inf
    at_most: float = np.inf
    partly_at_least: float | None = None
    partly_at_most: float | None = None
    doubt: str = ""

    @property
    def verdict(self):
        """Return the verdict of this figure alone."""
        if self.doubt:
            return "cannot be judged"
        if self._within(self.at_least, self.at_most):
            return "holds"
        least = self.at_least if self.partly_at_least is None else self.partly_at_least
        most = self.at_most if self.partly_at_most is None else self.partly_at_most
        if (least, most) != (self.at_least, self.at_most) and self._within(least, most):
            return "holds in part"
        if self.high < least or self.low > most:
            return "does not hold"
        return "cannot be judged"

    def _within(self, least, most):
        return self.low >= least and self.high <= most

    def __str__(self):
        value, low, high = (f"{x:.3g}" for x in (self.value, self.low, self.high))
        interval = "" if low == high else f" [{low}, {high}]"
        if low == "-inf":
            interval = " (one run)"
        return f"{self.what} {value}{interval}" + f" ({self.doubt})" * bool(self.doubt)


@dataclass(frozen=True)
class Verdict:
    """What is decided about a claim, and the effects that decide it."""

    verdict: str
    effects: list[Effect]
    reason: str = ""  # why it cannot be judged, where effects do not say so

    @property
    def because(self):
        """Return the effects in words; of many those that decide least and most, and how many."""
        words = [self.reason] if self.reason else []
        if len(self.effects) <= 6:
            return " ".join([*words, "; ".join(map(str, self.effects)) + "." * bool(self.effects)])
        verdicts = [effect.verdict for effect in self.effects]
        words.append(f"{counted(verdicts)}.")
        for verdict in dict.fromkeys(sorted(verdicts, key=VERDICTS.index)):
            some = [str(effect) for effect in self.effects if effect.verdict == verdict]
            more = " and others" * (len(some) > 3)
            label = "Undecided" if verdict == VERDICTS[-1] else verdict.capitalize()
            words.append(f"{label}: {'; '.join(some[:3])}{more}.")
        return " ".join(words)


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how a record is read for it."""

    item: str
    name: str
    section: str
    words: str  # as the paper has them; a statement of ours where ours is true
    effects: Callable
    differs: str = ""  # from the paper's protocol
    obstacle: str | Callable = ""  # why no record can decide, or what tells it of a record
    ours: bool = False

    def judge(self, record):
        """Return the verdict that a record gives; None if it has no record."""
        if record is None:
            return Verdict("cannot be judged", [], "It has not been run.")
        try:
            effects = self.effects(record)
        except NotMeasured as error:
            return Verdict("cannot be judged", [], f"Not measured: {error.args[0]}.")
        reason = self.obstacle if isinstance(self.obstacle, str) else self.obstacle(record)
        if reason:
            return Verdict("cannot be judged", effects, reason)
        return Verdict(combined([effect.verdict for effect in effects]), effects)


CLAIMS: dict[str, list[Claim]] = {}


def claim(item, section, words, *, differs="", obstacle="", ours=False):
    """Let a function of a `Record` that returns effects be a claim of an item."""

    def register(function):
        own = Claim(item, function.__name__, section, words, function, differs, obstacle, ours)
        CLAIMS.setdefault(item, []).append(own)
        return function

    return register


def load():
    """Return the claims by item."""
    for module in MODULES:
        importlib.import_module(f".{module}", __package__)
    return CLAIMS


def combined(verdicts):
    """Return the verdict on a claim of several parts.

    What is undecided does not bear a claim out, nor does it refute one.
    """
    held = [verdict for verdict in verdicts if verdict.startswith("holds")]
    if not verdicts or set(verdicts) == {"cannot be judged"}:
        return "cannot be judged"
    if set(verdicts) == {"holds"}:
        return "holds"
    return "holds in part" if held else "does not hold"


def counted(verdicts):
    """Say how many parts of a claim have which verdict."""
    some = ", ".join(f"{verdicts.count(v)} {PARTS[v]}" for v in VERDICTS if v in verdicts)
    return f"Of {len(verdicts)} parts {some}"


# Effects from cells


def exact(what, value, **wanted):
    """Return the effect of a figure without an error."""
    value = float(value)
    return Effect(what, value, value, value, **wanted)


def level(what, cell, **wanted):
    """Return the effect of a mean over repeats, with its t interval."""
    if not isinstance(cell, dict):
        return exact(what, cell, **wanted)
    if "low" in cell:
        return Effect(what, cell["mean"], cell["low"], cell["high"], **wanted)
    margin = _margin(cell["sd"], cell["n"])
    return Effect(what, cell["mean"], cell["mean"] - margin, cell["mean"] + margin, **wanted)


def difference(what, first, second, **wanted):
    """Return the effect of a difference of means: of pairs, where both have as many values."""
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return level(what, _shifted(first, second), **wanted)
    if "values" in first and "values" in second and first["n"] == second["n"]:
        gaps = np.subtract(first["values"], second["values"])
        return level(what, sample(gaps), **wanted)
    margin = np.hypot(_margin(first["sd"], first["n"]), _margin(second["sd"], second["n"]))
    value = first["mean"] - second["mean"]
    return Effect(what, value, value - margin, value + margin, **wanted)


def compared(what, record, title, rows, columns, far, **wanted):
    """Return the difference of two rows; it decides nothing if one is far worse than the paper's.

    Then some setting that the paper does not give must be different. `columns` are ours and the
    paper's. ``far(own, paper)`` says how much worse a figure is, and nothing if it is near.
    """
    ours, papers = ([record.cell(title, row, column) for row in rows] for column in columns)
    gaps = [far(mean(own), mean(paper)) for own, paper in zip(ours, papers, strict=True)]
    doubts = [f"our {row} is {gap}" for row, gap in zip(rows, gaps, strict=True) if gap]
    return difference(what, *ours, doubt="; ".join(doubts), **wanted)


def average(*cells):
    """Return a cell of the means of cells, value by value."""
    if all(isinstance(cell, dict) and "values" in cell for cell in cells):
        return sample(np.mean([cell["values"] for cell in cells], axis=0))
    return float(np.mean([mean(cell) for cell in cells]))


def sample(values):
    """Return the cell of repeats."""
    return {
        "mean": float(np.mean(values)),
        "sd": float(np.std(values)),
        "n": len(values),
        "values": list(values),
    }


def mean(cell):
    """Return the mean of a cell."""
    return float(cell["mean"] if isinstance(cell, dict) else cell)


def _shifted(first, second):
    if isinstance(first, dict):
        return {"mean": first["mean"] - float(second), "sd": first["sd"], "n": first["n"]}
    if isinstance(second, dict):
        return {"mean": float(first) - second["mean"], "sd": second["sd"], "n": second["n"]}
    return float(first) - float(second)


def _margin(spread, number):
    """Return half of the interval of a mean, from the spread of the values about it."""
    if number < 2:
        return np.inf
    return float(student.ppf(0.975, number - 1) * spread / np.sqrt(number - 1))


# Text


def of_item(item):
    """Return the claims of an item with their verdicts, from its record."""
    record = read(item.record) if item.record.exists() else None
    return [(own, own.judge(record)) for own in load().get(item.name, [])]


def shown(name, record):
    """Return the verdicts on the claims of an item as lines of text."""
    lines = [""]
    for own in load().get(name, []):
        verdict = own.judge(record)
        lines.append(f"{verdict.verdict.upper()}: {own.section}: {own.words}")
        lines.append(f"    {verdict.because}")
        if own.differs:
            lines.append(f"    Differs: {own.differs}")
    return "\n".join(lines)
