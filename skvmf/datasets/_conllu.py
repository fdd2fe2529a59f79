"""A reader of treebanks in CoNLL-U format."""

import gzip
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

_N_COLUMNS = 10
_ID, _FORM, _UPOS, _XPOS, _HEAD = 0, 1, 3, 4, 6
_TAGS = {"upos": _UPOS, "xpos": _XPOS}
_PUNCTUATION = {
    _UPOS: {"PUNCT", "SYM"},
    _XPOS: {"``", "''", ",", ".", ":", "-LRB-", "-RRB-", "$", "#"},  # the Penn Treebank's
}


def load_conllu(path, *, tags="xpos", max_length=None, punctuation="drop"):
    r"""Load tagged sentences and their dependency trees from a CoNLL-U file.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file, as it is or compressed by gzip (ending in ``.gz``).
    tags : {"xpos", "upos"}, default="xpos"
        Which column to read as tags: the treebank's own or the universal ones.
    max_length : int, default=None
        Leave out sentences with more tokens than that, counted without dropped punctuation.
    punctuation : {"drop", "keep"}, default="drop"
        With "drop", tokens whose universal tag is PUNCT or SYM, or whose own tag is one of
        the Penn Treebank's for punctuation and currency signs, are left out. What hangs on
        a dropped token hangs on that token's head instead, and so on upwards. Where the root
        itself is dropped, the first token left without a head becomes the root and head of
        the others. A sentence that loses all its tokens is left out.

    Returns
    -------
    treebank : Bunch
        A dictionary-like object with the attributes

        - ``tags``, list of lists of str: the tags of each sentence;
        - ``heads``, list of int64 arrays: the head of each token, as positions in the sentence
          from 1; 0 is the root;
        - ``words``, list of lists of str: the word forms.

    Raises
    ------
    ValueError
        If a line is not what the format says; the message has its number.

    Notes
    -----
    Only the columns ID, FORM, UPOS or XPOS, and HEAD are read. Multiword tokens and empty
    nodes are skipped: their words are listed one by one beside them.

    References
    ----------
    https://universaldependencies.org/format.html

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skvmf.datasets import load_conllu
    >>> rows = [("1", "Dogs", "NNS", "2"), ("2", "bark", "VBP", "0"), ("3", ".", ".", "2")]
    >>> lines = ["\t".join([i, w, "_", "_", t, "_", h, "_", "_", "_"]) for i, w, t, h in rows]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tiny.conllu")
    ...     _ = path.write_text("\n".join(lines), encoding="utf-8")
    ...     treebank = load_conllu(path)
    >>> treebank.words, treebank.tags, treebank.heads
    ([['Dogs', 'bark']], [['NNS', 'VBP']], [array([2, 0])])
    """
    if tags not in _TAGS:
        raise ValueError(f"tags should be 'xpos' or 'upos', got {tags!r}.")
    if punctuation not in {"drop", "keep"}:
        raise ValueError(f"punctuation should be 'drop' or 'keep', got {punctuation!r}.")
    treebank = Bunch(tags=[], heads=[], words=[])
    for rows, heads in _read(Path(path)):
        kept = [punctuation == "keep" or not _is_punctuation(row) for row in rows]
        if 0 < sum(kept) and (max_length is None or sum(kept) <= max_length):
            left = [row for row, keep in zip(rows, kept, strict=True) if keep]
            treebank.tags.append([row[_TAGS[tags]] for row in left])
            treebank.heads.append(_heads_of_kept(heads, kept))
            treebank.words.append([row[_FORM] for row in left])
    return treebank


def _read(path):
    """Yield the token rows and the heads of each sentence."""
    opener = gzip.open if path.suffix == ".gz" else open
    rows, numbers = [], []
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            row = line.rstrip("\r\n").split("\t")
            if not line.strip():
                yield from _sentence(rows, numbers, path)
                rows, numbers = [], []
            elif not line.startswith("#"):
                if len(row) != _N_COLUMNS:
                    raise ValueError(
                        f"{path}, line {number}: {_N_COLUMNS} columns separated by tabs expected, "
                        f"got {len(row)}."
                    )
                if row[_ID].isdecimal():  # neither a multiword token (1-2) nor empty (1.1)
                    rows.append(row)
                    numbers.append(number)
    yield from _sentence(rows, numbers, path)


def _sentence(rows, numbers, path):
    """Yield a sentence unless it is empty."""
    heads = []
    for row, number in zip(rows, numbers, strict=True):
        if int(row[_ID]) != len(heads) + 1:
            raise ValueError(f"{path}, line {number}: token {row[_ID]} follows {len(heads)}.")
        if not (row[_HEAD].isdecimal() and int(row[_HEAD]) <= len(rows)):
            raise ValueError(f"{path}, line {number}: HEAD is {row[_HEAD]!r}, no token of it.")
        heads.append(int(row[_HEAD]))
    if rows:
        yield rows, heads


def _is_punctuation(row):
    return any(row[column] in tags for column, tags in _PUNCTUATION.items())


def _heads_of_kept(heads, kept):
    """Return the kept tokens' heads, followed upwards past the dropped ones."""
    if all(kept):
        return np.array(heads, dtype=np.int64)
    position, result = np.cumsum(kept), []
    for a in np.flatnonzero(kept):
        head = heads[a]
        for _ in heads:  # as many steps as there are tokens end even in a cycle
            if head > 0 and not kept[head - 1]:
                head = heads[head - 1]
        result.append(position[head - 1] if head > 0 else 0)
    roots = [a for a, head in enumerate(result, start=1) if head == 0]
    for a in roots[1:]:
        result[a - 1] = roots[0]
    return np.array(result, dtype=np.int64)
