"""What an item of a paper gives: tables, verdicts, perhaps a picture; as text and as a record."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

VERDICTS = ("holds", "holds in part", "does not hold", "cannot be judged")


@dataclass(frozen=True)
class Verdict:
    """What becomes of one claim of a paper, and the figures that say so."""

    claim: str
    verdict: str
    because: str

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"A verdict is one of {VERDICTS}, not {self.verdict!r}.")


def judge(claim, holds, because, *, else_="does not hold"):
    """Return the verdict that a condition gives."""
    return Verdict(claim, "holds" if holds else else_, because)


@dataclass
class Table:
    """Rows of figures. Columns whose name starts with "paper" are the paper's."""

    title: str
    columns: list[str]
    digits: int | str = 3  # decimals, or "e" for powers of ten
    rows: list[list[Any]] = field(default_factory=list)

    def add(self, *cells):
        """Append a row: its name, then a cell for each column but the first.

        A cell is None, a string, a number, or an array of repeats, kept as mean and spread.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title!r} has {len(self.columns)} columns, not {len(cells)}.")
        self.rows.append([_stored(cell) for cell in cells])

    def text(self):
        """Return the cells as strings, the columns' names first."""
        return [self.columns, *([_shown(cell, self.digits) for cell in row] for row in self.rows)]


@dataclass
class Result:
    """What running an item gave."""

    settings: str
    tables: list[Table]
    verdicts: list[Verdict]
    draw: Callable[[Any], None] | None = None  # draws on a matplotlib figure

    def record(self, seconds):
        """Return what is kept, as JSON takes it."""
        return {
            "settings": self.settings,
            "minutes": float(f"{seconds / 60:.2g}"),
            "tables": [vars(table) for table in self.tables],
            "verdicts": [vars(verdict) for verdict in self.verdicts],
        }


def write(path, record):
    """Keep a record in a file."""
    text = json.dumps(record, indent=1, ensure_ascii=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def read(path):
    """Return the record that a file keeps, with tables and verdicts as objects."""
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    record["tables"] = [Table(**table) for table in record["tables"]]
    record["verdicts"] = [Verdict(**verdict) for verdict in record["verdicts"]]
    return record


def shown(record):
    """Return a record as lines of text."""
    lines = [record["settings"]]
    for table in record["tables"]:
        cells = table.text()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", table.title]
        for row in cells:
            first, *rest = (
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("   ".join([f"  {first}", *rest]).rstrip())
    lines.append("")
    for own in record["verdicts"]:
        lines.append(f"{own.verdict.upper()}: {own.claim}")
        lines.append(f"    {own.because}")
    return "\n".join(lines)


def _stored(cell):
    """Return a cell as JSON takes it; of repeats, their mean, standard deviation and number."""
    if cell is None or isinstance(cell, str):
        return cell
    values = np.asarray(cell, dtype=np.float64)
    if values.ndim == 0:
        return _rounded(values)
    return {"mean": _rounded(values.mean()), "sd": _rounded(values.std()), "n": len(values)}


def _rounded(value):
    """Return five digits: more are noise, and would change from machine to machine."""
    return float(f"{float(value):.5g}")


def _shown(cell, digits):
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        spread = f" ± {_shown(cell['sd'], digits)}" if cell["n"] > 1 else ""
        return _shown(cell["mean"], digits) + spread
    return f"{cell:.1e}" if digits == "e" else f"{cell:.{digits}f}"
