"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:  # else imported when they are asked for
    from . import datasets as datasets
    from . import distributions as distributions
    from . import families as families
    from . import feature_extraction as feature_extraction
    from . import grammar as grammar
    from . import inspection as inspection
    from . import mixture as mixture
    from . import model_selection as model_selection
    from . import neural as neural
    from . import plotting as plotting
    from . import preprocessing as preprocessing
    from . import testing as testing
    from .feature_extraction import FisherVectorTransformer
    from .inspection import component_summary
    from .mixture import (
        ClusterTracker,
        RelativeGMM,
        SparseGaussianMixture,
        StudentTMixture,
        VonMisesFisherMixture,
    )
    from .model_selection import ComponentPath

__all__ = [
    "ClusterTracker",
    "ComponentPath",
    "FisherVectorTransformer",
    "RelativeGMM",
    "SparseGaussianMixture",
    "StudentTMixture",
    "VonMisesFisherMixture",
    "__version__",
    "component_summary",
]

# Packages, and the homes of the names of `__all__`. They are imported when they are asked for, as
# those of SciPy and scikit-learn are: who fits one mixture need not wait for all.
_PACKAGES = [
    "datasets",
    "distributions",
    "families",
    "feature_extraction",
    "grammar",
    "inspection",
    "mixture",
    "model_selection",
    "neural",
    "plotting",
    "preprocessing",
    "testing",
]
_HOMES = {
    "ClusterTracker": "mixture",
    "ComponentPath": "model_selection",
    "FisherVectorTransformer": "feature_extraction",
    "RelativeGMM": "mixture",
    "SparseGaussianMixture": "mixture",
    "StudentTMixture": "mixture",
    "VonMisesFisherMixture": "mixture",
    "component_summary": "inspection",
}


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES and name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        package = import_module(f".{_HOMES.get(name, name)}", __name__)
    except ImportError as error:  # it needs a package that is not installed
        raise AttributeError(f"{__name__}.{name} cannot be imported: {error}") from error
    if name in _PACKAGES:
        return package
    return getattr(package, name)
