"""Online EM: a step for each batch of a stream, by statistics that fade as others come.

See Cappé and Moulines, "On-line expectation-maximization algorithm for latent data models",
Journal of the Royal Statistical Society B 71, 2009.
"""

from dataclasses import replace

import numpy as np

from ..families.statistics import Statistics
from ..rows.sources import RowSource
from .mixture import Mixture, Point
from .weight_prior import FLAT

# A batch with a smaller share of the weight seen is as if it had none: quotients would underflow.
_MIN_SHARE = 1e-300


def step(
    mixture: Mixture, rows: RowSource, fitted: Point, running: Statistics | None, *, decay: float
) -> tuple[Point, Statistics | None]:
    """Return the fit after a batch, and its running statistics.

    `running` are those of all rows seen, None before the first batch. A prior that is centred on a
    partition is centred on them. A batch without weight changes nothing.
    """
    family = fitted.family.continued_by(mixture.family)
    if rows.total_weight == 0:
        unchanged = Point(replace(mixture, family=fitted.family), fitted.params)
        return unchanged.sorted(running)
    components = family.adapted(fitted.components)
    point = Point(replace(mixture, family=family), replace(fitted.params, components=components))
    point.refuse_known(rows)
    stats = replace(point.expect(rows), unit=rows.weight_unit)
    if running is not None:
        centred_at = family.centred_at(components)
        shifted = family.shift_moments(running.first_components(len(components)), centred_at)
        stats = blended(replace(shifted, counts=running.counts), stats, decay)
    of_components = stats.first_components(len(components))
    if of_components.counts.any():  # else the background has every row
        family = family.with_prior_from(of_components)
    point = Point(replace(mixture, family=family), point.params).maximize(stats, rows)
    return point.sorted(replace(stats, buffers=None))


def weight_seen(running: Statistics | None, rows: RowSource) -> float:
    """Return the weight of a batch and of the rows before, in the larger of their units."""
    if running is None:
        return rows.total_weight
    unit = max(running.unit, rows.weight_unit)
    return running.total * (running.unit / unit) + rows.total_weight * (rows.weight_unit / unit)


def flat_at_first(mixture: Mixture, n_components: int, weight_seen: float) -> Mixture:
    """Return the mixture with a flat prior while its prior takes half of the rows seen or more."""
    taken = np.maximum(1 - np.asarray(mixture.weight_prior.alpha), 0)
    total_taken = taken.sum() if taken.ndim else n_components * taken
    if weight_seen >= 2 * total_taken:
        return mixture
    return replace(mixture, weight_prior=FLAT)


def blended(running: Statistics, batch: Statistics, decay: float) -> Statistics:
    """Return running statistics after a batch whose moments are about the same points.

    Per unit of weight they are (1 - g) of the running ones and g of the batch, for its share in the
    weight seen to the power of `decay`, g: a decay of 1 gives plain sums. The least likely rows
    are the batch's.
    """
    unit = max(running.unit, batch.unit)
    running = replace(
        running.in_unit(unit), worst_values=batch.worst_values[:0], worst_rows=batch.worst_rows[:0]
    )
    batch = batch.in_unit(unit)
    seen = running.total + batch.total
    if min(running.total, batch.total) < _MIN_SHARE * seen:
        return batch if batch.total > running.total else running
    gain = (batch.total / seen) ** decay
    total = batch.scaled(gain * (seen / batch.total))
    total += running.scaled((1 - gain) * (seen / running.total))
    return replace(total, total=seen)
