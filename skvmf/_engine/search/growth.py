"""Where a warm start puts more components: at clusters of a start that are next to no old one."""

from dataclasses import replace

import numpy as np

from ..._typing import Array
from ..em.mixture import Mixture, Point
from ..rows.changed import divided, without_outliers
from ..rows.sources import RowSource
from .imputed import imputed
from .starts import Start
from .units import units_of_clusters


def centres_of_added(
    start: Start, mixture: Mixture, fitted: Point, rows: RowSource, rng: np.random.Generator
) -> Array:
    """Return the centres (m, d) of the components that a mixture has more than a fit.

    They are the means of rows that are known to be theirs, else clusters. Pruned components keep
    their numbers, and no cluster.
    """
    n_old = fitted.n_components
    rows = without_outliers(rows, mixture.known, start.n_components)
    in_units = mixture
    units = np.ones(1)
    if mixture.family.units is not None:
        units = units_of_clusters(mixture.family.units, rows, start.n_components)
        in_units = mixture.in_units(units)
        rows = divided(rows, units)
    old = fitted.centres[fitted.weights > 0] / units
    added = np.zeros((start.n_components - n_old, old.shape[1]))
    free = np.ones(len(added), dtype=bool)
    # Components in an order get new numbers, so that none is known to be a new one.
    keeps_numbers = mixture.constraint.order(fitted.components) is None
    if keeps_numbers and mixture.has_known_classes(start.n_components):
        _, means, is_unknown = start.class_means(in_units, imputed(rows))
        added = means[n_old:]
        free = is_unknown[n_old:]
    centres = np.vstack([old, added])
    search = replace(start, n_components=len(centres))
    numbers = np.append(np.flatnonzero(fitted.weights > 0), np.arange(n_old, start.n_components))
    if len(numbers) < start.n_components:  # what is given by number is that of these components
        in_units = in_units.renumbered(numbers)
    is_free = np.append(np.zeros(len(old), dtype=bool), free)
    completed = search.completed(in_units, rows, centres, is_free, rng)
    return completed[len(old) :] * units
