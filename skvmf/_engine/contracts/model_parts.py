"""The contracts of the parts of a mixture, for whoever writes another.

A mixture answers four questions, and `MixtureModel` puts the answers together: what is a
component (`Family`), which responsibilities has it for a row (`Posterior`), how are weights
chosen (`Prior` and `WeightUpdate`), how do statistics move components (`Update`). Its data is a
`RowSource`.
A part derives from its contract; one with a method missing cannot be made, and Python names
the method. A part is frozen: what a fit learns is in the `components` that it hands round,
an object that only the family looks into.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from ..._typing import Array
from ..data.base import RowSource
from .gradients import GradientsType
from .responsibilities import Responsibilities, Scores
from .statistics import Components, Statistics

C = TypeVar("C", bound=Components)  # the components of a family


class Family(ABC, Generic[C]):
    """The distribution of a component: density, sufficient statistics, and where fits start.

    K is the number of components, d that of features. A `block` is one of dense rows or,
    where the family takes them, of sparse ones (`skvmf._engine.data.blocks`). No method
    changes the parameters of components without rows.
    """

    dim: int
    """Number of features."""

    components_class: ClassVar[type]
    """The dataclass of components; its length is their number K."""

    unit_rows: ClassVar[bool] = False
    """Whether rows are scaled to unit length as they are read."""

    sparse_rows: ClassVar[bool] = False
    """Whether rows may be sparse."""

    # A step of EM.

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

    # Fits and starts.

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

    def reshaped(self, components: C, shapes: Array) -> C:
        """Return components with covariances, scale matrices or concentrations that are given."""
        raise NotImplementedError

    # Optional: merging.

    def merge_cost(self, stats: Statistics, components: C, parts: Array) -> "MergeCost":
        """Return what merging some of the components costs, by their numbers `parts` (M,).

        A start by merging and a `ComponentPath` ask for it.
        """
        raise ValueError(
            f"{type(self).__name__} components cannot be merged: the family has no `merge_cost`."
        )

    def proposal(self) -> "Proposal":
        """Return how starts by merging find components."""
        raise ValueError(
            f"{type(self).__name__} components have no start by merging: the family has no "
            "`proposal`. Set init_params to 'kmeans', 'k-means++', 'random' or 'random_from_data'."
        )

    # What else a mixture says.

    @abstractmethod
    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of `n_components`, without weights."""

    @abstractmethod
    def sample(self, components: C, counts: Array, rng: np.random.RandomState) -> Array:
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
    """Parts of the rows, and the log-likelihood that is lost where two are merged.

    A part is what one component has of the rows.
    """

    counts: Array
    """Numbers of rows (M,), positive."""

    dim: int
    """Number of directions in which a cluster may be cut in two."""

    @abstractmethod
    def losses(self, i: int) -> Array:
        """Return the log-likelihood (M,) that is lost where part i is merged with each part.

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
    def place(self, points: Array, like: C | None = None) -> C:
        """Return components at points (M, d), of a size typical of the components `like`.

        None is a size typical of the whole data.
        """

    @abstractmethod
    def append(self, components: C, others: C) -> C:
        """Return components followed by others."""

    @abstractmethod
    def peaks(self, components: C) -> Array:
        """Return the largest value of the log-density of each component, (K,)."""

    @abstractmethod
    def fit_parts(self, cost: Any, parts: Array) -> C:
        """Return the components that fit some parts, by number, of the family's `merge_cost`."""


