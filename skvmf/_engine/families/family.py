"""The abstract classes of the parts of a mixture, and the values that they exchange.

A `Mixture` holds a `Family` (what is a component), an `Update` (how statistics move components)
and a `Constraint` (what components must fulfil). Its data is a `RowSource`. A part is frozen: what
a fit learns is in the `components` that it hands round, which only the family looks into.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.random import RandomState

from ..._kernels.rows import pack_rows
from ..._typing import Array, Attributes
from ..rows.blocks import BufferPool
from ..rows.sources import RowSource

_BLOCK_SIZE = 2**16  # entries to compare with 0: to count booleans is ten times as fast as floats
_SAMPLING_STEP = 32  # one row in so many tells whether responsibilities are dense


@dataclass(frozen=True)
class Scores:
    """Log-densities as matrix products leave them: slopes[:, None] * products + bias."""

    products: Array  # (n, K) of float32 or float64; a posterior works in it, so it is used up
    bias: Array  # (K,)
    slopes: Array | None = None  # (n,); None is one, and what families without row scales have
    cache: Any = None  # what the family's moments ask for again; no posterior looks at it

    def log_density(self) -> Array:
        """Return the log-density of each row under each component, (n, K)."""
        products = self.products if self.slopes is None else self.products * self.slopes[:, None]
        return products + self.bias


@dataclass(frozen=True)
class DenseResponsibilities:
    """Each component's responsibility for each row, times the row's factor, (n, K)."""

    resp: Array

    def denser_than(self, fraction: float) -> bool:
        """Whether more than a fraction is not zero, and one in each row: estimated from a few."""
        if self.resp.shape[1] * fraction < 1:
            return True
        some = self.resp[::_SAMPLING_STEP]
        return bool(np.count_nonzero(some != 0) > fraction * some.size)

    def packed(self) -> "SparseResponsibilities":
        """Return the non-zeros of each row."""
        n, K = self.resp.shape
        n_rows = max(1, _BLOCK_SIZE // K)
        parts = (self.resp[start : start + n_rows] for start in range(0, n, n_rows))
        m = sum(int(np.count_nonzero(part != 0)) for part in parts)
        ends = np.empty(n, dtype=np.int64)
        columns, values = np.empty(m + 1, dtype=np.int32), np.empty(m + 1, self.resp.dtype)
        pack_rows(self.resp, ends, columns, values)
        return SparseResponsibilities(ends, columns[:m], values[:m])

    def largest(self) -> Array:
        """Return the component most responsible for each row, (n,)."""
        return self.resp.argmax(axis=1)

    def first_components(self, n_components: int) -> "DenseResponsibilities":
        """Leave out the components from a number on."""
        if n_components == self.resp.shape[1]:
            return self
        return DenseResponsibilities(np.ascontiguousarray(self.resp[:, :n_components]))


@dataclass(frozen=True)
class HardResponsibilities:
    """The component of each row, (n,) int32, and the row's factor, (n,)."""

    labels: Array
    factors: Array

    def packed(self) -> "SparseResponsibilities":
        """Return the same as one non-zero per row, or none if its factor is zero."""
        kept = self.factors != 0
        return SparseResponsibilities(np.cumsum(kept), self.labels[kept], self.factors[kept])

    def largest(self) -> Array:
        """Return the component of each row, (n,)."""
        return self.labels

    def first_components(self, n_components: int) -> "HardResponsibilities":
        """Leave out the components from a number on: their rows go to the first, with factor 0."""
        beyond = self.labels >= n_components
        if not beyond.any():
            return self
        labels = np.where(beyond, 0, self.labels).astype(np.int32)
        return HardResponsibilities(labels, np.where(beyond, 0.0, self.factors))


@dataclass(frozen=True)
class SparseResponsibilities:
    """Non-zero responsibilities, row after row: those of row n end before ``ends[n]``."""

    ends: Array
    columns: Array
    values: Array


Responsibilities: TypeAlias = DenseResponsibilities | HardResponsibilities


def as_dense(responsibilities: Responsibilities, n_components: int) -> Array:
    """Return an (n, K) array."""
    if isinstance(responsibilities, DenseResponsibilities):
        return responsibilities.resp
    labels, factors = responsibilities.labels, responsibilities.factors
    resp = np.zeros((len(labels), n_components))
    resp[np.arange(len(labels)), labels] = factors
    return resp


