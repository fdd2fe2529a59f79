"""The archives of a release: bit-identical for one commit, and complete."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

from .conftest import ROOT

pytest.importorskip("hatch_vcs", reason="needs hatchling and hatch-vcs, which build the archives")
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the history")


def build(folder, umask):
    """Build both archives in a new clone, whose files have their own times and modes."""
    clone, dist = folder / "clone", folder / "dist"
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    for command in (
        ["git", "clone", "--quiet", ROOT, clone],
        [sys.executable, "-m", "hatchling", "build", "--directory", dist],
    ):
        where = clone if clone.exists() else folder
        subprocess.run(
            command, cwd=where, env=environment, umask=umask, check=True, capture_output=True
        )
    return sorted(dist.iterdir())


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Return the archives of two builds, as pairs of paths."""
    builds = [build(tmp_path_factory.mktemp("build"), umask) for umask in (0o022, 0o077)]
    return list(zip(*builds, strict=True))


def test_two_builds_of_a_commit_are_bit_identical(archives):
    assert [one.suffix for one, _ in archives] == [".whl", ".gz"]
    for pair in archives:
        one, two = [hashlib.sha256(path.read_bytes()).hexdigest() for path in pair]
        assert one == two, f"{pair[0].name} differs from one build to the next"


def test_the_wheel_holds_the_package_and_nothing_else(archives):
    with zipfile.ZipFile(archives[0][0]) as wheel:
        names = set(wheel.namelist())
    package = {name for name in names if ".dist-info/" not in name}
    assert "skvmf/py.typed" in package
    assert package == tracked("skvmf")


def test_the_sdist_holds_tests_and_documentation(archives):
    with tarfile.open(archives[1][0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "setup.cfg"} <= names
    for folder in ("skvmf", "tests", "doc", "reproduction"):
        assert tracked(folder) <= names
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == {"skvmf", "tests", "doc", "reproduction"}


def tracked(folder):
    """Return the files of a folder that the last commit holds."""
    command = ["git", "ls-tree", "-r", "--name-only", "HEAD", folder]
    return set(subprocess.check_output(command, cwd=ROOT, text=True).splitlines())
