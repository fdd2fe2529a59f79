"""Checkpoints of a fit: what they hold, when they are written, and which fit continues."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import get_ident
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array, warn
from ..families.params import Params, as_dict
from .loop import EMState
from .mixture import Mixture, Point

Tree: TypeAlias = dict[str, Any]  # of dicts, lists, numbers, texts and arrays

# The entry of the archive that holds all but the arrays.
_TREE = "skvmf-checkpoint"

# Stands there in the place of an array: no field has this name.
_ARRAY = "is array"

# What reading a damaged archive may raise.
_DAMAGED: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    TypeError,
    ValueError,
)


def save(path: Path, tree: Tree) -> None:
    """Write a tree under another name first: the file is whole, old or new, at any moment."""
    arrays: dict[str, Array] = {}
    text = json.dumps(tree, default=partial(_without_arrays, arrays))
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
    if os.name == "posix":  # where folders can be synced, so that a new name lasts
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: Path) -> Tree:
    """Return the tree of a file with all bits; a ValueError if it is damaged, or no checkpoint."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = str(arrays.pop(_TREE))
        tree: Tree = json.loads(text, object_hook=partial(_with_array, arrays))
    except _DAMAGED as error:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint, or is truncated or damaged. The file was not "
            "changed: remove it to start from scratch, or give another path."
        ) from error
    return tree


def _unfinished(path: Path) -> Path:
    """Return the name under which a file is written, which is that of this thread alone."""
    return path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.tmp")


def _without_arrays(arrays: dict[str, Array], part: Any) -> object:
    """Return what JSON does not know as JSON has it, arrays by their names in `arrays`."""
    if not isinstance(part, np.ndarray):  # but a number of NumPy
        return part.item()
    name = str(len(arrays))
    arrays[name] = part
    return {_ARRAY: name}


def _with_array(arrays: dict[str, Array], part: Tree) -> Any:
    return arrays[part[_ARRAY]] if set(part) == {_ARRAY} else part


# The first write comes a second after the fit has begun: short fits write nothing. Fifty times as
# long as a write takes pass before the next one, so that writing costs two per cent.
_FIRST_WRITE = 1.0
_TIMES_WRITING = 50

# The name of what a warm start begins with, in the description of a fit.
WARM_START = "the warm start"

Description = dict[str, str]
# The runs of a start, one after the other: under a flat prior, as asked for but without limits on
# sizes, and within these.
FLAT_START, FREE, LIMITED = range(3)
Run = tuple[int, int]  # the number of a start, and which of its runs


class Checkpoint:
    """The file from which a fit continues, and which records how far it is: the state of one run.

    Starts, and earlier runs, are made again, bit-identical from one state of the generator. The
    bound that the data has at the parameters kept is its fingerprint. `description` returns what
    two runs of one fit have in common, by name.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        description: Callable[[], Description] = dict,
    ) -> None:
        self._path = None if path is None else _checked_path(path)
        self._due = perf_counter() + _FIRST_WRITE
        self._tree: Tree | None = None
        self._generator: Any = None
        if self._path is None:
            return
        self._header = description()
        if self._path.exists():
            self._tree = load(self._path)
            before = self._tree.get("header", {})
            now = self._header
            same = before | {WARM_START: ""} == now | {WARM_START: ""}
            if same and WARM_START in now and before.get(WARM_START) != now[WARM_START]:
                self._tree = None  # a warm start continues the file's fit, and takes the file
            else:
                _refuse_another_fit(self._path, before, now)

    def begin(self, rng: np.random.Generator) -> None:
        """Set the generator to where the fit began."""
        if self._tree is not None and self._tree["generator"] is not None:
            rng.bit_generator.state = self._tree["generator"]
        if self._path is not None:
            self._generator = rng.bit_generator.state

    def reached(self, mixture: Mixture, run: Run) -> EMState[Point] | None:
        """Return where a run continues; None for its beginning."""
        tree = self._tree
        if tree is None or run != tuple(tree["run"]):
            return None
        mixture = replace(mixture, family=type(mixture.family)(**tree["family"]))
        components_class = mixture.family.components_class
        point = Point(mixture, Params.from_dict(components_class, tree["params"]))
        best = point
        if tree["best"] is not None:
            best = point.at(Params.from_dict(components_class, tree["best"]))
        bounds = tree["bounds"].tolist()
        return EMState(point, bounds, tree["comparable"], (tree["step"], best))

    def writer(self, run: Run) -> Callable[[EMState[Point]], None]:
        """Return a function that takes the state of a run, and writes it when it is time to."""
        path = self._path
        expected = self._tree
        is_past = expected is not None and run < tuple(expected["run"])  # the file's run is later
        if path is None or is_past:
            return lambda state: None
        self._tree = None

        def write(state: EMState[Point]) -> None:
            nonlocal expected
            if expected is not None:
                _refuse_other_data(path, expected["bounds"][-1], state.bounds[-1])
                expected = None
            if perf_counter() >= self._due:
                self._write(path, run, state)

        return write

    def _write(self, path: Path, run: Run, state: EMState[Point]) -> None:
        assert state.best is not None
        best_step, best = state.best
        tree = {
            "header": self._header,
            "run": run,
            "generator": self._generator,
            "family": as_dict(state.point.family),
            "params": state.point.params.to_dict(),
            "step": best_step,
            "best": None if best is state.point else best.params.to_dict(),
            "bounds": np.array(state.bounds),
            "comparable": bool(state.comparable),
        }
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


def digest(tree: object) -> str:
    """Return a short text that tells a tree, or an array, from others."""
    arrays: dict[str, Array] = {}
    text = json.dumps(tree, default=partial(_without_arrays, arrays))
    whole = hashlib.sha256(text.encode())
    for array in arrays.values():
        kind = f"{array.dtype} {array.shape}"
        whole.update(kind.encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:12]


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise a ValueError."""
    given = str(path)
    try:
        path = Path(path).expanduser()
        if given == "" or path.is_dir():
            raise ValueError(f"checkpoint={given!r} should be the path of a file.")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError("it is read-only")
        unfinished = _unfinished(path)  # permissions do not tell of a folder that is a file
        unfinished.touch()
        unfinished.unlink()
    except (OSError, RuntimeError) as error:  # the latter where there is no home
        raise ValueError(f"checkpoint={given!r} cannot be written to: {error}.") from error
    return path


def _refuse_another_fit(path: Path, before: Description, now: Description) -> None:
    """Refuse a checkpoint of other parameters, data or versions, and say which."""
    names = [*now, *(name for name in before if name not in now)]
    pairs = [(name, before.get(name, "not known"), now.get(name, "not known")) for name in names]
    gaps = [f"{name} was {was} and is {is_now}" for name, was, is_now in pairs if was != is_now]
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
            "the same versions of NumPy and BLAS. Or give another path, or remove the file to "
            "start from scratch."
        )
