"""The package tells type checkers what it takes and returns."""

import os
import runpy
import subprocess
import sys
from importlib import resources

import pytest

pytest.importorskip("mypy", reason="needs mypy: pip install -e '.[test]'")


def check(path, cache, root):
    """Return what mypy says of a file, as it would say it where skvmf is installed."""
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={cache}", *options, path],
        env=os.environ | {"MYPYPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout


def test_a_client_passes_strict_checks(root, tmp_path):
    client = root / "tests" / "typed_client.py"
    assert check(client, tmp_path, root).startswith("Success")
    runpy.run_path(str(client))


def test_a_mistake_of_a_client_is_found(root, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from skvmf import RelativeGMM\nx: str = RelativeGMM(2).score([[1.0]])\n")
    assert "Incompatible types in assignment" in check(wrong, tmp_path, root)


def test_the_package_says_that_it_is_typed():
    assert resources.files("skvmf").joinpath("py.typed").is_file()
