"""Reproduce a table or figure of one of the papers.

``python -m reproduction --list`` says what there is, ``python -m reproduction P0.fig2`` runs an
item, ``python -m reproduction all --data FOLDER`` everything that FOLDER has the data for.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

from . import claims
from .items import Missing, Setting, load
from .page import draw
from .results import commit, keep, kept, processor, shown


def main(arguments=None):
    """Run what the command line asks for, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="ITEM", help='as in the list, as "P0" for a paper, or "all"')
    add("--list", action="store_true", help="say what there is, with CPU hours of the kept runs")
    add("--data", type=Path, metavar="FOLDER", help="files of data, see reproduction.prepare")
    add("--pictures", type=Path, metavar="FOLDER", help="where to save them (needs matplotlib)")
    add("--cache", type=Path, metavar="FOLDER", help="keeps word vectors for later runs")
    add("--trained", type=Path, metavar="FILE", help="keeps what trained networks gave")
    add("--keep", action="store_true", help="keep the figures as records, of which pages are made")
    for name in ("epochs", "seeds"):
        add(f"--{name}", type=int, metavar="N", help="fewer than the papers', to save time")
    add("--show", action="store_true", help="print the records instead of running anything")
    add("--small", action="store_true", help="the sizes of tests: not results")
    options = parser.parse_args(arguments)
    commit()  # before anything runs: others may be checked out meanwhile
    items = load()
    known = {"all", *items, *(name.split(".")[0] for name in items)}
    if unknown := sorted(set(options.names) - known):
        parser.error(f"There is no {', '.join(unknown)}; --list says what there is.")
    if options.keep and options.small:
        parser.error("--keep is for full runs: what --small prints are no results.")
    wanted = {"all"} if options.list or not options.names else set(options.names)
    chosen = [i for i in items.values() if wanted & {"all", i.name, i.name.split(".")[0]}]
    if options.list or not options.names:
        for own in chosen:
            needs = f"  (needs {', '.join(own.needs)})" if own.needs else ""
            print(f"{own.name:16}{time_of([own])}  {own.title}{needs}")
        print(f"{'all':16}{time_of(chosen)}")
        return 0
    failed = [own.name for own in chosen if not (show if options.show else run)(own, options)]
    if failed:
        print(f"\nNot run: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def time_of(chosen):
    """Return hours of a core, and minutes of a GPU where one was used, of the kept runs."""
    hours, minutes = map(sum, zip(*(own.hours for own in chosen), strict=True))
    gpu = f"+ {minutes:.0f} min GPU" if minutes else ""
    return f"{hours:6.2f} h CPU {gpu:13}"


def heading(item):
    """Return an item's name and title, underlined."""
    line = f"{item.name}: {item.title}"
    return f"\n{line}\n{'=' * len(line)}"


def show(item, options):
    """Print an item's record and its verdicts."""
    record = kept(item.name)
    print(heading(item))
    print(f"{shown(record)}\n{claims.shown(item.name, record)}" if record else "Without a record.")
    return True


def run(item, options):
    """Run an item, print what it gives and keep it where that is asked for."""
    print(heading(item), flush=True)
    start = time.process_time()
    fewer = {"epochs": options.epochs, "seeds": options.seeds}
    fewer = {name: own for name, own in fewer.items() if own}
    setting = Setting(options.data, options.cache, options.trained, options.small, fewer)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the papers' settings end fits early, and say so
            record = item.run(setting)
    except (Missing, ModuleNotFoundError) as error:
        print(f"Not run. {error}")
        return False
    minutes = record.minutes + (time.process_time() - start) / 60
    record.minutes, record.commit, record.machine = float(f"{minutes:.2g}"), commit(), processor()
    print(f"{shown(record)}\n{claims.shown(item.name, record)}\n{minutes:.1f} minutes", flush=True)
    if options.keep:
        keep(item.name, claims.summarized(item.name, record))
    if options.pictures and item.draw:
        draw(item, record, options.pictures / f"{item.name}.png")  # needs matplotlib
    return True


if __name__ == "__main__":
    sys.exit(main())
