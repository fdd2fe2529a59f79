"""k-means and k-means++ on the sphere and in Euclidean space, as hard EM of the engine."""

from functools import partial

import numpy as np

from ..._typing import Array
from ..contracts.model_parts import AnyFamily
from ..contracts.statistics import Components, Params, Statistics
from ..data.base import RowSource
from ..data.blocks import Block
from ..em.loop import OnIteration, ignore, run_em
from ..em.mixture_model import MixtureModel
from ..posteriors.fenchel_young import FenchelYoungPosterior
from .partitions import assignment, partition_statistics

KMEANS_MAX_ITER = 30
_LARGEST_LOSS = float(np.finfo(np.float32).max)


def nearest_partition(
    family: AnyFamily,
    rows: RowSource,
    centres: Array,
    *,
    max_iter: int = 0,
    about: Array | None = None,
    on_iteration: OnIteration = ignore,
) -> tuple[Statistics, Components]:
    """Sum the moments of the rows by nearest centre (K, d), after some steps of k-means.

    Moments are about those centres or, if given, other points (K, d). Also returns components
    there.
    """
    n_components = len(centres)
    kmeans = family.kmeans()
    model = MixtureModel.plain(kmeans, posterior=FenchelYoungPosterior(temperature=0))
    weights = np.full(n_components, 1 / n_components)
    params = Params.first(weights, kmeans.from_centres(centres))
    if max_iter > 0:
        params = run_em(
            model, rows, params, max_iter=max_iter, tol=1e-4, on_iteration=on_iteration
        ).params
        params = Params.first(weights, params.components)
    about = kmeans.centres(params.components) if about is None else about
    return partition_statistics(family, rows, about, assignment(model, params))


def kmeans_plusplus(
    family: AnyFamily, rows: RowSource, n_components: int, rng: np.random.RandomState
) -> Array:
    """Draw K rows (K, d) far from each other, each the best of 2 + log K candidates.

    Candidates are drawn in proportion to weight times k-means loss, as in scikit-learn.
    """
    weights = rows.sampling_weights()
    n_trials = 2 + int(np.log(n_components))
    closest = np.full(rows.n_rows, np.inf, dtype=np.float32)
    centres = np.empty((n_components, rows.n_features))
    centres[0] = rows.take(_draw(weights, None, 1, rng))[0]

    def losses(candidates: Array, block: Block) -> Array:
        loss = np.minimum(family.distances(block, candidates), _LARGEST_LOSS)
        loss[block.weights == 0] = 0
        return loss

    def potentials(candidates: Array, block: Block) -> Array:
        before = closest[block.start : block.start + len(block.weights)]
        return block.weights @ np.minimum(losses(candidates, block), before[:, None])

    def move_closer(centre: Array, block: Block, span: slice) -> None:
        closest[span] = np.minimum(closest[span], losses(centre, block)[:, 0])

    for k in range(1, n_components):
        rows.for_each(partial(move_closer, centres[k - 1 : k]))
        candidates = rows.take(_draw(weights, closest, n_trials, rng))
        totals = rows.map_reduce(partial(potentials, candidates))
        centres[k] = candidates[int(np.argmin(totals))]
    return centres


def _draw(weights: Array, loss: Array | None, size: int, rng: np.random.RandomState) -> Array:
    """Draw row numbers in proportion to weights times loss, or to weights if no loss is left."""
    cumulative = weights.astype(np.float64)
    if loss is not None and (loss[weights > 0] > 0).any():
        cumulative *= loss
    np.cumsum(cumulative, out=cumulative)
    drawn = rng.uniform(size=size) * cumulative[-1]
    rows: Array = np.searchsorted(cumulative, drawn, side="right")
    return np.minimum(rows, len(weights) - 1)
