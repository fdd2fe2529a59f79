"""Mixtures can be fitted to degenerate rows, and to rows in unusual arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

from ..pairwise import pairwise
from .checks import assert_finite
from .kinds import TYPES
from .test_relative_gmm import ordered
from .test_relative_scales import assert_in_order

N = 60
RNG = np.random.default_rng(0)


def degenerate(X):
    """Return rows that make trouble, from some that do not, by name."""
    constant = X.copy()
    constant[:, 0] = 3.0
    return {
        "duplicates": np.repeat(X[:10], 6, axis=0),
        "fewer distinct rows than components": np.repeat(X[:2], 30, axis=0),
        "all rows identical": np.tile(X[0], (N, 1)),
        "constant first column": constant,
        "constant last column": constant[:, ::-1],
        "collinear": X @ np.ones((X.shape[1], 1)) @ np.ones((1, X.shape[1])),
    }


BLOBS = make_blobs(N, 3, centers=3, random_state=0)[0]
PLANE = {
    **degenerate(BLOBS),
    "ties": RNG.integers(0, 2, size=(N, 3)).astype(float),
    "far from the origin": BLOBS + 1e8,
    "huge": BLOBS * 1e60,
    "tiny": BLOBS * 1e-60,
    "squares underflow": BLOBS * 1e-160,
    "one feature": BLOBS[:, :1],
    "int": RNG.integers(-5, 5, size=(N, 3)),
    "bool": RNG.random((N, 3)) < 0.5,
}
AXES = np.eye(4)[np.arange(N) % 4]
RAYS = (5 * AXES + RNG.normal(size=(N, 4))) * RNG.uniform(0.5, 2, size=(N, 1))
SPHERE = {
    **degenerate(RAYS),
    "antipodal": np.vstack([AXES[:1], -AXES[:1]] * 30),
    "some zero rows": RAYS * (np.arange(N) % 3 > 0)[:, None],
    "huge": RAYS * 1e300,
    "largest": np.sign(RAYS) * np.finfo(float).max,
    "subnormal": np.where(RNG.random(RAYS.shape) < 0.5, 5e-324, -1e-320),
    "huge and tiny": RAYS * np.logspace(-300, 300, N)[:, None],
    "huge and subnormal": RAYS * np.where(np.arange(N) % 2, 1e300, 5e-324)[:, None],
    "constant columns": np.hstack([RAYS, np.ones((N, 2)), np.zeros((N, 1))]),
    "int": RNG.integers(-3, 4, size=(N, 4)) + 10 * AXES.astype(int),
    "bool": AXES.astype(bool),
    "two features": RAYS[:, :2],
}
ORDERED = [("means", "tied"), ("scales", "diag"), ("both", "full"), ("both", "spherical")]
STORED = {  # in arrays that are not C-contiguous or native, and the type that they are read as
    "strided": (lambda X: np.repeat(X, 2, axis=1)[:, ::2], np.float64),
    "reversed": (lambda X: X[::-1, ::-1], np.float64),
    "fortran": (np.asfortranarray, np.float64),
    **{
        of: (lambda X, of=of: X.astype(of), kind)
        for of, kind in zip(
            [">f8", ">f4", ">f2", ">u2", ">i4"], [float, *3 * [np.float32], float], strict=True
        )
    },
}


@pairwise(
    case=PLANE,
    kind=[
        (SparseGaussianMixture, {}),
        (StudentTMixture, {}),
        (StudentTMixture, {"degrees_of_freedom": 1e-3}),
    ],
    posterior=[{}, {"entmax_alpha": 1.5, "weight_concentration_prior": 1.0}, {"temperature": 0}],
    covariance_type=TYPES,
    changed=[{}, {"max_iter": 0}, {"max_iter": 1}, {"n_components": 1}],
)
def test_rows_of_the_plane_are_fitted(case, kind, posterior, covariance_type, changed):
    estimator, options = kind
    mixture = estimator(3, covariance_type=covariance_type, random_state=0, max_iter=10)
    mixture.set_params(**options, **posterior, **changed)
    assert_finite(mixture.fit(PLANE[case]), PLANE[case])


@pairwise(case=PLANE, shape=ORDERED, solver=["ecm", "em"], n_components=[1, 3])
def test_rows_of_the_plane_are_fitted_in_order(case, shape, solver, n_components):
    order, covariance_type = shape
    X = PLANE[case]
    mixture = RelativeGMM(
        n_components,
        order=order,
        solver=solver,
        covariance_type=covariance_type,
        random_state=0,
        max_iter=8,
    ).fit(X)
    assert_finite(mixture, X)
    assert_allclose(mixture.weights_.sum(), 1)
    assert order == "scales" or ordered(mixture.means_)
    assert order == "means" or assert_in_order(mixture) is None


@pairwise(
    prior=[0.0, 1.0], options=[{}, {"concentration_type": "tied"}, {"temperature": 0}], case=SPHERE
)
def test_directions_are_fitted(case, options, prior):
    X = SPHERE[case]
    mixture = VonMisesFisherMixture(
        3, concentration_prior=prior, random_state=0, max_iter=20, **options
    ).fit(X)
    assert_finite(mixture, X)
    assert_allclose(mixture.weights_.sum(), 1)


@pytest.mark.parametrize("value", [1e30, -1e100])
@pytest.mark.parametrize("options", [{}, {"solver": "em"}, {"order": "both"}])
def test_equal_rows_keep_their_means_in_order(options, value):
    """Where one unit in the last place of a mean would be far outside every component."""
    X = np.full((N, 3), value)
    mixture = RelativeGMM(3, reg_covar=1e-300, random_state=0, **options).fit(X)
    assert_array_equal(mixture.means_, X[:3])
    assert mixture.lower_bound_ > 1000
    assert_finite(mixture, X)


@pairwise(
    value=[1e30, -1e100],
    covariance_type=TYPES,
    kind=[SparseGaussianMixture, StudentTMixture],
    background=[False, True],
)
def test_equal_rows_are_fitted_under_the_least_regularizer(
    kind, covariance_type, background, value
):
    X = np.full((N, 3), value)
    options = {"covariance_type": covariance_type, "background": background}
    fit = kind(3, reg_covar=1e-300, random_state=0, **options).fit(X)
    assert_allclose(fit.means_[fit.weights_ > 0], value, rtol=1e-12)
    assert_finite(fit, X)


@pytest.mark.parametrize("case", SPHERE)
def test_directions_in_csr_are_fitted_as_dense(case):
    X = SPHERE[case]
    options = dict(init_params=np.arange(N) % 3, max_iter=10, tol=0)
    dense = VonMisesFisherMixture(3, **options).fit(X)
    csr = VonMisesFisherMixture(3, **options).fit(sparse.csr_array(X))
    assert_finite(csr, sparse.csr_array(X))
    bounds = zip(csr.lower_bounds_, dense.lower_bounds_, strict=False)  # until one stands
    assert_allclose(*np.transpose(list(bounds)), rtol=1e-8)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("estimator", [VonMisesFisherMixture, SparseGaussianMixture])
def test_how_rows_are_stored_does_not_matter(estimator, stored):
    store, kind = STORED[stored]
    rows = store(np.abs(10 * BLOBS))
    odd, plain = (
        estimator(2, random_state=0).fit(X) for X in (rows, np.array(rows, kind, order="C"))
    )
    assert odd.probabilities_.dtype == kind
    assert odd.lower_bound_ == plain.lower_bound_
    assert_array_equal(odd.predict_proba(rows), plain.predict_proba(rows))


def rows_at_two_points(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 4))[rng.integers(2, size=12)]


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
@pytest.mark.parametrize("seed", range(5))
def test_rows_at_two_points_are_fitted_or_refused_under_a_tiny_regularizer(kind, seed):
    """Rounding may make covariances of points regular, or too large to be squared."""
    X = rows_at_two_points(seed)
    mixture, message = kind(2, reg_covar=1e-300, random_state=0), None
    try:
        mixture.fit(X)
    except ValueError as error:
        message = str(error)
    if message is None:
        assert_finite(mixture, X)
    else:
        assert "Every covariance is singular" in message


@pytest.mark.parametrize("kind", [SparseGaussianMixture, StudentTMixture])
@pytest.mark.parametrize("seed", range(5))
def test_rows_at_two_points_have_no_common_covariance(kind, seed):
    mixture = kind(2, covariance_type="tied", reg_covar=1e-300, random_state=0)
    with pytest.raises(ValueError, match="The covariance of the data is singular"):
        mixture.fit(rows_at_two_points(seed))
