"""Corpora of short texts: docstrings of installed packages, and JSON Lines files."""

import importlib
import inspect
import json
import re
import reprlib
import warnings
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._files import read_lines

# Label and the modules behind it: one topic each, and large enough to be found.
_TOPICS = {
    "numpy.random": ("numpy.random",),
    "scipy.fft": ("scipy.fft",),
    "scipy.interpolate": ("scipy.interpolate",),
    "scipy.linalg": ("scipy.linalg",),
    "scipy.ndimage": ("scipy.ndimage",),
    "scipy.optimize": ("scipy.optimize",),
    "scipy.signal": ("scipy.signal",),
    "scipy.sparse": ("scipy.sparse", "scipy.sparse.linalg", "scipy.sparse.csgraph"),
    "scipy.spatial": ("scipy.spatial", "scipy.spatial.distance", "scipy.spatial.transform"),
    "scipy.special": ("scipy.special",),
    "scipy.stats": ("scipy.stats",),
    "sklearn.linear_model": ("sklearn.linear_model",),
    "sklearn.metrics": ("sklearn.metrics",),
}
_MIN_WORDS = 20  # "Fit the model." says nothing about a topic

_HEADING = re.compile(r"^([A-Z][A-Za-z ]*)\n-{3,}\s*$", re.MULTILINE)
_NOT_PROSE = {"Attributes", "Examples", "Methods", "References", "See Also"}
_CLUTTER = [
    re.compile(r"\A(?:[\w.]+\(.*\)\s*\n)+"),  # the signatures above a compiled function's text
    re.compile(r"^\s*\.\. [\w-]+::.*$", re.MULTILINE),  # directives
    re.compile(r":[\w:]+:(?=`)"),  # roles
    re.compile(r"\b(?:np|numpy|scipy|sklearn)(?:\.\w+)+"),  # names that give the label away
]


@overload
def load_docstrings(*, return_X_y: Literal[False] = ...) -> Bunch: ...


@overload
def load_docstrings(*, return_X_y: Literal[True]) -> tuple[list[str], NDArray[np.int64]]: ...


def load_docstrings(*, return_X_y: bool = False) -> Bunch | tuple[list[str], NDArray[np.int64]]:
    """Load the docstrings of NumPy, SciPy and scikit-learn, labelled by module.

    About 1,800 texts on 13 topics in a fixed order, for examples and tests without a network. The
    texts depend on the installed versions. Each is the prose of one public function, class, method
    or distribution, without examples, references, links, lists of methods and attributes, headings,
    and dotted names such as ``scipy.stats.norm``. Repeated texts, and those with fewer than twenty
    words, are left out.

    Parameters
    ----------
    return_X_y : bool, default=False
        If true, return ``(data, target)`` instead of a `Bunch`.

    Returns
    -------
    corpus : Bunch or tuple
        A dictionary-like object with the attributes

        - ``data``, list of str: the texts;
        - ``target``, ndarray of shape (n_texts,): the number of each text's module;
        - ``target_names``, list of str: the modules;
        - ``DESCR``, str: a description.

    See Also
    --------
    load_jsonl : The same for your own texts.

    Examples
    --------
    >>> from skvmf.datasets import load_docstrings
    >>> corpus = load_docstrings()
    >>> corpus.target_names[corpus.target[0]]
    'numpy.random'
    """
    data: list[str] = []
    target: list[int] = []
    seen: set[str] = set()
    for label, modules in enumerate(_TOPICS.values()):
        for docstring in _docstrings(modules):
            text = _prose(docstring)
            if text not in seen and len(text.split()) >= _MIN_WORDS:
                seen.add(text)
                data.append(text)
                target.append(label)
    description = (
        f"The prose of {len(data)} docstrings from {len(_TOPICS)} modules of NumPy, SciPy and "
        "scikit-learn as installed, labelled by module."
    )
    return _corpus(data, np.array(target, np.int64), list(_TOPICS), description, return_X_y)


@overload
def load_jsonl(
    path: str | PathLike[str],
    *,
    text: str = ...,
    label: str = ...,
    return_X_y: Literal[False] = ...,
) -> Bunch: ...


@overload
def load_jsonl(
    path: str | PathLike[str], *, text: str = ..., label: str = ..., return_X_y: Literal[True]
) -> tuple[list[str], NDArray[np.int64]]: ...