class ShapedFamily(Family[C]):
    """A family with covariances that split-and-merge can split and merge."""

    @abstractmethod
    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether there are enough rows to estimate the components."""

    @abstractmethod
    def sizes(self, components: C) -> Array:
        """Return the mean variance of each component, (K,)."""

    @abstractmethod
    def split(self, components: C, steps: Array) -> C:
        """Return components moved by -steps (K, d), followed by the same moved by steps."""

    @abstractmethod
    def merge_pairs(self, components: C, weights: Array, pairs: Array) -> list[C]:
        """Return one component for each pair (m, 2), with the mean and covariance of the two.

        The components have such weights (K,).
        """

    @abstractmethod
    def merge_statistics(
        self, stats: Statistics, components: C, pairs: Array
    ) -> tuple[Statistics, C]:
        """Add the statistics of the second component of each pair (m, 2) to those of the first.

        Also returns the components without the second ones.
        """


@dataclass(frozen=True)
class Proposal:
    """How a start by merging finds components of a family.

    Parameters
    ----------
    seeds : SeedFamily
        The simple components of overseeding.
    shaped : ShapedFamily or None
        Components with covariances, for split-and-merge where rows suffice; None ends with the
        simple ones.
    trimmed : callable or None
        If given, rows far from all others are left out where a background has them. Takes the
        mean variance of the rest and returns the proposal for them.
    alternative : callable or None
        If given, mixtures without a background have a second start, with one. Takes the rows
        and returns that background, and the family under which the larger bound wins.
    """

    seeds: SeedFamily[Any]
    shaped: ShapedFamily[Any] | None = None
    trimmed: "Callable[[float], Proposal] | None" = None
    alternative: Callable[[RowSource], tuple[Any, AnyFamily]] | None = None


class Posterior(ABC):
    """Which responsibilities components have for a row."""

    @abstractmethod
    def assign(
        self, scores: Scores, weights: Array, row_weights: Array, row_scales: Array | None = None
    ) -> tuple[Responsibilities, Array, Array]:
        """Return responsibilities, the weighted counts (K,), and each row's value (n,).

        The value of a row is the most that <q, log p> less the price of responsibilities q can be.
        Responsibilities are multiplied by the row's weight and, if it has one, its scale.
        `scores` is used up.
        """

    def values(self, scores: Scores, weights: Array) -> Array:
        """Return each row's value alone, (n,), as `assign` does; `scores` may be used up."""
        return self.assign(scores, weights, np.ones(len(scores.products)))[2]

    @abstractmethod
    def label(
        self, scores: Scores, weights: Array, row_weights: Array
    ) -> tuple[Array, Array, Array]:
        """Return the most responsible component, the weighted counts, and its score."""

    @abstractmethod
    def weight_value(self, counts: Array, weights: Array) -> float | None:
        """Return the part of the summed values that depends on the weights, given responsibilities.

        None where the weights that maximize it together with a prior are that prior's mode.
        """


class Prior(ABC):
    """How likely weights are before any row is seen.

    `alpha`, a number or (K,), are the parameters of the Dirichlet kernel, `floor` the least
    weight of a component in the mixture. A weight of zero marks a pruned component.
    """

    alpha: float | Array
    floor: float

    @property
    @abstractmethod
    def flat(self) -> bool:
        """Return whether weights are simply proportions."""

    @abstractmethod
    def log_density(self, weights: Array) -> float:
        """Return the unnormalised log-density of the weights."""

    @abstractmethod
    def lift(self, weights: Array) -> Array:
        """Return the weights raised to the floor, except pruned ones."""

    @abstractmethod
    def mode(self, counts: Array) -> Array:
        """Return the weights that maximize sum of counts * log weights + log-density."""


class WeightUpdate(ABC):
    """How counts become weights."""

    @abstractmethod
    def __call__(self, posterior: Posterior, prior: Prior, counts: Array, weights: Array) -> Array:
        """Return the weights for the next step; those without counts are zero."""


@dataclass(frozen=True)
class Update:
    """How statistics move the components: to the family's maximum; subclasses go elsewhere."""

    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return better components, and which are broken, as `Family.maximize` does."""
        return family.maximize(stats, components)

    def reseed(self, family: Any, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row (d,); the components `alive` (K,) have rows."""
        return family.reseed(components, k, row)


def require(part: object, contract: type, role: str) -> None:
    """Refuse a part that is not what its role asks for, with the contract's name."""
    if not isinstance(part, contract):
        raise TypeError(
            f"{role} should be a {contract.__name__} as skvmf._engine.contracts.model_parts "
            f"defines it, and {type(part).__name__} does not derive from it."
        )
