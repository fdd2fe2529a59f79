"""What users call sentences and heads, checked and flattened."""

from numbers import Integral

import numpy as np


def flatten(X, name="X"):
    """Return the items of a sequence of sequences one after the other, and their offsets.

    Raises a ValueError that names the sentence where there is nothing to flatten.
    """
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} should be a list of sentences, got {type(X).__name__}.")
    if len(X) == 0:
        raise ValueError(f"{name} is empty: at least one sentence is needed.")
    items, lengths = [], []
    for i, sentence in enumerate(X):
        words = _items(sentence, f"Sentence {i} of {name}")
        items += words
        lengths.append(len(words))
    return items, np.concatenate([[0], np.cumsum(lengths)])


def _items(sentence, which):
    if isinstance(sentence, str | bytes):
        raise ValueError(f"{which} is the string {sentence!r}: split it into a list of tags.")
    is_list = hasattr(sentence, "__len__") and not isinstance(sentence, set | frozenset | dict)
    if not is_list or getattr(sentence, "ndim", 1) != 1:
        raise ValueError(
            f"{which} should be a list or a one-dimensional array, got {type(sentence).__name__}."
        )
    if len(sentence) == 0:
        raise ValueError(f"{which} is empty: leave empty sentences out.")
    return sentence.tolist() if isinstance(sentence, np.ndarray) else list(sentence)


def check_tags(items, offsets, name="X"):
    """Raise a ValueError unless all tags are strings or all are integers."""
    kinds = {type(item) for item in items}
    if all(issubclass(kind, str) for kind in kinds) or all(map(_is_integer, kinds)):
        return
    strings = isinstance(items[0], str)
    fine = (lambda kind: issubclass(kind, str)) if strings else _is_integer
    where = next(i for i, item in enumerate(items) if not fine(type(item)))
    sentence = int(np.searchsorted(offsets, where, side="right")) - 1
    raise ValueError(
        f"Tags should be all strings or all integers: sentence {sentence} of {name} has "
        f"{items[where]!r}, of type {type(items[where]).__name__}."
    )


def _is_integer(kind):
    return issubclass(kind, Integral) and kind is not bool


def number_tags(items, tags, unknown=None):
    """Return each item's number in `tags`; `unknown` for others, or None to raise a ValueError."""
    number = {tag: i for i, tag in enumerate(tags.tolist())}
    missing = sorted(set(items) - set(number), key=str)
    if missing and unknown is None:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(
            f"Unknown tags: {shown}. List every tag in the parameter `tags`, or set "
            "unknown_tags='average' to parse them like the average of the known ones."
        )
    return np.array([number.get(item, unknown) for item in items], dtype=np.int64)


def flatten_heads(y, name="y"):
    """Return heads one after the other as int64, and their offsets."""
    heads, offsets = flatten(y, name)
    if not all(map(_is_integer, {type(head) for head in heads})):
        raise ValueError(f"{name} should hold integers: positions from 1, or 0 for the root.")
    heads = np.array(heads, dtype=np.int64)
    lengths = np.diff(offsets)
    outside = (heads < 0) | (heads > np.repeat(lengths, lengths))
    _complain(offsets, outside, name, "a head outside 0 to the number of its tags")
    return heads, offsets


def check_trees(y, offsets):
    """Return given heads as one int64 array, or raise a ValueError where they form no tree."""
    heads, starts = flatten_heads(y)
    if len(starts) != len(offsets):
        raise ValueError(f"X has {len(offsets) - 1} sentences, y has {len(starts) - 1}.")
    lengths = np.diff(offsets)
    for i in np.flatnonzero(np.diff(starts) != lengths)[:1]:
        raise ValueError(
            f"Sentence {i} has {lengths[i]} tags but {starts[i + 1] - starts[i]} heads."
        )
    roots = np.add.reduceat(heads == 0, offsets[:-1], dtype=np.int64)
    _complain(offsets, np.repeat(roots > 1, lengths), "y", "more than one root (head 0)")
    _complain(offsets, _never_at_root(heads, offsets), "y", "heads that form a cycle")
    return heads


def _never_at_root(heads, offsets):
    """Tell which tokens' chains of heads go round: double the steps until all have ended."""
    end, lengths = len(heads), np.diff(offsets)
    up = np.where(heads == 0, end, np.repeat(offsets[:-1], lengths) + heads - 1)
    up = np.append(up, end)
    for _ in range(int(lengths.max()).bit_length()):
        up = up[up]
    return up[:-1] != end


def _complain(offsets, wrong, name, problem):
    if wrong.any():
        sentence = int(np.searchsorted(offsets, np.argmax(wrong), side="right")) - 1
        raise ValueError(
            f"Sentence {sentence} of {name} has {problem}: heads should be one tree over the "
            "sentence, with positions from 1 and exactly one 0."
        )
