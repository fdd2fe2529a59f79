"""The house keeps its floors: imports point downward, and kernels stay what kernels are.

Everything is read from the sources; nothing is imported. Each rule is a function from a
parsed file to the lines that break it, tried on a guilty snippet as well as on the package.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skvmf"

FLOORS = [
    {"_version", "_publish", "_warnings", "_sklearn", "_typing", "_kernels"},
    {"distributions"},
    {"_engine"},
    {"mixture", "grammar"},
    {"feature_extraction", "model_selection"},
    {"datasets", "inspection", "plotting"},
    {"distributed", "neural"},
]
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
AT_HOME = {"matplotlib": {"plotting"}, "torch": {"neural"}, "dask": set(), "distributed": set()}
LAZY = {"_engine/data/dask_rows.py", "mixture/_dask.py"}  # imported where a Dask array is given
STRANGERS = {"feature_extraction", "inspection", "plotting"}  # they read what estimators show
MAX_KERNEL_ARGUMENTS = 8

SOURCES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
TABLES = [path for path in SOURCES if path.match("_kernels/*_tables.py")]
KERNELS = [
    path
    for path in SOURCES
    if path.match("_kernels/*.py")
    and path.name not in {"__init__.py", "_jit.py"}
    and path not in TABLES
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
        home = package not in AT_HOME or path.parts[0] in AT_HOME[package]
        if not home and path.as_posix() not in LAZY:
            yield line


def private_sklearn_imports(tree, path):
    """Imports of scikit-learn's private names."""
    for line, name in imports(tree, path):
        package, *rest = name.split(".")
        if package == "sklearn" and any(part.startswith("_") for part in rest):
            yield line


def reaching_in(tree, path):
    """A private attribute of anything but the class itself, or a private name of another room."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if getattr(owner, "id", None) not in {"self", "cls", "super"}:
                yield node.lineno
    for line, name in imports(tree, path):
        if room(name) not in {None, path.parts[0]} and is_private(name.rpartition(".")[2]):
            yield line


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def is_kernel(node):
    decorators = [ast.unparse(decorator) for decorator in getattr(node, "decorator_list", [])]
    return decorators in (["kernel"], ["row_kernel"], ["sum_kernel"])


def missing_kernels(tree, path):
    """A kernel file without a kernel, or with a function that has other decorators."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if not any(is_kernel(node) for node in functions):
        yield 1
    for node in functions:
        if node.decorator_list and not is_kernel(node):
            yield node.lineno


def long_signatures(tree, path):
    """Kernels with too many arguments, or with arguments that have no fixed place."""
    for node in filter(is_kernel, ast.walk(tree)):
        args = node.args
        loose = args.kwonlyargs or args.vararg or args.kwarg
        if loose or len(args.posonlyargs + args.args) > MAX_KERNEL_ARGUMENTS:
            yield node.lineno


def sibling_imports(tree, path):
    """What a kernel file imports beyond the decorators and the standard maths.

    Compiled code holds the values of constants and the code of other kernels. Numba compiles
    it again when its own file has changed, and only then.
    """
    for line, name in imports(tree, path):
        own = name.startswith("skvmf._kernels._jit.")
        if name.split(".")[0] not in {"math", "numpy"} and not own:
            yield line


def jitted_tables(tree, path):
    """Compiled code among the tables, which are plain Python and made once.

    Constants that kernels read too are in the kernels' file, and imported from there.
    """
    for line, name in imports(tree, path):
        if room(name) is not None and not name.split(".")[-1].isupper():
            yield line


def own_tests(path, files):
    """Return the test file of a kernel file: its own, or that of the first words of its name."""
    words = path.stem.split("_")
    names = [f"test_{'_'.join(words[:size])}.py" for size in range(len(words), 0, -1)]
    return next((name for name in names if name in files), None)


def idle_kernels(kernels, tests):
    """Public kernels that their tests never mention outside of an import."""
    used = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tests)}
    for node in filter(is_kernel, ast.walk(kernels)):
        if not node.name.startswith("_") and node.name not in used:
            yield node.name


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def check(rule, path):
    lines = sorted(set(rule(parse(PACKAGE / path), path)))
    assert not lines, f"skvmf/{path}, lines {lines}: {rule.__doc__}"


def sources_but(name):
    """Parametrize over every source file but one."""
    paths = [path for path in SOURCES if path.as_posix() != name]
    return pytest.mark.parametrize("path", paths, ids=Path.as_posix)


def test_every_folder_is_a_package_and_so_part_of_a_wheel():
    folders = {path.parent for path in SOURCES}
    assert folders == {path.parent for path in SOURCES if path.name == "__init__.py"}


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


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.parts[0] in STRANGERS], ids=Path.as_posix
)
def test_what_stands_beside_estimators_does_not_reach_into_them(path):
    check(reaching_in, path)


