"""Tables and single figures of the guide, from the records of ``reproduction``.

``.. measured:: ITEM`` shows a table of a record, the first or the one whose title begins with
``:table:``. ``:columns:`` chooses columns, separated by semicolons, each with a new name after
``->``. The role ``measured`` shows a cell: ``ITEM; table; row; column``, and after a further
semicolon the second cell of the row if several rows have the same first one. With LESS, PLUS or PER
between cells it shows what they give (`reproduction.claims`).
"""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole

from reproduction import claims
from reproduction.page import list_table
from reproduction.results import kept, path_of


class MeasuredTable(SphinxDirective):
    """A table of a record."""

    required_arguments = 1
    option_spec = {"table": directives.unchanged, "columns": directives.unchanged}

    def run(self):
        """Return the table's nodes."""
        table = record(self.env, self.arguments[0]).table(self.options.get("table", ""))
        text = list_table(chosen(table, self.options.get("columns")))
        return self.parse_text_to_nodes(text)


class Measured(SphinxRole):
    """A cell of a record."""

    def run(self):
        """Return the figure as text."""
        record(self.env, self.text.partition(";")[0])
        return [nodes.Text(claims.measured(self.text))], []


def record(env, item):
    """Return a record, on whose file the page then depends."""
    env.note_dependency(str(path_of(item)))
    return kept(item)


def chosen(table, columns=None):
    """Return the rows of a table as strings, heads first, with the columns that are asked for."""
    rows = table.text()
    if columns is None:
        return rows
    pairs = [(part.partition("->")[0].strip(), part) for part in columns.split(";")]
    places = [rows[0].index(name) for name, _ in pairs]
    heads = [(part.partition("->")[2] or name).strip() for name, part in pairs]
    return [heads, *([row[place] for place in places] for row in rows[1:])]


def setup(app):
    """Register both."""
    app.add_directive("measured", MeasuredTable)
    app.add_role("measured", Measured())
    return {"parallel_read_safe": True}
