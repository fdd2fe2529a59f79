"""Corpora: docstrings of installed packages, and treebanks."""

import gzip
import importlib
import inspect
import re
import reprlib
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._typing import is_integer
from ..grammar._sentences import in_cycles

Heads = NDArray[np.int64]

# Modules, which are the labels: each on one topic, and large enough for a mixture to find it.
_TOPICS = [
    *("numpy.random", "scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.ndimage"),
    *("scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial", "scipy.special"),
    *("scipy.stats", "sklearn.linear_model", "sklearn.metrics"),
]
# Public modules that a topic's own module does not export.
_PARTS = {"scipy.sparse": ("linalg", "csgraph"), "scipy.spatial": ("distance", "transform")}
# Shorter texts, such as "Fit the model.", say nothing about a topic.
_MIN_WORDS = 20

_HEADING = re.compile(r"^([A-Z][A-Za-z ]*)\n-{3,}\s*$", re.MULTILINE)
_NOT_PROSE = {"Attributes", "Examples", "Methods", "References", "See Also"}
_CLUTTER = [
    # The signatures above a compiled function's text.
    re.compile(r"\A(?:[\w.]+\(.*\)\s*\n)+"),
    # Directives and roles of reStructuredText.
    re.compile(r"^\s*\.\. [\w-]+::.*$", re.MULTILINE),
    re.compile(r":[\w:]+:(?=`)"),
    # Names that give the label away.
    re.compile(r"\b(?:np|numpy|scipy|sklearn)(?:\.\w+)+"),
]
# Sets of strings, which scikit-learn writes into docstrings; each process has its own order.
_SET = re.compile(r"(?<=\{)'[^{}]*'(?=\})")

# What the standard library raises for a damaged file. None of it is a ValueError.
_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
# Columns of a treebank up to the last that is read; conllu would split the features by their name.
_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "_", "head")
_PUNCTUATION = {
    "upos": {"PUNCT", "SYM"},
    "xpos": {"``", "''", ",", ".", ":", "-LRB-", "-RRB-", "$", "#"},  # the Penn Treebank's
}


@overload
def load_docstrings(*, return_X_y: Literal[False] = ...) -> Bunch: ...


@overload
def load_docstrings(*, return_X_y: Literal[True]) -> tuple[list[str], NDArray[np.int64]]: ...


def load_docstrings(*, return_X_y: bool = False) -> Bunch | tuple[list[str], NDArray[np.int64]]:
    """Load the docstrings of NumPy, SciPy and scikit-learn, labelled by module.

    About 1,800 texts on 13 topics in a fixed order, for examples and tests without a network. The
    texts depend on the installed versions. Each is the prose of one public function, class, method
    or distribution, of at least twenty words, without examples, references, links, lists, headings,
    and dotted names such as ``scipy.stats.norm``.

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

    Examples
    --------
    >>> from skvmf.datasets import load_docstrings
    >>> corpus = load_docstrings()
    >>> corpus.target_names[corpus.target[0]]
    'numpy.random'
    """
    if sys.flags.optimize > 1:
        warnings.warn(
            "Python runs with -OO, which drops docstrings: many texts are missing.", stacklevel=2
        )
    topic_of_text: dict[str, int] = {}
    for label, topic in enumerate(_TOPICS):
        for docstring in _docstrings(topic):
            text = _prose(docstring)
            if len(text.split()) >= _MIN_WORDS:
                # A text that several topics have is the first one's.
                topic_of_text.setdefault(text, label)

    data = list(topic_of_text)
    target = np.array(list(topic_of_text.values()), dtype=np.int64)
    if return_X_y:
        return data, target
    description = (
        f"The prose of {len(data)} docstrings from {len(_TOPICS)} modules of NumPy, SciPy and "
        "scikit-learn as installed, labelled by module."
    )
    return Bunch(data=data, target=target, target_names=_TOPICS.copy(), DESCR=description)


def load_conllu(
    path: str | PathLike[str],
    *,
    tags: Literal["xpos", "upos"] = "xpos",
    max_length: int | None = None,
    punctuation: Literal["drop", "keep"] = "drop",
) -> Bunch:
    r"""Load tagged sentences and their dependency trees from a CoNLL-U file.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file, plain or compressed by gzip.
    tags : {"xpos", "upos"}, default="xpos"
        The column to read as tags: the treebank's own or the universal ones.
    max_length : int, default=None
        Leave out sentences with more tokens, counted without dropped punctuation.
    punctuation : {"drop", "keep"}, default="drop"
        "drop" leaves out tokens whose universal tag is PUNCT or SYM, or whose own tag is one of the
        Penn Treebank's for punctuation and currency signs. Their dependents get their heads. If the
        root is dropped, the first token without a head becomes the root and the head of the others.

    Returns
    -------
    treebank : Bunch
        A dictionary-like object with the attributes

        - ``tags``, list of lists of str: the tags of each sentence;
        - ``heads``, list of int64 arrays: the head of each token, as positions in the sentence from
          1; 0 is the root;
        - ``words``, list of lists of str: the word forms.

    Raises
    ------
    ValueError
        If a sentence does not follow the format, or its heads form a cycle; the message has its
        number.

    Notes
    -----
    Needs conllu: ``pip install "skvmf[treebanks]"``. Multiword tokens and empty nodes are skipped:
    their words are also listed one by one.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skvmf.datasets import load_conllu
    >>> text = "1\tDogs\t_\t_\tNNS\t_\t2\t_\t_\t_\n2\tbark\t_\t_\tVBP\t_\t0\t_\t_\t_\n"
    >>> _ = Path("tiny.conllu").write_text(text, encoding="utf-8")
    >>> treebank = load_conllu("tiny.conllu")
    >>> treebank.words, treebank.tags, treebank.heads
    ([['Dogs', 'bark']], [['NNS', 'VBP']], [array([2, 0])])
    """
    if tags not in {"upos", "xpos"}:
        raise ValueError(f"tags should be 'xpos' or 'upos', got {tags!r}.")
    if punctuation not in {"drop", "keep"}:
        raise ValueError(f"punctuation should be 'drop' or 'keep', got {punctuation!r}.")
    if not (max_length is None or is_integer(max_length)):
        raise ValueError(f"max_length should be a whole number or None, got {max_length!r}.")
    marks = _PUNCTUATION if punctuation == "drop" else {}
    treebank = Bunch(tags=[], heads=[], words=[])
    for where, tokens in _sentences(Path(path)):
        heads = _heads(tokens, where)
        is_word = [
            not any(token[column] in values for column, values in marks.items()) for token in tokens
        ]
        length = sum(is_word)
        if length == 0 or (max_length is not None and length > max_length):
            continue
        words = list(compress(tokens, is_word))
        treebank.tags.append([token[tags] or "_" for token in words])
        treebank.heads.append(_heads_of_words(heads, is_word))
        treebank.words.append([token["form"] for token in words])
    return treebank


