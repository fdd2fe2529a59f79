"""Docstrings of estimators: parameters and attributes that bases describe are written once."""

import re
from inspect import cleandoc, signature
from types import FunctionType
from typing import Self

# A title in numpydoc's format: a line, underlined.
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# Where the next entry of a section begins: descriptions are indented, names are not.
_NAME = re.compile(r"^(?=[\w*])", re.MULTILINE)
_OF_METHODS = {  # what methods take that do not describe it
    "X": """X : {array-like, sparse matrix} of shape (n_samples, n_features)
    The rows.""",
    "y": """y : Ignored
    Not used, present for API consistency by convention.""",
    "sample_weight": """sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights. A row of weight 2 counts like two equal rows.""",
    "n_samples": """n_samples : int, default=1
    Number of draws.""",
    "known_labels": """known_labels : array-like of shape (n_samples,), default=None
    The component of each row where it is known, otherwise -1; -2 is a row of the background. The
    fit keeps these rows there and starts with their means, so component k is class k. Rows of a
    component that has left the mixture count as unknown. `labels_` are, like `predict`, free of
    `known_labels`.""",
    "weights": """weights : array-like of shape (n_components,)
    Mixture weights; they sum to one, together with `background_weight`.""",
    "background_weight": """background_weight : float, default=0.0
    Weight of a background; 0 is none.""",
    "background_bounds": """background_bounds : array-like of shape (2, n_features), default=None
    The lower and the upper corner of the background's box.""",
    "params": """**params : dict
    Constructor parameters; `n_components` may be left out.""",
}
_OF_FITS = {
    "Returns": """self : object
    The fitted estimator.""",
    "Raises": """TypeError, ValueError
    If the data or a parameter cannot be used. The estimator then stays as it was.""",
}


def complete_docstring(cls: type) -> None:
    """Add the descriptions of the bases, which it may replace, to a class with its own constructor.

    Parameters are listed in the order of the signature, attributes of the class before those of
    bases.
    """
    _complete_methods(cls)
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


def _complete_methods(cls: type) -> None:
    """Describe what many methods take where they do not describe it."""
    for name, method in vars(cls).items():
        method = getattr(method, "__func__", method)
        if isinstance(method, FunctionType) and not name.startswith("_"):
            shared = _OF_METHODS | getattr(cls, "_of_methods", {})
            add_shared_parameters(method, shared, _OF_FITS)


def add_shared_parameters(
    method: FunctionType, shared: dict[str, str], of_self: dict[str, str] = _OF_FITS
) -> None:
    """Describe what many take, and what a fit returns and raises, where a docstring does not."""
    sections = _sections(method.__doc__ or "")
    if signature(method).return_annotation in (Self, "Self"):
        sections = {"": sections.pop("")} | of_self | sections
    given = _entries(sections.pop("Parameters", ""))
    known = {name.strip("*").partition(",")[0]: text for name, text in given.items()}
    known = {name: text for name, text in shared.items() if name not in known} | known
    entries = [known[name] for name in signature(method).parameters if name in known]
    if "Returns" in sections and entries:
        summary = sections.pop("").rstrip() + "\n\n"
        method.__doc__ = summary + _joined({"Parameters": "\n".join(entries)} | sections)


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
