"""Scores of predicted trees against given ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ._sentences import flatten_heads


def attachment_score(
    y_true: Sequence[ArrayLike], y_pred: Sequence[ArrayLike], directed: bool = True
) -> float:
    """Return the fraction of tokens that are attached as in the given trees.

    Parameters
    ----------
    y_true, y_pred : sequence of array-like of int
        The true and the predicted head of every token of every sentence, as positions from 1; 0 is
        the root.
    directed : bool, default=True
        Whether a token must have the right head. If false, it suffices that the given tree links
        the token and its predicted head in either direction [1]_.

    Returns
    -------
    score : float
        Between 0 and 1; every token counts the same, including the root.

    Raises
    ------
    ValueError
        If the two differ in shape, a sentence is empty, or a head is not a position in it.

    References
    ----------
    .. [1] Klein and Manning, "Corpus-based induction of syntactic structure: models of dependency
       and constituency", ACL 2004.

    Examples
    --------
    >>> from skvmf.grammar import attachment_score
    >>> attachment_score([[2, 0, 2]], [[0, 1, 2]])
    0.3333333333333333
    >>> attachment_score([[2, 0, 2]], [[0, 1, 2]], directed=False)
    0.6666666666666666
    """
    truth, offsets = flatten_heads(y_true, "y_true")
    guess, others = flatten_heads(y_pred, "y_pred")
    if not np.array_equal(offsets, others):
        raise ValueError("y_true and y_pred should have the same sentences, token by token.")
    right = truth == guess
    if not directed:
        position = np.arange(len(truth)) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
        head = np.arange(len(truth)) + guess - position  # where the predicted head is
        right |= (guess > 0) & (truth[head] == position)
    return float(right.mean())
