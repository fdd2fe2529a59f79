"""Rules of the sources that linters do not know; import-linter checks layers and circles.

Each rule is a function from a parsed file to the lines that break it, tried on a bad example as
well as on the package.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skvmf"
SOURCES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
KERNELS = [path for path in SOURCES if path.match("_kernels/*.py") and path.name[0] != "_"]
STRANGERS = {"feature_extraction", "inspection", "plotting"}  # they read what estimators show
MAX_KERNEL_ARGUMENTS = 8


def imports(tree, path):
    """Yield the line and the absolute dotted name of every import."""
    package = ["skvmf", *path.parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def is_private(name):
    """Python's own names and those of the package's protocols are neither public nor private."""
    return name.startswith("_") and not (name.endswith("__") or name.startswith("_skvmf_"))


def private_sklearn_imports(tree, path):
    """Only ``_sklearn`` imports private names of scikit-learn."""
    for line, name in imports(tree, path):
        package, *rest = name.split(".")
        if package == "sklearn" and any(map(is_private, rest)):
            yield line


def undocumented_numba(tree, path):
    """Only ``_kernels/_undocumented.py`` uses names of Numba that are not documented."""
    for line, name in imports(tree, path):
        if name.startswith("numba.") and not name.startswith("numba.extending."):
            yield line
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "numba.core":
            yield node.lineno


def reaching_in(tree, path):
    """What reads estimators uses no private name of another part of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if getattr(owner, "id", None) not in {"self", "cls", "super"}:
                yield node.lineno
    for line, name in imports(tree, path):
        package, *parts = name.split(".")
        if package == "skvmf" and parts[0] != path.parts[0] and is_private(parts[-1]):
            yield line


def other_kernels(tree, path):
    """Numba compiles a kernel again if its own file has changed, and only then."""
    for line, name in imports(tree, path):
        if name.startswith("skvmf.") and not name.startswith("skvmf._kernels._jit."):
            yield line


def long_signatures(tree, path):
    """Kernels take at most eight arguments, by position."""
    for node in ast.walk(tree):
        decorators = map(ast.unparse, getattr(node, "decorator_list", []))
        if {"kernel", "row_kernel", "sum_kernel", "inlined"} & set(decorators):
            args = node.args
            loose = args.kwonlyargs or args.vararg or args.kwarg
            if loose or len(args.posonlyargs + args.args) > MAX_KERNEL_ARGUMENTS:
                yield node.lineno


def compared_arrays(tree, path):
    """A dataclass with arrays has ``eq=False``: its fields cannot be compared."""
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", []):
            text = ast.unparse(decorator)
            if text.partition("(")[0] != "dataclass" or "eq=False" in text:
                continue
            fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
            if any(re.search(r"\bArrays?\b", ast.unparse(each.annotation)) for each in fields):
                yield node.lineno


@cache
def parse(path):
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


RULES = [
    (private_sklearn_imports, [path for path in SOURCES if path.as_posix() != "_sklearn.py"]),
    (undocumented_numba, [path for path in SOURCES if path.name != "_undocumented.py"]),
    (reaching_in, [path for path in SOURCES if path.parts[0] in STRANGERS]),
    (other_kernels, KERNELS),
    (long_signatures, KERNELS),
    (compared_arrays, SOURCES),
]


@pytest.mark.parametrize(("rule", "paths"), RULES, ids=[rule.__name__ for rule, _ in RULES])
def test_nobody_breaks(rule, paths):
    assert paths
    lines = {path.as_posix(): sorted(set(rule(parse(path), path))) for path in paths}
    assert not {path: result for path, result in lines.items() if result}, rule.__doc__


@pytest.mark.parametrize(
    ("rule", "path", "bad", "good"),
    [
        (private_sklearn_imports, "mixture/_a.py", "from sklearn.base import _x", "import sklearn"),
        (undocumented_numba, "_kernels/a.py", "from numba.core import caching",
         "import numba\nfrom numba.extending import overload"),
        (undocumented_numba, "_kernels/a.py", "numba.core.caching.x()", "numba.types.none"),
        (reaching_in, "plotting/_a.py", "f()._x", "cls._x\nsuper()._x\nm._skvmf_x()"),
        (reaching_in, "plotting/_a.py", "from ..mixture._a import _x",
         "from ..mixture._a import x\nfrom ._axes import _y"),
        (other_kernels, "_kernels/a.py", "from .b import f", "import math\nfrom ._jit import x"),
        (long_signatures, "_kernels/a.py", "@kernel\ndef f(a, b, c, d, e, f, g, h, i): pass",
         "@kernel\ndef f(a, b, c, d, e, f, g, h): pass"),
        (long_signatures, "_kernels/a.py", "@row_kernel\ndef f(*, a): pass", "def f(*, a): pass"),
        (compared_arrays, "_a.py", "@dataclass\nclass A:\n    b: Array | None = None",
         "@dataclass(eq=False)\nclass A:\n    b: Array\n@dataclass\nclass B:\n    c: int"),
    ],
)  # fmt: skip
def test_the_rules_themselves(rule, path, bad, good):
    assert list(rule(ast.parse(bad), Path(path)))
    assert not list(rule(ast.parse(good), Path(path)))


def test_every_folder_is_a_package():
    packages = {path.parent for path in SOURCES if path.name == "__init__.py"}
    assert {path.parent for path in SOURCES} == packages
