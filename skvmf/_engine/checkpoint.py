"""Checkpoints of a fit: what they hold, when they are written, and which fit continues."""

import json
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import get_ident
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from .._typing import Array, warn
from .contracts import AnyFamily, EMState, Params, Statistics, as_dict
from .model import Mixture, MixtureResult

# Checkpoints: a tree of numbers, texts and arrays in one file that is whole at any moment.


Tree: TypeAlias = dict[str, Any]  # of dicts, lists, numbers, texts and arrays

_TREE = "skvmf-checkpoint"  # the entry that holds all but the arrays
_ARRAY = "is array"  # stands there in the place of one, as no field is called
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    TypeError,
    ValueError,
)


def save(path: Path, tree: Tree) -> None:
    """Write a tree, so that the file is the old one or the new one wherever a process dies.

    Under another name in its folder first, so that two fits may write to one path.
    """
    arrays: dict[str, Array] = {}
    text = json.dumps(_without_arrays(tree, arrays))
    unfinished = _unfinished(path)
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, **{_TREE: np.array(text)}, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def try_writing(path: Path) -> None:
    """Make the file that a write begins with, and remove it; raises an OSError if it cannot be.

    Permissions alone do not tell: not of a folder that is a file, nor of a name too long.
    """
    unfinished = _unfinished(path)
    unfinished.touch()
    unfinished.unlink()


def load(path: Path) -> Tree:
    """Return the tree of a file; arrays and numbers have their bits.

    Raises a ValueError where the file is damaged, or no checkpoint.
    """
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        tree: Tree = _with_arrays(json.loads(str(arrays.pop(_TREE))), arrays)
    except _DAMAGED as error:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint, or is truncated or damaged. The file was not "
            "changed: remove it to start from scratch, or give another path."
        ) from error
    return tree


def n_bytes(tree: object) -> int:
    """Return about how large the file of a tree is."""
    if isinstance(tree, dict | list | tuple):
        parts = tree.values() if isinstance(tree, dict) else tree
        return sum(n_bytes(part) for part in parts)
    return int(getattr(tree, "nbytes", 32))


def _unfinished(path: Path) -> Path:
    """Return the name under which a file is written, which is that of this thread alone."""
    return path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.tmp")


def _without_arrays(part: object, arrays: dict[str, Array]) -> object:
    """Return a part of the tree as JSON has it, with its arrays moved to `arrays`."""
    if isinstance(part, dict):
        return {name: _without_arrays(value, arrays) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_without_arrays(value, arrays) for value in part]
    if isinstance(part, np.ndarray):
        name = str(len(arrays))
        arrays[name] = part
        return {_ARRAY: name}
    return part.item() if isinstance(part, np.generic) else part


def _with_arrays(part: object, arrays: dict[str, Array]) -> Any:
    if isinstance(part, list):
        return [_with_arrays(value, arrays) for value in part]
    if not isinstance(part, dict):
        return part
    if set(part) == {_ARRAY}:
        return arrays[part[_ARRAY]]
    return {name: _with_arrays(value, arrays) for name, value in part.items()}


