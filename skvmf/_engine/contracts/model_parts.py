"""The contracts of the parts of a mixture, for whoever writes another.

A mixture answers four questions, and `MixtureModel` puts the answers together: what is a
component (`Family`), which responsibilities has it for a row (`Posterior`), how are weights
chosen (`Prior` and `WeightUpdate`), how do statistics move components (`Update`). Its data is a
`RowSource`.
A part derives from its contract; one with a method missing cannot be made, and Python names
the method. A part is frozen: what a fit learns is in the `components` that it hands round,
an object of the family's own that nobody else looks into.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from ..data.base import RowSource
from .gradients import GradientsType
from .responsibilities import Responsibilities, Scores
from .statistics import Statistics


class Family(ABC):
    """The distribution of a component: density, sufficient statistics, and where fits start.

    K is the number of components, d that of features. A `block` is one of dense rows or,
    where the family takes them, of sparse ones (`skvmf._engine.data.blocks`). Components without
    rows keep their parameters, whatever else a method does.
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
    def scores(self, block: Any, components: Any) -> Scores:
        """Return the log-density of each row of a block under each component."""

    @abstractmethod
    def moments(
        self, block: Any, responsibilities: Responsibilities, components: Any, cache: Any = None
    ) -> tuple[Array, ...]:
        """Return what a block adds to the moments, about `origins(components)`.

        Responsibilities carry the weights of the rows and, where rows are scaled, the scales.
        Moments add: those of all blocks together are the sum of those of each. `cache` is
        that of the scores of the same block and components, to be used up; None where a
        partition is given and nothing was scored.
        """

    @abstractmethod
    def maximize(self, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return the components that maximize the penalised likelihood, and which are broken.

        A component is broken (K, boolean) where no density fits its rows, such as a Gaussian
        on a single point: it keeps its old parameters, and the mixture prunes it. `stats` is
        left as it is.
        """

    @abstractmethod
    def reseed(self, components: Any, k: int, row: Array) -> Any:
        """Move component k to a row (d,), with a shape like that of the others."""

    @property
    @abstractmethod
    def min_rows(self) -> int:
        """Return the number of rows that a component needs to be estimated from."""

    def log_prior(self, components: Any) -> float:
        """Return the log-density of the prior on the components; 0 where there is none."""
        return 0.0

    def origins(self, components: Any) -> Array | None:
        """Return the points (K, d) that moments are about; None for moments about zero."""
        return None

    def recenter(self, stats: Statistics, origins: Array | None) -> Statistics:
        """Return the statistics about other points, so that they can be added to those there."""
        return stats

    # Fits and starts.

    @abstractmethod
    def kmeans(self) -> "Family":
        """Return the family of which hard EM with equal weights is k-means."""

    @abstractmethod
    def from_centres(self, centres: Array) -> Any:
        """Return some components at centres (K, d)."""

    @abstractmethod
    def centres(self, components: Any) -> Array:
        """Return where the components are, (K, d)."""

    @abstractmethod
    def distances(self, block: Any, centres: Array) -> Array:
        """Return the k-means loss of each row at each of m centres, (n, m), finite."""

    @abstractmethod
    def initial(self, stats: Statistics, components: Any, centres: Array | None = None) -> Any:
        """Return first components from a partition of the rows.

        The moments in `stats` are about the origins of `components`. Where `centres` (K, d)
        are given the components are put there, and all take their shape from the whole data.
        """

    def with_prior_from(self, stats: Statistics) -> "Family":
        """Return the family with its prior centred on a first partition of the data."""
        return self

    def continued_by(self, fresh: "Family") -> "Family":
        """Return a newly made family with this one's prior, for a fit that goes on.

        Raises a ValueError where components of this family cannot be those of `fresh`.
        """
        return fresh

    # Optional: merging.

    def merge_cost(self, stats: Statistics, components: Any, parts: Array) -> "MergeCost":
        """Return what merging some of the components costs, by their numbers `parts` (M,).

        A start by merging and a `ComponentPath` ask for it.
        """
        raise ValueError(
            f"{type(self).__name__} components cannot be merged: the family has no `merge_cost`."
        )

    def proposal(self, background: bool) -> "Proposal":
        """Return how starts by merging find components, beside a background or alone."""
        raise ValueError(
            f"{type(self).__name__} components have no start by merging: the family has no "
            "`proposal`. Set init_params to 'kmeans', 'k-means++', 'random' or 'random_from_data'."
        )

    # What else a mixture says.

    @abstractmethod
    def n_parameters(self, n_components: int) -> int:
        """Return the number of free parameters of so many components, without weights."""

    @abstractmethod
    def sample(self, components: Any, counts: Array, rng: np.random.RandomState) -> Array:
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
        """Return the log-likelihood l_i of each part, (M,); starts beside a background need it."""
        raise ValueError(
            f"Starts by merging beside a background need {type(self).__name__}.log_likelihoods."
        )


class SeedFamily(Family):
    """A family whose components overseeding puts at single rows, fits and merges.

    They have few parameters each, so that a few rows suffice to estimate them: often those of
    the family to start, with one concentration for all. There must be a `merge_cost`, too.
    """

    @abstractmethod
    def place(self, points: Array, like: Any = None) -> Any:
        """Return components at points (M, d), of a size typical of the components `like`.

        None is a size typical of the whole data.
        """

    @abstractmethod
    def append(self, components: Any, others: Any) -> Any:
        """Return components followed by others."""

    @abstractmethod
    def peaks(self, components: Any) -> Array:
        """Return the largest value of the log-density of each component, (K,)."""

    @abstractmethod
    def fit_parts(self, cost: Any, parts: Array) -> Any:
        """Return the components that fit some parts, by number, of the family's `merge_cost`."""


class ShapedFamily(Family):
    """A family with covariances that split-and-merge can split and merge."""

    @abstractmethod
    def affordable(self, n_rows: int, n_components: int) -> bool:
        """Return whether so many rows suffice to estimate so many components."""

    @abstractmethod
    def sizes(self, components: Any) -> Array:
        """Return the mean variance of each component, (K,)."""

    @abstractmethod
    def split(self, components: Any, steps: Array) -> Any:
        """Return components moved by -steps (K, d), followed by the same moved by steps."""

    @abstractmethod
    def merge_pair(self, components: Any, weights: Array, a: int, b: int) -> Any:
        """Return one component with the mean and covariance of two with such weights (K,)."""

    @abstractmethod
    def merge_statistics(
        self, stats: Statistics, components: Any, pairs: Array
    ) -> tuple[Statistics, Any]:
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
        If given, rows far from all others are left out. Takes the mean variance of the rest
        and returns the proposal for them.
    judge : Family or None
        If given, a second start is beside a background of log-density ``uniform(rows)``, and
        the start with the larger bound under this family wins.
    uniform : callable or None
        See `judge`.
    """

    seeds: SeedFamily
    shaped: ShapedFamily | None = None
    trimmed: "Callable[[float], Proposal] | None" = None
    judge: Family | None = None
    uniform: Callable[[RowSource], float] | None = None


class Posterior(ABC):
    """Which responsibilities components have for a row."""

    @abstractmethod
    def assign(
        self, scores: Scores, weights: Array, row_weights: Array, row_scales: Array | None = None
    ) -> tuple[Responsibilities, Array, Array]:
        """Return responsibilities, the weighted counts (K,), and each row's value (n,).

        The value of a row is the most that <q, log p> less the price of responsibilities q can be.
        Responsibilities are multiplied by the row's weight, and by its scale where there is one.
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
        """Return the weights moved up to the floor where they lie below, pruned ones excepted."""

    @abstractmethod
    def mode(self, counts: Array) -> Array:
        """Return the weights that maximize sum of counts * log weights + log-density."""


class WeightUpdate(ABC):
    """How counts become weights."""

    @abstractmethod
    def __call__(self, posterior: Posterior, prior: Prior, counts: Array, weights: Array) -> Array:
        """Return the weights for the next step; those without counts are zero."""


class Update(ABC):
    """How statistics move the components."""

    @abstractmethod
    def __call__(self, family: Any, stats: Statistics, components: Any) -> tuple[Any, Array]:
        """Return better components, and which are broken, as `Family.maximize` does."""

    @abstractmethod
    def reseed(self, family: Any, components: Any, alive: Array, k: int, row: Array) -> Any:
        """Move component k to a row (d,); the components `alive` (K,) have rows."""


def require(part: Any, contract: type, role: str) -> None:
    """Refuse a part that is not what its role asks for, with the contract's name."""
    if not isinstance(part, contract):
        raise TypeError(
            f"{role} should be a {contract.__name__} as skvmf._engine.contracts.model_parts "
            f"defines it, and {type(part).__name__} does not derive from it."
        )
