"""Draw the diagrams of the architecture page and list every file of the package.

The documentation calls this when it is built, so that neither can be out of date.
"""

import ast
import tomllib
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "skvmf"

LAYERS = [
    "types, warnings and the version: what every file may import",
    "compiled arithmetic on arrays, and scikit-learn's private names",
    "distributions: functions that check their arguments and keep no state",
    "the engine: expectation maximization, NumPy arrays in and out",
    "estimators with scikit-learn's interface",
    "built on fitted mixtures: Fisher vectors, paths over numbers of components",
    "data sets and inspection, which read public attributes; checks of families",
    "plots and the report of clusters",
    "what needs an optional package",
]
COLOURS = [
    *("#cbc7c2", "#d9d3ca", "#e6d9c6", "#f2dfb9"),
    *("#f6e9c6", "#e6ecd0", "#d8e7dc", "#d6e3ec", "#dcd9ea"),
]
ROOMS = {
    "fit": "EM from every start: knows starts and the loop, and no formula",
    "search": "where a fit begins: knows mixtures and samples, and no checkpoints",
    "em": "what a fit repeats: knows families by their contract",
    "families": "what a component is: knows blocks of rows, and no loop",
    "rows": "what is read: knows arrays, threads and workers, and no model",
}
INK, GREY, RED = "#3b3a38", "#8a8178", "#b5533c"

# One EM step: the position of a box, its colour, what happens there and which class does it.
STEP = [
    (0, 21, 0, "read rows in blocks", "RowSource"),
    (27, 21, 3, "score each component", "Family.scores"),
    (54, 21, 5, "assign rows: E-step", "Point.assign"),
    (81, 21, 3, "sum statistics", "Family.moments"),
    (81, 4, 4, "move components: M-step", "Update"),
    (54, 4, 6, "estimate weights", "ModifiedDirichlet"),
    (27, 4, 1, "new parameters", "Params"),
]
PASSED = [
    ("blocks", (19.5, 25), (26.5, 25)),
    ("densities", (46.5, 25), (53.5, 25)),
    ("respons-\nibilities", (73.5, 25), (80.5, 25)),
    ("statistics, summed", (90.5, 20.5), (90.5, 12.5)),
    ("components", (80.5, 8), (73.5, 8)),
    ("weights", (53.5, 8), (46.5, 8)),
    ("until the bound converges", (36.5, 12.5), (36.5, 20.5)),
]


def contract(number):
    """Return the layers of one of import-linter's contracts, the highest first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return tools["importlinter"]["contracts"][number]["layers"]


def layers():
    """Return, per layer, the files of each folder by the folder's path in the package."""
    named = reversed(contract(0))
    return [folders(sorted(names.split(" | "), reverse=True)) for names in named]


def folders(names):
    """Return the files of some packages and modules by folder; a module is in skvmf itself."""
    found = {}
    for name in names:
        module = PACKAGE / f"{name}.py"
        paths = [module] if module.exists() else sorted((PACKAGE / name).rglob("*.py"))
        for path in sorted(paths, key=lambda path: (path.parent, path)):
            folder = f"{path.parent.relative_to(PACKAGE.parent).as_posix()}/"
            found.setdefault(folder, []).append(path)
    return found


def file_list():
    """Return every file with the first sentence of its docstring, as reStructuredText."""
    lines = []
    for number, found in reversed(list(enumerate(layers()))):
        lines += [f"**Layer {number}: {LAYERS[number]}**", ""]
        for path in [path for paths in found.values() for path in paths]:
            name = path.relative_to(ROOT).as_posix().replace("/__init__.py", "/")
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            sentence = " ".join(docstring.partition("\n\n")[0].split())
            lines += [f"- ``{name}``: {sentence}"]
        lines += [""]
    return "\n".join(lines)


