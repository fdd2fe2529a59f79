"""Claims of the papers: what is said and where, and what the records tell about it.

A file of ``papers`` has what a paper says: `Paper`, its claims and its errata. The parts of a claim
are figures of a record with 95 % intervals over seeds, sets or folds, and the values that would
support the claim. A part is written as ``what | figure | limits``. A figure is a cell of a record,
``table; row; column``, or several with LESS, PLUS or PER between them; a column may be ``mean of a
& b``, ``best of a & b`` (the one with the larger mean) or ``least of a`` (of all repeats). Limits
are ``>= 0``, ``<= 1``, ``0..1`` or ``equal within 0.1`` (a difference whose whole interval is so
near to zero), and after a comma wider ones for a claim that is then borne out in part. Parts are
repeated for all values of the names in braces. Sentences show figures of records as the role
``measured`` of the documentation does: ``ITEM; figure``.
"""

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from .results import GUIDE, NotMeasured, cell_text, kept, mean, summary

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be judged")
PARTS = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
FAR = 0.2  # of the paper's figure
MANY = 10  # repeats
OPERATIONS = " (LESS|PLUS|PER) "
FOLDER = Path(__file__).parent / "papers"


@dataclass(frozen=True)
class Erratum:
    """An error in a paper."""

    items: tuple[str, ...]  # those it bears on
    where: str
    printed: str
    right: str
    test: str  # a function of tests/reproduction/test_errata.py


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what of a record decides about it."""

    item: str
    short: str  # the claim in a few words of ours
    words: str  # a section and its words; what is in brackets is ours
    why: str
    parts: tuple[str, ...]
    paper: str = ""  # the paper's figure
    ours: str = ""
    obstacle: str = ""  # why no record can decide
    main: bool = False  # whether it is the paper's main claim
    extra: bool = False  # whether this is a row of ours, which the paper does not claim

    def judge(self, record):
        """Return the verdict that a record gives."""
        if record is None:
            return Verdict("cannot be judged", reason="It has not been run.")
        try:
            effects = tuple(effect(part, record) for part in self.parts)
        except NotMeasured as error:
            return Verdict("cannot be judged", reason=f"Not measured: {error.args[0]}.")
        if self.obstacle:
            return Verdict("cannot be judged", effects, self.obstacle)
        verdict = combined([effect.verdict for effect in effects])
        return Verdict(verdict, effects, elsewhere=all(effect.far for effect in effects))


@dataclass(frozen=True)
class Paper:
    """A paper: what it says in a screen, its claims and errata."""

    name: str
    title: str
    pages: tuple[str, ...]  # of the documentation
    says: str  # what it claims
    holds: str  # what of it holds here
    fails: str  # what does not, or cannot be judged
    why: str
    claims: tuple[Claim, ...]
    figures: dict[str, str] = field(default_factory=dict)  # what they show, by item
    differs: dict[str, str] = field(default_factory=dict)  # from the paper's protocol, by item
    errata: tuple[Erratum, ...] = ()
    left_out: tuple[str, ...] = ()  # what no item reproduces, and why


@cache
def papers():
    """Return the papers by key."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("P*.toml"))}


def read(path):
    """Return what a file says of a paper; claims are arrays with the name of their item."""
    own = tomllib.loads(path.read_text(encoding="utf-8"))
    errata = tuple(Erratum(**erratum) for erratum in own.pop("errata", []))
    return Paper(**own.pop("paper"), claims=tuple(claims_in(own)), errata=errata)


def claims_in(own):
    """Yield the claims of a file."""
    for item, some in own.items():
        for claim in some:
            names = claim.pop("for", {})
            single = [own for name in names for own in name.split(",")]
            filled = [
                part.format_map(dict(zip(single, flat(values), strict=True)))
                for part in claim.pop("parts")
                for values in product(*names.values())
            ]
            claim["paper"], claim["ours"] = claim.pop("figures", ("", ""))
            also = claim.pop("also", {})  # other items, with what is said of them
            first = Claim(item, **claim, parts=tuple(dict.fromkeys(filled)))
            yield first
            for other, different in also.items():
                yield replace(first, item=other, **different)


def flat(values):
    """Return values, those of names that go together one after the other."""
    return [own for value in values for own in (value if isinstance(value, list) else [value])]