Bags: TypeAlias = tuple[Array, Array, Array]  # as `pad_bags` prepares them
_MAX_FLOAT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class VectorResponsibilities:
    """Responsibilities (V, K) for the vectors of a table, or compressed rows if most are zero.

    A vector left out has none. `table` (V, d) and `scales` (V,) are vectors as the mixture sees
    them.
    """

    resp: Array | tuple[Array, Array, Array]
    table: Array
    scales: Array

    @property
    def packed(self) -> bool:
        """Whether responsibilities are compressed rows."""
        return isinstance(self.resp, tuple)


@dataclass(frozen=True)
class ParameterBlock:
    """Slope and variance of a statistic, each (K,) or (K, d)."""

    slope: Array
    variance: Array

    def factor(self, normalization: str | None) -> Array:
        """Return the factor of the statistic: finite; 0 for a component without weight."""
        if normalization is None:
            return self.slope
        if normalization == "fisher":
            return _inverse(np.sqrt(self.variance))
        return _inverse(self.slope * self.variance)


class Gradients(ABC):
    """Gradients in weights (K,) and components, along the sphere if `tangent`, of bags."""

    names: ClassVar[dict[str, str]]  # the kinds of parameters, each with the name of one of them
    blocks: dict[str, ParameterBlock]  # slopes and variances of the statistics of each kind

    @abstractmethod
    def __init__(self, weights: Array, components: Any, *, tangent: bool) -> None: ...

    @abstractmethod
    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""


GradientsType: TypeAlias = type[Gradients]


def repeat_columns(first: Array, second: Array, d: int) -> tuple[Array, Array]:
    """Repeat (K,) values for each of d dimensions."""
    return np.tile(first[:, None], d), np.tile(second[:, None], d)


def _inverse(values: Array) -> Array:
    with np.errstate(over="ignore"):
        inverses = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return np.minimum(inverses, _MAX_FLOAT)


class Components(Protocol):
    """The parameters of K components; only their family knows more of them."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Params:
    """The parameters of a mixture, and what has happened to its components in this fit."""

    weights: Array  # (K,) or (K + 1,): that of a background is the last
    components: Any  # of the family; their number is ``len(components)``
    reseeded: Array  # as long as the weights: moved to a row or pruned, which happens once
    on_floor: Array  # as long as the weights: of the least weight that the prior allows

    @classmethod
    def first(cls, weights: Array, components: Components) -> "Params":
        """Return parameters of a fit that has not re-seeded or pruned any component."""
        nowhere = np.zeros(len(weights), dtype=bool)
        return cls(weights, components, nowhere, nowhere)

    @classmethod
    def from_dict(cls, components_class: Callable[..., Components], values: Attributes) -> "Params":
        """Return the parameters of `to_dict`."""
        components = components_class(**values["components"])
        return cls(values["weights"], components, values["reseeded"], values["on_floor"])

    def to_dict(self) -> Attributes:
        """Return the arrays by name, those of the components in a dict of their own."""
        return as_dict(self) | {"components": as_dict(self.components)}

    @property
    def n_components(self) -> int:
        return len(self.components)

    @property
    def component_weights(self) -> Array:
        return self.weights[: self.n_components]

    @property
    def conditional_weights(self) -> Array:
        """The weights of the components for rows that are not of the background, (K,)."""
        if len(self.weights) == self.n_components:
            return self.weights
        total = max(float(self.component_weights.sum()), float(np.finfo(np.float64).tiny))
        return self.component_weights / total

    @property
    def background_weight(self) -> float:
        return float(self.weights[self.n_components :].sum())

    def pruned(self) -> "Params":
        """Take components without weight as pruned: they are not re-seeded."""
        return replace(self, reseeded=self.reseeded | (self.weights == 0))

    def reordered(self, order: Array, components: Components) -> "Params":
        """Return the same with components in another order; they are given in that order."""
        index = np.append(order, np.arange(self.n_components, len(self.weights)))
        return Params(self.weights[index], components, self.reseeded[index], self.on_floor[index])


def as_dict(part: Any) -> Attributes:
    """Return a dataclass's fields; unlike `asdict`, without copies."""
    return {each.name: getattr(part, each.name) for each in fields(part)}


