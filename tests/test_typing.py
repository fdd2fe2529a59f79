"""The package tells type checkers what it takes and returns."""

import os
import runpy
import subprocess
import sys
from importlib import resources

import pytest

pytest.importorskip("mypy", reason="needs mypy: pip install -e '.[test]'")


@pytest.mark.slow
def test_a_client_passes_strict_checks_and_a_mistake_is_found(root, tmp_path):
    """By mypy, as where skvmf is installed."""
    client, wrong = root / "tests" / "typed_client.py", tmp_path / "wrong.py"
    wrong.write_text("from skvmf import RelativeGMM\nx: str = RelativeGMM(2).score([[1.0]])\n")
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    options += ["--config-file=", f"--cache-dir={tmp_path / 'cache'}"]
    said = subprocess.run(
        [sys.executable, "-m", "mypy", *options, client, wrong],
        env=os.environ | {"MYPYPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    assert "wrong.py:2: error: Incompatible types in assignment" in said
    assert "Found 1 error in 1 file (checked 2 source files)" in said
    runpy.run_path(str(client))


def test_the_package_says_that_it_is_typed():
    assert resources.files("skvmf").joinpath("py.typed").is_file()
