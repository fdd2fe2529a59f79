"""Docstrings of estimators: parameters and attributes that bases describe are written once."""

import re
from inspect import cleandoc, signature

# A title in numpydoc's format: a line, underlined.
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# Where the next entry of a section begins: descriptions are indented, names are not.
_NAME = re.compile(r"^(?=[\w*])", re.MULTILINE)


def complete_docstring(cls: type) -> None:
    """Add the descriptions of the bases, which it may replace, to a class with its own constructor.

    Parameters are listed in the order of the signature, attributes of the class before those of
    bases.
    """
    if cls.__doc__ is None or "__init__" not in vars(cls):
        return
    described: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in cls.__mro__:
        sections_of_base = _sections(base.__doc__ or "")
        for title, entries in described.items():
            for name, entry in _entries(sections_of_base.get(title, "")).items():
                # A class comes before its bases in the order of resolution, and its words count.
                entries.setdefault(name, entry)

    parameters = described["Parameters"]
    in_order = [parameters[name] for name in signature(cls).parameters if name in parameters]
    completed = {
        "Parameters": "\n".join(in_order),
        "Attributes": "\n".join(described["Attributes"].values()),
    }
    sections = _sections(cls.__doc__)
    summary = sections.pop("")
    # numpydoc wants these two sections first, whether or not the class itself has them.
    cls.__doc__ = summary + _joined(completed | sections | completed)


def _joined(sections: dict[str, str]) -> str:
    """Return sections as text, each below its underlined title."""
    parts = [f"{title}\n{'-' * len(title)}\n{text.rstrip()}\n" for title, text in sections.items()]
    return "\n".join(parts)


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes before has no title."""
    # A pattern with a group splits into the text before, and then titles and texts in turn.
    before, *titles_and_texts = _TITLE.split(cleandoc(docstring))
    titles = titles_and_texts[::2]
    texts = titles_and_texts[1::2]
    return {"": before} | dict(zip(titles, texts, strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entry of each name that a section describes."""
    entries = [entry.rstrip() for entry in _NAME.split(section) if entry.strip()]
    return {entry.partition(" :")[0]: entry for entry in entries}
