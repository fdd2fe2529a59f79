"""Checkpoints as files: they are whole, and hold bits."""

import json
import os
import re

import numpy as np
import pytest

from skvmf._engine.em import checkpoint
from skvmf._engine.em.checkpoint import load, save

TREE = {
    "numbers": [1, 2.5, 1e-300, float("inf"), 0.1 + 0.2, np.float64(1 / 3), np.int64(7)],
    "truth": [True, False, np.bool_(True), None],
    "text": "mu",
    "empty": {},
    "deep": {"array": {"of": [np.arange(3), {"more": np.float32([[1.5, -0.0]])}]}},
    "fortran": np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4))),
    "none": np.zeros((0, 2)),
    "zero": np.array(2.5),
}


FILES = r"fit\.npz(\.\d+-\d+\.tmp)?"  # a checkpoint, and what is not yet one


def leaves(tree):
    """Return what a tree is made of, down to types, bits and the order of arrays."""
    if isinstance(tree, dict):
        return {name: leaves(part) for name, part in tree.items()}
    if isinstance(tree, list):
        return [leaves(part) for part in tree]
    if isinstance(tree, np.ndarray):
        return tree.dtype, tree.shape, tree.flags.f_contiguous, tree.tobytes()
    return type(tree), tree


def test_a_tree_comes_back_with_its_bits(tmp_path):
    path = tmp_path / "fit.npz"
    save(path, TREE)
    expected = TREE | {
        "numbers": [1, 2.5, 1e-300, float("inf"), 0.1 + 0.2, 1 / 3, 7],
        "truth": [True, False, True, None],
    }
    assert leaves(load(path)) == leaves(expected)
    assert os.listdir(tmp_path) == ["fit.npz"]
    with np.load(path, allow_pickle=False) as file:  # as anybody may read it
        assert json.loads(str(file["skvmf-checkpoint"]))["text"] == "mu"


def test_truncated_and_other_files_are_told(tmp_path):
    path = tmp_path / "fit.npz"
    save(path, TREE)
    whole = path.read_bytes()
    for size in [0, 1, 30, len(whole) // 2, len(whole) - 60, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"fit\.npz' is not a checkpoint, or .* truncated"):
            load(path)
        assert path.read_bytes() == whole[:size]
    flipped = bytearray(whole)
    flipped[whole.index(TREE["fortran"].tobytes("F")) + 5] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match="damaged"):
        load(path)
    np.save(tmp_path / "rows.npy", np.ones(3))
    np.savez(tmp_path / "rows.npz", X=np.ones(3))
    objects = {"skvmf-checkpoint": np.array({"number": 1}, dtype=object)}
    np.savez(tmp_path / "objects.npz", **objects)
    files = [(tmp_path / name).read_bytes() for name in ("rows.npy", "rows.npz", "objects.npz")]
    for other in [b"some text", b"PK\x03\x04", *files]:
        path.write_bytes(other)
        with pytest.raises(ValueError, match="not a checkpoint"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.npz")


@pytest.mark.parametrize("step", ["savez", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_file_before(tmp_path, monkeypatch, step):
    path = tmp_path / "fit.npz"
    save(path, {"number": 1})

    def fail(*arguments, **keywords):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint.np if step == "savez" else checkpoint.os, step, fail)
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            save(path, {"number": 2})
    monkeypatch.undo()
    assert load(path) == {"number": 1}
    assert all(re.fullmatch(FILES, name) for name in os.listdir(tmp_path))
    save(path, {"number": 3})
    assert load(path) == {"number": 3}
    assert os.listdir(tmp_path) == ["fit.npz"]
