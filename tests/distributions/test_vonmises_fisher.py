"""The public von Mises-Fisher functions: exactness, identities, bad input, samples, fits."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skvmf.distributions import vonmises_fisher as vmf
from skvmf.distributions.vonmises_fisher._maps import exact_functions

METHODS = ["exact", "ode", "rational", "refined", "banerjee", "newton"]
X = np.eye(3)

dims = st.one_of(st.integers(2, 70), st.integers(2, 10**7))
kappas = st.one_of(st.floats(-12, 12), st.floats(-300, 150)).map(lambda x: 10.0**x)


def relative_error(result, expected):
    return np.abs(result / expected - 1).max()


def forward_and_inverse_errors(table):
    d, kappa, r, q = (table[name] for name in ("d", "kappa", "r", "one_minus_r"))
    inverse = {"dim": d, "complement": q}
    low = r < 0.5
    alone = r[low], d[low]  # says as much
    return {
        "kappa of r": relative_error(vmf.concentration(*alone), table["kappa_of_rounded"][low]),
        "psi of r": relative_error(vmf.negentropy(*alone), table["psi"][low]),
        "A": relative_error(vmf.mean_resultant_length(kappa, d), r),
        "1-A": relative_error(vmf.mean_resultant_length(kappa, d, complement=True), q),
        "Phi": relative_error(vmf.log_partition(kappa, d), table["log_partition"]),
        "kappa": relative_error(vmf.concentration(r, **inverse), table["kappa_of_rounded"]),
        "psi": relative_error(vmf.negentropy(r, **inverse), table["psi"]),
        "psi''": relative_error(vmf.negentropy(r, **inverse, order=2), table["psi2"]),
    }


class TestReference:
    def test_table(self):
        table = np.load(Path(__file__).parents[1] / "reference" / "vmf_table.npz")
        errors = forward_and_inverse_errors(table)
        deficits = vmf.log_partition_deficit(table["kappa"], table["d"])
        errors["kappa-Phi"] = relative_error(deficits, table["deficit"])
        assert max(errors.values()) < 1e-14, errors

    def test_larger_table(self, shared):
        table = dict(np.load(shared / "reference" / "vmf_reference.npz"))
        low = table["r"] < 0.5
        for name in ("kappa", "psi"):
            key = "kappa_of_rounded" if name == "kappa" else name
            pair = table[f"{name}_of_r"], table[f"{name}_of_one_minus_r"]
            table[key] = np.where(low, *pair)
            assert np.isfinite(table[key]).all()
        errors = forward_and_inverse_errors(table)
        assert max(errors.values()) < 1e-14, errors


class TestIdentities:
    @given(dim=dims, kappa=kappas)
    def test_round_trip(self, dim, kappa):
        r = vmf.mean_resultant_length(kappa, dim)
        q = vmf.mean_resultant_length(kappa, dim, complement=True)
        assert r + q == pytest.approx(1, rel=1e-15)
        assert vmf.concentration(r, dim, complement=q) == pytest.approx(kappa, rel=2e-14)

    @given(dim=dims, kappa=kappas)
    def test_legendre(self, dim, kappa):
        """Psi + Phi = kappa r, written so that it does not cancel when kappa is large."""
        r = vmf.mean_resultant_length(kappa, dim)
        q = vmf.mean_resultant_length(kappa, dim, complement=True)
        psi = vmf.negentropy(r, dim, complement=q)
        if r < 0.5:
            assert psi + vmf.log_partition(kappa, dim) == pytest.approx(kappa * r, rel=3e-14)
        deficit = vmf.log_partition_deficit(kappa, dim)
        assert psi + kappa * q == pytest.approx(deficit, rel=3e-14)

    @given(dim=dims, kappa=kappas)
    def test_bounds(self, dim, kappa):
        """Amos (1974)."""
        a = 0.5 * (dim - 1)
        r = vmf.mean_resultant_length(kappa, dim)
        assert r >= kappa / (a + np.sqrt(kappa**2 + (a + 1) ** 2)) * (1 - 1e-15)
        assert r <= kappa / (a + np.sqrt(kappa**2 + a * (a + 1))) * (1 + 1e-15)
        assert r <= kappa / (a - 0.5 + np.sqrt(kappa**2 + (a + 1.5) ** 2)) * (1 + 1e-15)
        # kappa^2/(2 d) is no longer above zero
        assert vmf.log_partition(kappa, dim) > 0 or kappa < 1e-150

    @given(dim=dims, x=st.floats(0.001, 13), sign=st.booleans())
    def test_trace_of_the_covariance(self, dim, x, sign):
        q = 10.0**-x
        r, q = (1 - q, q) if sign else (q, 1 - q)
        along, across = vmf.variance_eigenvalues(r, dim, complement=q)
        curvature = vmf.negentropy(r, dim, order=2, complement=q)
        assert along == pytest.approx(1 / curvature, rel=1e-13)
        assert across == pytest.approx(r / vmf.concentration(r, dim, complement=q), rel=1e-13)
        assert along + (dim - 1) * across == pytest.approx(q * (1 + r), rel=1e-13)

    def test_areas_of_spheres(self):
        expected = np.log([2 * np.pi, 4 * np.pi, 2 * np.pi**2])
        assert vmf.log_sphere_area([2, 3, 4]) == pytest.approx(expected, rel=1e-15)


class TestMethods:
    @given(dim=dims, kappa=kappas)
    def test_what_mixtures_ask_for_has_the_same_bits(self, dim, kappa):
        r = np.atleast_1d(vmf.mean_resultant_length(kappa, dim))
        q = np.atleast_1d(vmf.mean_resultant_length(kappa, dim, complement=True))
        found, log_partition, deficit = exact_functions(r, q, dim)
        assert np.array_equal(found, vmf.concentration(r, dim, complement=q))
        assert np.array_equal(log_partition, vmf.log_partition(found, dim))
        assert np.array_equal(deficit, vmf.log_partition_deficit(found, dim))

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("dim", [2, 5, 7, 10**7])
    def test_concentration_is_order_one(self, method, dim):
        r = np.linspace(0, 0.9, 4)
        expected = vmf.negentropy(r, dim, order=1, method=method)
        assert (vmf.concentration(r, dim, method=method) == expected).all()
        curvature = vmf.negentropy(0.0, dim, order=2, method=method)
        assert [expected[0], curvature] == pytest.approx([0, dim], rel=1e-15)


class TestArguments:
    def test_shapes_broadcast(self):
        kappa, d = np.ones((4, 1)), np.array([2, 3, 100])
        assert vmf.log_partition(kappa, d).shape == (4, 3)
        assert vmf.negentropy(0.5 * kappa, d, complement=0.5).shape == (4, 3)
        expected = [vmf.log_partition(1.0, int(dim)) for dim in d]
        assert (vmf.log_partition(kappa, d) == expected).all()
        assert np.ndim(vmf.log_partition(1.0, 3)) == 0
        assert vmf.log_partition([], 3).shape == vmf.concentration([], [3]).shape == (0,)

    def test_any_real_input(self):
        expected = vmf.log_partition([1.0, 2.0], 3)
        frozen = np.array([1.0, 2.0])
        frozen.setflags(write=False)
        strided = np.array([1.0, 9.0, 2.0])[::2]
        single = np.array([1, 2], dtype=np.float32)
        for kappa in (frozen, strided, single, [1, 2]):
            assert (vmf.log_partition(kappa, 3) == expected).all()
        assert vmf.log_partition(1.0, 3.0) == expected[0]  # an integer all the same

    def test_large_dim(self):
        for method in METHODS:
            kappa = vmf.concentration(0.5, 10**15, method=method)
            assert kappa == pytest.approx(2e15 / 3, rel=1e-14)
        for dim in (10**15 + 1, 2.0**60):
            with pytest.raises(ValueError, match="dim must be at most 1e15"):
                vmf.log_sphere_area(dim)

    @pytest.mark.parametrize("dim", [1, 0, -3, 2.5, np.nan, np.inf, "3", [3, 1]])
    def test_dim(self, dim):
        for function in (vmf.log_partition, vmf.mean_resultant_length, vmf.concentration):
            with pytest.raises(ValueError, match="dim must be an integer of at least 2"):
                function(0.5, dim)

    @pytest.mark.parametrize("kappa", [-1e-300, np.nan, np.inf, 1e200, [1.0, -2.0]])
    def test_kappa(self, kappa):
        for function in (vmf.log_partition, vmf.log_partition_deficit, vmf.mean_resultant_length):
            with pytest.raises(ValueError, match="kappa, the concentration, must be finite"):
                function(kappa, 5)
        with pytest.raises(ValueError, match="kappa, the concentration, must be finite"):
            vmf.entropy(kappa, 5)

    @pytest.mark.parametrize("r", [-1e-9, 1.0, 2.0, np.nan, [0.5, 1.0]])
    @pytest.mark.parametrize("method", METHODS)
    def test_r(self, r, method):
        with pytest.raises(ValueError, match="r, the mean resultant length, must be at least 0"):
            vmf.concentration(r, 5, method=method)

    @pytest.mark.parametrize("complement", [0.0, -0.1, np.nan, 1.5])
    def test_complement(self, complement):
        with pytest.raises(ValueError, match="complement 1 - r above 0"):
            vmf.concentration(0.5, 5, complement=complement)

    @pytest.mark.parametrize("dim", [2, 3, 1000, 10**6])
    def test_the_smallest_complement_is_that_of_the_largest_kappa(self, dim):
        least = vmf.mean_resultant_length(1e150, dim, complement=True)
        for method in METHODS:
            kappa = vmf.concentration(1.0, dim, complement=least, method=method)
            assert kappa == pytest.approx(1e150, rel=1e-14)
            assert vmf.mean_resultant_length(kappa, dim, complement=True) == pytest.approx(least)
            curvature = vmf.negentropy(1.0, dim, complement=least, order=2, method=method)
            assert curvature == pytest.approx(2e300 / (dim - 1), rel=1e-13)
            with pytest.raises(ValueError, match="complement, 1 - r, must be at least"):
                vmf.concentration(1.0, dim, complement=0.999 * least, method=method)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: vmf.concentration([0.1, 0.5], 5, complement=[0.9, 0.4]), "must be 1 - r"),
            (lambda: vmf.concentration(0.5, 5, method="magic"), "method must be one of exact"),
            (lambda: vmf.negentropy(0.5, 5, order=3), "order is the order of the derivative"),
            (lambda: vmf.negentropy(0.5, 5, method="refined"), "no closed antiderivative"),
            (lambda: vmf.rvs(np.eye(3), 1.0), "one distribution"),
            (lambda: vmf.rvs([1.0, 0.0], -1.0), "kappa, the concentration"),
        ],
    )
    def test_what_does_not_fit(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class TestDensity:
    @pytest.mark.parametrize("kappa", [0.5, 30.0, 500.0])
    @pytest.mark.parametrize("dim", [2, 3, 10, 100])
    def test_agrees_with_scipy(self, dim, kappa):
        rng = np.random.default_rng(0)
        x, mu = unit(rng, 20, dim), unit(rng, dim)
        expected = stats.vonmises_fisher(mu, kappa).logpdf(x)
        assert vmf.logpdf(x, mu, kappa) == pytest.approx(expected, rel=1e-10, abs=1e-10)
        expected = stats.vonmises_fisher(mu, kappa).entropy()
        assert vmf.entropy(kappa, dim) == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_concentrated(self):
        """In three dimensions f = kappa/(2 pi) exp(-kappa ||x - m||^2/2), to the last digits."""
        kappa, angle = 1e12, 1.3e-6
        mu = np.array([0.0, 0.0, 1.0])
        x = np.array([np.sin(angle), 0.0, np.cos(angle)])
        expected = np.log(kappa / (2 * np.pi)) - kappa * 2 * np.sin(angle / 2) ** 2
        assert vmf.logpdf(x, mu, kappa) == pytest.approx(expected, rel=1e-13)

    def test_distributions_broadcast(self):
        rng = np.random.default_rng(3)
        x, mu, kappa = unit(rng, 7, 1, 4), unit(rng, 3, 4), np.array([0.0, 1.0, 50.0])
        both = vmf.logpdf(x, mu, kappa)
        assert both.shape == (7, 3)
        for k in range(3):
            assert both[:, k] == pytest.approx(vmf.logpdf(x[:, 0], mu[k], kappa[k]), rel=1e-14)

    @given(dim=dims, kappa=kappas)
    def test_entropy_is_expected(self, dim, kappa):
        r = vmf.mean_resultant_length(kappa, dim)
        q = vmf.mean_resultant_length(kappa, dim, complement=True)
        area = vmf.log_sphere_area(dim)
        expected = area - vmf.negentropy(r, dim, complement=q)
        assert vmf.entropy(kappa, dim) == pytest.approx(expected, rel=1e-13, abs=1e-13 * abs(area))

    @pytest.mark.parametrize(
        ("arguments", "mean", "message"),
        [
            ((2 * X, X[0], 1.0), None, "x must be finite and of unit length"),
            ((X, 2 * X[0], 1.0), None, "mu must be finite and of unit length"),
            ((np.nan * X, X[0], 1.0), None, "x must be finite"),
            ((X,), [0.1, 0.1], "x has 3 coordinates, the parameters have 2"),
            ((X,), X[0], "inside the unit ball"),
            ((X, X[0]), None, "Give mu and kappa, or mean alone"),
            ((X, X[0], 1.0), 0.5 * X[0], "Give mu and kappa, or mean alone"),
            (([1.0],), [0.5], "at least two coordinates"),
        ],
    )
    def test_bad_input(self, arguments, mean, message):
        with pytest.raises(ValueError, match=message):
            vmf.logpdf(*arguments, mean=mean)


class TestVariance:
    @pytest.mark.parametrize("dim", [2, 3, 20])
    def test_matrix_has_the_eigenvalues(self, dim):
        mean = 0.6 * unit(np.random.default_rng(0), dim)
        covariance = vmf.variance_function(mean)
        along, across = vmf.variance_eigenvalues(0.6, dim)
        assert covariance @ mean == pytest.approx(along * mean, rel=1e-12)
        assert np.trace(covariance) == pytest.approx(1 - 0.6**2, rel=1e-14)
        expected = [along] + [across] * (dim - 1)
        assert np.linalg.eigvalsh(covariance) == pytest.approx(np.sort(expected), rel=1e-12)

    def test_uniform(self):
        result = vmf.variance_function(np.zeros((2, 5)))
        assert result == pytest.approx(np.stack([np.eye(5) / 5] * 2), abs=1e-17)


class TestSamples:
    @pytest.mark.parametrize("kappa", [0.0, 3.0, 1e4, 1e12])
    @pytest.mark.parametrize("dim", [2, 3, 100])
    def test_moments(self, dim, kappa):
        mu = unit(np.random.default_rng(5), dim)
        x = vmf.rvs(mu, kappa, size=4000, random_state=1)
        assert np.linalg.norm(x, axis=1) == pytest.approx(np.ones(4000), rel=1e-14)
        q = vmf.mean_resultant_length(kappa, dim, complement=True)
        along, across = vmf.variance_eigenvalues(1 - q, dim, complement=q)
        gap = x.mean(axis=0) - (1 - q) * mu
        forward = gap @ mu
        assert abs(forward) < 4.5 * np.sqrt(along / 4000)
        sideways = gap - forward * mu
        limit = np.sqrt(across / 4000) * (np.sqrt(dim - 1) + 4.5)
        assert np.linalg.norm(sideways) < limit

    @pytest.mark.parametrize("kappa", [1e15, 1e16, 1e30, 1e150])
    @pytest.mark.parametrize("dim", [2, 3, 100])
    def test_spread_of_large_concentrations(self, dim, kappa):
        """Normal across the mean, with variance 1/kappa, also where that is below rounding."""
        x = vmf.rvs(np.eye(dim)[0], kappa, size=10_000 // dim, random_state=0)
        assert np.linalg.norm(x, axis=1) == pytest.approx(1, rel=1e-15)
        assert stats.kstest(np.sqrt(kappa) * x[:, 1:].ravel(), "norm").pvalue > 1e-3
        mu = unit(np.random.default_rng(0), dim)
        turned = vmf.rvs(mu, kappa, size=20, random_state=0)
        assert np.isfinite(vmf.logpdf(turned, mu, kappa)).all()
        assert np.linalg.norm(turned, axis=1) == pytest.approx(1, rel=1e-14)

    def test_random_state(self):
        mu = [1.0, 0.0]
        first = vmf.rvs(mu, 2.0, size=5, random_state=3)
        assert (vmf.rvs(mu, 2.0, size=5, random_state=3) == first).all()
        generator = np.random.default_rng(3)
        assert (vmf.rvs(mu, 2.0, size=5, random_state=generator) == first).all()
        assert (vmf.rvs(mu, 2.0, size=5, random_state=generator) != first).any()
        states = [np.random.RandomState(7) for _ in range(2)]
        one, two = (vmf.rvs(mu, 2.0, size=5, random_state=state) for state in states)
        assert (one == two).all()
        assert (vmf.rvs(mu, 2.0, size=5, random_state=states[0]) != one).any()
        assert vmf.rvs(mu, 2.0).shape == (1, 2)

    def test_sizes(self):
        assert vmf.rvs([1.0, 0.0], 1.0, size=(2, 3), random_state=0).shape == (2, 3, 2)
        assert vmf.rvs(mean=[0.0, 0.0], size=0, random_state=0).shape == (0, 2)
        assert vmf.rvs(mean=[0.0, 0.0], size=np.array([2, 0])).shape == (2, 0, 2)
        assert vmf.rvs(mean=[0.0, 0.0], size=(), random_state=0).shape == (2,)

    def test_one_point_without_an_axis(self):
        """As NumPy's and SciPy's samplers give it."""
        x = vmf.rvs([0.6, 0.8, 0.0], 2.0, size=None, random_state=0)
        assert x.shape == (3,)
        assert (x == vmf.rvs([0.6, 0.8, 0.0], 2.0, size=1, random_state=0)[0]).all()

    @pytest.mark.parametrize("size", [1.5, -1, (2, -1), (2, 1.5), "3", [[2]]])
    def test_sizes_that_are_none(self, size):
        with pytest.raises(ValueError, match="size should be a whole number of points"):
            vmf.rvs([1.0, 0.0], 1.0, size=size)


class TestFit:
    @pytest.mark.parametrize("dim", [2, 3, 300])
    def test_solves_the_likelihood_equations(self, dim):
        x = vmf.rvs(np.eye(dim)[0], 5.0 * dim, size=100, random_state=0)
        mu, kappa = vmf.fit(x)
        mean = x.mean(axis=0)
        assert vmf.mean_resultant_length(kappa, dim) * mu == pytest.approx(mean, rel=1e-12)
        best = vmf.logpdf(x, mu, kappa).sum()
        for factor in (0.99, 1.01):
            assert vmf.logpdf(x, mu, factor * kappa).sum() < best

    def test_weights_repeat(self):
        x = vmf.rvs([0.0, 1.0, 0.0], 8.0, size=10, random_state=1)
        repeats = np.arange(10)
        mu, kappa = vmf.fit(np.repeat(x, repeats, axis=0))
        weighted_mu, weighted_kappa = vmf.fit(x, sample_weight=repeats)
        assert weighted_mu == pytest.approx(mu, rel=1e-13)
        assert weighted_kappa == pytest.approx(kappa, rel=1e-13)

    def test_tight(self):
        """Two points at angle 2 t: r = cos t, and 1 - r must not be a difference."""
        t = 1e-6
        x = np.array([[np.cos(t), np.sin(t), 0.0], [np.cos(t), -np.sin(t), 0.0]])
        q = 2 * np.sin(t / 2) ** 2
        expected = vmf.concentration(1 - q, 3, complement=q)
        assert vmf.fit(x)[1] == pytest.approx(expected, rel=1e-9)

    def test_no_direction(self):
        mu, kappa = vmf.fit([[1.0, 0.0], [-1.0, 0.0]])
        assert mu.tolist() == [1, 0]
        assert kappa == 0

    @pytest.mark.parametrize(
        ("x", "weights", "message"),
        [
            (X[[0, 0]], None, "likelihood grows without bound"),
            (X, [1, 0, 0], "likelihood grows without bound"),
            (2 * X, None, "unit length"),
            (X[0], None, r"shape \(n, d\)"),
            (X, [1, 2], r"sample_weight must have shape \(3,\)"),
            *[(X, [1, w, 1], "sample_weight must be finite") for w in (-1, np.nan, np.inf)],
            (X, [0, 0, 0], "sample_weight must be finite"),
        ],
    )
    def test_bad_input(self, x, weights, message):
        with pytest.raises(ValueError, match=message):
            vmf.fit(x, sample_weight=weights)