def _sync_folder(folder: Path) -> None:
    """See that a new name lasts, where the system has folders that can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# The checkpoint of a fit: what it holds, when it is written, and which fit continues from it.


_TIMES_WRITING = 50  # times as long as a write takes pass before the next
_BYTES_PER_SECOND, _LATENCY = 1e8, 0.02  # what the first write may take, in seconds

Description = dict[str, Tree]


@dataclass(frozen=True)
class StartState:
    """Where in a fit a run of EM is."""

    index: int = 0  # the number of the start
    flat: bool = False  # whether it is the run under a flat prior before
    rng: np.random.RandomState | None = None  # of the next starts
    best: tuple[AnyFamily, MixtureResult] | None = None  # of the starts before


class Checkpoint:
    """The file from which a fit continues, and which records how far it is.

    Starts are made again rather than kept: from one state of the generator they are
    bit-identical. What is kept is of runs of EM. The lower bound that the data has at the
    parameters kept is its fingerprint. `description` returns what two runs of one fit have in
    common: values by name, by part.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        description: Callable[[], Description] = dict,
    ) -> None:
        self._path = None if path is None else _checked_path(path)
        self._due, self._began = 0.0, perf_counter()
        self._tree: Tree | None = None
        if self._path is None:
            return
        self._header = description()
        if self._path.exists():
            self._tree = load(self._path)
            header = self._tree.get("header", {})
            if _continues_finished_fit(header, self._header):
                self._tree = None
            else:
                _refuse_another_fit(self._path, header, self._header)

    def start_state(self, spec: Mixture, rng: np.random.RandomState) -> StartState | None:
        """Return where the fit continues, None for the beginning; sets the generator, too."""
        tree = self._tree
        if tree is None:
            return None
        if tree["generator"] is not None:
            rng.set_state(tree["generator"])
        best = tree["best"]
        if best is not None:
            best = _family(spec, best["family"]), _result(spec, best)
        return StartState(tree["index"], tree["flat"], rng, best)

    def reached(self, spec: Mixture, state: StartState) -> tuple[Mixture, EMState[Params]] | None:
        """Return where the run at a state continues, once; None for its beginning."""
        tree = self._tree
        if tree is None or (state.index, state.flat) != (tree["index"], tree["flat"]):
            return None
        bounds = tree["bounds"].tolist()
        run = EMState(_params(spec, tree["params"]), bounds, tree["comparable"])
        return replace(spec, family=_family(spec, tree["family"])), run

    def keeper(self, family: AnyFamily, state: StartState) -> Callable[[EMState[Params]], None]:
        """Return a function that takes the state of a run, and writes it when it is time to."""
        if self._path is None:
            return lambda run: None
        expected, self._tree = self._tree, None
        path, first = self._path, True

        def keep(run: EMState[Params]) -> None:
            nonlocal first
            if first and expected is not None:
                _refuse_other_data(path, expected["bounds"][-1], run.bounds[-1])
            first = False
            self._write(path, lambda: self._described(family, state, run))

        return keep

    def _write(self, path: Path, describe: Callable[[], Tree]) -> None:
        now = perf_counter()
        if now < self._due:
            return
        tree = describe()
        if self._due == 0:
            seconds = _LATENCY + n_bytes(tree) / _BYTES_PER_SECOND
            self._due = self._began + _TIMES_WRITING * seconds
            if now < self._due:
                return
        now = perf_counter()
        try:
            save(path, tree)
        except OSError as error:
            warn(
                f"checkpoint={str(path)!r} could not be written ({error}). The fit continues and "
                "tries again later. An earlier checkpoint was not changed.",
                RuntimeWarning,
            )
        after = perf_counter()
        self._due = after + _TIMES_WRITING * (after - now)

    def _described(self, family: AnyFamily, state: StartState, run: EMState[Params]) -> Tree:
        best = None
        if state.best is not None:
            result = state.best[1]
            best = {
                "family": as_dict(state.best[0]),
                "params": result.params.to_dict(),
                "bounds": np.array(result.bounds),
                "n_iter": result.n_iter,
                "converged": bool(result.converged),
                "stopped": bool(result.stopped),
                "stats": as_dict(result.stats) | {"buffers": None},
            }
        return {
            "header": self._header,
            "index": state.index,
            "flat": state.flat,
            "generator": None if state.rng is None else state.rng.get_state(legacy=False),
            "family": as_dict(family),
            "params": run.params.to_dict(),
            "bounds": np.array(run.bounds),
            "comparable": bool(run.comparable),
            "best": best,
        }


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise a ValueError."""
    given = str(path)
    try:
        path = Path(path).expanduser()
        if given == "" or path.is_dir():
            raise ValueError(f"checkpoint={given!r} should be the path of a file.")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError("it is read-only")
        try_writing(path)
    except (OSError, RuntimeError) as error:  # the latter where there is no home
        raise ValueError(f"checkpoint={given!r} cannot be written to: {error}.") from error
    return path


def _continues_finished_fit(before: Description, now: Description) -> bool:
    """Return whether a warm start continues the fit of the checkpoint.

    The file is then of no more use, and that of the new fit takes its place.
    """
    if before.get("start") == now["start"] or now["start"] == {"the warm start": None}:
        return False
    return before | {"start": None} == now | {"start": None}


def _family(spec: Mixture, fields: Tree) -> AnyFamily:
    return type(spec.family)(**fields)


def _params(spec: Mixture, fields: Tree) -> Params:
    return Params.from_dict(spec.family.components_class, fields)


def _result(spec: Mixture, best: Tree) -> MixtureResult:
    stats = Statistics(**best["stats"])
    stats.moments = tuple(stats.moments)
    return MixtureResult(
        _params(spec, best["params"]),
        best["bounds"].tolist(),
        best["n_iter"],
        best["converged"],
        best["stopped"],
        stats,
    )


def _refuse_another_fit(path: Path, before: Tree, now: Tree) -> None:
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
            f"checkpoint={str(path)!r} is of another fit: {'; '.join(gaps)}. The file was not "
            "changed. Undo these changes to continue, give another path, or remove the file to "
            "start from scratch."
        )


def _refuse_other_data(path: Path, before: float, now: float) -> None:
    """Refuse data in which the parameters kept have another lower bound."""
    if before != now:
        raise ValueError(
            f"checkpoint={str(path)!r} is of other data: its parameters had the lower bound "
            f"{float(before)!r} and have {float(now)!r} now. The file was not changed. To "
            "continue, give the same X and sample_weight, on the same type of processor and with "
            "the same BLAS. Or give another path, or remove the file to start from scratch."
        )
