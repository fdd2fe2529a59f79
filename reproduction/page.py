"""The documentation's parts on the papers: a screen for each, items with pictures, errata."""

from . import claims
from .items import load
from .results import GUIDE, kept

FOLDER = GUIDE.parents[1] / "generated"


def write(folder=FOLDER, *, pictures=True):
    """Write all parts, and draw the pictures."""
    folder.mkdir(exist_ok=True)
    (folder / "reproduction_overview.rst").write_text(overview(), encoding="utf-8")
    (folder / "reproduction_errata.rst").write_text(errata(), encoding="utf-8")
    for name, item in load().items():
        record = kept(name)
        if pictures and item.draw and record:
            draw(item, record, folder / picture(name))
        path = folder / f"reproduction_{name}.rst"
        path.write_text(section(item, record), encoding="utf-8")


def draw(item, record, path):
    """Draw the picture of an item into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained", dpi=100)
    item.draw(figure, record)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def picture(name):
    """Return the name of the file of a picture."""
    return f"reproduction_{name.replace('.', '_')}.png"


def overview():
    """Return a screen for each paper: what it claims, what holds, what does not, and why."""
    items = load().values()
    minutes = {own.name: own.minutes for own in items}
    neural = sum(own for name, own in minutes.items() if name.startswith(("P2.tab2", "P2.tab3")))
    lines = [
        f"The recorded runs took {sum(minutes.values()) / 60:.0f} hours, of which autoencoders "
        f"took {neural / 60:.0f}. Some of these were trained on a GPU: on one core, they would "
        "take about 25 hours more.",
        "",
    ]
    for key, paper in claims.papers().items():
        own = [(claim, claim.judge(kept(claim.item))) for claim in paper.claims]
        title = f"{key}: {paper.name}"
        lines += [title, "-" * len(title), "", f"*{paper.title}.*", ""]
        lines += [f":It claims: {paper.says}", f":What holds: {paper.holds}"]
        lines += [f":What does not: {paper.fails}", f":Why: {paper.why}"]
        lines += [f":Left out: {' '.join(paper.left_out)}"] * bool(paper.left_out)
        pages = ", ".join(f":doc:`{page}`" for page in paper.pages)
        lines += [
            f":Details: {pages}",
            "",
            f"{claims.counted([v.verdict for _, v in own], 'claims')}:",
            "",
        ]
        rows = [("claim", "verdict", "why")]
        rows += [
            (f":ref:`{claim.short} <{anchor(claim.item)}>`", f"**{verdict.words}**", claim.why)
            for claim, verdict in own
        ]
        lines += [list_table(rows, widths="30 14 56"), ""]
    return "\n".join(lines)


def section(item, record):
    """Return the section of an item: its picture beside the paper's, figures and verdicts."""
    title = f"{item.name}: {item.title}"
    lines = [f".. _{anchor(item.name)}:", "", title, "-" * len(title), ""]
    data = " --data FOLDER" if any("." in need for need in item.needs) else ""
    lines += [f"``python -m reproduction {item.name}{data}``", ""]
    if record is None:
        lines += ["Not recorded yet.", ""]
    else:
        lines += [f"{escaped(record.settings)} {made(record)}", ""]
        if item.draw:
            lines += [f".. figure:: /generated/{picture(item.name)}", f"   :alt: {item.title}", ""]
            theirs = claims.papers()[item.name[:2]].figures.get(item.name)
            lines += [f"   In the paper: {theirs}." if theirs else "", ""]
    lines += [judged(own, own.judge(record)) for own in claims.claims_of(item.name)] + [""]
    for table in record.tables if record else ():
        rows = [[escaped(cell) for cell in row] for row in table.compared()]
        lines += [list_table(rows, title=table.title), ""]
    for paper in claims.papers().values():
        for erratum in paper.errata:
            if item.name in erratum.items:
                right = escaped(erratum.right)
                lines += [f"*Erratum*, {erratum.where}: {right} See :doc:`errata`.", ""]
    return "\n".join(lines)


def judged(claim, verdict):
    """Return a claim and its verdict as an entry of a list."""
    where, _, words = claim.words.partition(": ")
    said = escaped(words if words.startswith("[") else f"“{words}”")
    differs = f" What differs: {escaped(claim.differs)}" * bool(claim.differs)
    words = verdict.words[0].upper() + verdict.words[1:]
    return f"- *{claim.short}.* {where}: {said} **{words}.** {escaped(verdict.because)}{differs}"


def made(record):
    """Say how a record was made."""
    minutes, took = record.minutes, "a minute"
    if minutes >= 2:
        took = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.0f} hours"
    return (
        f"Seeds: {record.seeds}. It took {took}; commit {record.commit}; machine: {record.machine}."
    )


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


def errata():
    """Return the errata: where a paper is wrong, what is right, and the test that shows it."""
    lines = ["Where a paper is wrong, what is right, and the test that shows it.", ""]
    for key, paper in claims.papers().items():
        if paper.errata:
            title = f"{key}: {paper.name}"
            lines += [title, "-" * len(title), ""]
        for own in paper.errata:
            items = ", ".join(f":ref:`{name} <{anchor(name)}>`" for name in own.items)
            lines += [
                f"**{own.where}.** *Printed:* {escaped(own.printed)} *Right:* "
                f"{escaped(own.right)} (``tests/reproduction/test_errata.py``, ``{own.test}``; "
                f"item {items})",
                "",
            ]
    return "\n".join(lines)
