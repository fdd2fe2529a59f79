"""Scores of predicted trees against given ones."""

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
    y_true : sequence of array-like of int
        The head of every token of every sentence, as positions from 1; 0 is the root.
    y_pred : sequence of array-like of int
        The predicted heads, in the same shapes.
    directed : bool, default=True
        Whether a token must have the right head. If false, it is enough that the token and
        its predicted head are linked in the given tree, in either direction (Klein and
        Manning, 2004).

    Returns
    -------
    score : float
        Between 0 and 1; every token counts the same, the root's attachment included.

    Raises
    ------
    ValueError
        If the two differ in shape, a sentence is empty, or a head is no position in it.

    References
    ----------
    Klein and Manning (2004), "Corpus-based induction of syntactic structure: models of
    dependency and constituency", ACL.

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
