"""Where EM starts: k-means and k-means++ on plane and sphere, random partition, random rows.

Every start is a partition of the rows: its statistics give the first components. k-means is
hard EM of the engine itself, so a start has the same bits for every number of threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from .em import run_em
from .mixture import MixtureModel
from .posterior import DenseShares, FenchelYoungPosterior, PackedShares, Shares
from .priors import ModifiedDirichlet
from .rows import Array, Chunk, Rows
from .statistics import Params, Statistics
from .updates import FixedWeights

KMEANS_MAX_ITER = 30


class StartingFamily(Protocol):
    """What a start asks of a family."""

    def kmeans(self) -> Any:
        """Return the family of which hard EM with equal weights is k-means."""

    def from_centres(self, centres: Array) -> Any:
        """Return some components at centres (K, d)."""

    def centres(self, components: Any) -> Array:
        """Return where the components are, (K, d)."""

    def distances(self, chunk: Chunk, centres: Array) -> Array:
        """Return the k-means loss of each row at each centre, (n, m)."""

    def scores(self, chunk: Chunk, components: Any) -> tuple[Array, Array, Array]:
        """Return (n, K) scores, (n,) slopes, (K,) biases: log p = slopes * scores + bias."""

    def moments(self, chunk: Chunk, shares: Shares, components: Any) -> tuple[Array, ...]:
        """Return additive moments of the shares."""


def nearest_partition(
    family: StartingFamily, rows: Rows, centres: Array, *, max_iter: int = 0
) -> tuple[Statistics, Any]:
    """Sum the moments of the rows by nearest centre (K, d), after some steps of k-means.

    Also returns the components that the moments are about.
    """
    n_components = len(centres)
    twin = family.kmeans()
    posterior = FenchelYoungPosterior(temperature=0)
    weights = np.full(n_components, 1 / n_components)
    components = twin.from_centres(centres)
    if max_iter > 0:
        model = MixtureModel(twin, posterior, ModifiedDirichlet(), FixedWeights())
        params = Params.start(weights, components)
        components = run_em(model, rows, params, max_iter=max_iter, tol=1e-4).params.components

    def share(chunk: Chunk) -> tuple[Shares, Array]:
        scores, slopes, bias = twin.scores(chunk, components)
        shares, counts, _ = posterior.assign(scores, slopes, bias, weights, chunk)
        return shares, counts

    return partition_statistics(family, rows, twin.centres(components), share)


def partition_statistics(
    family: StartingFamily,
    rows: Rows,
    centres: Array,
    share: Callable[[Chunk], tuple[Shares, Array]],
) -> tuple[Statistics, Any]:
    """Sum the moments of a given partition; `share(chunk)` returns shares and counts.

    Also returns the components at `centres` (K, d) that the moments are about.
    """
    components = family.from_centres(centres)

    def expect(chunk: Chunk) -> Statistics:
        shares, counts = share(chunk)
        moments = family.moments(chunk, shares, components)
        return Statistics(0.0, float(chunk.weights.sum()), counts, moments, 0.0, np.empty(0))

    return rows.fold(expect), components


def share_labels(labels: Array, n_components: int, chunk: Chunk) -> tuple[Shares, Array]:
    """Share a block out by the labels (n_samples,) of all rows."""
    own = labels[chunk.start : chunk.start + len(chunk.weights)]
    counts = np.bincount(own, weights=chunk.weights, minlength=n_components)
    return PackedShares.from_labels(own, chunk.weights * chunk.scales), counts


def share_responsibilities(resp: Array, chunk: Chunk) -> tuple[Shares, Array]:
    """Share a block out by the responsibilities (n_samples, K) of all rows."""
    own = resp[chunk.start : chunk.start + len(chunk.weights)] * chunk.weights[:, None]
    return DenseShares(own * chunk.scales[:, None]), own.sum(axis=0)


def random_labels(rows: Rows, n_components: int, rng: np.random.RandomState) -> Array:
    """Draw a random partition of the rows."""
    labels: Array = rng.randint(n_components, size=rows.n_rows, dtype=np.int32)
    return labels


def first_row(rows: Rows) -> Array:
    """Return the first row that counts, (1, d): a point near which moments do not cancel."""
    return rows.take(np.flatnonzero(rows.sampling_weights() > 0)[:1])


def random_rows(rows: Rows, n_components: int, rng: np.random.RandomState) -> Array:
    """Draw K rows with positive weight, distinct in value if 20 K drawn rows have as many."""
    weights = rows.sampling_weights()
    candidates = np.flatnonzero(weights > 0)
    chosen: list[Array] = []
    spare: list[Array] = []
    for row in rng.permutation(candidates)[: 20 * n_components]:
        vector = rows.take(np.array([row]))[0]
        repeated = any(np.array_equal(vector, other) for other in chosen)
        (spare if repeated else chosen).append(vector)
        if len(chosen) == n_components:
            break
    missing = n_components - len(chosen)
    return np.array(chosen + (spare + chosen * missing)[:missing])


def kmeans_plusplus(
    family: StartingFamily, rows: Rows, n_components: int, rng: np.random.RandomState
) -> Array:
    """Draw K rows (K, d) far from each other, each the best of 2 + log K candidates.

    Candidates are drawn in proportion to weight times k-means loss, as in scikit-learn.
    """
    weights = rows.sampling_weights()
    n_trials = 2 + int(np.log(n_components))
    closest = np.full(rows.n_rows, np.inf, dtype=np.float32)
    centres = np.empty((n_components, rows.n_features))
    centres[0] = rows.take(_draw(weights, None, 1, rng))[0]

    def potentials(candidates: Array, chunk: Chunk) -> Array:
        loss = np.minimum(family.distances(chunk, candidates), closest[_span(chunk)][:, None])
        total: Array = chunk.weights @ loss
        return total

    def move_closer(centre: Array, chunk: Chunk, span: slice) -> None:
        loss = family.distances(chunk, centre)[:, 0]
        closest[span] = np.minimum(closest[span], loss)

    for k in range(1, n_components):
        rows.for_each(partial(move_closer, centres[k - 1 : k]))
        candidates = rows.take(_draw(weights, closest, n_trials, rng))
        totals = rows.fold(partial(potentials, candidates))
        centres[k] = candidates[int(np.argmin(totals))]
    return centres


def _span(chunk: Chunk) -> slice:
    return slice(chunk.start, chunk.start + len(chunk.weights))


def _draw(weights: Array, loss: Array | None, size: int, rng: np.random.RandomState) -> Array:
    """Draw row numbers in proportion to weights times loss, or weights where all is lost."""
    cumulative = weights.astype(np.float64)
    if loss is not None and (loss[weights > 0] > 0).any():
        cumulative *= loss
    np.cumsum(cumulative, out=cumulative)
    drawn = rng.uniform(size=size) * cumulative[-1]
    rows: Array = np.searchsorted(cumulative, drawn, side="right")
    return np.minimum(rows, len(weights) - 1)
