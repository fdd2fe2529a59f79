"""Measure the structure of the package.

Most rows are read from the sources of this checkout, or of another one (``--root PATH``). The last
ones import the package without compilation, so that every call is seen.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What is measured, its value before the engine had folders (commit 6c0628f), and the goal.
ROWS = [
    ("``estimator: Any`` or ``mixture: Any`` below the estimators / in all", "11 / 29", "0"),
    ("branches that ask for the background / files that mention it", "35 / 22", "8 / 10"),
    ("files that know Student's t", "11", "5"),
    ("import cycles / files of more than 400 lines", "1 / 10", "0 / 0"),
    ("lines of the package / of the tests", "25,505 / 28,761", "23,000 / 24,000"),
    ("private names of ``BaseMixture`` that subclasses override", "30", "8"),
    ("... that ``RelativeGMM`` alone overrides", "17", "4"),
    ("files / functions that one ``fit`` visits", "47 / 313", "30"),
    ("frames from ``fit`` to the densities of a block / in a start", "12 / 21", "10 / 14"),
]


def sources(root):
    """Return the parsed files of the package by their path in it."""
    package = root / "skvmf"
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def loose_parameters(trees):
    """Count the parameters that take any estimator: below the estimators, and all."""
    counts = {
        path: sum(
            isinstance(node, ast.arg)
            and node.arg in {"estimator", "mixture"}
            and getattr(node.annotation, "id", None) == "Any"
            for node in ast.walk(tree)
        )
        for path, tree in trees.items()
    }
    below = ("_engine/", "mixture/")
    return sum(n for path, n in counts.items() if path.startswith(below)), sum(counts.values())


def background(trees):
    """Count the branches that ask for the background, and the files that mention it."""
    asks = re.compile(r"background[a-z_]* is (not )?None|^(not )?[\w.]*\bbackground$")
    branches = sum(
        any(asks.search(part) for part in re.split(" and | or ", ast.unparse(test)))
        for tree in trees.values()
        for node in ast.walk(tree)
        for test in conditions(node)
    )
    return branches, sum("background" in ast.unparse(tree) for tree in trees.values())


def conditions(node):
    """Return the conditions of an `if`, a `while` or a comprehension."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def student_files(trees):
    """Count the files that know Student's t: its names, tails and attributes."""
    names = re.compile(r"StudentT|student_t|[Hh]eavy|scale_matrices")
    return sum(bool(names.search(ast.unparse(tree))) for tree in trees.values())


def cycles(trees):
    """Count the strongly connected groups of files that import one another."""
    files = {path.removesuffix(".py").removesuffix("/__init__"): path for path in trees}
    graph = {path: set(imported(path, tree, files)) - {path} for path, tree in trees.items()}
    reach = {path: reached(graph, path) for path in graph}
    groups = {frozenset(end for end in reach[path] if path in reach[end]) for path in graph}
    return len(groups - {frozenset()})


def imported(path, tree, files):
    """Yield the files of the package that a file imports, anywhere in it."""
    package = list(Path(path).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            home = package[: len(package) - node.level + 1]
            base = "/".join([*home, *(node.module or "").split(".")]).strip("/")
            for alias in node.names:
                names = f"{base}/{alias.name}".strip("/"), base
                yield from [files[name] for name in names if name in files][:1]


def reached(graph, start):
    """Return all nodes that can be reached from one by at least one edge."""
    seen, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def sizes(root):
    """Return the number of files of more than 400 lines, the package's lines and the tests'."""
    package, tests = (
        [len(path.read_bytes().splitlines()) for path in (root / folder).rglob("*.py")]
        for folder in ("skvmf", "tests")
    )
    return sum(n > 400 for n in package), sum(package), sum(tests)


def print_hooks():
    """Print how many private names of the base subclasses override, and RelativeGMM alone."""
    from skvmf.mixture import RelativeGMM, _base

    bases = [c for c in _base.BaseMixture.__mro__ if c.__module__.startswith("skvmf.")]
    hooks = {name for c in bases for name in vars(c) if re.match("_(?!_|abc_|sklearn_)", name)}
    overridden, waiting = set(), _base.BaseMixture.__subclasses__()
    while waiting:
        overridden |= hooks & set(vars(subclass := waiting.pop()))
        waiting += subclass.__subclasses__()
    print(json.dumps([len(overridden), len(hooks & set(vars(RelativeGMM)))]))


def print_walk():
    """Print how many files and functions a `fit` visits, and how deep its densities are."""
    import skvmf
    from skvmf.datasets import make_vonmises_fisher_blobs

    package = f"{Path(skvmf.__file__).parent}{os.sep}"
    functions, depths = set(), {False: 0, True: 0}

    def watch(frame, event, argument):
        code = frame.f_code
        if event != "call" or code.co_name == "<module>":
            return
        if code.co_filename.startswith(package):
            functions.add((code.co_filename, code.co_firstlineno, code.co_name))
            if code.co_name == "scores" and "vonmises_fisher" in code.co_filename:
                stack = [file for file in files_up_to_fit(frame) if file.startswith(package)]
                in_a_start = any("initialization" in file for file in stack)
                depths[in_a_start] = max(depths[in_a_start], len(stack))

    X, _ = make_vonmises_fisher_blobs(90, 5, centers=3, concentration=20.0, random_state=0)
    sys.setprofile(watch)
    skvmf.VonMisesFisherMixture(3, random_state=0).fit(X)
    sys.setprofile(None)
    files = {name for name, _, _ in functions}
    print(json.dumps([len(files), len(functions), depths[False], depths[True]]))


def files_up_to_fit(frame):
    """Yield the files of the frames from this one up to the first `fit`."""
    while frame is not None:
        yield frame.f_code.co_filename
        frame = None if frame.f_code.co_name == "fit" else frame.f_back


def in_a_process(root, function):
    """Return what one of the printing functions prints in a process of its own."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", f"import measures; measures.{function}()"]
    return json.loads(subprocess.check_output(command, env=environment, cwd=root))


def read(root):
    """Return the figures that are read from the sources: the first rows of the table."""
    trees, (long, *lines) = sources(root), sizes(root)
    first = [loose_parameters(trees), background(trees), (student_files(trees),)]
    return [*first, (cycles(trees), long), tuple(lines)]


def measure(root):
    """Return all figures, row by row."""
    overridden, relative = in_a_process(root, "print_hooks")
    files, functions, block, start = in_a_process(root, "print_walk")
    return [*read(root), (overridden,), (relative,), (files, functions), (block, start)]


def table(root=ROOT):
    """Return the table as reStructuredText."""
    lines = [".. csv-table::", "   :delim: ;", "   :header: measure; before; goal; now", ""]
    for row, figures in zip(ROWS, measure(root), strict=True):
        lines.append("   " + "; ".join([*row, " / ".join(f"{value:,}" for value in figures)]))
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the measures of a checkout.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to measure")
    print(table(parser.parse_args().root.resolve()))
