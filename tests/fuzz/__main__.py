"""Try many cases and print the smallest code for every broken promise."""

import argparse
import sys
import time
from collections import Counter
from random import Random

from hypothesis import Phase, find, settings
from hypothesis.errors import Flaky, NoSuchExample

from .runs import failures
from .strategies import STRATEGIES


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=5000, help="in all, shared by the estimators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=STRATEGIES, action="append", help="an estimator")
    parser.add_argument("--promises", type=int, help="of each case, drawn by chance; else all")
    options = parser.parse_args()
    chosen = options.only or list(STRATEGIES)
    broken = 0
    for name in chosen:
        broken += explore(name, options.cases // len(chosen), options.seed, options.promises)
    sys.exit(broken > 0)


def explore(name, n_cases, seed, n_promises=None):
    """Try cases of one estimator; return in how many ways they fail."""
    chance = Random(seed)
    first, counts, refusals, broken = {}, Counter(), Counter(), []
    began = time.time()

    def note(case):
        found = failures(case, refusals, drawn(case.promises, n_promises, chance))
        broken.append(bool(found))
        for failure in found:
            counts[failure.key] += 1
            first.setdefault(failure.key, (case, failure))
        return False  # so that all cases are tried

    search(name, n_cases, seed, note)
    print(
        f"\n===== {name}: {len(broken)} cases, {refusals.total()} refused, {sum(broken)} broken; "
        f"{time.time() - began:.0f} s"
    )
    for message, count in refusals.most_common():
        print(f"    {count} x refused: {message}", flush=True)
    for key, count in counts.most_common():
        case, failure = first[key]
        smaller = search(name, n_cases, seed, alike_from(case, failure))
        if smaller is not None:
            case, failure = smaller, alike(smaller, failure) or failure
        print(
            f"\n--- {count} x {failure.promise}: {failure.message[:400]}\n{case.code()}", flush=True
        )
    return len(first)


def drawn(promises, number, chance):
    """Return some of the promises, in their order; all of them where no number is given."""
    if number is None or number >= len(promises):
        return promises
    return [promises[i] for i in sorted(chance.sample(range(len(promises)), number))]


def search(name, n_cases, seed, condition):
    """Return the smallest case for which a condition holds; None if for none, or not twice.

    The cases that are tried before it holds depend on the name, their number and the seed alone.
    """
    options = settings(
        max_examples=n_cases, database=None, deadline=None, phases=[Phase.generate, Phase.shrink]
    )
    try:
        return find(STRATEGIES[name], condition, settings=options, random=Random(seed))
    except (NoSuchExample, Flaky):
        return None


def alike_from(first, failure):
    """Return a condition: a case fails as the first one does that is known to.

    Cases that are tried before that one need no fit.
    """
    met = False

    def fails(case):
        nonlocal met
        met = met or case == first
        return met and alike(case, failure) is not None

    return fails


def alike(case, failure):
    """Return in which way a case breaks the same promise, if in the same way; else None."""
    promises = [promise for promise in case.promises if promise.__name__ == failure.promise]
    found = failures(case, promises=promises)
    return next((each for each in found if each.key == failure.key), None)


if __name__ == "__main__":
    main()
