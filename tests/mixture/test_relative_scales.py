"""RelativeGMM with means or standard deviations in order, or both."""

from copy import copy
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf import RelativeGMM, SparseGaussianMixture

from ..pairwise import pairwise
from .checks import assert_bound_never_falls, assert_finite
from .kinds import TYPES, matrices
from .test_relative_gmm import SOLVERS, overlapping

ORDERS = ["scales", "both"]
FREE = [name for name in TYPES if name != "tied"]


def wide(n=600, seed=0):
    """A wide cluster, a narrow one and one in between, wherever they are."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 2)) * np.array([[3.0, 1.0], [0.5, 1.0], [1.5, 2.0]])[y]
    X[:, 0] += np.array([0.0, 12.0, 25.0])[y]
    return X, y


def widths(mixture, feature=0):
    """Standard deviations along a feature, from the published covariances."""
    return np.sqrt(matrices(mixture)[:, feature, feature])


def assert_in_order(mixture, clearance=0.0):
    """Gaps as the data's units say, to the last digit; pruned components lie in between."""
    feature = mixture.ordering_feature
    for room, active in [(0.0, slice(None)), (clearance, mixture.weights_ > 0)]:
        if mixture.order != "means":
            assert (np.diff(widths(mixture, feature)[active]) >= room).all()
        if mixture.order != "scales":
            means = mixture.means_[active, feature]
            assert (means[:-1] + room <= means[1:]).all()


@pytest.mark.bits
@pairwise(
    solver=SOLVERS,
    shape=[("means", kind) for kind in TYPES]
    + [(order, kind) for order in ORDERS for kind in FREE],
    K=[2, 4],
    d=[1, 3],
    clearance=[0.0, 0.5],
    prior=[1.0, 2.0],
)
def test_bound_never_falls_and_order_holds_in_every_iteration(
    solver, shape, K, d, clearance, prior
):
    order, covariance_type = shape
    whole = 0
    for seed in range(2):
        X, weights = overlapping(80, K, d, seed)
        mixture = RelativeGMM(
            K,
            solver=solver,
            order=order,
            clearance=clearance,
            ordering_feature=seed % d,
            covariance_type=covariance_type,
            reg_covar=0,
            weight_concentration_prior=prior,
            init_params=np.random.default_rng(seed).integers(K, size=80),
            tol=0,
        )
        for n_iter in (0, 1, 2, 15):
            mixture.set_params(max_iter=n_iter).fit(X, sample_weight=weights)
            assert_in_order(mixture, clearance)
        if not mixture._fitted.params.moved_or_pruned.any():  # from where it had no rows
            assert_bound_never_falls(mixture)
            whole += 1
    assert whole


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("covariance_type", FREE)
def test_widths_ascend_whatever_the_start(solver, covariance_type):
    X, y = wide()
    for seed in range(2):
        mixture = RelativeGMM(
            3, order="scales", solver=solver, covariance_type=covariance_type, random_state=seed
        ).fit(X)
        narrow_first = np.array([2, 0, 1])[y] if covariance_type != "spherical" else None
        assert_in_order(mixture)
        assert_allclose(mixture.scale_differences_, np.diff(widths(mixture)))
        assert_allclose(mixture.differences_, np.diff(mixture.means_, axis=0))
        if narrow_first is not None:
            assert np.mean(mixture.labels_ == narrow_first) > 0.97
            assert_allclose(widths(mixture), [0.5, 1.5, 3.0], rtol=0.1)


def test_order_of_widths_alone_does_not_change_the_optimum():
    """It is a numbering of the components, wherever they differ in width."""
    X, _ = wide()
    options = dict(tol=1e-9, max_iter=500, random_state=0)
    plain = SparseGaussianMixture(3, weight_concentration_prior=1, **options).fit(X)
    mixture = RelativeGMM(3, order="scales", **options).fit(X)
    assert_allclose(mixture.lower_bound_, plain.lower_bound_, atol=1e-7)
    order = np.argsort(widths(plain))
    assert_allclose(mixture.means_, plain.means_[order], atol=1e-3)
    assert_allclose(mixture.covariances_, plain.covariances_[order], atol=1e-2)
    assert_allclose(mixture.weights_, plain.weights_[order], atol=1e-4)


