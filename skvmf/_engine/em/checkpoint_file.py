"""Checkpoints: a tree of numbers, texts and arrays in one file that is whole at any moment."""

import json
import os
import zipfile
import zlib
from pathlib import Path
from threading import get_ident
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array

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
