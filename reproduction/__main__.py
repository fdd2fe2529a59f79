"""Reproduce a table or figure of one of the papers.

``python -m reproduction --list`` says what there is, ``python -m reproduction P0.fig2`` runs an
item, ``python -m reproduction all --data FOLDER`` everything that FOLDER has the data for.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

from . import claims, reduced
from .items import Missing, Setting, load
from .results import commit, read, shown, write


def main(arguments=None):
    """Run what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="ITEM", help='as in the list, as "P0" for a paper, or "all"')
    add("--list", action="store_true", help="say what there is, with minutes on one core")
    add("--data", type=Path, metavar="FOLDER", help="files of data, see reproduction.prepare")
    add("--pictures", type=Path, metavar="FOLDER", help="where to save them (needs matplotlib)")
    add("--cache", type=Path, metavar="FOLDER", help="keeps what is trained for later runs")
    add("--keep", action="store_true", help="keep the figures as records, of which pages are made")
    add("--epochs", type=int, metavar="N", help="of autoencoders, fewer than the paper's")
    add("--seeds", type=int, metavar="N", help="of autoencoders, fewer than the paper's")
    add("--show", action="store_true", help="print the records instead of running anything")
    add(
        "--small",
        action="store_true",
        help="parts of the data and the sizes of tests: seconds, not results",
    )
    options = parser.parse_args(arguments)
    commit()  # before anything runs: others may be checked out meanwhile
    items = load()
    if options.list or not options.names:
        print(overview(items.values()))
        return 0
    if options.keep and options.small:
        parser.error("--keep is for full runs: what --small prints are no results.")
    chosen = choose(items, options.names, parser)
    if options.show:
        print("\n\n".join(map(kept, chosen)))
        return 0
    with TemporaryDirectory() as parts:
        if options.small and options.data:
            reduced.copy(options.data, Path(parts))
            options.data = Path(parts)
        if not options.small:
            print(f"{len(chosen)} items, about {sum(own.minutes for own in chosen):.0f} minutes.")
        start = time.process_time()
        failed = [own.name for own in chosen if not run(own, options)]
        print(f"\n{time.process_time() - start:.0f} seconds of CPU time.")
    if failed:
        print(f"\nNot run: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def choose(items, names, parser):
    """Return the items that names, papers or "all" stand for."""
    chosen = [
        own
        for own in items.values()
        if "all" in names or own.name in names or own.name.split(".")[0] in names
    ]
    known = {"all", *items, *(name.split(".")[0] for name in items)}
    if unknown := sorted(set(names) - known):
        parser.error(f"There is no {', '.join(unknown)}; --list says what there is.")
    return chosen


def overview(items):
    """Return a line for each item."""
    lines = [
        f"{own.name:14}{own.minutes:6.1f} min  {own.title}"
        + (f"  (needs {', '.join(own.needs)})" if own.needs else "")
        for own in items
    ]
    total = sum(own.minutes for own in items)
    return "\n".join([*lines, f"{'all':14}{total:6.0f} min"])


def heading(item):
    """Return an item's name and title, underlined."""
    line = f"{item.name}: {item.title}"
    return f"{line}\n{'=' * len(line)}"


def kept(item):
    """Return an item's record and its verdicts as text."""
    if not item.record.exists():
        return f"{heading(item)}\nWithout a record."
    record = read(item.record)
    return f"{heading(item)}\n{shown(record)}\n{claims.shown(item.name, record)}"


def run(item, options):
    """Run an item, print what it gives and keep it where that is asked for."""
    print(f"\n{heading(item)}", flush=True)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the papers' settings end fits early, and say so
            more = {"epochs": options.epochs, "seeds": options.seeds}
            result = item.run(Setting(options.data, options.cache, options.small, **more))
    except (Missing, ModuleNotFoundError) as error:
        print(f"Not run. {error}")
        return False
    record = result.record(time.process_time() - start)
    print(shown(record), flush=True)
    print(claims.shown(item.name, record), flush=True)
    if options.keep:
        write(item.record, record)
    if options.pictures and result.draw:
        save(item, result, options.pictures)
    return True


def save(item, result, folder):
    """Draw the picture of an item into a file."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("No picture: pip install matplotlib to have it drawn.")
        return
    figure = Figure(figsize=(10, 4.2), layout="constrained", dpi=120)
    result.draw(figure)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{item.name}.png"
    figure.savefig(path)
    print(f"Picture: {path}")


if __name__ == "__main__":
    sys.exit(main())
