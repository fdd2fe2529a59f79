"""Compile ahead of the first fit, for images and continuous integration.

``python -m skvmf.compile`` runs small fits of all mixtures to all kinds of data. Numba compiles
what they need and caches it, so that later processes do not wait for it.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ._typing import MatrixLike
from .feature_extraction import FisherVectorTransformer
from .mixture import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

GaussianMixture = SparseGaussianMixture | StudentTMixture | RelativeGMM
FEW: dict[str, Any] = {"max_iter": 2, "random_state": 0}
DIRECTIONAL: list[dict[str, Any]] = [
    *({"entmax_alpha": alpha} for alpha in (1.0, 1.5, 2.0)),
    *({"temperature": 0}, {"init_params": "kmeans"}, {"background": True}),
]


def main() -> None:
    """Compile, and print what was done."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of two steps do not converge
        fit_all()
    n_compiled, n_cached, folder = counts()
    seconds = time.perf_counter() - start
    print(f"{n_compiled} functions compiled, {n_cached} found in the cache; {seconds:.0f} seconds.")
    print(f"The cache is in {folder}" if folder else "No folder can be written to.")


def fit_all() -> None:
    """Fit every kind of mixture to every kind of data, and use what was fitted."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(120, 6))
    far = near + 1e4 * (np.arange(120) % 3)[:, None]
    for dtype in np.float32, np.float64:
        X = near.astype(dtype)
        for options in DIRECTIONAL:
            for rows in X, csr_array(X):
                use(VonMisesFisherMixture(3, **options, **FEW), rows)
        gaussians: list[GaussianMixture] = [RelativeGMM(3, **FEW)]
        for kind in "spherical", "diag", "tied", "full":
            gaussians.append(SparseGaussianMixture(3, covariance_type=kind, **FEW))
            gaussians.append(StudentTMixture(3, covariance_type=kind, **FEW))
        for alpha in 1.5, 2.0:
            sparse = SparseGaussianMixture(3, covariance_type="diag", entmax_alpha=alpha, **FEW)
            gaussians.append(sparse)
        for gaussian in gaussians:
            use(gaussian, X)
            use(gaussian, far.astype(dtype))
        for mixture in (
            VonMisesFisherMixture(2, **FEW),
            SparseGaussianMixture(2, covariance_type="diag", **FEW),
        ):
            FisherVectorTransformer(mixture).fit_transform([X[:50], X[50:]])
    use(VonMisesFisherMixture(3, **FEW), near.astype(np.float16))


def use(mixture: VonMisesFisherMixture | GaussianMixture, X: MatrixLike) -> None:
    """Fit a mixture, and predict."""
    mixture.fit(X)
    for method in mixture.predict, mixture.predict_proba, mixture.score_samples:
        method(X)


def counts() -> tuple[int, int, str | None]:
    """Return how many functions were compiled and found in the cache, and where that is."""
    kernels = [
        kernel
        for name, module in sys.modules.items()
        if name.startswith("skvmf._kernels.")
        for kernel in vars(module).values()
        if getattr(kernel, "__module__", None) == name and hasattr(kernel, "stats")
    ]
    stats = [kernel.stats for kernel in kernels if not kernel.__name__.startswith("_")]
    folders = [kept.cache_path for kept in stats if kept.cache_path]
    misses = sum(sum(kept.cache_misses.values()) for kept in stats)
    hits = sum(sum(kept.cache_hits.values()) for kept in stats)
    return misses, hits, folders[0] if folders else None


if __name__ == "__main__":
    main()