@dataclass
class Statistics:
    """Sums over blocks of rows that an M-step needs.

    `value` is the weighted sum of the rows' posterior values, `total` the sum of weights,
    `counts` (K,) and the tuple `moments` are the family's, about the points `origins` (K, d)
    or about zero. `worst_values` and `worst_rows` (m,) are values and numbers of the least likely
    rows, first on ties: one, or as many as may be empty. First moments once added go to `buffers`.
    Sums that are added have weights in the same `unit` (`RowSource.weight_unit`).
    """

    value: float
    total: float
    counts: Array
    moments: tuple[Array, ...]
    origins: Array | None
    worst_values: Array = field(default_factory=partial(np.empty, 0))
    worst_rows: Array = field(default_factory=partial(np.empty, 0, np.int64))
    buffers: BufferPool | None = None
    unit: float = 1.0

    def __iadd__(self, other: "Statistics") -> "Statistics":
        self.value += other.value
        self.total += other.total
        self.counts += other.counts
        for mine, theirs in zip(self.moments, other.moments, strict=True):
            mine += theirs
        values = np.append(self.worst_values, other.worst_values)
        worst = np.argsort(values, kind="stable")
        worst = worst[: max(len(self.worst_values), len(other.worst_values))]
        self.worst_values = values[worst]
        self.worst_rows = np.concatenate([self.worst_rows, other.worst_rows])[worst]
        if other.buffers is not None:
            other.buffers.release("sums", other.moments[0])
        return self

    def __getstate__(self) -> Attributes:
        return vars(self) | {"buffers": None}  # is of use only where the blocks are

    def in_unit(self, unit: float) -> "Statistics":
        """Return the statistics with weights in another unit."""
        return self if unit == self.unit else replace(self.scaled(self.unit / unit), unit=unit)

    def scaled(self, factor: float) -> "Statistics":
        """Return the statistics of the same rows with their weights multiplied."""
        moments = tuple(factor * moment for moment in self.moments)
        scaled = replace(self, counts=factor * self.counts, moments=moments, buffers=None)
        return replace(scaled, value=factor * self.value, total=factor * self.total)

    def first_components(self, n_components: int) -> "Statistics":
        """Leave out the counts beyond those of the family's components: the background's."""
        if n_components == len(self.counts):
            return self
        return replace(self, counts=self.counts[:n_components])


# The contracts of the parts of a mixture, for whoever writes another.


C = TypeVar("C", bound=Components)  # the components of a family


