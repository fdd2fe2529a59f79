"""One small fit of every estimator: with compiled kernels, and with NUMBA_DISABLE_JIT=1 without.

Kernels as plain Python are checked by NumPy as they run, and can be measured for coverage.
"""

import sys
from functools import wraps
from inspect import isfunction
from itertools import product

import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize

from skvmf import (
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.grammar import DependencyModelWithValence

POSTERIORS = [{}, {"temperature": 0}, {"entmax_alpha": 1.5}]
LABELS = np.repeat([0, 1], 10)
X = np.random.default_rng(0).normal(scale=0.2, size=(20, 3)) + 2 * np.eye(2, 3)[LABELS]


def watched(kernel):
    """Let a kernel tell where what it has written to overlaps another of its arguments."""

    @wraps(kernel)
    def call(*args, **options):
        parts = [
            part
            for arg in (*args, *options.values())
            for part in (arg if isinstance(arg, tuple) else (arg,))
        ]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        before = [array.copy() for array in arrays]
        result = kernel(*args, **options)
        for i, array in enumerate(arrays):
            if not np.array_equal(array, before[i], equal_nan=array.dtype.kind == "f"):
                others = arrays[:i] + arrays[i + 1 :]
                assert not any(np.shares_memory(array, other) for other in others), kernel
        return result

    return call


@pytest.fixture(autouse=True)
def kernels_write_to_nothing_else(monkeypatch):
    """Compiled, most kernels rely on it."""
    if not numba.config.DISABLE_JIT:
        return
    for module in [one for name, one in sys.modules.items() if name.startswith("skvmf.")]:
        for name, result in list(vars(module).items()):
            home = getattr(result, "__module__", "")
            if isfunction(result) and home.startswith("skvmf._kernels") and home[-4:] != "_jit":
                monkeypatch.setattr(module, name, watched(result))


def test_an_overlap_is_told():
    X = np.arange(6.0)
    watched(np.copyto)(X[:2], X[2:4])
    with pytest.raises(AssertionError):
        watched(np.copyto)(X[:3], X[2:5])


def with_gaps(X):
    """Return rows of which some values are missing."""
    return np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)


DIRECTIONS = [VonMisesFisherMixture(2, **posterior) for posterior in POSTERIORS]
OTHERS = [
    *(VonMisesFisherMixture(2, negentropy=route) for route in ("ode", "rational", "newton")),
    *(
        SparseGaussianMixture(2, covariance_type=kind, weight_floor=1e-3, **posterior)
        for kind in ("full", "tied", "diag", "spherical")
        for posterior in POSTERIORS
    ),
    *(
        StudentTMixture(2, degrees_of_freedom=dof, tol=1e-2, **posterior)
        for dof in (3.0, "estimated")
        for posterior in POSTERIORS
    ),
    *(RelativeGMM(solver=solver, tol=1e-2, max_iter=1000) for solver in ("ecm", "em")),
]
CASES = [*product(DIRECTIONS, [np.asarray, sparse.csr_array, np.float32])]
CASES += [(mixture, np.asarray) for mixture in OTHERS]
CASES += [
    (SparseGaussianMixture(2, covariance_type=shape, missing_values="marginal"), with_gaps)
    for shape in ("full", "diag")
]


@pytest.mark.parametrize(
    ("mixture", "cast"), CASES, ids=lambda part: getattr(part, "__name__", str(part))
)
def test_a_mixture_finds_the_groups(mixture, cast):
    rows = cast(X)
    fitted = mixture.set_params(random_state=0).fit(rows).predict(rows)
    assert np.array_equal(fitted, LABELS) or np.array_equal(fitted, 1 - LABELS)
    np.testing.assert_allclose(mixture.predict_proba(rows).sum(axis=1), 1, rtol=1e-6)
    assert np.isfinite(mixture.score_samples(rows)).all()
    assert mixture.sample(3)[0].shape == (3, 3)


@pytest.mark.parametrize("geometry", ["euclidean", "tangent"])
def test_fisher_vector_transformer(geometry):
    counts = sparse.csr_array(np.random.default_rng(1).integers(3, size=(5, 20)))
    transformer = FisherVectorTransformer(
        VonMisesFisherMixture(2, random_state=0), embeddings=X, geometry=geometry
    )
    vectors = transformer.fit_transform(counts.astype(float))
    np.testing.assert_allclose(vectors, normalize(vectors))
    baseline = FisherVectorTransformer(
        SparseGaussianMixture(2, covariance_type="diag", random_state=0),
        embeddings=X,
        gradients=("means", "variances"),
    )
    assert baseline.fit_transform(counts.astype(float)).shape == (5, 12)


@pytest.mark.parametrize("inference", ["map", "mean-field"])
def test_dependency_model(inference):
    sentences = [["D", "N", "V"], ["N", "V"], ["D", "N", "V", "D", "N"]]
    model = DependencyModelWithValence(inference=inference, max_iter=3, tol=1e9).fit(sentences)
    for heads, tags in zip(model.predict(sentences), sentences, strict=True):
        assert len(heads) == len(tags)
        assert (heads == 0).sum() == 1
    assert np.isfinite(model.score(sentences))