@pytest.mark.parametrize("path", KERNELS, ids=Path.as_posix)
@pytest.mark.parametrize("rule", [missing_kernels, long_signatures, sibling_imports])
def test_kernel_files_hold_kernels(rule, path):
    check(rule, path)


@pytest.mark.parametrize("path", KERNELS, ids=Path.as_posix)
def test_every_public_kernel_is_tested_in_the_file_of_its_name(path):
    folder = Path(__file__).parent / "kernels"
    tests = own_tests(path, {file.name for file in folder.iterdir()})
    assert tests, f"tests/kernels has no test_{path.stem}.py"
    idle = list(idle_kernels(parse(PACKAGE / path), parse(folder / tests)))
    assert not idle, f"tests/kernels/{tests} does not call {idle}"


@pytest.mark.parametrize("path", TABLES, ids=Path.as_posix)
def test_tables_are_plain_python(path):
    check(jitted_tables, path)


@pytest.mark.parametrize(
    ("rule", "path", "guilty", "innocent"),
    [
        (
            upward_imports,
            "_engine/em/loop.py",
            "from ...mixture import X",
            "from ...distributions import x",
        ),
        (upward_imports, "mixture/_a.py", "from skvmf import grammar", "from ._base import X"),
        (
            upward_imports,
            "mixture/_a.py",
            "def f():\n import skvmf.plotting",
            "import skvmf._sklearn",
        ),
        (upward_imports, "_sklearn.py", "from ._kernels import x", "from sklearn import x"),
        (compilers, "_engine/em/loop.py", "import numba", "import numpy"),
        (compilers, "_engine/em/loop.py", "@nb.njit\ndef f(): pass", "@kernel\ndef f(): pass"),
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
        (reaching_in, "plotting/_a.py", "mixture._fitted", "self._fitted\nsuper()._fitted"),
        (reaching_in, "plotting/_a.py", "f()._x", "cls._x\nmixture.__vector_model__()"),
        (
            reaching_in,
            "plotting/_a.py",
            "from ..mixture._base import _x",
            "from ..mixture._base import x\nfrom ._axes import _y\nfrom .._sklearn import z",
        ),
        (missing_kernels, "_kernels/a.py", "def f(): pass", "@kernel\ndef f(): pass"),
        (missing_kernels, "_kernels/a.py", "", "@row_kernel\ndef f(): pass"),
        (
            missing_kernels,
            "_kernels/a.py",
            "@kernel\ndef f(): pass\n@cache\ndef g(): pass",
            "@kernel\ndef f(): pass\ndef size(): pass",
        ),
        (
            long_signatures,
            "_kernels/a.py",
            "@kernel\ndef f(a, b, c, d, e, f, g, h, i): pass",
            "@kernel\ndef f(a, b, c, d, e, f, g, h): pass",
        ),
        (
            long_signatures,
            "_kernels/a.py",
            "@row_kernel\ndef f(*, a): pass",
            "@row_kernel\ndef f(a): pass",
        ),
        (sibling_imports, "_kernels/a.py", "import scipy", "import math\nimport numpy as np"),
        (
            sibling_imports,
            "_kernels/a.py",
            "from .simplex import softmax_rows",
            "from ._jit import kernel",
        ),
        (sibling_imports, "_kernels/a.py", "from .a_tables import WIDE", "WIDE = 32.0"),
        (sibling_imports, "_kernels/a.py", "from ..distributions import x", "from ._jit import x"),
        (jitted_tables, "_kernels/a_tables.py", "from ._jit import kernel", "import fractions"),
        (jitted_tables, "_kernels/a_tables.py", "from .a import f", "from .a import WIDE"),
    ],
)
def test_the_rules_themselves(rule, path, guilty, innocent):
    assert list(rule(ast.parse(guilty), Path(path)))
    assert not list(rule(ast.parse(innocent), Path(path)))


def test_the_rule_of_tested_kernels_itself():
    kernels = ast.parse("@kernel\ndef f(): pass\n@row_kernel\ndef _g(): pass\ndef h(): pass")
    assert list(idle_kernels(kernels, ast.parse("from skvmf import f"))) == ["f"]
    assert not list(idle_kernels(kernels, ast.parse("f(1)")))
    assert not list(idle_kernels(kernels, ast.parse("kernels.f(1)")))
    files = {"test_a.py", "test_a_b.py", "test_c.py"}
    assert own_tests(Path("_kernels/a_b.py"), files) == "test_a_b.py"
    assert own_tests(Path("_kernels/c_d.py"), files) == "test_c.py"
    assert own_tests(Path("_kernels/d.py"), files) is None
