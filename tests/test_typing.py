"""The package tells type checkers what it takes and returns."""

import doctest
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from .conftest import ROOT

pytest.importorskip("mypy", reason="needs mypy: pip install -e '.[test]'")


@pytest.mark.slow
def test_a_client_passes_strict_checks_and_its_mistakes_are_found(tmp_path):
    """By mypy, as where skvmf is installed: also README and quick start have no mistakes."""
    client, mistakes = ROOT / "tests" / "typed_client.py", ROOT / "tests" / "typed_mistakes.py"
    readme, quick_start = tmp_path / "readme.py", tmp_path / "quick_start.py"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme.write_text("\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)))
    page = (ROOT / "doc" / "user_guide" / "quick_start.rst").read_text(encoding="utf-8")
    quick_start.write_text(doctest.script_from_examples(page))
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    config = tmp_path / "mypy.ini"  # what public types do not need takes most of the time
    config.write_text(
        "[mypy]\n[mypy-dask.*,distributed.*,matplotlib.*,numba.*,torch.*]\nfollow_imports = skip\n"
    )
    options += [f"--config-file={config}", "--cache-dir=/dev/null"]
    report = subprocess.run(
        [sys.executable, "-m", "mypy", *options, client, mistakes, readme, quick_start],
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    assert lines_with_errors(report) == lines_with_mistakes(mistakes)
    assert "in 1 file (checked 4 source files)" in report
    runpy.run_path(str(client))


@pytest.mark.slow
def test_pyright_finds_the_mistakes_too(tmp_path):
    pytest.importorskip("basedpyright", reason="needs basedpyright")
    config = tmp_path / "pyrightconfig.json"
    mistakes = shutil.copy(ROOT / "tests" / "typed_mistakes.py", tmp_path)
    config.write_text('{"typeCheckingMode": "standard"}')
    report = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p", config],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    assert lines_with_errors(report) == lines_with_mistakes(Path(mistakes))


def lines_with_errors(report):
    """Return the lines of the file with mistakes for which a checker reports an error."""
    return {int(n) for n in re.findall(r"typed_mistakes\.py:(\d+)(?::\d+ -|:) error", report)}


def lines_with_mistakes(path):
    lines = enumerate(path.read_text().splitlines(), start=1)
    expected = {n for n, line in lines if line.endswith("# mistake")}
    assert len(expected) > 20
    return expected


def test_the_package_says_that_it_is_typed():
    assert resources.files("skvmf").joinpath("py.typed").is_file()
