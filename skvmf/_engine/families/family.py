"""The abstract classes of the parts of a mixture, and the values that they exchange.

A `Mixture` holds a `Family` (what is a component), an `Update` (how statistics move components)
and a `Constraint` (what components must fulfil). Its data is a `RowSource`. A part is frozen: what
a fit learns is in the `components` that it hands round, which only the family looks into.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np
from numpy.random import Generator

from ..._typing import Array
from ..rows.sources import RowSource
from .gradients import GradientsType
from .params import C, Params
from .responsibilities import Responsibilities
from .statistics import Statistics


@dataclass(frozen=True, eq=False)
class Scores:
    """Log-densities as matrix products leave them: slopes[:, None] * unnormalized + bias.

    Parameters
    ----------
    unnormalized : ndarray of shape (n, K), float32 or float64
        What the matrix product returns. A posterior works in it, so it is used up.
    bias : ndarray of shape (K,)
        What is added for each component.
    slopes : ndarray of shape (n,), default=None
        What the product is multiplied by for each row; None is one, as in families whose rows
        have no scales.
    cache : object, default=None
        What the family's moments ask for again; no posterior looks at it.
    """

    unnormalized: Array
    bias: Array
    slopes: Array | None = None
    cache: Any = None

    def log_density(self) -> Array:
        """Return the log-density of each row under each component, (n, K)."""
        if self.slopes is None:
            return self.unnormalized + self.bias
        return self.unnormalized * self.slopes[:, None] + self.bias


class Family(ABC, Generic[C]):
    """The distribution of a component: density, sufficient statistics, and where fits start.

    K is the number of components, d that of features. A `block` is one of dense rows or,
    where the family takes them, of sparse ones (`skvmf._engine.rows.blocks`). No method
    changes the parameters of components without rows.
    """

    dim: int
    """Number of features."""

    components_class: ClassVar[type]
    """The dataclass of components; its length is their number K."""

    component_axes: Any = (0,) * 8
    """The axis of components in each of the moments, at most eight; None if there is none."""

    estimated_losses: ClassVar[bool] = False
    """Whether a `merge_cost` knows losses roughly: a path then measures what merges have lost."""

    unit_rows: ClassVar[bool] = False
    """Whether rows are scaled to unit length as they are read."""

    units: Array | None = None
    """Units (d,) of features that log-densities are taken in; None if they are the rows' own."""

    sparse_rows: ClassVar[bool] = False
    """Whether rows may be sparse. Then there is `in_all_columns`, as that of `VonMisesFisher`."""

    @abstractmethod
    def scores(self, block: Any, components: C) -> Scores:
        """Return the log-density of each row of a block under each component."""

    @abstractmethod
    def moments(
        self, block: Any, responsibilities: Responsibilities, components: C, cache: Any = None
    ) -> tuple[Array, ...]:
        """Return what a block adds to the moments, which are `centred_at(components)`.

        Responsibilities carry the weights of the rows and, where rows are scaled, the scales.
        Moments add: those of all blocks together are the sum of those of each. They are a plain
        tuple; a family with many names them where it reads them, as `StudentTMoments` does.
        `cache` is that of the scores of the same block and components, to be used up; None where
        a partition is given and nothing was scored.
        """

    @abstractmethod
    def maximize(self, stats: Statistics, components: C) -> tuple[C, Array]:
        """Return the components that maximize the penalised likelihood, and which are singular.

        A component is singular (K, boolean) where no density fits its rows, such as a Gaussian
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

    def log_units(self, block: Any) -> Any:
        """Return by how much log-densities of rows exceed those in the features' own units."""
        return 0.0

    def in_units(self, units: Array) -> "AnyFamily":
        """Return the family for rows whose features are divided by units (d,)."""
        raise NotImplementedError

    def from_units(self, components: C, units: Array) -> C:
        """Return components of ``in_units(units)`` as those of this family."""
        raise NotImplementedError

    def log_prior(self, components: C) -> float:
        """Return the log-density of the prior on the components; 0 without a prior."""
        return 0.0

    def centred_at(self, components: C) -> Array | None:
        """Return the points (K, d) that moments are centred at; None for moments about zero."""
        return None

    def shift_moments(self, stats: Statistics, centred_at: Array | None) -> Statistics:
        """Return statistics centred at other points, so that they can be added to those there."""
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

        The moments in `stats` are centred as those of `components`. If `centres` (K, d)
        are given, the components are put there and all take their shape from the whole data.
        """

    def with_prior_from(self, stats: Statistics) -> "AnyFamily":
        """Return the family with its prior centred on a first partition of the data."""
        return self

    def continued_by(self, new: "AnyFamily") -> "AnyFamily":
        """Return a new family with this one's prior, for a fit that continues.

        Raises a ValueError if components of this family cannot be those of the new one.
        """
        return new

    def adapted(self, components: C) -> C:
        """Return components of an earlier fit as this family may have them."""
        return components

    def inherit(self, first: C, old: C, numbers: Array, merged: Array) -> C:
        """Return first components that have from old ones, by `numbers` (K,), what is fixed.

        Also what no moment tells, such as degrees of freedom; `merged` (K,) are those of several.
        """
        return first

    def select(self, components: C, numbers: Array) -> C:
        """Return some components, by numbers that may repeat, for a fit with more of them."""
        raise NotImplementedError

    def with_shapes(self, components: C, shapes: Array) -> C:
        """Return components with covariances, scale matrices or concentrations that are given."""
        raise NotImplementedError

    def with_added(self, components: C, centres: Array, in_use: Array) -> C:
        """Return components followed by others at centres (m, d), for a fit with more of them.

        Each has the average shape of the components whose numbers are `in_use`, and what no shape
        tells as first components have it. Here it is that of re-seeded copies of them.
        """
        n_old = len(components)
        copies = np.resize(in_use, len(centres))
        components = self.select(components, np.append(np.arange(n_old), copies))
        for k, centre in enumerate(centres, n_old):
            components = self.reseed(components, k, centre)
        return components

    def renumbered(self, numbers: Array) -> "AnyFamily":
        """Return the family for some of the components, by their numbers, in that order."""
        return self

    def merge_cost(self, stats: Statistics, components: C, numbers: Array) -> "MergeCost":
        """Return what merging components, by `numbers` (M,), costs: for starts and for paths."""
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
    def sample(self, components: C, counts: Array, rng: Generator) -> Array:
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


class MergeCost(ABC):
    """Clusters of rows, one per component, and the log-likelihood that a merge of two loses."""

    counts: Array
    """Numbers of rows (M,), positive."""

    dim: int
    """Number of directions in which a cluster may be cut in two."""

    @abstractmethod
    def points(self) -> Array:
        """Return a point (M, p) for each cluster: those that lose little are near each other."""

    @abstractmethod
    def losses(self, i: int, clusters: Array | slice = slice(None)) -> Array:
        """Return the log-likelihood that is lost where cluster i is merged with each, or some.

        That is l_i + l_j - l_ij, if l_i is the log-likelihood of the rows of cluster i under the
        component that fits them best.
        """

    def all_losses(self) -> Array:
        """Return the losses (M, M) of all pairs, in a call for each cluster if not overridden."""
        return np.stack([self.losses(i) for i in range(len(self.counts))])

    @abstractmethod
    def merge(self, i: int, j: int) -> None:
        """Add cluster j to cluster i; cluster j is not used any more."""

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood l_i of each cluster, (M,), for starts with a background."""
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
    def fit_clusters(self, cost: Any, clusters: Array) -> C:
        """Return the components that fit some clusters, by number, of a `merge_cost`."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """How a start by merging finds components of a family.

    Parameters
    ----------
    seeds : SeedFamily
        The simple components of overseeding.
    shaped : SeedFamily, default=None
        Components with covariances, as those of `ShrunkGaussian`, for split-and-merge where rows
        suffice.
    trimmed : callable, default=None
        Of the rows' mean variance, the proposal for rows that are not far from all others: a
        background has those that are.
    alternative : callable, default=None
        Of the rows, a background that mixtures without one start with, too, and the family under
        which the larger bound wins.
    """

    seeds: SeedFamily[Any]
    shaped: Any = None
    trimmed: "Callable[[float], Proposal] | None" = None
    alternative: Callable[[RowSource], tuple[Any, AnyFamily]] | None = None


@dataclass(frozen=True)
class Update:
    """How statistics move the components: to the family's maximum; subclasses go elsewhere."""

    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return better components, and which are singular, as `Family.maximize` does."""
        return family.maximize(stats, components)

    def reseed(self, family: Any, components: Any, non_empty: Array, k: int, row: Array) -> Any:
        """Move component k to a row (d,); the components `non_empty` (K,) have rows."""
        return family.reseed(components, k, row)


class Constraint:
    """No constraint. Subclasses set theirs up at a start and sort components; updates keep it."""

    def apply(
        self,
        family: Any,
        params: Params,
        weights: Array | None = None,
        shapes: Array | None = None,
        classes: Array | None = None,
    ) -> Params:
        """Return first parameters that fulfil the constraint, with weights and shapes if given.

        The components of known `classes` keep their numbers.
        """
        if shapes is None:
            return params
        return replace(params, components=family.with_shapes(params.components, shapes))

    def order(self, components: Any) -> Array | None:
        """Return the order (K,) in which components are kept; None leaves them as they are."""
        return None

    def refuse_known(self, known: Array, rows: RowSource, params: Params) -> None:
        """Refuse known labels of rows that contradict the constraint."""

    def sort(
        self, family: Any, params: Params, stats: Statistics | None = None
    ) -> tuple[Params, Statistics | None]:
        """Return parameters and their statistics with components in the order to keep."""
        return params, stats
