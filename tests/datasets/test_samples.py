"""Blobs on the sphere follow the conventions of make_blobs and the distribution they name."""

import numpy as np
import pytest

from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.distributions import vonmises_fisher


def test_rows_are_shared_out_evenly_and_have_unit_length():
    X, y = make_vonmises_fisher_blobs(11, 4, centers=3, random_state=0)
    assert X.shape == (11, 4)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(y), [4, 4, 3])
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-14)


def test_rows_of_each_cluster_and_order():
    X, y = make_vonmises_fisher_blobs([2, 0, 5], 3, shuffle=False, random_state=0)
    np.testing.assert_array_equal(y, [0, 0, 2, 2, 2, 2, 2])
    mixed = make_vonmises_fisher_blobs([2, 0, 5], 3, random_state=0)
    assert not np.array_equal(mixed[1], y)
    np.testing.assert_array_equal(np.sort(mixed[1]), y)
    assert set(map(tuple, mixed[0])) == set(map(tuple, X))


def test_the_same_seed_gives_the_same_sample():
    first = make_vonmises_fisher_blobs(20, 3, random_state=7, return_centers=True)
    again = make_vonmises_fisher_blobs(20, 3, random_state=7, return_centers=True)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], make_vonmises_fisher_blobs(20, 3, random_state=8)[0])


def test_centers_of_any_length_have_a_direction():
    given = np.array([[1e308, 1e308], [5e-324, 0.0], [1e-200, -1e-200], [3.0, 4.0]])
    X, _, centers = make_vonmises_fisher_blobs(4, centers=given, return_centers=True)
    half = np.sqrt(0.5)
    expected = [[half, half], [1, 0], [half, -half], [0.6, 0.8]]
    np.testing.assert_allclose(centers, expected, rtol=1e-15)
    assert X.shape == (4, 2)


def test_each_cluster_has_its_mean_and_concentration():
    n, kappa = 4000, [0.0, 5.0, 200.0]
    X, y, centers = make_vonmises_fisher_blobs(
        3 * n, 5, concentration=kappa, random_state=1, return_centers=True
    )
    length = vonmises_fisher.mean_resultant_length(kappa, 5)
    for k in range(3):
        mean = X[y == k].mean(axis=0)
        # each coordinate's variance is at most one: five standard errors
        np.testing.assert_allclose(mean, length[k] * centers[k], atol=5 / np.sqrt(n))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 1}, "at least one center and two features, got .* n_features=1"),
        ({"centers": 0}, "got centers=0"),
        ({"centers": [1.0, 2.0]}, r"got shape \(2,\)"),
        ({"centers": [[1.0, 0.0], [0.0, 0.0]]}, "none of them zero"),
        ({"centers": [[1.0, np.nan]]}, "must be finite"),
        ({"concentration": -1.0}, "concentration must be finite and not negative"),
        ({"concentration": np.inf}, "concentration must be finite"),
        ({"concentration": [1.0, 2.0]}, r"one for each of the 3 centers, got shape \(2,\)"),
        ({"n_samples": -1}, "n_samples must be finite and not negative"),
        ({"n_samples": [1, 2], "centers": 3}, "one for each of the 3 centers"),
        ({"n_samples": [1.5, 2.0]}, "whole numbers"),
        ({"n_samples": 10.5}, "n_samples must be one number or one for each"),
        ({"n_samples": "ten"}, "n_samples should"),
        ({"n_features": 2.5}, "whole numbers of .*, got centers=3 and n_features=2.5"),
        ({"n_features": "3"}, "n_features='3'"),
        ({"centers": np.empty((0, 3))}, r"got shape \(0, 3\)"),
        ({"centers": "a"}, "centers should hold real numbers"),
        ({"concentration": None}, "concentration must be finite"),
    ],
)
def test_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_vonmises_fisher_blobs(**arguments)
