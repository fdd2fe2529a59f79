"""The time that finding modes takes of a fit, for which NumPy is fast enough."""

import time

import numpy as np

from skvmf import SparseGaussianMixture
from skvmf.distributions.modified_dirichlet import modes
from skvmf.grammar import DependencyModelWithValence

from .items import item
from .p1_mixtures import draw
from .results import Result, Table


@item("guide.mode", "the time of finding modes")
def mode(setting):
    """Time modes of the sizes of a mixture and of a grammar, and a step of each fit."""
    rng = np.random.default_rng(0)
    table = Table(
        "Microseconds of CPU time: the modes of one step, and the step",
        ["model", "modes", "step", "share of the step"],
        4,
    )
    X = draw(setting.size(200, 50), rng)
    mixture = SparseGaussianMixture(5, weight_concentration_prior=-1.0, reg_covar=1e-6, tol=0)
    tags = [str(i) for i in range(37)]
    sentences = [list(rng.choice(tags, 8)) for _ in range(setting.size(5000, 20))]
    grammar = DependencyModelWithValence(tags=tags, weight_concentration_prior=-1.0, tol=0)
    for name, shapes, model, data in (
        ("mixture of 5 components, 200 rows", [(5,)], mixture, X),
        (
            "grammar of 37 tags, 5,000 sentences",
            [(37,), (37, 2, 2, 2), (37, 2, 37)],
            grammar,
            sentences,
        ),
    ):
        counts = [rng.exponential(size=shape) * 10 - 2 for shape in shapes]
        found = microseconds(lambda c=counts: [modes(own, 1e-5) for own in c], 100)
        model.set_params(max_iter=1, random_state=0).fit(data)
        few, many = (
            microseconds(lambda n=n, m=model, d=data: m.set_params(max_iter=n).fit(d), 3)
            for n in (2, 12)
        )
        step = max(many - few, 1.0) / 10
        table.add(name, found, step, found / step)
    return Result(
        "Medians: of 100 calls of the modes, and of three fits of 12 steps less three of 2.",
        "0",
        [table],
    )


def microseconds(function, repeats):
    """Return the median CPU time of a call."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        function()
        times.append(time.thread_time() - start)
    return 1e6 * float(np.median(times))
