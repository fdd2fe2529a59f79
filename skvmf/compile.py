"""Compile ahead of the first fit, for images and continuous integration.

``python -m skvmf.compile`` runs small fits of all mixtures to all kinds of data. Numba compiles
what they need and caches it, so that later processes do not wait for it.
"""

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ._typing import Array, MatrixLike
from .feature_extraction import FisherVectorTransformer
from .mixture import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture

GaussianMixture = SparseGaussianMixture | StudentTMixture | RelativeGMM
# A first step and one that follows another call every kernel of a fit.
SHORT_FIT: dict[str, Any] = {"max_iter": 2, "random_state": 0}
# Together, they call all kernels of directions.
DIRECTIONAL_OPTIONS: list[dict[str, Any]] = [
    *({"entmax_alpha": alpha} for alpha in (1.0, 1.5, 2.0)),
    *({"temperature": 0}, {"init_params": "kmeans"}, {"background": True}),
]


def main() -> None:
    """Compile, and print what was done."""
    parser = argparse.ArgumentParser(
        prog="python -m skvmf.compile",
        description=(
            "Compile what fits and predictions of mixtures and Fisher vectors need, and cache it, "
            "so that later processes do not wait for it. This takes a minute or two. Numba's "
            "cache is beside the package, or where the environment variable NUMBA_CACHE_DIR says."
        ),
    )
    parser.parse_args()
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Fits of two steps do not converge.
        warnings.simplefilter("ignore")
        fit_all()
    n_compiled, n_cached, folder = counts()
    seconds = time.perf_counter() - start
    print(f"{n_compiled} functions compiled, {n_cached} found in the cache; {seconds:.0f} seconds.")
    if folder is None:
        print("No folder can be written to.")
    else:
        print(f"The cache is in {folder}")


def fit_all() -> None:
    """Fit every kind of mixture to every kind of data, and use what was fitted."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(120, 6))
    # Where means are far apart, each component takes its own rows, by other kernels.
    far = near + 1e4 * (np.arange(120) % 3)[:, None]
    for dtype in np.float32, np.float64:
        X = near.astype(dtype)
        for options in DIRECTIONAL_OPTIONS:
            for rows in X, csr_array(X):
                use(VonMisesFisherMixture(3, **options, **SHORT_FIT), rows)

        gaussians: list[GaussianMixture] = [RelativeGMM(3, **SHORT_FIT)]
        for kind in "spherical", "diag", "tied", "full":
            gaussians.append(SparseGaussianMixture(3, covariance_type=kind, **SHORT_FIT))
            gaussians.append(StudentTMixture(3, covariance_type=kind, **SHORT_FIT))
        diagonal = SHORT_FIT | {"covariance_type": "diag"}
        gaussians += [SparseGaussianMixture(3, entmax_alpha=a, **diagonal) for a in (1.5, 2.0)]
        for gaussian in gaussians:
            use(gaussian, X)
            use(gaussian, far.astype(dtype))
        _use_missing_values(X)

        bags = [X[:50], X[50:]]
        for mixture in VonMisesFisherMixture(2, **SHORT_FIT), SparseGaussianMixture(2, **diagonal):
            FisherVectorTransformer(mixture).fit_transform(bags)
    # Rows of float16 become float32 as they are read.
    use(VonMisesFisherMixture(3, **SHORT_FIT), near.astype(np.float16))


def _use_missing_values(X: Array) -> None:
    """Fit mixtures to rows of which values are missing, and fill these."""
    X = X.copy()
    # Few patterns with many rows, and many with few, have kernels of their own.
    X[::2, 0] = np.nan
    X[np.arange(1, 31, 2), np.arange(15) % 5 + 1] = np.nan
    for kind in "full", "diag":
        options = SHORT_FIT | {"covariance_type": kind, "missing_values": "marginal"}
        for mixture in SparseGaussianMixture(3, **options), StudentTMixture(3, **options):
            use(mixture, X)
            mixture.impute(X)


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
    # A private kernel is compiled as a part of those that call it, which count.
    statistics = [kernel.stats for kernel in kernels if not kernel.__name__.startswith("_")]
    n_compiled = sum(sum(each.cache_misses.values()) for each in statistics)
    n_cached = sum(sum(each.cache_hits.values()) for each in statistics)
    folder = next((each.cache_path for each in statistics if each.cache_path), None)
    return n_compiled, n_cached, folder


if __name__ == "__main__":
    main()
