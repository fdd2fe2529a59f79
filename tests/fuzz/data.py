"""Hostile data, and hostile things to give to a constructor, by name and seed.

Everything is a small frozen dataclass whose repr is the code that makes it again.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..csr_forms import halved, unsorted

KINDS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "clusters": lambda rng, n, d: rng.normal(size=(n, d)) + 9 * rng.integers(-1, 2, size=(n, 1)),
    "grid": lambda rng, n, d: rng.integers(-1, 2, size=(n, d)) / 3,
    "few points": lambda rng, n, d: rng.normal(size=(2, d))[rng.integers(2, size=n)],
    "equal rows": lambda rng, n, d: np.tile(rng.normal(size=d), (n, 1)),
    "constant column": lambda rng, n, d: rng.normal(size=(n, d)) * (np.arange(d) > 0) + 1,
    "line": lambda rng, n, d: rng.normal(size=(n, 1)) * rng.normal(size=d),
    "axes": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
    "counts": lambda rng, n, d: rng.poisson(0.4, size=(n, d)).astype(float),
    "near duplicates": lambda rng, n, d: 1 + 1e-15 * rng.integers(0, 3, size=(n, d)),
    "any magnitude": lambda rng, n, d: (
        rng.normal(size=(n, d)) * 10.0 ** rng.integers(-99, 99, (n, 1))
    ),
    "one far row": lambda rng, n, d: (
        rng.normal(size=(n, d)) * np.where(np.arange(n) == 0, 1e9, 1)[:, None]
    ),
}

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: np.broadcast_to(X, X.shape),
}

SPARSE_LAYOUTS = {
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csr unsorted": unsorted,
    "csr explicit zeros": lambda X: _all_stored(X),
    "csr duplicates": halved,
    "csc": sparse.csc_array,
}


@dataclass(frozen=True)
class Data:
    """Rows: a kind of numbers, scaled, moved, and laid out in memory."""

    kind: str = "normal"
    n: int = 20
    d: int = 3
    seed: int = 0
    scale: float = 1.0
    offset: float = 0.0
    zero_rows: int = 0
    dtype: str = "float64"
    layout: str = "C"
    missing: float = 0.0

    def whole(self):
        X = KINDS[self.kind](np.random.default_rng(self.seed), self.n, self.d)
        with np.errstate(over="ignore"):
            X = X * self.scale + self.offset
        X[: self.zero_rows] = 0
        return cast(X, self.dtype)

    def dense(self):
        X = self.whole()
        if self.missing:
            X[np.random.default_rng(self.seed).random(X.shape) < self.missing] = np.nan
        return X

    def make(self):
        return (LAYOUTS | SPARSE_LAYOUTS)[self.layout](self.dense())

    @property
    def is_sparse(self):
        return self.layout in SPARSE_LAYOUTS


WEIGHTS = {
    "ones": lambda rng, n: np.ones(n),
    "uniform": lambda rng, n: rng.uniform(0.5, 1.5, size=n),
    "some zeros": lambda rng, n: rng.uniform(0.5, 1.5, size=n) * rng.integers(0, 2, size=n),
    "one row": lambda rng, n: np.eye(n)[rng.integers(n)],
    "counts": lambda rng, n: rng.integers(0, 4, size=n),
    "any magnitude": lambda rng, n: 10.0 ** rng.integers(-12, 12, size=n),
    "extreme": lambda rng, n: 10.0 ** rng.integers(-300, 290, size=n),
}


@dataclass(frozen=True)
class Weights:
    """Sample weights."""

    kind: str = "ones"
    seed: int = 0
    scale: float = 1.0
    dtype: str = "float64"

    def make(self, n):
        weights = WEIGHTS[self.kind](np.random.default_rng(self.seed), n)
        with np.errstate(over="ignore"):
            return cast(weights * self.scale, self.dtype)


@dataclass(frozen=True)
class Known:
    """Known components of a share of the rows: the nearest of some rows, or the background."""

    share: float = 0.3
    seed: int = 0

    def make(self, X, K, background):
        rng, rows = np.random.default_rng(self.seed), np.nan_to_num(X.astype(float))
        centres = rows[rng.integers(len(rows), size=K)]
        with np.errstate(over="ignore"):
            labels = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        if background:
            labels[rng.random(len(rows)) < 0.2] = -2
        return np.where(rng.random(len(rows)) < self.share, labels, -1)


# What a constructor takes beside numbers and names: made for data X and K components.


@dataclass(frozen=True)
class Labels:
    """A first partition, of which every component has a row if there are enough."""

    seed: int = 0

    def make(self, X, K, params):
        rng = np.random.default_rng(self.seed)
        labels = np.arange(X.shape[0]) % K
        return rng.permutation(labels)


@dataclass(frozen=True)
class Responsibilities:
    """A soft first partition; `zeros` is the share of exact zeros."""

    seed: int = 0
    zeros: float = 0.0
    scale: float = 1.0

    def make(self, X, K, params):
        rng = np.random.default_rng(self.seed)
        resp = rng.dirichlet(np.ones(K), size=X.shape[0])
        return resp * (rng.random(resp.shape) >= self.zeros) * self.scale


@dataclass(frozen=True)
class RowsAsMeans:
    """First means: rows of the data, moved."""

    seed: int = 0
    shift: float = 0.0

    def make(self, X, K, params):
        rng = np.random.default_rng(self.seed)
        rows = X[rng.integers(X.shape[0], size=K)].astype(np.float64)
        return rows + self.shift * rng.normal(size=rows.shape)


@dataclass(frozen=True)
class Simplex:
    """First weights, `zeros` of them zero as far as one is left."""

    seed: int = 0
    zeros: int = 0

    def make(self, X, K, params):
        weights = np.random.default_rng(self.seed).dirichlet(np.ones(K))
        weights[: min(self.zeros, K - 1)] = 0
        return weights / weights.sum()


@dataclass(frozen=True)
class Range:
    """A number for each component, equally far apart."""

    low: float = -2.0
    high: float = 3.0

    def make(self, X, K, params):
        return np.linspace(self.low, self.high, K)


@dataclass(frozen=True)
class Precisions:
    """First precisions or scale matrices in the shape that `covariance_type` asks for."""

    seed: int = 0
    size: float = 1.0

    def make(self, X, K, params):
        rng, d = np.random.default_rng(self.seed), X.shape[1]
        kind = params.get("covariance_type", "full")
        if kind in ("diag", "spherical"):
            return self.size * rng.uniform(0.5, 2, size=(K, d) if kind == "diag" else K)
        roots = rng.normal(size=(K, d, d))
        matrices = self.size * (roots @ np.swapaxes(roots, 1, 2) + np.eye(d))
        return matrices if kind == "full" else matrices[0]


def resolve(params, X):
    """Return constructor parameters with all that is to be made for the data made."""
    K = params.get("n_components", 2)
    return {
        name: value.make(X, K, params) if hasattr(value, "make") else value
        for name, value in params.items()
    }


def cast(X, dtype):
    """Return numbers in another type, the nearest that it holds; of bool, whether positive."""
    if dtype == "bool":
        return X > 0
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return np.clip(X, limits.min, limits.max).astype(dtype)


def _all_stored(X):
    n, d = X.shape
    indices, indptr = np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)
    return sparse.csr_array((X.ravel(), indices, indptr), shape=X.shape)