def draw_layers():
    """Return a figure of the layers with the name of every file."""
    plan = [lines_of(found) for found in layers()]
    heights = [2.5 * len(lines) + 4 for lines in plan]
    figure, axes = blank(sum(heights) + 1)
    bottom = 0.0
    for number, (lines, height) in enumerate(zip(plan, heights, strict=True)):
        axes.fill_between([0, 100], bottom, bottom + height, color=COLOURS[number], lw=0)
        bottom += height
        axes.text(2, bottom - 2, str(number), weight="bold", va="center", color=RED, size=11)
        axes.text(5, bottom - 2, LAYERS[number], va="center", color=INK, style="italic")
        for i, (folder, line) in enumerate(lines):
            draw_files(axes, bottom - 4.5 - 2.5 * i, folder, line)
    return figure


def lines_of(found):
    """Return the lines of a layer: a folder, and as many names of files as fit."""
    lines = []
    for folder, paths in found.items():
        words = [path.stem for path in paths if path.stem != "__init__"]
        lines += [(folder.removeprefix("skvmf/") or folder, [])] if words else []
        for word in words:
            if sum(len(other) + 3 for other in lines[-1][1]) + len(word) > 92:
                lines.append(("", []))
            lines[-1][1].append(word)
    return lines


def draw_files(axes, y, folder, line):
    style = {"va": "center", "family": "monospace", "size": 7}
    axes.text(28, y, folder, ha="right", color=INK, weight="bold", **style)
    x, frame = 30.5, {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": GREY}
    for word in line:
        axes.text(x, y, word, color=INK, bbox=frame | {"linewidth": 0.4}, **style)
        x += 0.72 * len(word) + 1.9


def draw_rooms():
    """Return a figure of the engine: a column of rooms, each of which imports from lower ones."""
    names = contract(1)
    plan = [lines_of(folders([f"_engine/{name}"])) for name in names]
    heights = [2.5 * len(lines) + 5.5 for lines in plan]
    figure, axes = blank(sum(heights) + 2.5 * (len(names) - 1) + 1)
    top = sum(heights) + 2.5 * (len(names) - 1)
    for i, (name, lines, height) in enumerate(zip(names, plan, heights, strict=True)):
        axes.fill_between([0, 100], top - height, top, color=COLOURS[3 + i], lw=0)
        axes.text(2, top - 2, name, weight="bold", va="center", color=RED, size=11)
        axes.text(16, top - 2, ROOMS[name], va="center", color=INK, style="italic")
        for j, (_, line) in enumerate(lines):
            draw_files(axes, top - 5 - 2.5 * j, "", line)
        top -= height + 2.5
        if i + 1 < len(names):
            arrow = {"arrowstyle": "->", "color": RED}
            axes.annotate("", (50, top), (50, top + 2.5), arrowprops=arrow)
    return figure


def draw_step():
    """Return a figure of one EM step: what happens, in which class, and what it passes on."""
    figure, axes = blank(32)
    for x, y, colour, action, name in STEP:
        axes.fill_between([x, x + 19], y, y + 8, color=COLOURS[colour], lw=0)
        axes.text(x + 9.5, y + 5, action, ha="center", style="italic", color=INK)
        axes.text(x + 9.5, y + 1.8, name, ha="center", family="monospace", color=INK)
    for what, (x, y), end in PASSED:
        axes.annotate("", end, (x, y), arrowprops={"arrowstyle": "->", "color": RED})
        across = end[1] == y
        place = ((x + end[0]) / 2, y + 1) if across else (x + 1, (y + end[1]) / 2)
        axes.text(*place, what, ha="center" if across else "left", color=GREY, size=6.5)
    return figure


def blank(height):
    """Return an empty figure 100 units wide and of the given height, and its axes."""
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "skvmf", "font.size": 8}
    figure = Figure(figsize=(9, 0.09 * height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-2.5, 102.5), ylim=(-1, height))
    axes.axis("off")
    return figure, axes


DRAWINGS = {"layers": draw_layers, "rooms": draw_rooms, "em_step": draw_step}


def write(folder):
    """Write the diagrams and the list of files to a folder."""
    for name, draw in DRAWINGS.items():
        draw().savefig(folder / f"{name}.svg", metadata={"Date": None})
    (folder / "files.rst").write_text(file_list(), encoding="utf-8")