def _sentences(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """Yield the place ("file, sentence 1") and the words' tokens of each sentence."""
    try:
        from conllu import parse_sentences, parse_token_and_metadata
        from conllu.exceptions import ParseException
    except ImportError as error:
        raise ImportError(
            "load_conllu needs conllu. Install it with: pip install 'skvmf[treebanks]'"
        ) from error
    for number, sentence in enumerate(parse_sentences(_read_lines(path)), start=1):
        where = f"{path}, sentence {number}"
        try:
            tokens = parse_token_and_metadata(sentence, fields=_COLUMNS)
        except (ParseException, ValueError) as error:
            # Python raises a ValueError for a number of too many digits. The message may quote a
            # whole line, of which the beginning tells enough.
            raise ValueError(f"{where}: {str(error)[:200]}") from error
        yield where, [token for token in tokens if not isinstance(token["id"], tuple)]


def _heads(tokens: list[Any], where: str) -> Heads:
    for i, token in enumerate(tokens, start=1):
        if token["id"] != i:
            raise ValueError(f"{where}: token {reprlib.repr(token['id'])} follows {i - 1}.")
        head = token.get("head")
        if head is None or not 0 <= head <= len(tokens):
            raise ValueError(f"{where}: HEAD of token {i} is {reprlib.repr(head)}, no token of it.")
    heads = np.array([token["head"] for token in tokens], dtype=np.int64)
    if len(heads) > 0 and in_cycles(heads, np.array([0, len(heads)])).any():
        raise ValueError(f"{where}: heads form a cycle, and never reach 0.")
    return heads


def _heads_of_words(heads: Heads, is_word: list[bool]) -> Heads:
    """Return the heads of the words, followed upwards past the tokens that are dropped."""
    if all(is_word):
        return heads
    # The position of each token among the words, from 1; that of the root stays 0.
    position = np.append(0, np.cumsum(is_word))
    result = []
    for head in heads[is_word].tolist():
        # This ends, as there is no cycle.
        while head > 0 and not is_word[head - 1]:
            head = heads[head - 1]
        result.append(position[head])

    heads_of_words = np.array(result, dtype=np.int64)
    # A tree has one root: it takes the others that have lost their head.
    roots = np.flatnonzero(heads_of_words == 0)
    heads_of_words[roots[1:]] = roots[0] + 1
    return heads_of_words


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file; one that starts as gzip does is unpacked under any name."""
    number = 0
    with path.open("rb") as file:
        lines: IO[bytes] = file
        if file.peek(2)[:2] == b"\x1f\x8b":
            lines = cast(IO[bytes], gzip.GzipFile(fileobj=file))
        try:
            for number, line in enumerate(lines, start=1):
                # Only the first line may begin with a byte order mark.
                encoding = "utf-8-sig" if number == 1 else "utf-8"
                yield line.decode(encoding).rstrip("\r\n") + "\n"
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: the text should be UTF-8, but {error}."
            ) from error
        except _GZIP_ERRORS as error:
            raise ValueError(
                f"{path}, line {number + 1}: the compressed file is damaged or cut off: {error}"
            ) from error


def _docstrings(topic: str) -> Iterator[str]:
    """Yield the docstrings of a topic's public callables and of their classes' methods."""
    modules = [topic, *(f"{topic}.{part}" for part in _PARTS.get(topic, ()))]
    with warnings.catch_warnings():
        # Touching a deprecated name is not using it.
        warnings.simplefilter("ignore")
        for module in map(importlib.import_module, modules):
            for item in _public({name: getattr(module, name) for name in module.__all__}):
                callables = [item]
                if inspect.isclass(item):
                    callables += _public(vars(item))
                yield from (each.__doc__ for each in callables if isinstance(each.__doc__, str))


def _public(namespace: Mapping[str, Any]) -> list[Any]:
    # In alphabetical order, in which every process lists the same texts.
    public = [value for name, value in sorted(namespace.items()) if not name.startswith("_")]
    return [value for value in public if callable(value) or isinstance(value, classmethod)]


def _prose(docstring: str) -> str:
    """Return the text of a docstring without examples, references, markup and dotted names."""
    # A pattern with a group splits into the text before, and then titles and bodies in turn.
    first, *titles_and_bodies = _HEADING.split(inspect.cleandoc(docstring))
    sections = zip(titles_and_bodies[::2], titles_and_bodies[1::2], strict=True)
    text = first + "".join(body for title, body in sections if title not in _NOT_PROSE)
    for clutter in _CLUTTER:
        text = clutter.sub("", text)
    return _SET.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text).strip()
