"""The documentation's pages of results and errata, made from the records."""

from pathlib import Path

from .errata import ERRATA
from .items import load
from .papers import PAPERS
from .results import read

FOLDER = Path(__file__).parents[1] / "doc" / "reproduction"
INTRODUCTION = """\
Every table and figure
======================

..
   Made by ``python -m reproduction --page`` from the records in ``reproduction/records``.

What the five papers show, what comes out here, and what to think of it. Each item has a command;
run it from a clone of the repository::

    python -m reproduction --list                       # what there is, and how long it takes
    python -m reproduction P0.fig2                      # one item
    python -m reproduction P0.fig3 --data FOLDER        # one that needs data
    python -m reproduction all --data FOLDER            # everything: {hours}
    python -m reproduction P0.fig2 --pictures FOLDER    # with its picture
    python -m reproduction.prepare                      # the data: which public files, and how

``--keep`` writes what was found to the records, and this page anew. Figures are means ± standard
deviations over seeds; those of the papers stand beside them. :doc:`errata` has what is wrong in
the papers.
"""


def write():
    """Write both pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages():
    """Return the text of the pages by file name."""
    return {"items.rst": results_page(), "errata.rst": errata_page()}


def results_page():
    """Return the page of results."""
    items = load()
    minutes = sum(own.minutes for own in items.values())
    records = {name: read(own.record) for name, own in items.items() if own.record.exists()}
    parts = [INTRODUCTION.format(hours=f"about {minutes / 60:.1f} hours on one core")]
    parts += ["At a glance", "-" * 11, "", glance(records)]
    for key, paper in PAPERS.items():
        parts += [f"{key}: {paper.title}", "-" * (len(key) + 2 + len(paper.title)), ""]
        guides = ", ".join(f":doc:`{guide}`" for guide in paper.guides)
        parts += [f"The claims one by one, and settings: {guides}.", ""]
        names = [name for name in items if name.startswith(f"{key}.")]
        parts += [section(items[name], records.get(name), guides) for name in names]
    return "\n".join(parts).rstrip() + "\n"


def glance(records):
    """Return the table of what the papers show."""
    rows = [("paper", "item", "verdict", "erratum")]
    for key, paper in PAPERS.items():
        for shown in paper.shows:
            verdicts = [
                v.verdict
                for name in shown.items
                if name in records
                for v in records[name]["verdicts"]
            ]
            wrong = any(set(shown.items) & set(erratum.items) for erratum in ERRATA)
            links = ", ".join(f":ref:`{name} <{anchor(name)}>`" for name in shown.items)
            rows.append(
                (
                    f"{key}, {shown.what}",
                    links or "",
                    counted(verdicts) if verdicts else shown.reason or NOT_RUN,
                    ":doc:`yes <errata>`" if wrong else "",
                )
            )
    return list_table(rows, widths="45 15 32 8")


NOT_RUN = "Without a record: it takes longer than we had."


def counted(verdicts):
    """Return verdicts with their numbers."""
    return ", ".join(
        verdict
        if verdicts.count(verdict) == len(verdicts) == 1
        else f"{verdicts.count(verdict)} {verdict}"
        for verdict in dict.fromkeys(verdicts)
    )


def section(item, record, guides):
    """Return what there is to say of an item."""
    title = f"{item.name}: {item.title}"
    lines = [f".. _{anchor(item.name)}:", "", title, "^" * len(title), ""]
    data = " --data FOLDER" if any("." in need for need in item.needs) else ""
    lines += [f"``python -m reproduction {item.name}{data}``", ""]
    if record is None:
        return "\n".join([*lines, f"{NOT_RUN} Figures of earlier runs: {guides}.", ""])
    lines += [f"{record['settings']} {duration(record['minutes'])}", ""]
    for table in record["tables"]:
        head, *rows = table.text()
        lines += [list_table([head, *rows], title=table.title), ""]
    for own in record["verdicts"]:
        lines.append(f"- *{own.claim}* **{own.verdict.capitalize()}.** {own.because}")
    for erratum in ERRATA:
        if item.name in erratum.items:
            lines.append(f"- Erratum: {erratum.where}, see :doc:`errata`.")
    return "\n".join([*lines, ""])


def duration(minutes):
    """Say how long a run took."""
    return f"It took {minutes:.0f} minutes on one core." if minutes >= 2 else "It takes a minute."


def anchor(name):
    """Return the label of an item's section."""
    return "item-" + name.lower().replace(".", "-")


def list_table(rows, title="", widths=""):
    """Return rows of strings as a table, the first as its heads."""
    lines = [f".. list-table:: {title}".rstrip(), "   :header-rows: 1"]
    lines += [f"   :widths: {widths}"] * bool(widths)
    for row in rows:
        marks = ["   * -", *["     -"] * (len(row) - 1)]
        lines += [""] * (row is rows[0])
        lines += [f"{mark} {cell}".rstrip() for mark, cell in zip(marks, row, strict=True)]
    return "\n".join(lines) + "\n"


def errata_page():
    """Return the page of errata."""
    lines = [
        "Errata of the papers",
        "====================",
        "",
        "..",
        "   Made by ``python -m reproduction --page`` from ``reproduction/errata.py``.",
        "",
        "Where a paper is wrong, what is right, and the test that shows it. Everything else that "
        "was tried is right as printed.",
        "",
    ]
    for key, paper in PAPERS.items():
        own = [erratum for erratum in ERRATA if erratum.items[0].startswith(f"{key}.")]
        if not own:
            continue
        title = f"{key}: {paper.title}"
        lines += [title, "-" * len(title), ""]
        for erratum in own:
            lines += [
                f"**{erratum.where}.** *Printed:* {erratum.printed} *Right:* {erratum.right} "
                f"(``{erratum.test}``; item "
                + ", ".join(f":ref:`{n} <{anchor(n)}>`" for n in erratum.items)
                + ")",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"