class Family(ABC, Generic[C]):
    """The distribution of a component: density, sufficient statistics, and where fits start.

    K is the number of components, d that of features. A `block` is one of dense rows or,
    where the family takes them, of sparse ones (`skvmf._engine.blocks`). No method
    changes the parameters of components without rows.
    """

    dim: int
    """Number of features."""

    components_class: ClassVar[type]
    """The dataclass of components; its length is their number K."""

    component_axes: Any = (0,) * 8
    """The axis of components in each of the moments, at most eight; None if there is none."""

    unit_rows: ClassVar[bool] = False
    """Whether rows are scaled to unit length as they are read."""

    sparse_rows: ClassVar[bool] = False
    """Whether rows may be sparse. Then there is `widened`, as that of `VonMisesFisher`."""

    @abstractmethod
    def scores(self, block: Any, components: C) -> Scores:
        """Return the log-density of each row of a block under each component."""

    @abstractmethod
    def moments(
        self, block: Any, responsibilities: Responsibilities, components: C, cache: Any = None
    ) -> tuple[Array, ...]:
        """Return what a block adds to the moments, about `origins(components)`.

        Responsibilities carry the weights of the rows and, where rows are scaled, the scales.
        Moments add: those of all blocks together are the sum of those of each. `cache` is
        that of the scores of the same block and components, to be used up; None where a
        partition is given and nothing was scored.
        """

    @abstractmethod
    def maximize(self, stats: Statistics, components: C) -> tuple[C, Array]:
        """Return the components that maximize the penalised likelihood, and which are broken.

        A component is broken (K, boolean) where no density fits its rows, such as a Gaussian
        on a single point: it keeps its old parameters, and the mixture prunes it. `stats` is
        left as it is.
        """

    @abstractmethod
    def reseed(self, components: C, k: int, row: Array) -> C:
        """Move component k to a row (d,), with a shape like that of the others."""

    @property
    @abstractmethod
    def min_rows(self) -> int:
        """Return the number of rows that a component needs to be estimated from."""

    def log_prior(self, components: C) -> float:
        """Return the log-density of the prior on the components; 0 without a prior."""
        return 0.0

    def origins(self, components: C) -> Array | None:
        """Return the points (K, d) that moments are about; None for moments about zero."""
        return None

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        """Return the statistics about other points, so that they can be added to those there."""
        return stats

    @abstractmethod
    def kmeans(self) -> "AnyFamily":
        """Return the family whose hard EM with equal weights is k-means."""

    @abstractmethod
    def from_centres(self, centres: Array) -> C:
        """Return some components at centres (K, d)."""

    @abstractmethod
    def centres(self, components: C) -> Array:
        """Return where the components are, (K, d)."""

    @abstractmethod
    def distances(self, block: Any, centres: Array) -> Array:
        """Return the k-means loss of each row at each of m centres, (n, m), finite."""

    @abstractmethod
    def initial(self, stats: Statistics, components: C, centres: Array | None = None) -> C:
        """Return first components from a partition of the rows.

        The moments in `stats` are about the origins of `components`. If `centres` (K, d)
        are given, the components are put there and all take their shape from the whole data.
        """

    def with_prior_from(self, stats: Statistics) -> "AnyFamily":
        """Return the family with its prior centred on a first partition of the data."""
        return self

    def continued_by(self, fresh: "AnyFamily") -> "AnyFamily":
        """Return a new family with this one's prior, for a fit that continues.

        Raises a ValueError if components of this family cannot be those of `fresh`.
        """
        return fresh

    def adapted(self, components: C) -> C:
        """Return components of an earlier fit as this family may have them."""
        return components

    def kept(self, first: C, old: C, numbers: Array, merged: Array) -> C:
        """Return first components, with what is fixed or no moment as in those `numbers` (K,)."""
        return first

    def chosen(self, components: C, numbers: Array) -> C:
        """Return some components, by numbers that may repeat, for a fit with more of them."""
        raise NotImplementedError

    def reshaped(self, components: C, shapes: Array) -> C:
        """Return components with covariances, scale matrices or concentrations that are given."""
        raise NotImplementedError

    def merge_cost(self, stats: Statistics, components: C, parts: Array) -> "MergeCost":
        """Return what merging components `parts` (M,) costs: for starts by merging and paths."""
        raise ValueError(
            f"{type(self).__name__} components cannot be merged: the family has no `merge_cost`."
        )

    def proposal(self) -> "Proposal":
        """Return how starts by merging find components."""
        raise ValueError(
            f"{type(self).__name__} components have no start by merging: the family has no "
            "`proposal`. Set init_params to 'kmeans', 'k-means++', 'random' or 'random_from_data'."
        )

    @abstractmethod
    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of `n_components`, without weights."""

    @abstractmethod
    def sample(self, components: C, counts: Array, rng: RandomState) -> Array:
        """Draw ``counts[k]`` rows from each component k in turn."""

    @property
    def zero_row_log_density(self) -> float:
        """Return the log-density of a row without direction; families of other rows have none."""
        return float("nan")

    @property
    def gradients(self) -> GradientsType:
        """Return the class of gradients for Fisher vectors; raises ValueError if there is none."""
        raise ValueError(
            f"{type(self).__name__} components have no Fisher vectors: use a "
            "VonMisesFisherMixture, or a Gaussian mixture with covariance_type='diag'."
        )


AnyFamily: TypeAlias = Family[Any]  # for whoever hands components round


def chosen_statistics(family: AnyFamily, stats: Statistics, numbers: Array) -> Statistics:
    """Return the statistics of some components, by their numbers; -1 is one without rows."""
    K, kept = stats.moments[0].shape[family.component_axes[0]], numbers >= 0

    def choose(moment: Array, axis: int | None) -> Array:
        if axis is None:
            return moment
        shape = [-1 if i == axis else 1 for i in range(moment.ndim)]
        return np.take(moment, numbers, axis=axis) * kept.reshape(shape)

    counts = np.append(choose(stats.counts[:K], 0), stats.counts[K:])
    moments = tuple(map(choose, stats.moments, family.component_axes))
    origins = None if stats.origins is None else stats.origins[numbers]
    return replace(stats, counts=counts, moments=moments, origins=origins)


class MergeCost(ABC):
    """Parts of the rows, one per component, and the log-likelihood that a merge of two loses."""

    counts: Array
    """Numbers of rows (M,), positive."""

    dim: int
    """Number of directions in which a cluster may be cut in two."""

    @abstractmethod
    def points(self) -> Array:
        """Return a point (M, p) for each part: those that lose little are near each other."""

    @abstractmethod
    def losses(self, i: int, parts: Array | slice = slice(None)) -> Array:
        """Return the log-likelihood that is lost where part i is merged with each, or with some.

        That is l_i + l_j - l_ij, if l_i is the log-likelihood of the rows of part i under the
        component that fits them best.
        """

    @abstractmethod
    def merge(self, i: int, j: int) -> None:
        """Add part j to part i; part j is not used any more."""

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood l_i of each part, (M,), for starts with a background."""
        raise ValueError(
            f"Starts by merging with a background need {type(self).__name__}.log_likelihoods."
        )


