"""What a fitted mixture says of rows: responsibilities, labels, densities, criteria, samples."""

from functools import partial

import numpy as np
from numpy.random import Generator

from ..._typing import Array
from ..families.background import NO_BACKGROUND
from ..families.family import Scores
from ..families.missing import ObservedRows
from ..families.params import Params
from ..families.responsibilities import (
    DenseResponsibilities,
    Responsibilities,
    SparseResponsibilities,
    as_dense,
)
from ..rows.blocks import Block, DenseBlock, warn_if_too_large
from ..rows.sources import RowSource
from .mixture import LEAST, Assigned, Labelled, Mixture, Point, weighted_sum
from .posterior import SOFTMAX


def probabilities(fitted: Point, rows: RowSource) -> Array:
    """Return the responsibilities of the components for each row, (n, K), in the rows' dtype.

    With that of the background, those for a row sum to one for any weight. Those of rows
    without a direction, and of rows so far away that no component has a density there, are
    the weights, or 0 with a background.
    """
    K = fitted.n_components
    warn_if_too_large(
        rows.n_rows * K * np.dtype(rows.dtype).itemsize,
        f"The responsibilities of {K} components for {rows.n_rows} rows take",
        "responsibilities(X) returns them without the zeros, predict(X) labels alone.",
    )
    return rows.per_row(
        lambda block: as_dense(_responsibilities_of(fitted, block), K), rows.dtype, K
    )


def responsibilities(fitted: Point, rows: RowSource) -> list[SparseResponsibilities]:
    """Return what `probabilities` does, block after block and without the zeros."""
    by_start = {}

    def pack(block: Block, span: slice) -> None:
        resp = _responsibilities_of(fitted, block)
        if isinstance(resp, DenseResponsibilities):
            resp = DenseResponsibilities(resp.resp.astype(rows.dtype, copy=False))
        by_start[span.start] = resp.packed()

    rows.for_each(pack)
    return [by_start[start] for start in sorted(by_start)]


def _responsibilities_of(fitted: Point, block: Block) -> Responsibilities:
    """Return the responsibilities of the components for the rows of a block, as published."""
    assigned = fitted.assign(block, row_weights=np.ones(len(block.weights)))
    resp = assigned.of_components(fitted.n_components)
    zero_density = ~block.has_direction | np.isneginf(assigned.values)
    if not zero_density.any():
        return resp
    dense = as_dense(resp, fitted.n_components)
    dense[zero_density] = 0.0 if len(fitted.background) else fitted.weights
    return DenseResponsibilities(dense)


def labels(fitted: Point, rows: RowSource) -> Array:
    """Return the label of each row, as `Point.label` does.

    Parameters
    ----------
    fitted : Point
        The mixture at its parameters, such as that of a result of `run_em`.
    rows : RowSource
        The rows, such as those of `make_rows`.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        The most responsible component of each row.
    """
    return rows.per_row(lambda block: fitted.label(block).labels, np.int64)


def labels_and_probabilities(fitted: Point, rows: RowSource) -> tuple[Array, Array]:
    """Return the labels of rows, and the responsibilities of those components; 0 for -1."""
    all_labels = np.empty(rows.n_rows, dtype=np.int64)
    largest = np.empty(rows.n_rows, dtype=rows.dtype)

    def write(block: Block, span: slice) -> None:
        ones = np.ones(len(block.weights))
        scores = fitted.scores(block)
        labelled = fitted.label(block, scores)
        assigned = fitted.assign(block, row_weights=ones, scores=scores)
        resp = as_dense(assigned.responsibilities, len(fitted.params.weights))
        all_labels[span] = labelled.labels
        of_labels = resp[np.arange(len(ones)), labelled.labels]
        largest[span] = of_published_labels(fitted, labelled, of_labels)

    rows.for_each(write)
    return all_labels, largest


def probabilities_of(fitted: Point, rows: RowSource, labels: Array) -> Array:
    """Return the responsibilities of given labels for rows, (n,), as published; 0 for -1."""
    labels = np.asarray(labels)

    def of_block(block: Block) -> Array:
        own = labels[block.span]
        resp = as_dense(_responsibilities_of(fitted, block), fitted.n_components)
        return np.where(own == -1, 0, resp[np.arange(len(own)), own])

    return rows.per_row(of_block, rows.dtype)


def of_published_labels(fitted: Point, labelled: Labelled, largest: Array) -> Array:
    """Return the largest responsibilities of rows as published, also where no component has any."""
    seen = np.where(labelled.zero_density, fitted.weights.max(), largest)
    return np.where(labelled.labels == -1, 0, seen)


def note_published(
    fitted: Point,
    block: Block,
    labelled: Labelled,
    assigned: Assigned,
    of_rows: tuple[Array, Array],
) -> None:
    """Write the labels of a block, as published, and their responsibilities into those of all rows.

    An E-step knows both: the rows need not be read again.
    """
    largest = fitted.mixture.posterior.largest(labelled.scores, assigned.values)
    all_labels, all_largest = of_rows
    all_labels[block.span] = labelled.labels
    all_largest[block.span] = of_published_labels(fitted, labelled, largest)


def log_joint(fitted: Point, rows: RowSource) -> Array:
    """Return log-densities plus log-weights in float64, (n, K), then those of the background.

    Limits on sizes subtract their offsets. Rows without a direction have -inf.
    """
    n_weights = len(fitted.params.weights)
    with np.errstate(divide="ignore"):
        log_weights = np.log(fitted.params.weights)

    def of_block(block: Block) -> Array:
        scores = fitted.offset(fitted.scores(block))
        joint = scores.log_density() + log_weights
        block.buffers.release("scores", scores.unnormalized)
        joint[~block.has_direction] = -np.inf
        return joint

    return rows.per_row(of_block, np.float64, n_weights)


