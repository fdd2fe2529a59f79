"""More components than a fit has: old ones stay, new ones begin at clusters of the start."""

from dataclasses import replace

import numpy as np

from ..._typing import Array
from ..em.mixture import FittedMixture, Mixture
from ..families.params import Params
from ..rows.sources import RowSource
from .imputed import imputed
from .starts import Start


def with_more_components(
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
    components = family.chosen(fitted.params.components, numbers)
    for k, centre in enumerate(centres, n_old):
        components = family.reseed(components, k, centre)
    weights = mixture.background.weights_after(fitted.params)
    own, rest = weights[:n_old] * (n_old / K), weights[n_old:]
    weights = np.concatenate([own, np.full(K - n_old, (1 - rest.sum()) / K), rest])
    return replace(fitted, params=Params.first(weights, components))
