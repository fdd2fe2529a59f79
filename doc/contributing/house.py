"""Draw the house from the code, and list its files: ``python doc/contributing/house.py``.

The pictures are kept in ``doc/_static``, and the tests say when they have fallen behind the
code; the list is made anew whenever the documentation is built.
"""

import ast
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "skvmf"
STATIC = ROOT / "doc" / "_static"

PURPOSES = [
    "compiled arithmetic on arrays, and the doors to other packages",
    "densities, entropies, samplers: public, checked, without state",
    "the loop and its four answers: NumPy in, NumPy out",
    "estimators, as scikit-learn has them",
    "what is made of mixtures: vectors of bags, paths over numbers of components",
    "data, insight and pictures, from what estimators publish",
    "what needs an optional package",
]
COLOURS = ["#d9d3ca", "#e6d9c6", "#f2dfb9", "#f6e9c6", "#e6ecd0", "#d8e7dc", "#d6e3ec"]
INK, EARTH, TILES = "#3b3a38", "#8a8178", "#b5533c"

# A step of EM: where a box stands, its colour, the question and who answers it.
STEP = [
    (0, 21, 0, "where are the rows?", "RowSource"),
    (27, 21, 3, "what is a component?", "Family.scores"),
    (54, 21, 5, "how is a row shared?", "Posterior.assign"),
    (81, 21, 3, "what does that add?", "Family.moments"),
    (81, 4, 4, "how do they move?", "Update"),
    (54, 4, 6, "how are weights chosen?", "WeightUpdate, Prior"),
    (27, 4, 1, "what is known now?", "Params"),
]
PASSED = [
    ("blocks", (19.5, 25), (26.5, 25)),
    ("densities", (46.5, 25), (53.5, 25)),
    ("shares", (73.5, 25), (80.5, 25)),
    ("statistics, added", (90.5, 20.5), (90.5, 12.5)),
    ("components", (80.5, 8), (73.5, 8)),
    ("and weights", (53.5, 8), (46.5, 8)),
    ("until the bound stands still", (36.5, 12.5), (36.5, 20.5)),
]


def floors():
    """Return what exists on each floor: files, by the name of their package or module."""
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    [named] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS"
    ]
    return [
        {name: files(name) for name in sorted(names, reverse=True) if files(name)}
        for names in named
    ]


def files(name):
    """Return the source files of a package, or the module of that name."""
    module = PACKAGE / f"{name}.py"
    return [module] if module.exists() else sorted((PACKAGE / name).glob("*.py"))


def file_list():
    """Return every file with the first sentence of its docstring, as reStructuredText."""
    lines = []
    for number, rooms in reversed(list(enumerate(floors()))):
        lines += [f"Floor {number}: {PURPOSES[number]}.", ""]
        for path in [path for paths in rooms.values() for path in paths]:
            name = path.relative_to(ROOT).as_posix().replace("/__init__.py", "/")
            says = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            sentence = " ".join(says.partition("\n\n")[0].split())
            lines += [f"- ``{name}``: {sentence}"]
        lines += [""]
    return "\n".join(lines)


def draw_house():
    """Return a figure of the floors, with a brick for every file."""
    plan = [brick_lines(rooms) for rooms in floors()]
    heights = [2.5 * len(lines) + 4 for lines in plan]
    figure, axes = blank(sum(heights) + 10)
    bottom = 0.0
    for number, (lines, height) in enumerate(zip(plan, heights, strict=True)):
        axes.fill_between([0, 100], bottom, bottom + height, color=COLOURS[number], lw=0)
        bottom += height
        axes.text(2, bottom - 2, str(number), weight="bold", va="center", color=TILES, size=11)
        axes.text(5, bottom - 2, PURPOSES[number], va="center", color=INK, style="italic")
        for i, (room, line) in enumerate(lines):
            draw_bricks(axes, bottom - 4.5 - 2.5 * i, room, line)
    axes.fill([-2, 50, 102], [bottom, bottom + 9, bottom], color=TILES, lw=0)
    axes.text(50, bottom + 2.4, "import skvmf", ha="center", color="white", family="monospace")
    return figure


def brick_lines(rooms):
    """Return the lines of a floor: a room, and as many names of files as fit beside it."""
    modules = [paths[0].name for name, paths in rooms.items() if paths[0].stem == name]
    names = {"skvmf/": sorted(modules)} if modules else {}
    for name, paths in rooms.items():
        if paths[0].name not in modules:
            names[f"{name}/"] = [path.stem for path in paths if path.stem != "__init__"]
    lines = []
    for room, words in names.items():
        lines.append((room, []))
        for word in words:
            if sum(len(other) + 3 for other in lines[-1][1]) + len(word) > 108:
                lines.append(("", []))
            lines[-1][1].append(word)
    return lines


def draw_bricks(axes, y, room, line):
    style = {"va": "center", "family": "monospace", "size": 7}
    axes.text(18, y, room, ha="right", color=INK, weight="bold", **style)
    x, frame = 20.5, {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": EARTH}
    for word in line:
        axes.text(x, y, word, color=INK, bbox=frame | {"linewidth": 0.4}, **style)
        x += 0.72 * len(word) + 1.9


def draw_loop():
    """Return a figure of a step of EM: what is asked, of whom, and what goes on from there."""
    figure, axes = blank(32)
    for x, y, colour, question, answer in STEP:
        axes.fill_between([x, x + 19], y, y + 8, color=COLOURS[colour], lw=0)
        axes.text(x + 9.5, y + 5, question, ha="center", style="italic", color=INK)
        axes.text(x + 9.5, y + 1.8, answer, ha="center", family="monospace", color=INK)
    for what, (x, y), end in PASSED:
        axes.annotate("", end, (x, y), arrowprops={"arrowstyle": "->", "color": TILES})
        across = end[1] == y
        place = ((x + end[0]) / 2, y + 1) if across else (x + 1, (y + end[1]) / 2)
        axes.text(*place, what, ha="center" if across else "left", color=EARTH, size=6.5)
    return figure


def blank(height):
    """Return an empty figure, 100 units wide and so many high, and its axes."""
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "skvmf", "font.size": 8}
    figure = Figure(figsize=(9, 0.09 * height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-2.5, 102.5), ylim=(-1, height))
    axes.axis("off")
    return figure, axes


if __name__ == "__main__":
    for name, draw in [("house", draw_house), ("loop", draw_loop)]:
        draw().savefig(STATIC / f"{name}.svg", metadata={"Date": None})
