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
from ..contracts.model_parts import Family
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from .mixture_model import MixtureModel


def step(
    model: MixtureModel, rows: RowSource, params: Params, memory: Statistics | None, decay: float
) -> tuple[MixtureModel, Params, Statistics]:
    """Return the model and parameters after a batch that counts, and what is remembered.

    `memory` is what was remembered before: statistics whose total is the weight of all rows
    seen, or None where there were none. A prior on components that is centred on a partition
    is centred on what is remembered.
    """
    stats = rows.map_reduce(partial(model.expect, params))
    n_components = len(params.weights) - (model.background is not None)
    if memory is not None:
        about = model.family.origins(params.components)
        memory = _recentred(model.family, memory, n_components, about)
        stats = blended(memory, stats, decay)
    own = stats.first_components(n_components)
    if own.counts.any():  # else the background has every row
        model = replace(model, family=model.family.anchored(own))
    return model, model.maximize(stats, params), replace(stats, buffers=None)


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
    family: Family, memory: Statistics, n_components: int, about: Array | None
) -> Statistics:
    """Return the memory with moments about other points; a background has counts alone."""
    moved = family.recenter(memory.first_components(n_components), about)
    return replace(moved, counts=memory.counts)
