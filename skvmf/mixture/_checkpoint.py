"""What two runs of one fit have in common, so that the second may resume from the first."""

import hashlib
import platform
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from .._engine.checkpoint import Description
from .._engine.contracts import Params
from .._engine.rows import RowSource
from .._version import __version__

_WITHOUT_EFFECT = {"checkpoint", "verbose", "verbose_interval", "warm_start", "learning_decay"}


def fit_description(
    estimator: str, params: dict[str, object], rows: RowSource, begins_with: Params | None
) -> Description:
    """Return what two runs of one fit have in common, by name."""
    return {
        "versions": {
            "skvmf": __version__,
            "the machine": platform.machine(),
        }
        | {name: version(name) for name in ("numpy", "scipy", "numba")},
        "parameters": {"the estimator": estimator}
        | {name: _as_text(value) for name, value in params.items() if name not in _WITHOUT_EFFECT},
        "start": {"the warm start": None if begins_with is None else _digest(begins_with.weights)},
        "data": {
            "the number of rows": rows.n_rows,
            "the number of features": rows.n_features,
            "the dtype": rows.dtype.name,
        },
    }


def _as_text(value: Any) -> str:
    """Return a parameter as a short text that tells it from others."""
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state(legacy=False)
        parts = state["state"].values()  # arrays and numbers, as the bit generator has them
        texts = [_digest(part) if isinstance(part, np.ndarray) else str(part) for part in parts]
        return f"RandomState {state['bit_generator']} {_digest(np.array(texts))}"
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real):
        return f"{float(value):.17g}"  # 1 and 1.0 are the same
    if isinstance(value, str | tuple) or np.ndim(value) == 0:
        return repr(value.item() if isinstance(value, np.generic) else value)
    array = np.asarray(value)
    return f"array of shape {array.shape} {_digest(array)}"


def _digest(array: Any) -> str:
    array = np.ascontiguousarray(array)
    return hashlib.sha256(str(array.dtype).encode() + array.tobytes()).hexdigest()[:12]
