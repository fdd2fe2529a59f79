"""Kernels of rows with missing values, beside NumPy's inverses."""

import numpy as np
from numpy.testing import assert_allclose

from skvmf._kernels.missing import add_full_means, full_moments, full_scores


def problem(n=40, d=5, K=2):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(K, d, d))
    cov = A @ A.transpose(0, 2, 1) + np.eye(d)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.5] = np.nan
    X[0], X[1] = np.nan, 1.0
    gone = np.isnan(X)  # every row is a pattern
    numbers = np.argsort(~gone, axis=1, kind="stable")
    each = np.column_stack([np.arange(n), np.arange(1, n + 1), gone.sum(axis=1), numbers])
    return X, each, rng.normal(size=(K, d)), cov, rng.random((n, K))


def slow(x, mean, cov):
    """Return the squared distance, log det P_MM, the filled row and the conditional covariance."""
    seen, gone = ~np.isnan(x), np.isnan(x)
    slopes = cov[np.ix_(gone, seen)] @ np.linalg.inv(cov[np.ix_(seen, seen)])
    gap = (x - mean)[seen]
    filled, rest = x.copy(), np.zeros_like(cov)
    filled[gone] = mean[gone] + slopes @ gap
    own = cov[np.ix_(gone, gone)] - slopes @ cov[np.ix_(seen, gone)]
    rest[np.ix_(gone, gone)] = own
    squares = gap @ np.linalg.solve(cov[np.ix_(seen, seen)], gap)
    return squares, -np.linalg.slogdet(own)[1], filled, rest


def test_scores_moments_and_means_are_those_of_conditional_distributions():
    X, patterns, means, cov, resp = problem()
    precisions = np.linalg.inv(cov)
    roots = np.array([np.linalg.inv(np.linalg.cholesky(one)) for one in cov])
    scores, logs = np.empty((2, len(X), 2))
    full_scores(X, patterns, means, precisions, work := np.empty((12, 5)), roots, scores, logs)
    moments, filled = np.empty((2, 6, 5)), np.zeros_like(X)
    full_moments(X, patterns, means, precisions, work, resp, 2 * resp, moments)
    add_full_means(X, patterns, means, precisions, work, resp, filled)
    second, first = moments[:, :5], moments[:, 5]
    for k in range(2):
        own = [slow(x, means[k], cov[k]) for x in X]
        assert_allclose(scores[:, k], [-0.5 * one[0] for one in own], rtol=1e-10, atol=1e-12)
        assert_allclose(logs[:, k], [one[1] for one in own], rtol=1e-10, atol=1e-12)
        gaps = np.array([one[2] for one in own]) - means[k]
        assert_allclose(first[k], resp[:, k] @ gaps, rtol=1e-10)
        rest = sum(2 * r * one[3] for r, one in zip(resp[:, k], own, strict=True))
        assert_allclose(second[k], (gaps.T * resp[:, k]) @ gaps + rest, rtol=1e-10)
        filled -= resp[:, [k]] * (gaps + means[k])
    assert_allclose(filled, 0, atol=1e-12)
