"""Warnings that point to the user's line, not to one of this package."""

import sys
import warnings

_HOUSES = {"skvmf", "sklearn", "joblib"}  # what stands between a fit and who asked for it


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the name and line of the first caller outside skvmf, scikit-learn and joblib."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _house(frame.f_globals) in _HOUSES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _house(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
