"""A reader of treebanks in CoNLL-U format."""

import re
import reprlib
from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._typing import is_integer
from ..grammar._sentences import in_cycles
from ._files import read_lines

Heads = NDArray[np.int64]

_N_COLUMNS = 10
_ID, _FORM, _UPOS, _XPOS, _HEAD = 0, 1, 3, 4, 6
_NUMBER = re.compile("[0-9]{1,9}")  # neither Arabic digits nor five thousand of them
_SKIPPED = re.compile(r"[0-9]+[-.][0-9]+")  # multiword tokens (1-2) and empty nodes (1.1)
_TAGS = {"upos": _UPOS, "xpos": _XPOS}
_PUNCTUATION = {
    _UPOS: {"PUNCT", "SYM"},
    _XPOS: {"``", "''", ",", ".", ":", "-LRB-", "-RRB-", "$", "#"},  # the Penn Treebank's
}


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
        Penn Treebank's for punctuation and currency signs. The dependents of a dropped token get
        its head, and so on upwards. If the root is dropped, the first token without a head becomes
        the root and the head of the others. A sentence that loses all its tokens is left out.

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
        If a line does not follow the format, or heads form a cycle; the message has the number of
        the line.

    Notes
    -----
    Multiword tokens and empty nodes of the format (https://universaldependencies.org/format.html)
    are skipped: their words are also listed one by one.

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
    if tags not in _TAGS:
        raise ValueError(f"tags should be 'xpos' or 'upos', got {tags!r}.")
    if punctuation not in {"drop", "keep"}:
        raise ValueError(f"punctuation should be 'drop' or 'keep', got {punctuation!r}.")
    if not (max_length is None or is_integer(max_length)):
        raise ValueError(f"max_length should be a whole number or None, got {max_length!r}.")
    treebank = Bunch(tags=[], heads=[], words=[])
    for rows, heads in _read(Path(path)):
        dropped = _PUNCTUATION.items() if punctuation == "drop" else ()
        keep = [not any(row[column] in marks for column, marks in dropped) for row in rows]
        if sum(keep) > 0 and (max_length is None or sum(keep) <= max_length):
            left = [row for row, is_kept in zip(rows, keep, strict=True) if is_kept]
            treebank.tags.append([row[_TAGS[tags]] for row in left])
            treebank.heads.append(_heads_of_kept(heads, keep))
            treebank.words.append([row[_FORM] for row in left])
    return treebank


def _read(path: Path) -> Iterator[tuple[list[list[str]], Heads]]:
    """Yield the token rows and the heads of each sentence."""
    rows: list[list[str]] = []
    places: list[str] = []
    for where, line in chain(read_lines(path), [("", "")]):
        if not line.strip():
            if rows:
                yield rows, _heads(rows, places)
            rows, places = [], []
        elif not line.startswith("#"):
            row = line.split("\t")
            if len(row) != _N_COLUMNS:
                raise ValueError(
                    f"{where}: {_N_COLUMNS} columns separated by tabs expected, got {len(row)}."
                )
            if not _SKIPPED.fullmatch(row[_ID]):
                rows.append(row)
                places.append(where)


def _heads(rows: list[list[str]], places: list[str]) -> Heads:
    """Return the heads of a sentence."""
    heads = np.empty(len(rows), dtype=np.int64)
    for i, (row, where) in enumerate(zip(rows, places, strict=True)):
        if not _NUMBER.fullmatch(row[_ID]):
            raise ValueError(
                f"{where}: ID is {reprlib.repr(row[_ID])}, neither a number, nor a range as 1-2, "
                "nor an empty node as 1.1."
            )
        if int(row[_ID]) != i + 1:
            raise ValueError(f"{where}: token {row[_ID]} follows {i}.")
        if not (_NUMBER.fullmatch(row[_HEAD]) and int(row[_HEAD]) <= len(rows)):
            raise ValueError(f"{where}: HEAD is {reprlib.repr(row[_HEAD])}, no token of it.")
        heads[i] = int(row[_HEAD])
    lost = in_cycles(heads, np.array([0, len(heads)]))
    if lost.any():
        raise ValueError(f"{places[int(lost.argmax())]}: heads form a cycle, and never reach 0.")
    return heads


def _heads_of_kept(heads: Heads, keep: list[bool]) -> Heads:
    """Return the heads of the tokens to keep, followed upwards past the dropped ones."""
    if all(keep):
        return heads
    position, result = np.cumsum(keep), []
    for head in heads[keep].tolist():
        while head > 0 and not keep[head - 1]:  # ends: there is no cycle
            head = heads[head - 1]
        result.append(position[head - 1] if head > 0 else 0)
    roots = [a for a, head in enumerate(result, start=1) if head == 0]
    for a in roots[1:]:
        result[a - 1] = roots[0]
    return np.array(result, dtype=np.int64)
