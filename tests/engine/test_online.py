"""Online EM: what is remembered of a stream."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skvmf._engine.contracts import Params, Statistics
from skvmf._engine.em import blended, step
from skvmf._engine.gaussian import Gaussian
from skvmf._engine.model import (
    FenchelYoungPosterior,
    FittedMixture,
    Mixture,
    ModifiedDirichlet,
)
from skvmf._engine.rows import make_rows


def statistics(total, *, worst_value=0.0, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.dirichlet(np.ones(3)) * total
    moments = rng.normal(size=(3, 2)) * total, rng.normal(size=3) * total
    return Statistics(
        -1.0 * total, total, counts, moments, None, np.array([worst_value]), np.array([seed])
    )


@pytest.mark.parametrize("decay", [0.3, 0.7, 1.0])
def test_the_gain_is_a_power_of_the_share(decay):
    memory, batch = statistics(70.0, worst_value=-1e9, seed=1), statistics(10.0, seed=2)
    gain = (10.0 / 80.0) ** decay
    found = blended(memory, batch, decay)
    for blend, old, new in [
        (found.counts, memory.counts, batch.counts),
        *zip(found.moments, memory.moments, batch.moments, strict=True),
    ]:
        assert_allclose(blend / found.total, (1 - gain) * old / 70.0 + gain * new / 10.0)
    assert_allclose(found.counts.sum(), found.total)
    if decay == 1:
        assert found.total == 80  # plain sums
    assert found.worst_values == batch.worst_values  # the least likely row is the batch's
    assert_array_equal(found.worst_rows, batch.worst_rows)
    for given, made in [(memory, statistics(70.0, seed=1)), (batch, statistics(10.0, seed=2))]:
        assert_array_equal(given.counts, made.counts)  # arguments stay as they were
        assert_array_equal(given.moments[0], made.moments[0])


def test_steps_are_those_of_the_formulas():
    """Two components in one dimension, by hand, with moments about zero."""
    rng = np.random.default_rng(0)
    family = Gaussian(1, "spherical")
    spec = Mixture(family, FenchelYoungPosterior(), ModifiedDirichlet())
    weights, means, variances = np.array([0.4, 0.6]), np.array([-1.0, 2.0]), np.array([1.0, 2.0])
    params = Params.first(weights, family.components(means[:, None], variances))
    fitted, memory = FittedMixture(spec, params), None
    remembered, seen = 0.0, 0.0
    for size in (40, 10, 25):
        x, w = rng.normal(size=size) * 3, rng.uniform(0.5, 2, size)
        rows = make_rows(x[:, None], w, unit=False)
        fitted, memory = step(spec, rows, fitted, memory, decay=0.7)
        density = weights * np.exp(-0.5 * (x[:, None] - means) ** 2 / variances)
        resp = density / np.sqrt(variances)
        resp /= resp.sum(axis=1, keepdims=True)
        batch = np.array([w @ resp, (w * x) @ resp, (w * x * x) @ resp]) / w.sum()
        seen += w.sum()
        gain = (w.sum() / seen) ** 0.7
        remembered = (1 - gain) * remembered + gain * batch
        weights, means = remembered[0], remembered[1] / remembered[0]
        variances = remembered[2] / remembered[0] - means**2
        assert_allclose(memory.total, seen)
        assert_allclose(fitted.params.weights, weights)
        assert_allclose(fitted.params.components.means[:, 0], means)
        assert_allclose(fitted.params.components.covariances, variances)
