"""The version, and its stamp in pickles."""

import warnings
from typing import Any

__version__ = "0.1.0.dev0"


def stamp(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a pickled estimator with the version added."""
    return state | {"_skvmf_version": __version__}


def unstamp(state: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the state without its stamp; warn where it is of another minor release."""
    state = dict(state)
    version = state.pop("_skvmf_version", "unknown")
    if version.split(".")[:2] != __version__.split(".")[:2]:
        warnings.warn(
            f"This {name} was pickled with skvmf {version}, and this is {__version__}: fitted "
            "attributes may be missing or mean something else. Fit it again.",
            UserWarning,
            stacklevel=3,
        )
    return state