def log_densities(fitted: Point, rows: RowSource) -> Array:
    """Return the log-density of the mixture at each row, (n,), at least the dtype's least."""
    return rows.per_row(partial(_log_densities_of, fitted, rows.dtype), rows.dtype)


def labels_and_log_densities(fitted: Point, rows: RowSource) -> tuple[Array, Array]:
    """Return what `labels` and `log_densities` do, of scores that are computed once."""
    all_labels = np.empty(rows.n_rows, dtype=np.int64)
    all_values = np.empty(rows.n_rows, dtype=rows.dtype)

    def write(block: Block, span: slice) -> None:
        scores = fitted.scores(block)
        all_labels[span] = fitted.label(block, scores).labels
        all_values[span] = _log_densities_of(fitted, rows.dtype, block, scores)

    rows.for_each(write)
    return all_labels, all_values


def _log_densities_of(
    fitted: Point, dtype: np.dtype, block: Block, scores: Scores | None = None
) -> Array:
    """Return the log-density of the mixture at each row of a block; scores are used up."""
    values = fitted.log_density(block, scores)
    least = max(LEAST, float(np.finfo(dtype).min))
    of_zero_row = fitted.family.zero_row_log_density
    return np.maximum(np.where(block.has_direction, values, of_zero_row), least)


def log_likelihood(fitted: Point, rows: RowSource) -> tuple[float, float]:
    """Return the weighted sum of log-densities, and of the weights of rows that count."""
    total, weight = rows.map_reduce(partial(_log_likelihood_of, fitted)).tolist()
    return total, weight


def _log_likelihood_of(fitted: Point, block: Block) -> Array:
    return _sums(block, fitted.log_density(block))


def _sums(block: Block, values: Array) -> Array:
    """Return the weighted sum of values, and that of weights."""
    return np.array([weighted_sum(block.weights, np.maximum(values, LEAST)), block.weights.sum()])


def complete_log_likelihood(fitted: Point, rows: RowSource) -> float:
    """Return the sum of the log-densities of rows under their own components, without weights.

    Rows belong to components and to the background by their responsibilities.
    """
    total: float = rows.map_reduce(partial(_complete_log_likelihood_of, fitted))
    return total


def _complete_log_likelihood_of(fitted: Point, block: Block) -> float:
    scores = fitted.scores(block)
    log_densities = scores.log_density().T - fitted.family.log_units(block)
    log_densities = np.maximum(log_densities.T, LEAST)
    assigned = fitted.assign(block, row_weights=np.ones(len(block.weights)), scores=scores)
    block.buffers.release("scores", scores.unnormalized)
    resp = as_dense(assigned.responsibilities, len(fitted.params.weights))
    return weighted_sum(block.weights, np.einsum("nk,nk->n", resp, log_densities))


def bic(fitted: Point, log_likelihood: float, n_samples: float) -> float:
    """Return the Bayesian information criterion, of sums with the weights that users give."""
    return -2 * log_likelihood + fitted.n_parameters * float(np.log(max(n_samples, 1)))


def evaluate(fitted: Point, rows: RowSource) -> list[float]:
    """Return what `log_likelihood` does, and the weighted sum of responsibility entropies."""
    return rows.map_reduce(partial(_evaluation_of, fitted)).tolist()


def _evaluation_of(fitted: Point, block: Block) -> Array:
    assigned = fitted.assign(block, row_weights=np.ones(len(block.weights)))
    resp = as_dense(assigned.responsibilities, len(fitted.params.weights))
    logs = block.buffers.acquire("logs", resp.shape, resp.dtype)
    np.log(np.maximum(resp, np.finfo(resp.dtype).tiny, out=logs), out=logs)
    entropy = -(block.weights @ np.einsum("nk,nk->n", resp, logs))
    block.buffers.release("logs", logs)
    block.buffers.release("scores", assigned.scores.unnormalized)
    # The values of softmax are the log-densities, unless limits on sizes have offsets.
    if fitted.mixture.posterior == SOFTMAX and fitted.params.offsets is None:
        values = assigned.values - fitted.family.log_units(block)
        return np.append(_sums(block, values), entropy)
    return np.append(_log_likelihood_of(fitted, block), entropy)


def sample(fitted: Point, n_samples: int, rng: Generator) -> tuple[Array, Array]:
    """Draw rows by component, those of the background last, and return their labels, too."""
    K = fitted.n_components
    counts = rng.multinomial(n_samples, fitted.params.weights)
    of_components = fitted.family.sample(fitted.components, counts[:K], rng)
    of_background = fitted.background.draw(counts[K:], of_components.shape[1], rng)
    labels = np.append(np.repeat(np.arange(K), counts[:K]), np.full(len(of_background), -1))
    return np.vstack([of_components, of_background]), labels


def conditional_means(fitted: Point, limit: float, block: DenseBlock) -> Array:
    """Return rows of a block, filled with conditional means up to a limit, in absolute value.

    They are those under the components alone.
    """
    if block.missing is None:
        return block.X
    weights = NO_BACKGROUND.weights_after(fitted.params)
    components = Point(Mixture.plain(fitted.family), Params.first(weights, fitted.components))
    resp = as_dense(_responsibilities_of(components, block), fitted.n_components)
    rows = ObservedRows(fitted.family.type, block, fitted.components)
    return np.clip(rows.conditional_means(resp), -limit, limit)
