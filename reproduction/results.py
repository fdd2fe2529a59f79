"""What an item gives: tables of figures; as text and as a record."""

import json
import platform
import subprocess
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

RECORDS = Path(__file__).parent / "records"
GUIDE = RECORDS.parents[1] / "doc" / "user_guide" / "figures.json"


class NotMeasured(LookupError):
    """A record has no such figure."""


@dataclass
class Table:
    """Rows of figures. A column "paper" or "paper, X" has the paper's, of "ours" or "X"."""

    title: str
    columns: list[str]
    digits: int | str = 3  # decimals, or "e" for powers of ten
    rows: list[list[Any]] = field(default_factory=list)

    def add(self, *cells):
        """Append a row: its name, then a cell for each column but the first.

        A cell is None, a string, a number, an array of repeats, which are all kept, or the mean,
        standard deviation and number of a paper's repeats.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title!r} has {len(self.columns)} columns, not {len(cells)}.")
        self.rows.append([rounded(cell) for cell in cells])

    def text(self):
        """Return the cells as strings, the columns' names first."""
        return [
            list(self.columns),
            *([cell_text(cell, self.digits) for cell in row] for row in self.rows),
        ]

    def papers(self):
        """Return the place of our column for that of each of the paper's columns."""
        found = {}
        for place, name in enumerate(self.columns):
            if name.startswith("paper"):
                own = name.removeprefix("paper").lstrip(", ")
                found[place] = self.columns.index(own if own in self.columns else "ours")
        return found

    def compared(self):
        """Return the text with a column after each of the paper's: how far ours are from it."""
        text = self.text()
        for place, own in sorted(self.papers().items(), reverse=True):
            text[0].insert(place + 1, "ours less the paper's")
            for cells, row in zip(text[1:], self.rows, strict=True):
                far = not isinstance(row[place], None | str) and mean(row[own]) - mean(row[place])
                cells.insert(place + 1, f"{far:+.{self.digits}f}" if far is not False else "")
        return text


@dataclass
class Record:
    """What a run gave, and where it was made: claims read their figures here."""

    settings: str  # what was run, in sentences
    seeds: str  # the seeds or sets that were repeated
    tables: list[Table]
    minutes: float = 0.0  # of a core; an item gives those of earlier runs that it has read
    gpu_minutes: float = 0.0
    commit: str = ""
    machine: str = ""

    def table(self, title):
        """Return the table whose title begins so."""
        for table in self.tables:
            if table.title.startswith(title):
                return table
        raise NotMeasured(f"no table {title!r}")

    def cell(self, title, row, column, second=None):
        """Return a cell, of rows of one name that whose second cell is as given."""
        table = self.table(title)
        if column not in table.columns:
            raise NotMeasured(f"no column {column!r} in {title!r}")
        found = [own for own in table.rows if own[0] == row and second in (None, own[1])]
        if len(found) != 1 or found[0][table.columns.index(column)] is None:
            raise NotMeasured(f"{len(found)} rows {row!r} with {column!r} in {title!r}")
        return found[0][table.columns.index(column)]

    def names(self, title):
        """Return the names of the rows of a table."""
        return [row[0] for row in self.table(title).rows]


# Files: one for each paper, and one for the guide


def path_of(name):
    """Return the file that keeps the record of an item."""
    paper = name.split(".")[0]
    return GUIDE if paper == "guide" else RECORDS / f"{paper}.json"


def kept(name):
    """Return the record of an item; None without one."""
    path = path_of(name)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if name not in found:
        return None
    tables = [Table(**table) for table in found[name].pop("tables")]
    return Record(**found[name], tables=tables)


def keep(name, record):
    """Keep a record, a table in a line."""
    path = path_of(name)
    records = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    records[name] = {**vars(record), "tables": [vars(table) for table in record.tables]}
    text = partial(json.dumps, ensure_ascii=False)
    lines = []
    for item, own in sorted(records.items()):
        head = ", ".join(f"{text(key)}: {text(own[key])}" for key in own if key != "tables")
        tables = ",\n  ".join(text(table, separators=(",", ":")) for table in own["tables"])
        lines.append(f' {text(item)}: {{{head}, "tables": [\n  {tables}]}}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def shown(record):
    """Return a record as lines of text."""
    lines = [record.settings]
    for table in record.tables:
        cells = table.compared()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", table.title]
        for first, *rest in cells:
            row = [f"  {first.ljust(widths[0])}"]
            row += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
            lines.append("   ".join(row).rstrip())
    return "\n".join(lines)


def mean(cell):
    """Return the mean of a cell."""
    return float(cell["mean"] if isinstance(cell, dict) else np.mean(cell))


def summary(cell):
    """Return the mean, the standard deviation and the number of repeats."""
    if isinstance(cell, dict):
        return cell
    return {"mean": mean(cell), "sd": float(np.std(cell)), "n": len(cell)}


def cell_text(cell, digits):
    """Return a cell as text; of repeats the mean and the standard deviation."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, list | dict):
        own = summary(cell)
        spread = f" ± {cell_text(own['sd'], digits)}" * (own["n"] > 1)
        return cell_text(own["mean"], digits) + spread
    return f"{cell:.1e}" if digits == "e" else f"{cell:.{digits}f}"


def rounded(cell):
    """Return a cell as JSON takes it, with four digits: more change from machine to machine."""
    if cell is None or isinstance(cell, str | dict):
        return cell
    if isinstance(cell, list | tuple) or np.ndim(cell):
        return [rounded(value) for value in cell]
    return float(f"{float(cell):.4g}")


@cache
def commit():
    """Return the commit checked out at the first call, with a plus if files had been changed."""
    git = partial(subprocess.run, cwd=RECORDS.parent, capture_output=True, text=True, check=True)
    try:
        status = ["git", "status", "--porcelain", "--untracked-files=no", "--", "../skvmf", "."]
        changed = git([*status, ":!records", ":!trained.json"]).stdout.strip()
        head = git(["git", "rev-parse", "--short=12", "HEAD"]).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "not in a clone"
    return head + "+" * bool(changed)


def processor():
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
