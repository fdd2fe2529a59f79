import numpy as np
import pytest

from skvmf.grammar import attachment_score


def test_directed_counts_heads_and_undirected_counts_links():
    truth = [[2, 0, 2], [0]]
    guess = [np.array([0, 1, 2]), np.array([0])]  # the first arc is turned round
    assert attachment_score(truth, guess) == 2 / 4
    assert attachment_score(truth, guess, directed=False) == 3 / 4
    assert attachment_score(truth, truth) == attachment_score(truth, truth, directed=False) == 1


def test_undirected_against_sets_of_links():
    rng = np.random.default_rng(0)
    truth, guess = ([rng.integers(0, n + 1, n) for n in (3, 7, 1, 5)] for _ in range(2))
    right = 0
    for t, g in zip(truth, guess, strict=True):
        links = {frozenset((a, head)) for a, head in enumerate(t, start=1)}
        right += sum(
            t[a - 1] == head or (head > 0 and t[head - 1] == a)
            for a, head in enumerate(g, start=1)
            if frozenset((a, head)) in links
        )
    assert attachment_score(truth, guess, directed=False) == pytest.approx(right / 16)


@pytest.mark.parametrize(
    ("truth", "guess"),
    [([[0]], [[0], [0]]), ([[2, 0]], [[0]]), ([], []), ([[0]], 3), ([[0, 1]], [[3, 0]])],
)
def test_shapes_and_heads_are_checked(truth, guess):
    with pytest.raises(ValueError, match=r"\b(y_true|y_pred)\b"):
        attachment_score(truth, guess, directed=False)