def test_both_orders_are_a_smaller_model():
    """Widths that fall along the means are pooled; those that rise cost nothing."""
    X, _ = wide()
    options = dict(tol=1e-9, max_iter=500, random_state=0)
    plain = RelativeGMM(3, **options).fit(X)
    both = RelativeGMM(3, order="both", **options).fit(X)
    assert both.lower_bound_ < plain.lower_bound_ - 0.05
    assert_allclose(both.scale_differences_[0], 0, atol=1e-12)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    rising = rng.normal(size=(600, 1)) * np.array([[0.5], [1.0], [3.0]])[y] + 10 * y[:, None]
    plain = RelativeGMM(3, **options).fit(rising)
    both = RelativeGMM(3, order="both", **options).fit(rising)
    assert_allclose(both.lower_bound_, plain.lower_bound_, atol=1e-7)
    assert_allclose(both.means_, plain.means_, atol=1e-3)


def test_warm_start_goes_on_and_takes_a_new_clearance():
    X, _ = wide()
    for order in ("means", *ORDERS):
        options = dict(order=order, random_state=0, tol=0)
        whole = RelativeGMM(3, max_iter=9, **options).fit(X)
        parts = RelativeGMM(3, max_iter=5, warm_start=True, **options).fit(X)
        parts.set_params(max_iter=4).fit(X)
        assert_allclose(parts.means_, whole.means_, rtol=1e-10)
        assert_allclose(parts.covariances_, whole.covariances_, rtol=1e-10)
        parts.set_params(clearance=1.5, max_iter=1).fit(X)
        assert_in_order(parts, 1.5)


@pairwise(order=["means", *ORDERS], clearance=[0.0, 0.3], seed=[0, 2])
def test_a_warm_start_leaves_what_has_converged(order, clearance, seed):
    """Pruned components need no room, and priors by number stay with their components."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(m, s, (60, 2)) for m, s in ((0, 1), (2, 0.5), (5, 2))]
    mixture = RelativeGMM(
        6,
        order=order,
        solver="em",
        clearance=clearance,
        background=True,
        weight_concentration_prior=[-5.0, -6.0, -4.0, -5.5, -4.5, -6.5],
        init_params=rng.integers(6, size=180),
        warm_start=True,
        max_iter=1000,
    ).fit(np.concatenate(parts))
    assert mixture.n_active_components_ < 6
    before = copy(mixture)
    mixture.set_params(max_iter=0).fit(np.concatenate(parts))
    assert mixture.lower_bound_ == before.lower_bound_
    assert_array_equal(mixture.weights_, before.weights_)
    assert_array_equal(mixture.means_, before.means_)
    assert_array_equal(mixture.covariances_, before.covariances_)


def test_components_without_weight_need_no_room():
    X = np.arange(12.0)[:, None] / 10
    mixture = RelativeGMM(
        3, clearance=1.0, means_init=[[0.1], [0.4], [1.1]], weights_init=[0.5, 0, 0.5], max_iter=0
    ).fit(X)
    assert_array_equal(mixture.means_.ravel(), [0.1, 0.4, 1.1])
    mixture.set_params(clearance=0.8, warm_start=True).fit(X[1:])
    assert_array_equal(mixture.means_.ravel(), [0.1, 0.4, 1.1])
    with pytest.raises(ValueError, match="3 components need 2 along"):
        RelativeGMM(3, clearance=1.0).fit(X)


def test_a_stream_stays_in_order():
    X, _ = wide(3000)
    for order, clearance in product(ORDERS, [0.0, 0.3]):
        mixture = RelativeGMM(3, order=order, clearance=clearance, random_state=0)
        for start in range(0, 3000, 500):
            mixture.partial_fit(X[start : start + 500])
            assert_in_order(mixture, clearance)


@pytest.mark.bits
@pairwise(
    order=["means", *ORDERS],
    solver=SOLVERS,
    prior=[1.0, -5.0],
    posterior=[{"entmax_alpha": 2.0}, {"temperature": 0}, {"temperature": 0.5}],
)
def test_order_holds_where_components_leave(order, solver, prior, posterior):
    X, weights = overlapping(200, 3, 2, 0)
    mixture = RelativeGMM(
        8,
        order=order,
        solver=solver,
        clearance=0.1,
        covariance_type="diag",
        weight_concentration_prior=prior,
        init_params=np.arange(200) % 8,
        tol=0,
        **posterior,
    )
    for max_iter in [0, 5, 20]:
        mixture.set_params(max_iter=max_iter).fit(X, sample_weight=weights)
        assert_finite(mixture, X)
        assert_in_order(mixture, 0.1)
