"""What is tested as the lowest versions is what pyproject.toml declares."""

import tomllib

from packaging.requirements import Requirement
from packaging.version import Version

from .conftest import ROOT


def lowest(lines, operator):
    """Return the version after an operator, by name, of the requirements that have it."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        for specifier in requirement.specifier:
            if specifier.operator == operator:
                found[requirement.name] = Version(specifier.version)
    return found


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
