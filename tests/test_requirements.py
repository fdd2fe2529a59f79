"""Requirements are imported, tested at their lowest versions, and the same in the recipe."""

import ast
import re
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from .conftest import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / ".ci").exists(), reason="workflows and the recipe are not in the sdist"
)


USER_EXTRAS = ["plotting", "neural", "treebanks", "dask"]
GIVEN = {"pandas"}  # only users who have data frames need it


def imported():
    """Return the names of all packages of others that skvmf imports, in functions too."""
    names = set()
    for path in (ROOT / "skvmf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"skvmf"}


def test_what_is_imported_is_declared_and_the_reverse():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra in USER_EXTRAS:
        lines += project["optional-dependencies"][extra]
    declared = {Requirement(line).name.replace("scikit-learn", "sklearn") for line in lines}
    assert imported() - GIVEN == declared


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
    extras = extras["plotting"] + extras["lint"] + extras["test"]
    declared = lowest(project["dependencies"] + extras, ">=")
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = lowest([line for line in lines if line and not line.startswith("#")], "==")
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
