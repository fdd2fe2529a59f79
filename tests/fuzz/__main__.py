"""Try many cases and print the smallest code for every broken promise."""

import argparse
import sys
import time
from collections import Counter
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from .runs import failures
from .shrinking import smallest
from .strategies import STRATEGIES


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=5000, help="in all, shared by the estimators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=STRATEGIES, action="append", help="an estimator")
    parser.add_argument("--promises", type=int, help="of each case, drawn by chance; else all")
    parser.add_argument("--steps", type=int, default=60, help="of shrinking, for each failure")
    options = parser.parse_args()
    chosen = options.only or list(STRATEGIES)
    broken = 0
    for name in chosen:
        n_cases = options.cases // len(chosen)
        broken += explore(name, n_cases, options.seed, options.promises, options.steps)
    sys.exit(broken > 0)


def explore(name, n_cases, number, n_promises, n_steps):
    """Try cases of one estimator; return in how many ways they fail."""
    chance = Random(number)
    first, counts, refusals, broken = {}, Counter(), Counter(), []
    began = time.time()

    @seed(number)
    @settings(
        max_examples=n_cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(STRATEGIES[name])
    def run(case):
        found = failures(case, refusals, drawn(case.promises, n_promises, chance))
        broken.append(bool(found))
        for failure in found:
            counts[failure.key] += 1
            first.setdefault(failure.key, (case, failure))

    run()
    print(
        f"\n===== {name}: {len(broken)} cases, {refusals.total()} refused, {sum(broken)} broken; "
        f"{time.time() - began:.0f} s"
    )
    for message, count in refusals.most_common():
        print(f"    {count} x refused: {message}", flush=True)
    for key, count in counts.most_common():
        case, failure = smallest(*first[key], n_steps)
        print(
            f"\n--- {count} x {failure.promise}: {failure.message[:400]}\n{case.code()}", flush=True
        )
    return len(first)


def drawn(promises, number, chance):
    """Return some of the promises, in their order; all of them where no number is given."""
    if number is None or number >= len(promises):
        return promises
    return [promises[i] for i in sorted(chance.sample(range(len(promises)), number))]


if __name__ == "__main__":
    main()
