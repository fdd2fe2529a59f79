"""What an item gives: tables, perhaps a picture; as text and as a record."""

import json
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


class NotMeasured(LookupError):
    """A record has no such figure."""


@dataclass
class Table:
    """Rows of figures. Columns whose name starts with "paper" are the paper's."""

    title: str
    columns: list[str]
    digits: int | str = 3  # decimals, or "e" for powers of ten
    rows: list[list[Any]] = field(default_factory=list)

    def add(self, *cells):
        """Append a row: its name, then a cell for each column but the first.

        A cell is None, a string, a number, or an array of repeats, which are all kept.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title!r} has {len(self.columns)} columns, not {len(cells)}.")
        self.rows.append([_stored(cell) for cell in cells])

    def text(self):
        """Return the cells as strings, the columns' names first."""
        return [
            self.columns,
            *([cell_text(cell, self.digits) for cell in row] for row in self.rows),
        ]


@dataclass
class Result:
    """What running an item gave.

    Parameters
    ----------
    settings : str
        What was run, in sentences.
    seeds : str
        The seeds or sets that were repeated.
    tables : list of Table
        The figures.
    draw : callable, default=None
        Draws on a matplotlib figure.
    earlier : float, default=0
        Seconds of CPU time of earlier runs whose cache was read.
    """

    settings: str
    seeds: str
    tables: list[Table]
    draw: Callable[[Any], None] | None = None
    earlier: float = 0.0

    def record(self, seconds):
        """Return what is kept."""
        return Record(
            settings=self.settings,
            seeds=self.seeds,
            minutes=float(f"{(seconds + self.earlier) / 60:.2g}"),
            commit=commit(),
            machine=processor(),
            tables=self.tables,
        )


@dataclass
class Record:
    """What a run gave, and where it was made: claims read their figures here."""

    settings: str
    seeds: str
    minutes: float
    commit: str
    machine: str
    tables: list[Table]

    def table(self, title):
        """Return the table whose title begins so."""
        for table in self.tables:
            if table.title.startswith(title):
                return table
        raise NotMeasured(f"no table {title!r}")

    def cells(self, title, row, column):
        """Return the cells of all rows of that name, in order; None where a cell is empty."""
        table = self.table(title)
        if column not in table.columns:
            raise NotMeasured(f"no column {column!r} in {title!r}")
        found = [own[table.columns.index(column)] for own in table.rows if own[0] == row]
        if not found or found == [None]:
            raise NotMeasured(f"no {row!r}, {column!r} in {title!r}")
        return found

    def cell(self, title, row, column):
        """Return one cell: a number, a string, or a dict with the mean, spread and values."""
        return self.cells(title, row, column)[0]

    def names(self, title):
        """Return the names of the rows of a table."""
        return [row[0] for row in self.table(title).rows]


@cache
def commit():
    """Return the commit checked out at the first call, with a plus if files had been changed."""
    folder = Path(__file__).parent

    def git(*arguments):
        return subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", "../skvmf", ".", ":!records"
        )
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "not in a clone"


def processor():
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write(path, record):
    """Keep a record in a file, a row of a table in a line."""
    head = {name: value for name, value in vars(record).items() if name != "tables"}
    lines = [json.dumps(head, indent=1, ensure_ascii=False)[:-2] + ",", ' "tables": [']
    for number, table in enumerate(record.tables):
        described = {name: value for name, value in vars(table).items() if name != "rows"}
        lines += ["  " + json.dumps(described, ensure_ascii=False)[:-1] + ', "rows": [']
        rows = ["   " + json.dumps(row, ensure_ascii=False) for row in table.rows]
        lines += [",\n".join(rows), "  ]}" + "," * (number < len(record.tables) - 1)]
    Path(path).write_text("\n".join([*lines, " ]", "}"]) + "\n", encoding="utf-8")


def read(path):
    """Return the record that a file keeps."""
    kept = json.loads(Path(path).read_text(encoding="utf-8"))
    kept["tables"] = [Table(**table) for table in kept["tables"]]
    return Record(**kept)


def shown(record):
    """Return a record as lines of text."""
    lines = [record.settings]
    for table in record.tables:
        cells = table.text()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", table.title]
        for row in cells:
            first, *rest = (
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("   ".join([f"  {first}", *rest]).rstrip())
    return "\n".join(lines)


def _stored(cell):
    """Return a cell as JSON takes it; of repeats, their mean, standard deviation and values."""
    if cell is None or isinstance(cell, str | dict):
        return cell
    values = np.asarray(cell, dtype=np.float64)
    if values.ndim == 0:
        return _rounded(values)
    return {
        "mean": _rounded(values.mean()),
        "sd": _rounded(values.std()),
        "n": len(values),
        "values": [_rounded(value) for value in values],
    }


def _rounded(value):
    """Return five digits: more are noise, and would change from machine to machine."""
    return float(f"{float(value):.5g}")


def cell_text(cell, digits):
    """Return a cell as text; of repeats the mean and the standard deviation."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        spread = f" ± {cell_text(cell['sd'], digits)}" if cell["n"] > 1 else ""
        return cell_text(cell["mean"], digits) + spread
    return f"{cell:.1e}" if digits == "e" else f"{cell:.{digits}f}"
