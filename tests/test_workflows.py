"""Workflows are valid, end in time, and run what there is."""

import re
import runpy

import pytest

from .conftest import ROOT

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which comes with pre-commit")
FOLDER = ROOT / ".github" / "workflows"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="workflows are not in the sdist")


def jobs():
    """Return each job of each workflow, by both names."""
    return {
        f"{path.stem}: {name}": job
        for path in sorted(FOLDER.glob("*.yml"))
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
    }


def steps():
    return [step for job in jobs().values() for step in job["steps"]]


def test_every_job_has_a_time_limit():
    assert len(jobs()) > 10
    assert [name for name, job in jobs().items() if "timeout-minutes" not in job] == []


def test_every_action_is_named_by_its_commit():
    actions = [step["uses"] for step in steps() if "uses" in step]
    assert [name for name in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []


def test_the_files_that_commands_name_exist():
    commands = " ".join(step.get("run", "") for step in steps())
    named = set(re.findall(r"(?:\.ci|doc|tests)/[\w/.-]+", commands))
    assert ".ci/run" in named
    built = {name for name in named if name.startswith("doc/_build")}
    assert [name for name in sorted(named - built) if not (ROOT / name).exists()] == []


def test_the_site_is_published():
    publish = jobs()["site: publish"]
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert publish["needs"] == "build"


@pytest.mark.parametrize("name", ["Bug report", "Feature request"])
def test_issue_forms(name):
    path = ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name.lower().replace(' ', '_')}.yml"
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] == name
    assert form["body"]


def test_a_later_numba_that_passes_is_announced():
    message = runpy.run_path(str(ROOT / ".ci" / "numba_bound.py"))["message"]
    requirements = ["numpy>=1.26", "numba>=0.60,<0.69"]
    assert message("0.68.1", requirements).startswith("Numba 0.68.1 is within")
    assert message("0.69.0", requirements).startswith("::notice title=")
