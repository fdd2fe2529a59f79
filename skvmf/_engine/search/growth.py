"""More components in a warm start: those of the fit stay, new ones begin at clusters of a start."""

from dataclasses import replace

import numpy as np

from ..._typing import Array
from ..em.mixture import Mixture, Point
from ..families.params import Params
from ..rows.sources import RowSource
from .imputed import divided, imputed
from .starts import Start


def with_more_components(
    start: Start, mixture: Mixture, fitted: Point, rows: RowSource, rng: np.random.Generator
) -> Point:
    """Return a fit with more components: the old ones, and average ones where no old one is."""
    K = start.n_components
    units = np.ones(1) if fitted.family.units is None else fitted.family.units
    rows = divided(rows, fitted.family.units)
    in_units = mixture.in_units()
    old = fitted.centres / units
    centres = np.resize(old, (K, old.shape[1]))
    is_new = np.arange(K) >= len(old)
    free = is_new
    if mixture.known is not None:
        _, means, unknown = start.class_means(in_units, imputed(rows))
        centres[is_new] = means[is_new]
        free = is_new & unknown
    centres = start.completed(in_units, rows, centres, free, rng)
    return _extended(fitted, mixture, centres[is_new] * units)


def _extended(fitted: Point, mixture: Mixture, centres: Array) -> Point:
    """Return a fit with more components, at centres (m, d)."""
    n_old = fitted.n_components
    K = n_old + len(centres)
    numbers = np.where(np.arange(K) < n_old, np.arange(K), 0)
    components = fitted.family.select(fitted.components, numbers)
    for k, centre in enumerate(centres, n_old):
        components = fitted.family.reseed(components, k, centre)
    weights = mixture.background.weights_after(fitted.params)
    of_background = weights[n_old:]
    of_old = weights[:n_old] * (n_old / K)
    of_new = np.full(K - n_old, (1 - of_background.sum()) / K)
    weights = np.concatenate([of_old, of_new, of_background])
    return replace(fitted, params=Params.first(weights, components))
