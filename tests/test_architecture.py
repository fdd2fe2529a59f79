"""The house keeps its floors: imports point downward, and kernels stay what kernels are.

Everything is read from the sources; nothing is imported. Each rule is a function from a
parsed file to the lines that break it, tried on a guilty snippet as well as on the package.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skvmf"

FLOORS = [
    {"_typing", "_version"},
    {"_sklearn", "_kernels"},
    {"distributions"},
    {"_engine"},
    {"mixture", "grammar"},
    {"feature_extraction", "model_selection", "preprocessing"},
    {"datasets", "inspection", "plotting", "compile"},
    {"neural"},
]
AT_HOME = {"matplotlib": {"plotting"}, "torch": {"neural"}, "dask": set(), "distributed": set()}
LAZY = {"_engine/dask.py", "mixture/_dask.py"}  # imported where a Dask array is given
STRANGERS = {"feature_extraction", "inspection", "plotting"}  # they read what estimators show
MAX_KERNEL_ARGUMENTS = 8
MAX_LINES = 700
LONGER = {"mixture/_base.py": 900, "_engine/contracts.py": 830}  # one class; all contracts

SOURCES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
KERNELS = [
    path
    for path in SOURCES
    if path.match("_kernels/*.py")
    and path.name not in {"__init__.py", "_jit.py", "vonmises_fisher_tables.py"}
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


def higher_imports(tree, path, floors, folder=Path()):
    """Yield lines that import another part of a folder which is not on a lower floor."""
    number = {part: i for i, parts in enumerate(floors) for part in parts}
    home = path.relative_to(folder).parts[0].removesuffix(".py")
    for line, name in imports(tree, path):
        parts = name.split(".")
        above = ["skvmf", *folder.parts]
        if parts[: len(above)] == above and len(parts) > len(above):
            target = parts[len(above)]
            if target != home and number.get(target, len(floors)) >= number[home]:
                yield line


def upward_imports(tree, path):
    """Imports of a higher floor, or of another room on the same floor."""
    return higher_imports(tree, path, FLOORS)


def circle(sources):
    """Return a circle of parts of a folder that import each other, if there is one.

    A part is a file or a folder with all that is in it; `sources` are parsed files by path.
    """
    graphs = {}
    for path, tree in sources.items():
        for _, name in imports(tree, path):
            target = source(name, sources)
            if target not in {None, path}:
                pairs = zip(path.parts, target.parts, strict=False)
                depth = [here == there for here, there in pairs].index(False)
                graph = graphs.setdefault(path.parts[:depth], {})
                graph.setdefault(path.parts[depth], set()).add(target.parts[depth])
    for folder, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return "/".join(folder), error.args[1]
    return None


def source(name, sources):
    """Return the path of the file that a dotted name of skvmf is in, None for anything else."""
    package, *parts = name.split(".")
    for size in range(len(parts), 0, -1) if package == "skvmf" else ():
        stem = Path(*parts[:size])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path in sources:
                return path
    return None


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


def idle_kernels(kernels, tests):
    """Public kernels that their tests never mention outside of an import."""
    used = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tests)}
    for node in filter(is_kernel, ast.walk(kernels)):
        if not node.name.startswith("_") and node.name not in used:
            yield node.name


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def sources_but(*names):
    return [path for path in SOURCES if path.as_posix() not in names]


RULES = [
    (upward_imports, sources_but("__init__.py")),
    (early_optional_imports, SOURCES),
    (compilers, sources_but("_kernels/_jit.py")),
    (private_sklearn_imports, sources_but("_sklearn.py")),
    (reaching_in, [path for path in SOURCES if path.parts[0] in STRANGERS]),
    (missing_kernels, KERNELS),
    (long_signatures, KERNELS),
    (sibling_imports, KERNELS),
]


@pytest.mark.parametrize(("rule", "paths"), RULES, ids=[rule.__name__ for rule, _ in RULES])
def test_nobody_breaks(rule, paths):
    assert paths
    lines = {f"skvmf/{path}": sorted(set(rule(parse(PACKAGE / path), path))) for path in paths}
    assert not {path: found for path, found in lines.items() if found}, rule.__doc__


def test_every_folder_is_a_package_and_so_part_of_a_wheel():
    folders = {path.parent for path in SOURCES}
    assert folders == {path.parent for path in SOURCES if path.name == "__init__.py"}


def test_no_files_and_no_folders_import_each_other_in_a_circle():
    assert circle({path: parse(PACKAGE / path) for path in SOURCES}) is None


def test_every_part_of_the_package_and_of_the_engine_has_its_floor():
    parts = {path.parts[0].removesuffix(".py") for path in SOURCES} - {"__init__"}
    assert parts == set().union(*FLOORS)


def test_files_are_short():
    lines = {path.as_posix(): (PACKAGE / path).read_bytes().count(b"\n") for path in SOURCES}
    assert {p for p, number in lines.items() if number > LONGER.get(p, MAX_LINES)} == set()


def test_every_public_kernel_is_tested():
    folder = Path(__file__).parent / "kernels"
    tests = ast.Module([parse(file) for file in sorted(folder.glob("test_*.py"))], [])
    idle = {path.name: list(idle_kernels(parse(PACKAGE / path), tests)) for path in KERNELS}
    assert not {path: names for path, names in idle.items() if names}


GUILTY_AND_INNOCENT = {
    upward_imports: [
        ("_engine/em.py", "from ..mixture import X", "from ..distributions import x"),
        ("mixture/_a.py", "from skvmf import grammar", "from ._base import X"),
        ("mixture/_a.py", "def f():\n import skvmf.plotting", "import skvmf._sklearn"),
        ("_sklearn.py", "from ._kernels import x", "from sklearn import x"),
    ],
    compilers: [
        ("_engine/em.py", "import numba", "import numpy"),
        ("_engine/em.py", "@nb.njit\ndef f(): pass", "@kernel\ndef f(): pass"),
    ],
    early_optional_imports: [
        ("mixture/_a.py", "try:\n import torch\nexcept ImportError: pass",
         "def f():\n import torch"),
        ("mixture/_a.py", "from matplotlib import x", "if TYPE_CHECKING:\n import matplotlib"),
        ("plotting/_a.py", "import torch", "import matplotlib.pyplot"),
    ],
    private_sklearn_imports: [
        ("mixture/_a.py", "from sklearn.base import _fit_context", ""),
        ("mixture/_a.py", "import sklearn.cluster._k", "import sklearn"),
    ],
    reaching_in: [
        ("plotting/_a.py", "mixture._fitted", "self._fitted\nsuper()._fitted"),
        ("plotting/_a.py", "f()._x", "cls._x\nmixture.__vector_model__()"),
        ("plotting/_a.py", "from ..mixture._base import _x",
         "from ..mixture._base import x\nfrom ._axes import _y\nfrom .._sklearn import z"),
    ],
    missing_kernels: [
        ("_kernels/a.py", "def f(): pass", "@kernel\ndef f(): pass"),
        ("_kernels/a.py", "", "@row_kernel\ndef f(): pass"),
        ("_kernels/a.py", "@kernel\ndef f(): pass\n@cache\ndef g(): pass",
         "@kernel\ndef f(): pass\ndef size(): pass"),
    ],
    long_signatures: [
        ("_kernels/a.py", "@kernel\ndef f(a, b, c, d, e, f, g, h, i): pass",
         "@kernel\ndef f(a, b, c, d, e, f, g, h): pass"),
        ("_kernels/a.py", "@row_kernel\ndef f(*, a): pass", "@row_kernel\ndef f(a): pass"),
    ],
    sibling_imports: [
        ("_kernels/a.py", "import scipy", "import math\nimport numpy as np"),
        ("_kernels/a.py", "from .simplex import softmax_rows", "from ._jit import kernel"),
        ("_kernels/a.py", "from .a_tables import LIMIT", "LIMIT = 32.0"),
        ("_kernels/a.py", "from ..distributions import x", "from ._jit import x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rule", GUILTY_AND_INNOCENT)
def test_the_rules_themselves(rule):
    for path, guilty, innocent in GUILTY_AND_INNOCENT[rule]:
        assert list(rule(ast.parse(guilty), Path(path)))
        assert not list(rule(ast.parse(innocent), Path(path)))


@pytest.mark.parametrize(
    ("guilty", "innocent", "parts"),
    [
        (
            {"mixture/_a.py": "from ._b import x", "mixture/_b.py": "from . import _a"},
            {"mixture/_a.py": "from ._b import x", "mixture/_b.py": "from ..grammar import _a"},
            {"_a.py", "_b.py"},
        ),
        (
            {
                "_engine/em/a.py": "from ..data.b import x",
                "_engine/data/b.py": "",
                "_engine/data/c.py": "def f():\n from skvmf._engine.em import a",
            },
            {"_engine/em/a.py": "from ..data.b import x", "_engine/data/b.py": ""},
            {"em", "data"},
        ),
        (
            {"a/__init__.py": "from .b import x", "a/b.py": "from . import y"},
            {"a/__init__.py": "from .b import x", "a/b.py": "import a\nfrom . import b"},
            {"__init__.py", "b.py"},
        ),
    ],
)
def test_the_rule_of_circles_itself(guilty, innocent, parts):
    files = [
        {Path(path): ast.parse(text) for path, text in each.items()} for each in (guilty, innocent)
    ]
    assert set(circle(files[0])[1]) == parts
    assert circle(files[1]) is None


def test_the_rule_of_tested_kernels_itself():
    kernels = ast.parse("@kernel\ndef f(): pass\n@row_kernel\ndef _g(): pass\ndef h(): pass")
    assert list(idle_kernels(kernels, ast.parse("from skvmf import f"))) == ["f"]
    assert not list(idle_kernels(kernels, ast.parse("f(1)")))
    assert not list(idle_kernels(kernels, ast.parse("kernels.f(1)")))
