"""Finite arguments of any size: finite, accurate answers, or a ValueError that says why not."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import xlogy

from skvmf.distributions import simplex
from skvmf.distributions import vonmises_fisher as vmf

METHODS = ["exact", "ode", "rational", "refined", "banerjee", "newton"]

dims = st.one_of(st.integers(2, 70), st.integers(2, 10**6), st.sampled_from([10**9, 10**15]))
sizes = st.floats(-330, 308).map(lambda x: float(10.0**x))  # 0 below, and subnormal numbers
complements = st.floats(-155, 0).map(lambda x: 10.0**x)
alphas = st.one_of(
    st.sampled_from([1.0, 1 + 2.0**-52, 1.5, 2.0]),
    st.floats(-15, 3).map(lambda x: 1 + 10.0**x),
    st.floats(3, 308).map(lambda x: 10.0**x),
)
largest = np.finfo(float).max
scores = st.lists(
    st.one_of(
        st.floats(-1, 1),
        st.floats(-largest, largest),
        st.sampled_from([0.0, 5e-324, -5e-324, 1e-300, 1 / 3, largest, -largest, -np.inf]),
    ),
    min_size=1,
    max_size=30,
).filter(lambda z: max(z) > -np.inf)


@given(dim=dims, kappa=sizes)
@example(dim=2, kappa=0.0)
@example(dim=10**6, kappa=1e150)
def test_functions_of_the_concentration(dim, kappa):
    functions = [vmf.log_partition, vmf.log_partition_deficit, vmf.mean_resultant_length]
    if kappa > 1e150:
        for function in [*functions, vmf.entropy]:
            with pytest.raises(ValueError, match="at most 1e150"):
                function(kappa, dim)
        return
    phi, deficit, r = (function(kappa, dim) for function in functions)
    q = vmf.mean_resultant_length(kappa, dim, complement=True)
    assert 0 <= phi <= kappa * r * (1 + 1e-14) + 1e-322
    assert 0 <= r <= 1
    assert 0 < q <= 1
    assert r + q == pytest.approx(1, rel=1e-15)
    assert phi + deficit == pytest.approx(kappa, rel=1e-13)
    assert np.isfinite(vmf.entropy(kappa, dim))
    if kappa > 1e20 * dim:  # normal across the mean
        assert q == pytest.approx(0.5 * (dim - 1) / kappa, rel=1e-14)
        with mp.workdps(40):
            half, m = mp.mpf(dim) / 2, mp.mpf(dim - 1)
            log_area_ratio = mp.loggamma(half) + (half - 1) * mp.log(2) - mp.log(2 * mp.pi) / 2
            expected = m / 2 * mp.log(kappa) - log_area_ratio
        assert deficit == pytest.approx(float(expected), rel=1e-13)


@given(dim=dims, q=complements, flip=st.booleans())
@pytest.mark.parametrize("method", METHODS)
def test_functions_of_the_mean_resultant_length(method, dim, q, flip):
    r, q = (q, 1 - q) if flip and q < 0.5 else (1 - q, q)
    if q < 0.5e-150 * (dim - 1) * (1 - 1e-9):
        with pytest.raises(ValueError, match="complement, 1 - r, must be at least"):
            vmf.concentration(r, dim, complement=q, method=method)
        return
    limit = {"exact": 0, "ode": 1e-9, "newton": 1e-7}.get(method, max(0.3 / dim, 1e-11))
    for order in (1, 2) if method == "refined" else (0, 1, 2):
        value = vmf.negentropy(r, dim, order=order, complement=q, method=method)
        expected = vmf.negentropy(r, dim, order=order, complement=q)
        assert value == pytest.approx(expected, rel=limit, abs=1e-300)
        assert 0 <= value < np.inf
    along, across = vmf.variance_eigenvalues(r, dim, complement=q)
    assert 0 < along <= across * (1 + 1e-13)
    assert across < np.inf


@given(weights=st.lists(sizes, min_size=4, max_size=4), power=st.floats(-7, 0))
def test_fits(weights, power):
    turn = 10.0**power * np.array([-1.0, 0.0, 0.5, 1.0])
    x = np.column_stack([np.cos(turn), np.sin(turn)])
    if sum(weight > 1e-9 * max(weights) for weight in weights) < 2:
        return  # as good as one point, which is refused
    mu, kappa = vmf.fit(x, weights)
    assert np.linalg.norm(mu) == pytest.approx(1, rel=1e-14)
    assert 0 < kappa < np.inf
    responsibilities = np.array(weights) / max(weights)
    twin = vmf.fit(x, responsibilities)
    assert kappa == pytest.approx(twin[1], rel=1e-12)


@given(z=scores, alpha=alphas, single=st.booleans())
@example(z=[0.0, -largest, -5e-324], alpha=1.7e308, single=False)
def test_maps_onto_the_simplex(z, alpha, single):
    dtype = np.float32 if single else np.float64
    z = np.clip(z, -float(np.finfo(dtype).max), float(np.finfo(dtype).max)).astype(dtype)
    p = simplex.entmax(z, alpha)
    assert p.min() >= 0
    assert p.sum(dtype=float) == pytest.approx(1, abs=2 * len(z) * float(np.finfo(dtype).eps))
    assert np.all(np.diff(p[np.argsort(z)].astype(float)) >= -1e-15)
    assert -np.log(len(z)) - 1e-6 <= simplex.tsallis_negentropy(p, alpha) <= 0
    loss, gradient = simplex.fenchel_young_loss(z, np.eye(len(z))[0], alpha, return_gradient=True)
    assert loss >= 0
    assert np.isfinite(gradient).all()
    assert simplex.fenchel_young_loss(z, p.astype(float), alpha) <= 1e-6


def test_negentropy_of_subnormal_probabilities():
    p = np.array([1.0, 5e-324, 1e-310])
    assert simplex.tsallis_negentropy(p, 1) == pytest.approx(xlogy(p, p).sum(), abs=1e-320)
    assert simplex.tsallis_negentropy(p, 1.7e308) == pytest.approx(0, abs=1e-300)
