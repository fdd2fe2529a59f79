"""The checkpoint of a fit: what it holds, when it is written, and which fit may go on from it."""

import hashlib
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._engine.contracts.model_parts import Family
from .._engine.contracts.statistics import Params, Statistics
from .._engine.data.base import RowSource
from .._engine.em.checkpoint_file import load, n_bytes, save
from .._engine.em.loop import EMResult, EMState
from .._version import __version__
from ._attributes import as_dict

_WITHOUT_EFFECT = {"checkpoint", "verbose", "verbose_interval", "warm_start", "learning_decay"}
_SHARE = 50  # times as long as a write takes pass before the next
_SPEED, _LATENCY = 1e8, 0.02  # bytes a second and seconds that the first write may take


@dataclass(frozen=True)
class StartState:
    """Where in a fit a run of EM is.

    Parameters
    ----------
    index : int
        The number of the start.
    flat : bool
        Whether it is the run under a flat prior before.
    rng : RandomState or None
        What the next starts are drawn from.
    best : tuple of Family and EMResult, or None
        The best of the starts before.
    """

    index: int = 0
    flat: bool = False
    rng: np.random.RandomState | None = None
    best: tuple[Family, EMResult] | None = None


class Checkpoint:
    """The file from which a fit goes on, and to which it says how far it is.

    Starts are made again rather than kept: from one state of the generator they have the same
    bits. What is kept is of runs of EM.

    Parameters
    ----------
    estimator : BaseMixture
        Its `checkpoint` is the path, or None.
    rows : RowSource
        The data; the lower bound that it has at the parameters kept is its fingerprint.
    begins_with : Params or None
        What a warm start begins with.
    """

    def __init__(self, estimator: Any, rows: RowSource, begins_with: Params | None) -> None:
        self._estimator = estimator
        self._path = None if estimator.checkpoint is None else Path(estimator.checkpoint)
        self._due, self._began = 0.0, perf_counter()
        self._tree: dict[str, Any] | None = None
        if self._path is None:
            return
        self._header = _header(estimator, rows, begins_with)
        if self._path.exists():
            self._tree = load(self._path)
            _refuse_another_fit(self._path, self._tree.get("header", {}), self._header)
        elif not os.access(self._path.parent, os.W_OK):
            raise ValueError(
                f"checkpoint={str(self._path)!r}: {str(self._path.parent)!r} is no folder that "
                "can be written to."
            )

    def place(self, rng: np.random.RandomState) -> StartState | None:
        """Return where the fit goes on, None for the beginning; sets the generator, too."""
        tree = self._tree
        if tree is None:
            return None
        if self._estimator.random_state is None:
            rng = np.random.RandomState()  # the one of all NumPy is not ours to set
        generator = tree["generator"]
        if generator is not None:
            rng.set_state(generator)
        best = tree["best"]
        if best is not None:
            best = self._family(best["family"]), self._result(best)
        return StartState(tree["index"], tree["flat"], rng, best)

    def reached(self, place: StartState) -> tuple[Family, EMState] | None:
        """Return from where the run at a place goes on, once; None for its beginning."""
        tree = self._tree
        if tree is None or (place.index, place.flat) != (tree["index"], tree["flat"]):
            return None
        bounds = tree["bounds"].tolist()
        run = EMState(self._params(tree["params"]), bounds, tree["comparable"])
        return self._family(tree["family"]), run

    def keeper(self, family: Family, place: StartState) -> Callable[[EMState], None]:
        """Return what is told how far the run at a place is, and writes when it is time to."""
        if self._path is None:
            return lambda run: None
        expected, self._tree = self._tree, None
        path, first = self._path, True

        def keep(run: EMState) -> None:
            nonlocal first
            if first and expected is not None:
                _refuse_other_data(path, expected["bounds"][-1], run.bounds[-1])
            first = False
            self._write(path, lambda: self._described(family, place, run))

        return keep

    def _write(self, path: Path, describe: Callable[[], dict[str, Any]]) -> None:
        now = perf_counter()
        if now < self._due:
            return
        tree = describe()
        if self._due == 0:
            self._due = self._began + _SHARE * (_LATENCY + n_bytes(tree) / _SPEED)
            if now < self._due:
                return
        now = perf_counter()
        save(path, tree)
        after = perf_counter()
        self._due = after + _SHARE * (after - now)

    def _described(self, family: Family, place: StartState, run: EMState) -> dict[str, Any]:
        best = None
        if place.best is not None:
            result = place.best[1]
            best = {
                "family": as_dict(place.best[0]),
                "params": _params_dict(result.params),
                "bounds": np.array(result.bounds),
                "n_iter": result.n_iter,
                "converged": bool(result.converged),
                "stopped": bool(result.stopped),
                "stats": as_dict(result.stats) | {"buffers": None},
            }
        return {
            "header": self._header,
            "index": place.index,
            "flat": place.flat,
            "generator": None if place.rng is None else place.rng.get_state(),
            "family": as_dict(family),
            "params": _params_dict(run.params),
            "bounds": np.array(run.bounds),
            "comparable": bool(run.comparable),
            "best": best,
        }

    def _family(self, fields: dict[str, Any]) -> Family:
        family: Family = self._estimator._family_class(**fields)
        return family

    def _params(self, fields: dict[str, Any]) -> Params:
        components = self._estimator._components_class(**fields["components"])
        return Params(fields["weights"], components, fields["reseeded"], fields["on_floor"])

    def _result(self, best: dict[str, Any]) -> EMResult:
        stats = Statistics(**best["stats"])
        stats.moments = tuple(stats.moments)
        return EMResult(
            self._params(best["params"]),
            best["bounds"].tolist(),
            best["n_iter"],
            best["converged"],
            best["stopped"],
            stats,
        )


