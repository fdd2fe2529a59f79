"""The table of speed of the user guide, from what ``asv_bench/speed.py`` has measured."""

import json
from datetime import date
from pathlib import Path

RECORD = Path(__file__).with_name("user_guide") / "speed.json"


def speed_table():
    """Return the table as reStructuredText, machine and day first."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    day = date.fromisoformat(record["date"])
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        f"Measured on {day:%d %B %Y}: {record['processor']}, {record['cores']} cores, {versions}. "
        "Medians of pairs taken in turn, processor time of one thread but for the last lines.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - what",
        "     - figure",
        "     - benchmark",
    ]
    for group in record["table"]:
        for name, key in group["lines"].items():
            figure = record["figures"][key]
            if figure is not None:
                benchmark = key.partition(" ")[0].rpartition(".")[0]  # without the method
                lines += [
                    f"   * - {group['what']}: {name}",
                    f"     - {figure:g} {group['unit']}",
                    f"     - ``{benchmark}``",
                ]
    return "\n".join(lines) + "\n"
