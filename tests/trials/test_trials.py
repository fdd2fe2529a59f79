"""Each script runs in an empty folder, as its author would run it, and no warning is shown."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = [path for path in Path(__file__).parent.glob("[a-z]*.py") if path != Path(__file__)]


@pytest.mark.parametrize("script", sorted(SCRIPTS), ids=lambda script: script.stem)
@pytest.mark.slow
def test_a_script_finds_what_it_asserts(script, tmp_path):
    command = [sys.executable, "-W", "error", script]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr
