"""Say whether Numba is later than pyproject.toml allows: ``python .ci/numba_bound.py``.

A nightly job runs the tests with the newest release, and then this: if they pass with a later
one than the upper bound, GitHub shows a notice that the bound can be lifted.
"""

import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def message(installed, requirements):
    """Return what to say about a version of Numba, given the package's requirements."""
    bound = next(r for r in map(Requirement, requirements) if r.name == "numba").specifier
    if bound.contains(installed):
        return f"Numba {installed} is within {bound}."
    return (
        f"::notice title=Lift the upper bound of Numba::Numba {installed} passes the tests, and "
        f"pyproject.toml allows {bound}. Lift the bound there and in recipe/meta.yaml."
    )


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print(message(version("numba"), project["dependencies"]))
