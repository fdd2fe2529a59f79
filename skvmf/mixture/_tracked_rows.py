"""The rows that a ClusterTracker keeps: a window of batches, and a reservoir of earlier rows."""

from typing import Any, NamedTuple, Self

import numpy as np

from .._engine.rows.reading import stacked
from .._sklearn import safe_indexing
from .._typing import Array

TINY = float(np.finfo(np.float64).tiny)  # what is divided by, or has a logarithm, is this at least


class Batch(NamedTuple):
    """The rows of a batch in the window."""

    number: int
    first_row: int  # its number, counted from the first row of the fit
    rows: Any
    weights: Array
    ids: Array
    least_score: float


class Reservoir(NamedTuple):
    """A sample of earlier rows, of which old ones are ever fewer."""

    rows: Any
    ids: Array
    keys: Array  # of weighted sampling: the smallest ones stay
    total_weight: float  # of all earlier rows, with decay

    def faded(self, decay: float) -> Self:
        """Return the reservoir after one more batch."""
        return self._replace(total_weight=self.total_weight * decay)

    def with_batch(
        self, batch: Batch, now: int, half_life: float, size: int, rng: np.random.Generator
    ) -> Self:
        """Return a sample of so many of its rows and those of a batch.

        Rows compete for a place: an exponential key over the weight wins if it is small (Efraimidis
        and Spirakis, "Weighted random sampling with a reservoir", 2006). In place of fading the
        weights of old rows, those of later ones are larger.
        """
        with np.errstate(divide="ignore"):
            keys = np.log(rng.exponential(size=len(batch.ids))) - np.log(batch.weights)
        keys -= batch.number * np.log(2) / half_life
        keys = np.append(self.keys, keys)
        kept = np.sort(np.argsort(keys, kind="stable")[:size])
        kept = kept[keys[kept] < np.inf]
        weight = float(batch.weights.sum()) * decay_of(half_life) ** (now - batch.number)
        return self._replace(
            rows=safe_indexing(stacked([self.rows, batch.rows]), kept),
            ids=np.append(self.ids, batch.ids)[kept],
            keys=keys[kept],
            total_weight=self.total_weight + weight,
        )


class KeptRows(NamedTuple):
    """The rows of the window and of the reservoir, below one another."""

    rows: Any
    ids: Array
    numbers: Array  # counted from the first row of the fit; -1 in the reservoir
    weights: Array  # as given; 1 in the reservoir, where rows are drawn by their weights
    faded: Array  # weights with decay; a row of the reservoir stands for all that fade like it
    ages: Array  # in batches; -1 in the reservoir

    @property
    def recent(self) -> Array:
        """Whether rows are in the window."""
        return self.ages >= 0


def decay_of(half_life: float) -> float:
    """Return the factor of weights from one batch to the next."""
    return float(0.5 ** (1 / half_life))


def kept_rows(window: list[Batch], reservoir: Reservoir, now: int, decay: float) -> KeptRows:
    """Return the rows of the window and of the reservoir at the batch of a number."""
    n_earlier = len(reservoir.ids)
    of_earlier = np.full(n_earlier, -1)
    of_batches = [np.full(len(batch.ids), now - batch.number) for batch in window]
    ages = np.concatenate([*of_batches, of_earlier])
    numbers = [batch.first_row + np.arange(len(batch.ids)) for batch in window]
    weights = np.concatenate([*(batch.weights for batch in window), np.ones(n_earlier)])
    each = reservoir.total_weight / max(n_earlier, 1)
    return KeptRows(
        rows=stacked([*(batch.rows for batch in window), reservoir.rows]),
        ids=np.concatenate([*(batch.ids for batch in window), reservoir.ids]),
        numbers=np.concatenate([*numbers, of_earlier]),
        weights=weights,
        faded=np.where(ages < 0, each, weights * decay ** np.maximum(ages, 0)),
        ages=ages,
    )


def with_ids(window: list[Batch], ids: Array) -> list[Batch]:
    """Return the batches of a window with the ids of its rows, which come first among others."""
    ends = np.cumsum([len(batch.ids) for batch in window])
    parts = np.split(ids[: ends[-1]], ends[:-1]) if window else []
    return [batch._replace(ids=own) for batch, own in zip(window, parts, strict=True)]


def sums_of_ids(ids: Array, weights: Array, live: Array) -> Array:
    """Return the weight of the rows of each live cluster."""
    known = np.isin(ids, live)
    return np.bincount(np.searchsorted(live, ids[known]), weights[known], len(live))


def n_effective(ids: Array, weights: Array, live: Array) -> Array:
    """Return how many rows of weight 1 would tell the mean of each live cluster as well."""
    squares = sums_of_ids(ids, weights**2, live)
    return sums_of_ids(ids, weights, live) ** 2 / np.maximum(squares, TINY)