@cache
def claims_of(name):
    """Return the claims of an item; those of the user guide are beside its figures."""
    guide = tomllib.loads((GUIDE.parent / "figures" / "claims.toml").read_text(encoding="utf-8"))
    own = [claim for paper in papers().values() for claim in paper.claims]
    return [claim for claim in [*own, *claims_in(guide)] if claim.item == name]


@dataclass(frozen=True)
class Effect:
    """What a record gives of a part: a figure with its interval, and where it is wanted."""

    what: str
    value: float
    low: float
    high: float
    limits: str
    far: tuple[str, ...] = ()  # figures of ours that are far from the paper's

    @property
    def verdict(self):
        """Return the verdict of this figure alone."""
        wanted, partly = ([*map(bound, self.limits.split(", ")), None])[:2]
        for verdict, bounds in (("holds", wanted), ("holds in part", partly)):
            if bounds and self.low >= bounds[0] and self.high <= bounds[1]:
                return verdict
        least, most = partly or wanted
        return "does not hold" if self.high < least or self.low > most else "cannot be judged"

    @property
    def figure(self):
        """Return the figure and its interval as text."""
        value, low, high = (f"{x:.3g}" for x in (self.value, self.low, self.high))
        interval = "" if low == high else f" [{low}, {high}]"
        return f"{value} (one run)" if low == "-inf" else f"{value}{interval}"

    def __str__(self):
        far = f" (far from the paper's: {'; '.join(self.far)})" if self.far else ""
        return f"{self.what}: {self.figure}{far}"


def effect(part, record):
    """Return what a record gives of a part."""
    what, figure, limits = part.split(" | ")
    value, margin = interval(figure, record)
    far = () if "; paper" in figure else tuple(dict.fromkeys(far_from(figure, record)))
    return Effect(what, value, value - margin, value + margin, limits, far)


def bound(text):
    """Return the least and the largest value that limits allow."""
    if ".." in text:
        return tuple(map(float, text.split("..")))
    sign, number = text.rsplit(" ", 1)
    if sign == "equal within":
        return -float(number), float(number)
    return (float(number), np.inf) if sign == ">=" else (-np.inf, float(number))


def interval(figure, record):
    """Return a figure and half of its interval: of pairs where all have as many repeats."""
    first, *others = re.split(OPERATIONS, figure)
    found = cell(first, record)
    if isinstance(found, dict) and not others:
        return found["mean"], margin(found["sd"], found["n"])
    others = [cell(own, record) if place % 2 else own for place, own in enumerate(others)]
    for operation, other in zip(others[::2], others[1::2], strict=True):
        other = mean(other) if operation == "PER" else other
        if isinstance(other, dict) or (np.ndim(other) and np.shape(found) != np.shape(other)):
            return welch(found, other)
        found = {"LESS": np.subtract, "PLUS": np.add, "PER": np.divide}[operation](found, other)
    return float(np.mean(found)), margin(np.std(found), len(found)) if np.ndim(found) else 0.0


def cell(text, record):
    """Return a number or an array of repeats; of a paper's repeats the mean, spread and number."""
    title, row, columns, *second = text.split("; ")
    operation, names = operation_of(columns)
    found = [record.cell(title, row, name, *second) for name in names]
    if isinstance(found[0], dict):
        return found[0]
    found = [own.replace(",", "") if isinstance(own, str) else own for own in found]
    found = [np.asarray(own, dtype=np.float64) for own in found]
    if operation == "best":
        return max(found, key=np.mean)
    return found[0].min() if operation == "least" else np.mean(found, axis=0)


def operation_of(columns):
    """Return the operation on columns, if there is one, and their names."""
    operation, names = re.fullmatch("(?:(mean|best|least) of )?(.*)", columns).groups()
    return operation, names.split(" & ")


def welch(first, second):
    """Return the difference of the means of different repeats, and half of its interval."""
    own = [summary(first), summary(second)]
    errors = [cell["sd"] ** 2 / (cell["n"] - 1) for cell in own]
    freedom = sum(errors) ** 2 / sum(e**2 / (c["n"] - 1) for e, c in zip(errors, own, strict=True))
    return own[0]["mean"] - own[1]["mean"], student.ppf(0.975, freedom) * sum(errors) ** 0.5