class SeedFamily(Family[C]):
    """A family whose components overseeding puts at single rows, fits and merges.

    They have few parameters each, so that a few rows suffice to estimate them: often those of
    the family to start, with one concentration for all. There must be a `merge_cost`, too.
    """

    @abstractmethod
    def at_points(self, points: Array, like: C | None = None) -> C:
        """Return components at points (M, d), of a size typical of `like`, or of the whole data."""

    @abstractmethod
    def append(self, components: C, others: C) -> C:
        """Return components followed by others."""

    @abstractmethod
    def peaks(self, components: C) -> Array:
        """Return the largest value of the log-density of each component, (K,)."""

    @abstractmethod
    def fit_parts(self, cost: Any, parts: Array) -> C:
        """Return the components that fit some parts, by number, of the family's `merge_cost`."""


@dataclass(frozen=True)
class Proposal:
    """How a start by merging finds components of a family."""

    seeds: SeedFamily[Any]  # the simple components of overseeding
    # Components with covariances, as `ShrunkGaussian`, for split-and-merge where rows suffice.
    shaped: Any = None
    # Of the rows' mean variance, the proposal for rows that are not far from all others: a
    # background has those that are.
    trimmed: "Callable[[float], Proposal] | None" = None
    # Of the rows, a background that mixtures without one start with, too, and the family under
    # which the larger bound wins.
    alternative: Callable[[RowSource], tuple[Any, AnyFamily]] | None = None


@dataclass(frozen=True)
class Update:
    """How statistics move the components: to the family's maximum; subclasses go elsewhere."""

    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return better components, and which are broken, as `Family.maximize` does."""
        return family.maximize(stats, components)

    def reseed(self, family: Any, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row (d,); the components `alive` (K,) have rows."""
        return family.reseed(components, k, row)


class Constraint:
    """No constraint. Subclasses set theirs up at a start and sort components; updates keep it."""

    def apply(
        self, family: Any, params: Params, weights: Array | None = None, shapes: Array | None = None
    ) -> Params:
        """Return first parameters that fulfil the constraint, with weights and shapes if given."""
        if shapes is None:
            return params
        return replace(params, components=family.reshaped(params.components, shapes))

    def order(self, components: Any) -> Array | None:
        """Return the order (K,) in which components are kept; None leaves them as they are."""
        return None

    def sort(
        self, family: Any, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and their statistics with components in the order to keep."""
        return params, stats


# A run of EM.
P = TypeVar("P")  # parameters
S = TypeVar("S")  # statistics
OnIteration = Callable[[int, list[float], Any], bool]  # step, bounds, parameters
OfRows = tuple[Array, Array] | None  # labels and their responsibilities, where they are known


@dataclass(frozen=True)
class EMResult(Generic[P, S]):
    """The best that a run has reached: the bound after each step, and its statistics."""

    params: P
    bounds: list[float]
    n_iter: int
    converged: bool
    stopped: bool = False
    stats: S | None = None
    of_rows: OfRows = None


@dataclass(frozen=True)
class EMState(Generic[P]):
    """How far a run has come: enough for another to continue, bit-identically.

    `comparable` says whether the last two bounds are; `best` is the step with the best, and where.
    """

    params: P
    bounds: Sequence[float] = ()
    comparable: bool = False
    best: tuple[int, P] | None = None


def ignore(n_iter: int, bounds: list[float], params: object) -> bool:
    """Watch nothing and never stop."""
    return False
