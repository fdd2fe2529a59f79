"""Many components, looked for in regions: the clusters of a coarse mixture.

Seeds meet only those of the same region, so that the time of a search grows little faster than the
number of components. Merging the components of all regions mends what the borders cut. If
clusters have no neighbourhoods, regions would cut most of them: then the search is that of few
components.
"""

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from ..._typing import Array
from ..em.loop import OnIteration, ignore
from ..em.mixture import Mixture, Point
from ..em.truncated import rounds_of_truncated_steps, truncated_steps_suit
from ..families.neighbours import nearest_points
from ..rows.parallel import map_reduce
from .overseeding import MIN_FIRST_ROWS, MIN_STEP_GAIN, SEEDS_PER_COMPONENT, Overseeding
from .sample import FoundStart, FreePoint

# Rows for each region, to find the regions.
ROWS_PER_REGION = 100

# Regions are searched for more components than their share, as merging corrects which of them get
# how many: twice as many where each component has 100 rows, else half as many again. (With 4,000
# components twice as many raised the adjusted Rand index from .753 to .786, for a sixth more time.)
SURPLUS = 1.5
LARGE_SURPLUS = 2.0
MIN_ROWS_FOR_LARGE = 100

# A region has so many rows for each component that it is searched for.
MIN_ROWS_PER_COMPONENT = 3

# Regions keep neighbours together if more than a third of so many rows are in the region of the
# row that is nearest to them: with isotropic means, where regions cut clusters, few are.
N_COMPARED = 1000
MIN_KEPT_FRACTION = 1 / 3

# Steps of EM within regions, before and after merging: there they cost a twentieth of steps with
# the components of all regions, of which there are two, exact or in rounds of truncated ones.
STEPS_IN_REGIONS = (8, 10)
STEPS_OF_ALL = 2
ROUNDS_OF_ALL = 2


def overseeded(
    search: Overseeding, rng: np.random.Generator, watch: OnIteration = ignore
) -> FoundStart:
    """Return the components of a search, many by regions; ``watch`` is as in `Overseeding.run`."""
    if search.in_regions:
        start = _Regions(search).run(rng)
        if start is not None:
            watch(0, [start.bound], start.point)
            return start
    return search.run(rng, watch)


class _Found(NamedTuple):
    """What is found in a region."""

    region: int
    point: Point
    weight: float  # of its rows
    rows: Array  # their numbers in the sample
    labels: Array  # of these rows, counted in the region


@dataclass(frozen=True, eq=False)
class _Regions:
    """A search by regions."""

    search: Overseeding  # for all components

    def run(self, rng: np.random.Generator) -> FoundStart | None:
        """Return the components; None if regions cut most clusters, or rows are too few."""
        search = self.search
        sample = search.sample
        n_regions = round(np.sqrt(search.n_components) / 2)
        n_rows = max(ROWS_PER_REGION * n_regions, MIN_FIRST_ROWS)
        few = search.on(sample.draw(n_rows, rng), n_regions)
        coarse = replace(few, n_components=n_regions, steps=STEPS_IN_REGIONS).run(rng).point
        regions = np.where(sample.weights > 0, sample.label(coarse).labels, -1)
        if not self._keep_neighbours(regions, rng):
            return None
        found = self._of_all_regions(regions, rng)
        if found is None:
            return None
        point, labels = found
        if self._truncated:
            point, *_ = self._rounds(point, labels)
        else:
            point, _ = sample.em(point, STEPS_OF_ALL)
        labels = sample.label(point).labels
        merged = search.merged(point, labels)
        if not self._truncated:
            _, n_steps = search.n_steps
            return FoundStart(*sample.em(merged, n_steps))
        labels = nearest_points(point.centres, merged.centres, 1)[labels, 0]
        return FoundStart(*self._rounds(merged, labels))

    @property
    def _truncated(self) -> bool:
        """Whether steps with all components are truncated ones."""
        search = self.search
        mixture = Mixture.plain(search.family)
        return truncated_steps_suit(mixture, search.sample.rows, search.n_components)

    def _rounds(self, point: FreePoint, labels: Array) -> tuple[FreePoint, float, Array]:
        """Return a point after rounds of truncated steps, the bound before the last, and labels."""
        free = point.with_free_weights()
        rows = self.search.sample.rows
        after, bound, labels = rounds_of_truncated_steps(
            free, rows, labels, ROUNDS_OF_ALL, MIN_STEP_GAIN
        )
        return point.at(after.params), bound, labels

    def _keep_neighbours(self, regions: Array, rng: np.random.Generator) -> bool:
        """Return whether most rows are in the region of the row that is nearest of many."""
        search = self.search
        sample = search.sample
        drawn = rng.permutation(sample.draw(search.n_first_seeds + N_COMPARED, rng))
        compared = np.sort(drawn[:N_COMPARED])
        others = drawn[N_COMPARED:]
        points = search.at_rows(sample.take(others))
        nearest = others[sample.some(compared, len(others)).label(points).labels]
        kept_fraction = np.mean(regions[nearest] == regions[compared])
        return bool(kept_fraction > MIN_KEPT_FRACTION)

    def _of_all_regions(
        self, regions: Array, rng: np.random.Generator
    ) -> tuple[FreePoint, Array] | None:
        """Return the components of all regions, and labels of rows; None if rows are too few."""
        search = self.search
        rngs = rng.spawn(int(regions.max()) + 1)
        found = map_reduce(partial(self._found_in, regions), list(enumerate(rngs))).total()
        n_found = sum(each.point.n_components for each in found)
        if n_found < search.n_components:
            return None
        sizes = np.zeros(len(rngs), dtype=np.int32)
        sizes[[each.region for each in found]] = [each.point.n_components for each in found]
        # The number of each region's first component among all; without any, that of the next one.
        first = np.minimum(np.cumsum(sizes) - sizes, n_found - 1).astype(np.int32)
        labels = first[np.maximum(regions, 0)]
        for each in found:
            labels[each.rows] += each.labels
        components = reduce(search.family.append, [each.point.components for each in found])
        counts = np.concatenate([each.weight * each.point.params.weights for each in found])
        return search.point(counts, components, 0.0), labels

    def _found_in(
        self, regions: Array, numbered_rng: tuple[int, np.random.Generator]
    ) -> list["_Found"]:
        """Return what is found in a region, by number and generator; nothing where rows are few."""
        region, rng = numbered_rng
        search = self.search
        rows = np.flatnonzero(regions == region)
        weights = search.sample.weights
        weight = float(weights[rows].sum())
        surplus = SURPLUS
        if search.n_drawable >= MIN_ROWS_FOR_LARGE * search.n_components:
            surplus = LARGE_SURPLUS
        share = round(surplus * search.n_components * weight / float(weights.sum()))
        K = min(share, len(rows) // MIN_ROWS_PER_COMPONENT)
        if K == 0:
            return []
        within = search.on(rows, SEEDS_PER_COMPONENT * K)
        within = replace(within, n_components=K, steps=STEPS_IN_REGIONS)
        start = overseeded(within, rng, lambda *_: True)  # stops before any round
        labels = np.zeros(len(rows), dtype=np.int32)
        if self._truncated:  # else nobody asks for labels
            labels = within.sample.label(start.point).labels
        return [_Found(region, start.point, weight, rows, labels)]
