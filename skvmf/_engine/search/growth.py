"""More components than a fit has: old ones stay, new ones begin at clusters of the start."""

from dataclasses import replace

import numpy as np

from ..._typing import Array
from ..em.loop import ignore
from ..em.mixture import LEAST, FittedMixture, Mixture
from ..families.merging import chance_gain
from ..families.params import Params
from ..rows.blocks import Block
from ..rows.sources import RowSource
from .imputed import imputed
from .overseeding import MIN_ROUND_GAIN
from .partitions import em_steps
from .starts import Start

# A stream that grows: what a new component must gain.


MORE_CLUSTERS = 3  # are looked for, as several topics may come at once
MIN_SIZE = 0.5  # of an average component: any stream of texts has smaller groups
STEPS_WITH_NEWCOMER = 3  # of EM on a batch, with and without it
SHAPE_PENALTY = 1.5  # nats for each parameter of its shape, as in AIC3


def grown(
    start: Start,
    mixture: Mixture,
    fitted: FittedMixture,
    rows: RowSource,
    rng: np.random.RandomState,
) -> FittedMixture:
    """Return a fit with more components: the old ones, and average ones where no old one is."""
    rows, K = imputed(rows), start.n_components
    old = fitted.family.centres(fitted.params.components)
    centres, new = np.resize(old, (K, old.shape[1])), np.arange(K) >= len(old)
    free = new
    if mixture.known is not None:
        _, means, unknown = start.class_means(mixture, rows)
        centres[new], free = means[new], new & unknown
    centres = start.completed(mixture, rows, centres, free, rng)
    return _extended(start.n_components, mixture, fitted, centres[new])


def _extended(K: int, mixture: Mixture, fitted: FittedMixture, centres: Array) -> FittedMixture:
    """Return a fit with more components, at centres (m, d)."""
    n_old, family = fitted.n_components, fitted.family
    numbers = np.where(np.arange(K) < n_old, np.arange(K), 0)
    components = family.select(fitted.params.components, numbers)
    for k, centre in enumerate(centres, n_old):
        components = family.reseed(components, k, centre)
    weights = mixture.background.weights_after(fitted.params)
    own, rest = weights[:n_old] * (n_old / K), weights[n_old:]
    weights = np.concatenate([own, np.full(K - n_old, (1 - rest.sum()) / K), rest])
    return replace(fitted, params=Params.first(weights, components))


def newcomer(
    start: Start,
    mixture: Mixture,
    fitted: FittedMixture,
    rows: RowSource,
    rng: np.random.RandomState,
) -> FittedMixture | None:
    """Return a fit with one more component for rows that no old one explains, or None.

    It begins at that cluster of the usual start whose rows gain most. It stays if it is not
    small among the components, and gains more than a round of that start and merging ask for:
    what cutting one cluster in two gains by chance, and a penalty for its shape.
    """
    spec, params = mixture.continued(fitted)
    family, total, K = spec.family, rows.total_weight, start.n_components
    rows = imputed(rows, params.conditional_weights @ family.centres(params.components))
    more = replace(start, n_components=min(K + MORE_CLUSTERS, rows.n_rows))
    stats, about = more.search(spec, rows, rng, ignore).partition(family, rows)
    clusters = family.initial(stats, about)
    plain = Mixture.plain(family, spec.background)
    with np.errstate(divide="ignore"):
        log_weights = np.log(stats.counts / total)

    def gains(block: Block) -> Array:
        before = plain.log_density(params, block)
        after = family.scores(block, clusters).log_density() + log_weights
        gained = np.maximum(after, LEAST) - np.maximum(before, LEAST)[:, np.newaxis]
        return block.weights @ np.maximum(gained, 0)

    best = family.centres(clusters)[[rows.map_reduce(gains).argmax()]]
    grown = _extended(start.n_components, spec, replace(fitted, params=params), best)
    before = em_steps(plain, rows, params, STEPS_WITH_NEWCOMER)[1]
    after, bound = em_steps(plain, rows, grown.params, STEPS_WITH_NEWCOMER)
    n_new = after.weights[K - 1] * total
    n_shape = family.n_parameters(K) - family.n_parameters(K - 1) - family.dim
    needed = chance_gain(n_new, total - n_new, family.dim) + SHAPE_PENALTY * n_shape
    needed = max(needed, MIN_ROUND_GAIN * total)
    large = after.weights[K - 1] * K >= MIN_SIZE
    return grown if large and (bound - before) * total > needed else None