def _params_dict(params: Params) -> dict[str, Any]:
    return as_dict(params) | {"components": as_dict(params.components)}


def _header(estimator: Any, rows: RowSource, begins_with: Params | None) -> dict[str, Any]:
    """Return what two runs of one fit have in common, by name."""
    params = estimator.get_params(deep=False)
    return {
        "versions": {
            "skvmf": __version__,
            "the machine": platform.machine(),
        }
        | {name: version(name) for name in ("numpy", "scipy", "numba")},
        "parameters": {"the estimator": type(estimator).__name__}
        | {name: _told(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
        | {"the warm start": None if begins_with is None else _digest(begins_with.weights)},
        "data": {
            "the number of rows": rows.n_rows,
            "the number of features": rows.n_features,
            "the dtype": rows.dtype.name,
        },
    }


def _told(value: Any) -> str:
    """Return a parameter as a short text that tells it from others."""
    if isinstance(value, np.random.RandomState):
        state = value.get_state(legacy=False)["state"]
        return f"RandomState {_digest(state['key'])} at {state['pos']}"
    if isinstance(value, str | tuple) or np.ndim(value) == 0:
        return repr(value.item() if isinstance(value, np.generic) else value)
    array = np.asarray(value)
    return f"array of shape {array.shape} {_digest(array)}"


def _digest(array: Any) -> str:
    array = np.ascontiguousarray(array)
    return hashlib.sha256(str(array.dtype).encode() + array.tobytes()).hexdigest()[:12]


def _refuse_another_fit(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a checkpoint of other parameters, data or versions, and say which."""
    gaps = []
    for part, values in now.items():
        old = before.get(part, {})
        for name in sorted(set(values) | set(old), key=str):
            was, is_now = old.get(name, "not known"), values.get(name, "not known")
            if was != is_now:
                gaps.append(f"{name} was {was} and is {is_now}")
    if gaps:
        raise ValueError(
            f"checkpoint={str(path)!r} is of another fit: {'; '.join(gaps)}. It is left as it is: "
            "put back what has changed to go on, or give another path, or remove the file to "
            "start afresh."
        )


def _refuse_other_data(path: Path, before: float, now: float) -> None:
    """Refuse data in which the parameters kept have another lower bound."""
    if before != now:
        raise ValueError(
            f"checkpoint={str(path)!r} is of other data: its parameters had the lower bound "
            f"{before!r} and have {now!r} now. It is left as it is: give X and sample_weight as "
            "they were, on the same type of processor and with the same BLAS, to go on; or give "
            "another path, or remove the file to start afresh."
        )
