"""Docstrings of estimators: what several have in common is written once, in a base class."""

import re
from inspect import cleandoc, signature

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_NAME = re.compile(r"^(?=\w)", re.MULTILINE)


def complete_docstring(cls: type) -> None:
    """Add the descriptions of the bases to a class that has a constructor of its own.

    Parameters are listed in the order of the signature. Attributes of the class come before those
    of its bases. A description replaces that of a base.
    """
    if cls.__doc__ is None or "__init__" not in vars(cls):
        return
    own = _sections(cls.__doc__)
    described: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in cls.__mro__:
        sections = _sections(base.__doc__ or "")
        for title, known in described.items():
            entries = _entries(sections.get(title, ""))
            known |= {name: text for name, text in entries.items() if name not in known}
    parameters = described["Parameters"]
    in_order = [name for name in signature(cls).parameters if name in parameters]
    described["Parameters"] = {name: parameters[name] for name in in_order}
    summary = own.pop("")
    own = dict.fromkeys(described, "") | own
    own |= {title: "\n".join(known.values()) + "\n\n" for title, known in described.items()}
    parts = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in own.items()]
    cls.__doc__ = summary + "".join(parts).rstrip() + "\n"


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes before has no title."""
    before, *rest = _TITLE.split(cleandoc(docstring))
    return {"": before} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entry of each name that a section describes."""
    entries = [entry.rstrip() for entry in _NAME.split(section) if entry.strip()]
    return {entry.partition(" :")[0]: entry for entry in entries}
