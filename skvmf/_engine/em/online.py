"""Online EM: a step for each batch of a stream, by statistics that fade as others come.

References
----------
Cappé and Moulines, "On-line expectation-maximization algorithm for latent data models",
Journal of the Royal Statistical Society B 71, 2009.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily
from ..contracts.statistics import Statistics
from ..data.base import RowSource
from ..weights.modified_dirichlet import ModifiedDirichlet
from .fitted import FittedMixture
from .spec import MixtureSpec


def step(
    spec: MixtureSpec,
    rows: RowSource,
    fitted: FittedMixture,
    memory: Statistics | None,
    *,
    decay: float,
) -> tuple[FittedMixture, Statistics | None]:
    """Return the mixture after a batch, and the statistics that are remembered.

    `memory` is what was remembered before: statistics whose total is the weight of all rows
    seen, or None before the first batch. A prior on components that is centred on a partition
    is centred on what is remembered. A batch without weight changes nothing.
    """
    spec = replace(spec.refitted(fitted), family=fitted.family.continued_by(spec.family))
    if rows.total_weight == 0:
        return replace(spec, family=fitted.family).fitted(fitted.params, memory)
    components = spec.constraint.convert(spec.family, fitted.params.components)
    params = replace(fitted.params, components=components)
    stats = rows.map_reduce(partial(spec.model.expect, params))
    if memory is not None:
        memory = _recentred(spec.family, memory, len(components), spec.family.origins(components))
        stats = blended(memory, stats, decay)
    of_components = stats.first_components(len(components))
    if of_components.counts.any():  # else the background has every row
        spec = replace(spec, family=spec.family.with_prior_from(of_components))
    params = spec.model.maximize(stats, params)
    return spec.fitted(params, replace(stats, buffers=None))


def flat_at_first(spec: MixtureSpec, n_components: int, weight_seen: float) -> MixtureSpec:
    """Return the mixture with a flat prior while its prior takes half of the rows seen or more."""
    taken = np.maximum(1 - np.asarray(spec.weight_prior.alpha), 0)
    total_taken = taken.sum() if taken.ndim else n_components * taken
    if weight_seen >= 2 * total_taken:
        return spec
    return replace(spec, weight_prior=ModifiedDirichlet())


def blended(memory: Statistics, batch: Statistics, decay: float) -> Statistics:
    """Return what is remembered after a batch whose moments are about the same points.

    Per unit of weight it is (1 - g) of the memory and g of the batch, where g is the share of
    the batch in the weight seen to the power of `decay`: a decay of 1 gives plain sums. The
    least likely row is the batch's.
    """
    seen = memory.total + batch.total
    gain = (batch.total / seen) ** decay
    total = batch.scaled(gain * (seen / batch.total))
    total += replace(memory.scaled((1 - gain) * (seen / memory.total)), worst_value=np.inf)
    return replace(total, total=seen)


def _recentred(
    family: AnyFamily, memory: Statistics, n_components: int, about: Array | None
) -> Statistics:
    """Return the memory with moments about other points; counts stay."""
    moved = family.recenter(memory.first_components(n_components), about)
    return replace(moved, counts=memory.counts)
