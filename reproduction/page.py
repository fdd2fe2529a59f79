"""The documentation's parts on the papers: a screen for each, items with pictures, errata."""

from . import claims
from .items import load
from .results import GUIDE, kept

FOLDER = GUIDE.parents[1] / "generated"
OF_PARTS = {"does not hold": "refuted", "cannot be judged": "open"}


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
    """Return a screen for each paper: its main claim, what holds and what does not, all claims."""
    hours, minutes = map(sum, zip(*(own.hours for own in load().values()), strict=True))
    lines = [
        f"The recorded runs took {hours:.0f} hours of a core and {minutes:.0f} minutes of a GPU."
    ]
    for key, paper in claims.papers().items():
        lines += ["", *screen(key, paper)]
    return "\n".join(lines)


def screen(key, paper):
    """Yield the lines of a paper's screen."""
    title = f"{key}: {paper.name}"
    yield from [title, "-" * len(title), "", ".. container:: paper", ""]
    for line in body(paper):
        yield from (f"   {part}".rstrip() for part in line.splitlines() or [""])


def body(paper):
    """Yield the lines of a paper's screen below its title."""
    judged = [(claim, claim.judge(kept(claim.item))) for claim in paper.claims]
    own = [pair for pair in judged if not pair[0].extra]
    main, verdict = next(pair for pair in own if pair[0].main)
    yield from [f"*{paper.title}.* {paper.says}", ""]
    yield from [f".. admonition:: Main claim: {main.short}", ""]
    yield f"   *The paper:* {main.paper}. *Here:* {main.ours}."
    yield f"   **{sentence(verdict.words)}.** {main.why}"
    fields = {"Holds": paper.holds, "Not, or in part": paper.fails, "Why": paper.why}
    fields["Left out"] = " ".join(paper.left_out)
    yield from ["", *(f":{name}: {text}" for name, text in fields.items() if text)]
    pages = ", ".join(f":doc:`{page}`" for page in paper.pages)
    verdicts = [verdict.verdict for _, verdict in own]
    yield from ["", f"{claims.counted(verdicts, 'claims')}. Details: {pages}.", ""]
    rows = [("claim", "the paper", "here", "verdict")]
    for claim, verdict in own:
        link = f":ref:`{claim.short} <{anchor(claim.item)}>`"
        rows.append((f"{link} ★" if claim.main else link, claim.paper, claim.ours, verdict.words))
    yield from [list_table(rows, widths="28 18 30 24", kind="figures"), ""]
    extra = [f":ref:`{claim.short} <{anchor(claim.item)}>`" for claim, _ in judged if claim.extra]
    yield from [f"Rows of ours, which do not count above: {'; '.join(extra)}."] * bool(extra)


def section(item, record):
    """Return the section of an item: its picture beside the paper's, claims and figures."""
    title = f"{item.name}: {item.title}"
    lines = [f".. _{anchor(item.name)}:", "", title, "-" * len(title), ""]
    data = " --data FOLDER" if any("." in need for need in item.needs) else ""
    lines += [f"``python -m reproduction {item.name}{data}``", ""]
    paper = claims.papers().get(item.name[:2])
    if record is None:
        lines += ["Not recorded yet.", ""]
    else:
        lines += [f"{escaped(record.settings)} {made(record)}", ""]
        if item.draw:
            lines += [f".. figure:: /generated/{picture(item.name)}", f"   :alt: {item.title}", ""]
            theirs = paper and paper.figures.get(item.name)
            lines += [f"   In the paper: {theirs}." if theirs else "", ""]
    if paper and item.name in paper.differs:
        lines += [f"*What differs from the paper:* {paper.differs[item.name]}", ""]
    judged = [(own, own.judge(record)) for own in claims.claims_of(item.name)]
    lines += [table_of(judged), parts_of(judged)] if judged else []
    for table in record.tables if record else ():
        rows = [[escaped(cell) for cell in row] for row in table.compared()]
        lines += [list_table(rows, title=table.title), ""]
    for erratum in paper.errata if paper else ():
        if item.name in erratum.items:
            lines += [
                f"*Erratum*, {erratum.where}: {escaped(erratum.right)} See :doc:`errata`.",
                "",
            ]
    return "\n".join(lines)


def table_of(judged):
    """Return claims with the paper's figures, ours and the verdicts as a table."""
    rows = [("claim", "the paper", "here", "verdict", "why")]
    for claim, verdict in judged:
        where, _, words = claim.words.partition(": ")
        said = escaped(words if words.startswith("[") else f"“{words}”")
        kind = " (main claim)" * claim.main + " (a row of ours)" * claim.extra
        why = " ".join(filter(None, [verdict.reason, claim.why]))
        cells = f"**{claim.short}**{kind}. {where}: {said}", claim.paper, claim.ours
        rows.append((*cells, sentence(verdict.words), why))
    if not any(claim.ours for claim, _ in judged):
        return list_table([(row[0], *row[3:]) for row in rows], widths="50 15 35", kind="figures")
    return list_table(rows, widths="34 14 14 13 25", kind="figures")


def parts_of(judged):
    """Return the parts of claims, folded: their figures, what is wanted and the verdicts."""
    lines = [".. dropdown:: The parts of each claim, with 95 % intervals", ""]
    for claim, verdict in judged:
        rows = [("part", "here", "wanted", "verdict")]
        for own in verdict.effects:
            far = f" (far from the paper's: {'; '.join(own.far)})" if own.far else ""
            cells = map(escaped, (own.what + far, own.figure, own.limits))
            rows.append((*cells, OF_PARTS.get(own.verdict, own.verdict)))
        table = list_table(rows, title=claim.short, widths="50 22 16 12", kind="figures")
        lines += [f"   {line}".rstrip() for line in table.splitlines()] * bool(verdict.effects)
        lines.append("")
    return "\n".join(lines)


def sentence(text):
    """Return text that begins with a capital."""
    return text[0].upper() + text[1:]


def made(record):
    """Say how a record was made."""
    minutes, took = record.minutes, "less than two minutes"
    if minutes >= 2:
        took = f"{minutes:.0f} minutes" if minutes < 60 else f"{minutes / 60:.1f} hours"
    gpu = f" and {record.gpu_minutes:.0f} minutes of a GPU" if record.gpu_minutes else ""
    return (
        f"Seeds: {record.seeds}. It took {took} of a core{gpu}; commit {record.commit}; machine: "
        f"{record.machine}."
    )


def escaped(text):
    """Return text without what reStructuredText would take for markup."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|")


def anchor(name):
    """Return the label of an item's section."""
    return "item-" + name.lower().replace(".", "-")


def list_table(rows, title="", widths="", kind=""):
    """Return rows of strings as a table, the first as its heads."""
    lines = [f".. list-table:: {escaped(title)}".rstrip(), "   :header-rows: 1"]
    lines += [f"   :widths: {widths}"] * bool(widths) + [f"   :class: {kind}"] * bool(kind)
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