def load_jsonl(
    path: str | PathLike[str], *, text: str = "text", label: str = "label", return_X_y: bool = False
) -> Bunch | tuple[list[str], NDArray[np.int64]]:
    r"""Load labelled texts from a JSON Lines file, plain or compressed by gzip.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 file with one JSON object per line. Empty lines are skipped.
    text, label : str, default="text" and "label"
        The fields of the text, a string, and of its class, a string or an integer.
    return_X_y : bool, default=False
        If true, return ``(data, target)`` instead of a `Bunch`.

    Returns
    -------
    corpus : Bunch or tuple
        As for :func:`load_docstrings`, with the texts in the order of the file and the classes
        sorted.

    Raises
    ------
    ValueError
        If the file holds no text, a line is not an object with the two fields, or some classes are
        strings and others integers; the message has the number of the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skvmf.datasets import load_jsonl
    >>> lines = '{"text": "puck", "label": "hockey"}\n{"text": "bat", "label": "baseball"}'
    >>> _ = Path("mail.jsonl").write_text(lines)
    >>> corpus = load_jsonl("mail.jsonl")
    >>> corpus.data, corpus.target, corpus.target_names
    (['puck', 'bat'], array([1, 0]), ['baseball', 'hockey'])
    """
    path = Path(path)
    data: list[str] = []
    labels: list[str | int] = []
    for where, line in read_lines(path):
        if line.strip():
            record = _parse(line, where)
            data.append(_field(record, text, where, (str,)))
            labels.append(_field(record, label, where, (str, int)))
            if isinstance(labels[0], str) != isinstance(labels[-1], str):
                raise ValueError(
                    f"{where}: field {label!r} is {reprlib.repr(labels[-1])}, and was "
                    f"{reprlib.repr(labels[0])} at first: classes should be all strings or all "
                    "integers."
                )
    if not data:
        raise ValueError(f"{path} holds no texts: expected one JSON object per line.")
    names: list[Any] = sorted(set(labels))
    number = {name: i for i, name in enumerate(names)}
    target = np.array([number[name] for name in labels], dtype=np.int64)
    description = f"{len(data)} texts in {len(names)} classes, read from {path.name}."
    return _corpus(data, target, names, description, return_X_y)


def _corpus(
    data: list[str],
    target: NDArray[np.int64],
    target_names: list[Any],
    description: str,
    return_X_y: bool,
) -> Bunch | tuple[list[str], NDArray[np.int64]]:
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=target_names, DESCR=description)


def _docstrings(modules: tuple[str, ...]) -> Iterator[str]:
    """Yield the docstrings of the modules' public callables and of their classes' methods."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # touching a deprecated name is not using it
        for module in map(importlib.import_module, modules):
            for item in _public({name: getattr(module, name) for name in module.__all__}):
                methods = _public(vars(item)) if inspect.isclass(item) else []
                yield from (x.__doc__ for x in [item, *methods] if isinstance(x.__doc__, str))


def _public(namespace: Mapping[str, Any]) -> list[Any]:
    return [
        value
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and (callable(value) or isinstance(value, classmethod))
    ]


def _prose(docstring: str) -> str:
    """Return the prose of a docstring."""
    first, *rest = _HEADING.split(inspect.cleandoc(docstring))
    sections = zip(rest[::2], rest[1::2], strict=True)
    text = first + "".join(body for title, body in sections if title not in _NOT_PROSE)
    for clutter in _CLUTTER:
        text = clutter.sub("", text)
    return text.strip()


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:  # numbers too long; brackets too deep
        raise ValueError(f"{where} is not valid JSON: {error}.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{where} is not a JSON object, such as {{'text': ..., 'label': ...}}.")
    return record


def _field(record: dict[str, Any], name: str, where: str, kinds: tuple[type, ...]) -> Any:
    if name not in record:
        fields = reprlib.repr(sorted(record))
        raise ValueError(f"{where} has no field {name!r}; it has {fields}.")
    value = record[name]
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = "a string or an integer" if int in kinds else "a string"
        shown = reprlib.repr(value)
        raise ValueError(f"{where}: field {name!r} must be {expected}, got {shown}.")
    return value