def measured(text):
    """Return a figure of a record in words: ``ITEM; table; row; column``, or several joined."""
    item, _, figure = " ".join(text.split()).partition("; ")
    record = kept(item)
    if re.search(OPERATIONS, figure) or operation_of(figure.split("; ")[2])[0]:
        return f"{interval(figure, record)[0]:.3g}"
    title, *place = figure.split("; ")
    return cell_text(record.cell(title, *place), record.table(title).digits)


def summarized(name, record):
    """Return a record with summaries of the many repeats that no claim compares or shows."""
    figures = {part.split(" | ")[1] for claim in claims_of(name) for part in claim.parts}
    sentences = " ".join(f"{claim.why} {claim.ours}" for claim in claims_of(name))
    figures.update(re.findall(rf":measured:`{re.escape(name)}; ([^`]*)`", sentences))
    cells = [text.split("; ") for own in figures for text in re.split(OPERATIONS, own)[::2]]
    wanted = {(*own[:2], name) for own in cells for name in operation_of(own[2])[1]}
    for table in record.tables:
        titles = {title for title, *_ in wanted if table.title.startswith(title)}
        for row in table.rows:
            for place, column in enumerate(table.columns):
                compared = any((title, row[0], column) in wanted for title in titles)
                if isinstance(row[place], list) and len(row[place]) > MANY and not compared:
                    row[place] = summary(row[place])
    return record


def margin(spread, number):
    """Return half of the interval of a mean, from the spread of the values about it."""
    if number < 2:
        return np.inf
    return float(student.ppf(0.975, number - 1) * spread / np.sqrt(number - 1))


def far_from(figure, record):
    """Yield the cells of a figure that are far from the paper's, where it has them."""
    for text in re.split(OPERATIONS, figure)[::2]:
        title, row, column, *_ = text.split("; ")
        table = record.table(title)
        for place, own in table.papers().items():
            cells = next((cells for cells in table.rows if cells[0] == row), None)
            if table.columns[own] == column and isinstance(cells[place], float | dict):
                ours, paper = mean(cells[own]), mean(cells[place])
                if abs(ours - paper) > FAR * abs(paper):
                    yield f"{row} {ours:.3g}, the paper's {paper:.3g}"


@dataclass(frozen=True)
class Verdict:
    """What is decided about a claim, and the effects that decide it."""

    verdict: str
    effects: tuple[Effect, ...] = ()
    reason: str = ""  # why it cannot be judged, where effects do not say so
    elsewhere: bool = False  # whether all that decide are far from the paper's figures

    @property
    def words(self):
        """Return the verdict in words, with the numbers of parts that hold and are refuted."""
        parts = [effect.verdict for effect in self.effects]
        counts = (
            f" ({parts.count('holds')} of {len(parts)}, {parts.count('does not hold')} refuted)"
        )
        some = self.verdict == "holds in part"
        return self.verdict + counts * some + ", at another level" * self.elsewhere

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
            label = "Open" if verdict == VERDICTS[-1] else verdict.capitalize()
            words.append(f"{label}: {'; '.join(some[:3])}{more}.")
        return " ".join(words)


def combined(verdicts):
    """Return the verdict on a claim of several parts.

    What is open does not bear a claim out, nor does it refute one.
    """
    held = [verdict for verdict in verdicts if verdict.startswith("holds")]
    if not verdicts or set(verdicts) == {"cannot be judged"}:
        return "cannot be judged"
    if set(verdicts) == {"holds"}:
        return "holds"
    return "holds in part" if held else "does not hold"


def counted(verdicts, parts="parts"):
    """Say how many parts of a claim have which verdict."""
    numbers = {v: verdicts.count(v) for v in VERDICTS if v in verdicts}
    some = ", ".join(f"{n} {v if n == 1 else PARTS.get(v, v)}" for v, n in numbers.items())
    return f"Of {len(verdicts)} {parts} {some}"


def shown(name, record):
    """Return the verdicts on the claims of an item as lines of text."""
    lines = [""]
    for own in claims_of(name):
        verdict = own.judge(record)
        lines += [f"{verdict.words.upper()}: {own.words}", f"    {verdict.because}"]
    return "\n".join(lines)
