"""The documentation's pages of verdicts, figures and errata, made from the records."""

from pathlib import Path

from . import claims
from .errata import ERRATA
from .items import load
from .papers import PAPERS
from .results import read

FOLDER = Path(__file__).parents[1] / "doc" / "generated"
INTRODUCTION = """\
What the five papers say, in their words, what comes out here, and what to think of it. A verdict
is computed from a record: effects with 95 % intervals over seeds, sets or folds are compared with
what the claim asks for. A claim of several parts *holds* where all its parts do, *holds in part*
where some do, and *does not hold* where none does and one is refuted. It *cannot be judged* if
intervals leave all open, if our figures are far from the paper's, or if the protocol differs so
much that the verdict might change. [symbol lost] is a formula that is missing in our plain-text
copies of the papers; other words in brackets are ours.

Run what is below from a clone of the repository::

    python -m reproduction --list                       # what there is, and how long it takes
    python -m reproduction P0.fig2                      # one item
    python -m reproduction P0.fig3 --data FOLDER        # one that needs data
    python -m reproduction all --data FOLDER --small    # everything reduced: within two minutes
    python -m reproduction P0.fig2 --pictures FOLDER    # with its picture
    python -m reproduction.prepare                      # the data: which public files, and how

A full run takes about {hours:.0f} hours of CPU time, of which autoencoders take {neural:.0f}: the
sum of what the recorded runs took.
``--keep`` writes what was found to the records. Figures are means ± standard deviations.
:doc:`errata` has what is wrong in the papers, :doc:`ours` what we say ourselves.
"""
OURS = """\
Figures of our user guide that are no paper's, computed and judged in the same way: a statement of
ours, and what the records say of it.
"""


def write(folder=FOLDER):
    """Write all pages."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def pages():
    """Return the text of the pages by file name."""
    written = {
        "reproduction_items.rst": results_page(),
        "reproduction_ours.rst": our_page(),
        "reproduction_errata.rst": errata_page(),
    }
    for name, item in load().items():
        lines = [judged(own, verdict) for own, verdict in claims.of_item(item)]
        written[f"reproduction_claims_{name}.rst"] = "\n".join(lines) + "\n"
    return written


def results_page():
    """Return the page of the papers' items."""
    items = load()
    minutes = {name: own.minutes for name, own in items.items()}
    neural = sum(minutes[name] for name in ("P2.tab2", "P2.tab2-fashion", "P2.tab3"))
    hours = {"hours": sum(minutes.values()) / 60, "neural": neural / 60}
    parts = [INTRODUCTION.format(**hours)]
    parts += ["At a glance", "-----------", ""]
    parts += [list_table(glance(PAPERS), widths="10 34 14 42")]
    for key, paper in PAPERS.items():
        if key != "guide":
            parts += paper_section(key, paper, items)
    return "\n".join(parts).rstrip() + "\n"


def our_page():
    """Return the page of our own items."""
    names = [name for name in load() if name.startswith("guide.")]
    return "\n".join([OURS, *(section(load()[name]) for name in names)]).rstrip() + "\n"


def glance(papers):
    """Return a row for each claim."""
    rows = [("where", "the paper's words", "verdict", "what differs")]
    for key, paper in papers.items():
        for shown in paper.shows:
            for name in shown.items if key != "guide" else ():
                for own, verdict in claims.of_item(load()[name]):
                    section = own.section[0].lower() + own.section[1:]
                    where = f":ref:`{name} <{anchor(name)}>`, {section}"
                    rows.append((where, escaped(own.words), verdict.verdict, escaped(own.differs)))
            if key != "guide" and not shown.items:
                rows.append((key, shown.what, "cannot be judged", shown.reason))
    return rows


def paper_section(key, paper, items):
    """Return the section of a paper."""
    title = f"{key}: {paper.title}"
    guides = ", ".join(f":doc:`{guide}`" for guide in paper.guides)
    parts = [title, "-" * len(title), "", f"The method, and more on its claims: {guides}.", ""]
    return [*parts, *(section(own) for name, own in items.items() if name.startswith(f"{key}."))]


def section(item):
    """Return the section of an item: figures and verdicts."""
    title = f"{item.name}: {item.title}"
    lines = [f".. _{anchor(item.name)}:", "", title, "^" * len(title), ""]
    data = " --data FOLDER" if any("." in need for need in item.needs) else ""
    lines += [f"``python -m reproduction {item.name}{data}``", ""]
    if item.record.exists():
        record = read(item.record)
        lines += [f"{record.settings} {made(record)}", ""]
        for table in record.tables:
            lines += [list_table(table.text(), title=table.title), ""]
    else:
        lines += ["Without a record.", ""]
    lines += [judged(own, verdict) for own, verdict in claims.of_item(item)]
    for erratum in ERRATA:
        if item.name in erratum.items:
            lines.append(f"- Erratum: {erratum.where}, see :doc:`errata`.")
    return "\n".join([*lines, ""])


def judged(claim, verdict):
    """Return a claim and its verdict as a line of a list."""
    words = escaped(claim.words)
    if claim.ours:
        said = f"*{words}*"
    else:  # in brackets is what the paper does not say in words
        said = f"{claim.section}: " + (words if words.startswith("[") else f"“{words}”")
    differs = f" What differs: {escaped(claim.differs)}" if claim.differs else ""
    because = escaped(verdict.because)
    return f"- {said} **{verdict.verdict.capitalize()}.** {because}{differs}"


def made(record):
    """Say how a record was made."""
    return (
        f"Seeds: {record.seeds}. It took {duration(record.minutes)} of CPU time; commit "
        f"{record.commit}; machine: {record.machine}."
    )


def duration(minutes):
    """Say how long a run takes."""
    if minutes >= 90:
        return f"{minutes / 60:.0f} hours"
    return f"{minutes:.0f} minutes" if minutes >= 2 else "a minute"


def escaped(text):
    """Return text without what reStructuredText would take for markup."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|")


def anchor(name):
    """Return the label of an item's section."""
    return "item-" + name.lower().replace(".", "-")


def list_table(rows, title="", widths=""):
    """Return rows of strings as a table, the first as its heads."""
    lines = [f".. list-table:: {escaped(title)}".rstrip(), "   :header-rows: 1"]
    lines += [f"   :widths: {widths}"] * bool(widths)
    for row in rows:
        marks = ["   * -", *["     -"] * (len(row) - 1)]
        lines += [""] * (row is rows[0])
        lines += [f"{mark} {cell}".rstrip() for mark, cell in zip(marks, row, strict=True)]
    return "\n".join(lines) + "\n"


def errata_page():
    """Return the page of errata."""
    lines = ["Where a paper is wrong, what is right, and the test that shows it.", ""]
    for key, paper in PAPERS.items():
        own = [erratum for erratum in ERRATA if erratum.items[0].startswith(f"{key}.")]
        if not own:
            continue
        title = f"{key}: {paper.title}"
        lines += [title, "-" * len(title), ""]
        for erratum in own:
            lines += [
                f"**{erratum.where}.** *Printed:* {escaped(erratum.printed)} "
                f"*Right:* {escaped(erratum.right)} (``{erratum.test}``; item "
                + ", ".join(f":ref:`{n} <{anchor(n)}>`" for n in erratum.items)
                + ")",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"
