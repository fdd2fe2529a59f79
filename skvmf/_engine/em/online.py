"""Online EM: a step for each batch of a stream, by statistics that fade as others come.

See Cappé and Moulines, "On-line expectation-maximization algorithm for latent data models",
Journal of the Royal Statistical Society B 71, 2009.
"""

from dataclasses import replace

import numpy as np

from ..families.statistics import Statistics
from ..rows.sources import RowSource
from .mixture import FittedMixture, Mixture
from .weight_prior import FLAT

_LEAST_SHARE = 1e-300  # of a batch in the weight seen: others are as if they had no weight


def step(
    spec: Mixture,
    rows: RowSource,
    fitted: FittedMixture,
    memory: Statistics | None,
    *,
    decay: float,
) -> tuple[FittedMixture, Statistics | None]:
    """Return the mixture after a batch, and the statistics that are remembered.

    `memory` is that of all rows seen, None before the first batch. A prior that is centred on a
    partition is centred on what is remembered. A batch without weight changes nothing.
    """
    spec = replace(spec, family=fitted.family.continued_by(spec.family))
    if rows.total_weight == 0:
        return replace(spec, family=fitted.family).fitted(fitted.params, memory)
    components = spec.family.adapted(fitted.params.components)
    params = replace(fitted.params, components=components)
    stats = replace(spec.expectation(params, rows), unit=rows.weight_unit)
    if memory is not None:
        about = spec.family.centred_at(components)
        moved = spec.family.shift_moments(memory.first_components(len(components)), about)
        stats = blended(replace(moved, counts=memory.counts), stats, decay)
    of_components = stats.first_components(len(components))
    if of_components.counts.any():  # else the background has every row
        spec = replace(spec, family=spec.family.with_prior_from(of_components))
    params = spec.maximize(stats, params, rows)
    return spec.fitted(params, replace(stats, buffers=None))


def weight_seen(memory: Statistics | None, rows: RowSource) -> float:
    """Return the weight of a batch and of the rows before, in the larger of their units."""
    if memory is None:
        return rows.total_weight
    unit = max(memory.unit, rows.weight_unit)
    return memory.total * (memory.unit / unit) + rows.total_weight * (rows.weight_unit / unit)


def flat_at_first(spec: Mixture, n_components: int, weight_seen: float) -> Mixture:
    """Return the mixture with a flat prior while its prior takes half of the rows seen or more."""
    taken = np.maximum(1 - np.asarray(spec.weight_prior.alpha), 0)
    total_taken = taken.sum() if taken.ndim else n_components * taken
    if weight_seen >= 2 * total_taken:
        return spec
    return replace(spec, weight_prior=FLAT)


def blended(memory: Statistics, batch: Statistics, decay: float) -> Statistics:
    """Return what is remembered after a batch whose moments are about the same points.

    Per unit of weight it is (1 - g) of the memory and g of the batch, for its share in the weight
    seen to the power of `decay`, g: a decay of 1 gives plain sums. The least likely rows are the
    batch's.
    """
    unit = max(memory.unit, batch.unit)
    no_values, no_rows = batch.worst_values[:0], batch.worst_rows[:0]
    memory = replace(memory.in_unit(unit), worst_values=no_values, worst_rows=no_rows)
    batch = batch.in_unit(unit)
    seen = memory.total + batch.total
    if min(memory.total, batch.total) < _LEAST_SHARE * seen:
        return batch if batch.total > memory.total else memory
    gain = (batch.total / seen) ** decay
    total = batch.scaled(gain * (seen / batch.total))
    total += memory.scaled((1 - gain) * (seen / memory.total))
    return replace(total, total=seen)
