"""The lowest versions tested, and those of the recipe, are what pyproject.toml declares."""

import re
import runpy
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from .conftest import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / ".ci").exists(), reason="workflows and the recipe are not in the sdist"
)


def lowest(lines, operator):
    """Return the version after an operator, by name, of the requirements that have it."""
    result = {}
    for line in lines:
        requirement = Requirement(line)
        for specifier in requirement.specifier:
            if specifier.operator == operator:
                result[requirement.name] = Version(specifier.version)
    return result


def test_every_floor_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = lowest(project["dependencies"] + extras["plotting"] + extras["test"], ">=")
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = lowest([line for line in lines if line and not line.startswith("#")], "==")
    assert {"numba", "numpy", "scipy", "scikit-learn", "threadpoolctl"} <= set(declared)
    assert tested == declared


def test_a_job_of_ci_installs_them():
    jobs = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "pip install -c .ci/lowest.txt" in jobs


def test_the_recipe_has_the_same_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("  run_constrained:")[0]
    listed = [line.strip("- ") for line in run.splitlines()]
    python, *packages = [line for line in listed if line]
    for operator in (">=", "<"):
        assert lowest(packages, operator) == lowest(project["dependencies"], operator)
    least = re.search(r'set python_min = "(.+)"', recipe).group(1)
    assert python == "python >={{ python_min }}"
    assert project["requires-python"] == f">={least}"


def test_a_later_numba_that_passes_is_announced():
    message = runpy.run_path(str(ROOT / ".ci" / "numba_bound.py"))["message"]
    requirements = ["numpy>=1.26", "numba>=0.60,<0.69"]
    assert message("0.68.1", requirements).startswith("Numba 0.68.1 is within")
    assert message("0.69.0", requirements).startswith("::notice title=")
