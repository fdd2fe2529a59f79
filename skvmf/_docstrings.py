"""Docstrings: what several estimators, or functions, have in common is written once."""

import re
from inspect import cleandoc, signature
from types import FunctionType
from typing import Self

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
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
    bases. Methods get the descriptions of what many take where they have none.
    """
    for name, method in vars(cls).items():
        method = getattr(method, "__func__", method)
        if isinstance(method, FunctionType) and not name.startswith("_"):
            shared = _OF_METHODS | getattr(cls, "_of_methods", {})
            add_shared_parameters(method, shared, getattr(cls, "_of_self", _OF_FITS))
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
    own |= {title: "\n".join(known.values()) for title, known in described.items()}
    cls.__doc__ = summary + _joined(own)


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
    parts = [f"{name}\n{'-' * len(name)}\n{text.rstrip()}\n\n" for name, text in sections.items()]
    return "".join(parts).rstrip() + "\n"


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes before has no title."""
    before, *rest = _TITLE.split(cleandoc(docstring))
    return {"": before} | dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entry of each name that a section describes."""
    entries = [entry.rstrip() for entry in _NAME.split(section) if entry.strip()]
    return {entry.partition(" :")[0]: entry for entry in entries}
