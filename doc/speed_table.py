"""The speed table of the guide and the speed card of the home page, from ``speed.json``.

``asv_bench/speed.py`` measures the figures.
"""

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


def speed_card():
    """Return the card of the home page as reStructuredText."""
    figures = json.loads(RECORD.read_text(encoding="utf-8"))["figures"]
    name = (
        "mixture.SparseGaussianMixtureStep.track_times_faster_than_scikit_learn {} float64 soft 1.0"
    )
    times = {kind: figures[name.format(kind)] for kind in ("full", "diag", "tied")}
    least, most = min(times.values()), max(times.values())
    return (
        f".. grid-item-card:: {least:.0f} to {most:.0f} times as fast\n"
        "   :link: user_guide/performance\n"
        "   :link-type: doc\n\n"
        "   One EM step of a Gaussian mixture compared with scikit-learn's ``GaussianMixture``:\n"
        f"   {times['full']:.1f} times as fast with full, {times['diag']:.1f} with diagonal and\n"
        f"   {times['tied']:.1f} with tied covariances, on the same rows and one thread.\n"
    )
