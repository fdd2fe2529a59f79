"""Corpora of short texts: one that every installation has, and the user's own."""

import gzip
import importlib
import inspect
import json
import re
import warnings
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

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


def load_docstrings(*, return_X_y=False):
    """Load the docstrings of NumPy, SciPy and scikit-learn, labelled by module.

    About 1,800 texts on 13 topics that every installation has, in a fixed order: a corpus
    for examples and tests that needs no network. The exact texts follow the installed
    versions. A text is the prose of one public function, class, method or distribution: its
    examples, references and links, its lists of methods and attributes, its headings, and
    dotted names such as ``scipy.stats.norm`` are left out. A text met twice is kept once,
    and one with fewer than twenty words not at all.

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
        - ``DESCR``, str: what this is.

    See Also
    --------
    load_jsonl : The same for texts of your own.

    Examples
    --------
    >>> from skvmf.datasets import load_docstrings
    >>> corpus = load_docstrings()
    >>> len(corpus.target_names)
    13
    >>> corpus.target_names[corpus.target[0]]
    'numpy.random'
    """
    data, target, seen = [], [], set()
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
    return _corpus(data, np.array(target), list(_TOPICS), description, return_X_y)


def load_jsonl(path, *, text="text", label="label", return_X_y=False):
    r"""Load labelled texts from a JSON Lines file, plain or compressed with gzip.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 file with one JSON object a line. Empty lines are skipped.
    text, label : str, default="text" and "label"
        The fields that hold the text, a string, and its class, a string or an integer.
    return_X_y : bool, default=False
        If true, return ``(data, target)`` instead of a `Bunch`.

    Returns
    -------
    corpus : Bunch or tuple
        A dictionary-like object with the attributes

        - ``data``, list of str: the texts in the order of the file;
        - ``target``, ndarray of shape (n_texts,): the number of each text's class;
        - ``target_names``, list: the classes, sorted;
        - ``DESCR``, str: what this is.

    Raises
    ------
    ValueError
        If the file holds no text, or a line is not an object with the two fields.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from skvmf.datasets import load_jsonl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "mail.jsonl"
    ...     lines = [{"text": "puck", "label": "hockey"}, {"text": "bat", "label": "baseball"}]
    ...     _ = path.write_text("\n".join(map(json.dumps, lines)))
    ...     corpus = load_jsonl(path)
    >>> corpus.data
    ['puck', 'bat']
    >>> corpus.target_names
    ['baseball', 'hockey']
    >>> corpus.target
    array([1, 0])
    """
    path = Path(path)
    data, labels = [], []
    with _open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                where = f"{path.name}, line {number}"
                record = _parse(line, where)
                data.append(_field(record, text, str, where))
                labels.append(_field(record, label, (str, int), where))
    if not data:
        raise ValueError(f"{path.name} holds no texts: expected one JSON object a line.")
    names, target = np.unique(labels, return_inverse=True)
    description = f"{len(data)} texts in {len(names)} classes, read from {path.name}."
    return _corpus(data, target, names.tolist(), description, return_X_y)


def _corpus(data, target, target_names, description, return_X_y):
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=target_names, DESCR=description)


def _docstrings(modules):
    """Yield the docstrings of the modules' public callables and of their classes' methods."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # touching a deprecated name is not using it
        for module in map(importlib.import_module, modules):
            for item in _public({name: getattr(module, name) for name in module.__all__}):
                methods = _public(vars(item)) if inspect.isclass(item) else []
                yield from (x.__doc__ for x in [item, *methods] if isinstance(x.__doc__, str))


def _public(namespace):
    return [
        value
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and (callable(value) or isinstance(value, classmethod))
    ]


def _prose(docstring):
    """Keep what a docstring says of its object in words."""
    first, *rest = _HEADING.split(inspect.cleandoc(docstring))
    sections = zip(rest[::2], rest[1::2], strict=True)
    text = first + "".join(body for title, body in sections if title not in _NOT_PROSE)
    for clutter in _CLUTTER:
        text = clutter.sub("", text)
    return text.strip()


def _open_text(path):
    with path.open("rb") as start:
        compressed = start.read(2) == b"\x1f\x8b"
    return (gzip.open if compressed else open)(path, "rt", encoding="utf-8-sig")


def _parse(line, where):
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not valid JSON: {error}.") from None
    if not isinstance(record, dict):
        raise ValueError(f"{where} is not a JSON object, such as {{'text': ..., 'label': ...}}.")
    return record


def _field(record, name, kind, where):
    if name not in record:
        raise ValueError(f"{where} has no field {name!r}; it has {sorted(record)}.")
    if not isinstance(record[name], kind) or isinstance(record[name], bool):
        expected = "a string" if kind is str else "a string or an integer"
        raise ValueError(f"{where}: field {name!r} must be {expected}, got {record[name]!r}.")
    return record[name]
