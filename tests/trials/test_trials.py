"""Each script runs in an empty folder, as its author would run it, and no warning is shown."""

import os
import runpy
import warnings
from pathlib import Path

import pytest

from ..processes import called

SCRIPTS = [path for path in Path(__file__).parent.glob("[a-z]*.py") if path != Path(__file__)]


def run(script, folder):
    os.chdir(folder)
    warnings.simplefilter("error")
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", sorted(SCRIPTS), ids=lambda script: script.stem)
@pytest.mark.slow
def test_a_script_finds_what_it_asserts(script, tmp_path):
    called(run, script, tmp_path)
