"""Numba-accelerated, scikit-learn-compatible estimators for mixture models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .feature_extraction import FisherVectorTransformer
from .mixture import (
    ClusterTracker,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)

if TYPE_CHECKING:  # imported when they are asked for
    from . import datasets as datasets
    from . import distributions as distributions
    from . import families as families
    from . import grammar as grammar
    from . import inspection as inspection
    from . import model_selection as model_selection
    from . import neural as neural
    from . import plotting as plotting
    from . import preprocessing as preprocessing
    from . import testing as testing
    from .inspection import component_summary
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
_PACKAGES = [
    *("datasets", "distributions", "families", "feature_extraction", "grammar", "inspection"),
    *("mixture", "model_selection", "neural", "plotting", "preprocessing", "testing"),
]
_FROM = {"ComponentPath": "model_selection", "component_summary": "inspection"}


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES and name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        package = import_module(f".{_FROM.get(name, name)}", __name__)
    except ImportError as error:
        raise AttributeError(f"{__name__}.{name} cannot be imported: {error}") from error
    return getattr(package, name) if name in _FROM else package
