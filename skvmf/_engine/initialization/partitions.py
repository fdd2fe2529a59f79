"""Where EM starts: k-means and k-means++ on plane and sphere, random partition, random rows.

Every start is a partition of the rows: its statistics give the first components. k-means is
hard EM of the engine itself, so a start has the same bits for every number of threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..contracts.model_parts import Family, RowSource
from ..contracts.responsibilities import DenseShares, HardShares, Shares
from ..contracts.statistics import Params, Statistics
from ..data.blocks import Array, Chunk
from ..em.loop import OnIteration, ignore, run_em
from ..em.mixture_model import MixtureModel
from ..posteriors.fenchel_young import FenchelYoungPosterior
from ..weights.modified_dirichlet import ModifiedDirichlet
from ..weights.updates import FixedWeights

KMEANS_MAX_ITER = 30
_LARGEST = float(np.finfo(np.float32).max)


def nearest_partition(
    family: Family,
    rows: RowSource,
    centres: Array,
    *,
    max_iter: int = 0,
    about: Array | None = None,
    on_iteration: OnIteration = ignore,
) -> tuple[Statistics, Any]:
    """Sum the moments of the rows by nearest centre (K, d), after some steps of k-means.

    Moments are about the centres found, or about other points (K, d). Also returns components
    there.
    """
    n_components = len(centres)
    twin = family.kmeans()
    posterior = FenchelYoungPosterior(temperature=0)
    weights = np.full(n_components, 1 / n_components)
    components = twin.from_centres(centres)
    if max_iter > 0:
        model = MixtureModel(twin, posterior, ModifiedDirichlet(), FixedWeights())
        params = Params.first(weights, components)
        components = run_em(
            model, rows, params, max_iter=max_iter, tol=1e-4, on_iteration=on_iteration
        ).params.components

    def share(chunk: Chunk) -> tuple[Shares, Array]:
        scores = twin.scores(chunk, components)
        shares, counts, _ = posterior.assign(scores, weights, chunk.weights, chunk.scales)
        return shares, counts

    about = twin.centres(components) if about is None else about
    return partition_statistics(family, rows, about, share)


def partition_statistics(
    family: Family,
    rows: RowSource,
    centres: Array,
    share: Callable[[Chunk], tuple[Shares, Array]],
) -> tuple[Statistics, Any]:
    """Sum the moments of a given partition; `share(chunk)` returns shares and counts.

    Also returns the components at `centres` (K, d) that the moments are about.
    """
    components = family.from_centres(centres)
    origins = family.origins(components)

    def expect(chunk: Chunk) -> Statistics:
        shares, counts = share(chunk)
        moments = family.moments(chunk, shares, components)
        total = float(chunk.weights.sum())
        return Statistics(0.0, total, counts, moments, origins, 0.0, np.empty(0))

    return rows.fold(expect), components


def share_labels(labels: Array, n_components: int, chunk: Chunk) -> tuple[Shares, Array]:
    """Share a block out by the labels (n_samples,) of all rows; -1 is no component."""
    own = labels[chunk.start : chunk.start + len(chunk.weights)]
    counts = np.bincount(own + 1, weights=chunk.weights, minlength=n_components + 1)[1:]
    others = own < 0
    if others.any():
        own, factors = np.where(others, 0, own), np.where(others, 0.0, chunk.factors)
        return HardShares(own, factors), counts
    return HardShares(own, chunk.factors), counts


def share_responsibilities(resp: Array, chunk: Chunk) -> tuple[Shares, Array]:
    """Share a block out by the responsibilities (n_samples, K) of all rows."""
    own = resp[chunk.start : chunk.start + len(chunk.weights)]
    return DenseShares(own * chunk.factors[:, None]), chunk.weights @ own


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw the seed of what is drawn block by block."""
    return int(rng.randint(2**31 - 1))


def share_randomly(seed: int, n_components: int, chunk: Chunk) -> tuple[Shares, Array]:
    """Share a block out at random, by its first row's number and a seed."""
    rng = np.random.default_rng((seed, chunk.start))
    labels = rng.integers(n_components, size=len(chunk.weights), dtype=np.int32)
    counts = np.bincount(labels, weights=chunk.weights, minlength=n_components)
    return HardShares(labels, chunk.factors), counts


def first_row(rows: RowSource) -> Array:
    """Return the first row that counts, (1, d): a point near which moments do not cancel."""
    return rows.take(np.array([rows.first_row()]))


def random_rows(rows: RowSource, n_components: int, rng: np.random.RandomState) -> Array:
    """Draw K rows by weight without putting back, distinct in value where there are enough.

    Where the first 20 K rows drawn do not hold K values, some are drawn twice.
    """
    candidates = rows.draw_in_order(20 * n_components, draw_seed(rng))
    seen: set[bytes] = set()
    distinct: list[int] = []
    repeated: list[int] = []
    for start in range(0, len(candidates), n_components):
        part = candidates[start : start + n_components]
        for row, value in zip(part, rows.take(part), strict=True):
            (repeated if value.tobytes() in seen else distinct).append(row)
            seen.add(value.tobytes())
        if len(distinct) >= n_components:
            break
    return rows.take(np.resize(np.array(distinct + repeated), n_components))


def kmeans_plusplus(
    family: Family, rows: RowSource, n_components: int, rng: np.random.RandomState
) -> Array:
    """Draw K rows (K, d) far from each other, each the best of 2 + log K candidates.

    Candidates are drawn in proportion to weight times k-means loss, as in scikit-learn.
    """
    weights = rows.sampling_weights()
    n_trials = 2 + int(np.log(n_components))
    closest = np.full(rows.n_rows, np.inf, dtype=np.float32)
    centres = np.empty((n_components, rows.n_features))
    centres[0] = rows.take(_draw(weights, None, 1, rng))[0]

    def losses(candidates: Array, chunk: Chunk) -> Array:
        loss = np.minimum(family.distances(chunk, candidates), _LARGEST)
        loss[chunk.weights == 0] = 0
        return loss

    def potentials(candidates: Array, chunk: Chunk) -> Array:
        own = closest[chunk.start : chunk.start + len(chunk.weights)]
        total: Array = chunk.weights @ np.minimum(losses(candidates, chunk), own[:, None])
        return total

    def move_closer(centre: Array, chunk: Chunk, span: slice) -> None:
        closest[span] = np.minimum(closest[span], losses(centre, chunk)[:, 0])

    for k in range(1, n_components):
        rows.for_each(partial(move_closer, centres[k - 1 : k]))
        candidates = rows.take(_draw(weights, closest, n_trials, rng))
        totals = rows.fold(partial(potentials, candidates))
        centres[k] = candidates[int(np.argmin(totals))]
    return centres


def _draw(weights: Array, loss: Array | None, size: int, rng: np.random.RandomState) -> Array:
    """Draw row numbers in proportion to weights times loss, or weights where all is lost."""
    cumulative = weights.astype(np.float64)
    if loss is not None and (loss[weights > 0] > 0).any():
        cumulative *= loss
    np.cumsum(cumulative, out=cumulative)
    drawn = rng.uniform(size=size) * cumulative[-1]
    rows: Array = np.searchsorted(cumulative, drawn, side="right")
    return np.minimum(rows, len(weights) - 1)
