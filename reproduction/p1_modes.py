"""P1, finding the mode of the modified Dirichlet: Algorithms 1 and 2."""

import time

import numpy as np

from skvmf._kernels import simplex
from skvmf.distributions import modified_dirichlet

from .items import item
from .results import Record, Table

SHARES = (0.1, 0.9, 0.999, 0.999999)  # of the largest floor, 1/n


@item("P1.alg", "finding the mode (Algorithms 1 and 2)", small={"total": 100})
def algorithms(setting, total=2000):
    """Hold the printed algorithms against a search over what may be on the floor."""
    rng = np.random.default_rng(0)
    right = dict.fromkeys(["Algorithm 1", "Algorithm 2 as printed", "Algorithm 2, corrected"], 0)
    for _ in range(total):
        n = int(rng.integers(2, 8))
        alpha, floor = rng.normal(1, 3, size=n), rng.uniform(1e-6, 1 / n)
        alpha[0] = 1 + rng.exponential()  # the printed ones need one above 1
        best = mode_by_search(alpha, floor)
        for name, x in (
            ("Algorithm 1", modified_dirichlet.mode(alpha, floor)),
            ("Algorithm 2 as printed", as_printed(alpha, floor)),
            ("Algorithm 2, corrected", modified_dirichlet.mode(alpha, floor, method="sorting")),
        ):
            right[name] += bool(np.abs(x - best).max() < 1e-9)
    modes = Table("Right modes of random parameters", ["algorithm", "share", "right"], 4)
    for name, count in right.items():
        modes.add(name, count / total, f"{count} of {total}")
    rounds = Table("Share of random parameters at which one round is enough", ["floor", "share"])
    for floor in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        rng = np.random.default_rng(0)
        alphas = (rng.normal(1, 3, size=int(rng.integers(2, 38))) for _ in range(total))
        rounds.add(f"{floor:g}", np.mean([one_round(alpha, floor) for alpha in alphas]))
    return Record(
        "Two to seven entries, normal parameters, at least one of them above 1; rounds: two to 37 "
        "entries, of which none above 1 is below the floor after the first.",
        "0",
        [modes, rounds],
    )


def one_round(alpha, floor):
    """Return whether Algorithm 1 ends after one iteration."""
    free = alpha > 1
    x = (alpha[free] - 1) / (alpha[free] - 1).sum() * (1 - floor * (~free).sum())
    return bool((x >= floor).all())


def as_printed(alpha, floor):
    """Return what Algorithm 2 gives, line by line as printed."""
    order = np.argsort(alpha)
    sums = np.cumsum((alpha[order] - 1)[::-1])[::-1]
    x, t = np.empty(len(alpha)), 0
    for i, k in enumerate(order):
        with np.errstate(divide="ignore", invalid="ignore"):
            x[k] = (alpha[k] - 1) / sums[i] * (1 - floor * t)
        if x[k] < floor:
            x[k], t = floor, t + 1
    return x


def mode_by_search(alpha, floor):
    """Return the mode: entries on the floor are those of the smallest parameters, so try all."""
    order, n = np.argsort(alpha), len(alpha)
    best, value = None, -np.inf
    for count in range(n):
        free = order[count:]
        if (alpha[free] <= 1).any():
            continue
        x = np.full(n, floor)
        x[free] = (alpha[free] - 1) / (alpha[free] - 1).sum() * (1 - floor * count)
        own = modified_dirichlet.log_kernel(x, alpha)
        if x.min() >= floor * (1 - 1e-12) and own > value:
            best, value = x, own
    return best


@item("P1.speed", "which algorithm is faster", small={"sizes": (100,), "seeds": 2})
def speed(setting, sizes=(1000, 10_000, 100_000, 1_000_000), seeds=10):
    """Time both algorithms on random parameters, by their number and the floor."""
    title = "Time of Algorithm 1 over that of Algorithm 2"
    table = Table(title, ["entries", *(f"floor {share:g}/n" for share in SHARES)], 2)
    ratio_of_times(np.arange(3.0), 0.01)  # compiles both
    for n in sizes:
        drawn = [np.random.default_rng(seed).normal(0, 3, n) for seed in range(seeds)]
        table.add(f"{n:,}", *([ratio_of_times(own, c / n) for own in drawn] for c in SHARES))
    return Record(
        "Both as skvmf runs them, Algorithm 2 corrected and with its sorting; the shortest of five "
        "CPU times each. Parameters are normal, with deviation 3 about 1.",
        f"{seeds} draws of parameters, from 0",
        [table],
    )


def ratio_of_times(excess, floor):
    """Return the time of Algorithm 1 over that of Algorithm 2, for the vector alpha - 1."""
    x = np.empty(len(excess))

    def by_rounds():
        simplex.mode_by_rounds(excess[np.newaxis], floor, x[np.newaxis])

    def by_sorting():
        simplex.mode_by_sorting(excess, np.argsort(excess), floor, x)

    times = []
    for run in (by_rounds, by_sorting):
        times.append(np.inf)
        for _ in range(5):
            start = time.process_time()
            run()
            times[-1] = min(times[-1], time.process_time() - start)
    return times[0] / times[1]
