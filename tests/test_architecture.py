"""The house keeps its floors: imports point downward, and kernels stay what kernels are.

Everything is read from the sources; nothing is imported. Each rule is a function from a
parsed file to the lines that break it, tried on a guilty snippet as well as on the package.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skvmf"

FLOORS = [
    {"_version", "_sklearn", "_kernels"},
    {"distributions"},
    {"_engine"},
    {"mixture", "grammar"},
    {"feature_extraction"},
    {"datasets", "inspection", "plotting"},
    {"distributed", "neural"},
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
AT_HOME = {"matplotlib": {"plotting"}, "torch": {"neural"}, "dask": {"distributed"}}
MAX_KERNEL_ARGUMENTS = 8

SOURCES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
KERNELS = [
    path
    for path in SOURCES
    if path.parts[0] == "_kernels" and path.name not in {"__init__.py", "_jit.py"}
]


def imports(tree, path, nodes=None):
    """Yield (line, absolute dotted name) of every import; skvmf's relative ones resolved."""
    package = ["skvmf", *path.parts[:-1]]
    for node in ast.walk(tree) if nodes is None else nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def room(dotted):
    """Return the part of skvmf that a dotted name is in, None for anything else."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "skvmf" and len(parts) > 1 else None


def import_time(tree):
    """Yield the nodes that run on import: all but the bodies of functions and type checks."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def is_table(tree):
    """Tell whether a file holds constants only."""
    return all(isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) for node in tree.body)


def upward_imports(tree, path):
    """Imports of a higher floor, or of another room on the same floor."""
    home = path.parts[0].removesuffix(".py")
    for line, name in imports(tree, path):
        target = room(name)
        if target not in {None, home} and FLOOR.get(target, len(FLOORS)) >= FLOOR[home]:
            yield line


def compilers(tree, path):
    """Any mention of numba or njit."""
    for line, name in imports(tree, path):
        if name.split(".")[0] == "numba":
            yield line
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", None))
        if name in {"jit", "njit", "vectorize", "guvectorize", "jitclass"}:
            yield node.lineno


def early_optional_imports(tree, path):
    """Imports of optional packages that run with `import skvmf`."""
    for line, name in imports(tree, path, import_time(tree)):
        package = name.split(".")[0]
        if package in AT_HOME and path.parts[0] not in AT_HOME[package]:
            yield line


def private_sklearn_imports(tree, path):
    """Imports of scikit-learn's private names."""
    for line, name in imports(tree, path):
        package, *rest = name.split(".")
        if package == "sklearn" and any(part.startswith("_") for part in rest):
            yield line


def undecorated_kernels(tree, path):
    """Functions of a kernel file that are no kernels, and methods and closures."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
            if decorators not in (["kernel"], ["row_kernel"]):
                yield node.lineno


def long_signatures(tree, path):
    """Kernels with too many arguments, or with arguments that have no fixed place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            args = node.args
            if (
                len(args.posonlyargs + args.args) > MAX_KERNEL_ARGUMENTS
                or args.kwonlyargs
                or args.vararg
                or args.kwarg
            ):
                yield node.lineno


def sibling_imports(tree, path):
    """What a kernel file imports beyond the decorators, the standard maths and constants."""
    for line, name in imports(tree, path):
        parts = name.split(".")
        if parts[0] in {"math", "numpy"} or parts[:3] == ["skvmf", "_kernels", "_jit"]:
            continue
        table = PACKAGE.joinpath(*parts[1:3]).with_suffix(".py")
        if parts[:2] != ["skvmf", "_kernels"] or not is_table(parse(table)):
            yield line


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def check(rule, path):
    lines = sorted(set(rule(parse(PACKAGE / path), path)))
    assert not lines, f"skvmf/{path}, lines {lines}: {rule.__doc__}"


def sources_but(name):
    """Parametrize over every source file but one."""
    paths = [path for path in SOURCES if path.as_posix() != name]
    return pytest.mark.parametrize("path", paths, ids=Path.as_posix)


@sources_but("__init__.py")
def test_imports_point_downward(path):
    check(upward_imports, path)


@sources_but(None)
def test_optional_packages_are_imported_late(path):
    check(early_optional_imports, path)


@sources_but("_kernels/_jit.py")
def test_one_file_compiles(path):
    check(compilers, path)


@sources_but("_sklearn.py")
def test_one_door_to_private_scikit_learn(path):
    check(private_sklearn_imports, path)


@pytest.mark.parametrize("path", KERNELS, ids=Path.as_posix)
@pytest.mark.parametrize("rule", [undecorated_kernels, long_signatures, sibling_imports])
def test_kernel_files_hold_kernels(rule, path):
    check(rule, path)


@pytest.mark.parametrize(
    ("rule", "path", "guilty", "innocent"),
    [
        (
            upward_imports,
            "_engine/em.py",
            "from ..mixture import X",
            "from ..distributions import x",
        ),
        (upward_imports, "mixture/_a.py", "from skvmf import grammar", "from ._base import X"),
        (
            upward_imports,
            "mixture/_a.py",
            "def f():\n import skvmf.plotting",
            "import skvmf._sklearn",
        ),
        (upward_imports, "_sklearn.py", "from ._kernels import x", "from sklearn import x"),
        (compilers, "_engine/em.py", "import numba", "import numpy"),
        (compilers, "_engine/em.py", "@nb.njit\ndef f(): pass", "@kernel\ndef f(): pass"),
        (
            early_optional_imports,
            "mixture/_a.py",
            "try:\n import torch\nexcept ImportError: pass",
            "def f():\n import torch",
        ),
        (
            early_optional_imports,
            "mixture/_a.py",
            "from matplotlib import x",
            "if TYPE_CHECKING:\n import matplotlib",
        ),
        (early_optional_imports, "plotting/_a.py", "import torch", "import matplotlib.pyplot"),
        (private_sklearn_imports, "mixture/_a.py", "from sklearn.base import _fit_context", ""),
        (private_sklearn_imports, "mixture/_a.py", "import sklearn.cluster._k", "import sklearn"),
        (undecorated_kernels, "_kernels/a.py", "def f(): pass", "@kernel\ndef f(): pass"),
        (undecorated_kernels, "_kernels/a.py", "class A: pass", "@row_kernel\ndef f(): pass"),
        (undecorated_kernels, "_kernels/a.py", "f = lambda x: x", "F = 1.0"),
        (
            long_signatures,
            "_kernels/a.py",
            "def f(a,b,c,d,e,f,g,h,i): pass",
            "def f(a,b,c,d,e,f,g,h): pass",
        ),
        (long_signatures, "_kernels/a.py", "def f(*, a): pass", "def f(a): pass"),
        (sibling_imports, "_kernels/a.py", "import scipy", "import math\nimport numpy as np"),
        (
            sibling_imports,
            "_kernels/a.py",
            "from ..distributions import x",
            "from ._jit import kernel",
        ),
    ],
)
def test_the_rules_themselves(rule, path, guilty, innocent):
    assert list(rule(ast.parse(guilty), Path(path)))
    assert not list(rule(ast.parse(innocent), Path(path)))


def test_a_table_is_constants_only():
    assert is_table(ast.parse('"""Constants."""\nA = (1.0, 2.0)\nB: float = 3.0'))
    assert not is_table(ast.parse("A = 1\ndef f(): pass"))
