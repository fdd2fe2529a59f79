"""The contracts: what each part of a mixture is, whole, for whoever writes another.

A mixture answers four questions, and `MixtureModel` puts the answers together: what is a
component (`Family`), how is a row shared out (`Posterior`), how are weights chosen (`Prior`
and `WeightUpdate`), how do statistics move components (`Update`). Its data is a `RowSource`.
A part derives from its contract; one with a method missing cannot be made, and Python names
the method. A part is frozen: what a fit learns is in the `components` that it hands round,
an object of the family's own that nobody else looks into.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..._typing import Array
from .gradients import GradientsType
from .responsibilities import Responsibilities, Scores
from .statistics import Statistics


class Family(ABC):
    """What a component is: a density, its sufficient statistics, and where fits start.

    K is the number of components, d that of features. A `chunk` is a block of dense rows or,
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
        self, block: Any, responsibilities: Responsibilities, components: Any, kept: Any = None
    ) -> tuple[Array, ...]:
        """Return what the shares of a block add to the moments, about `origins(components)`.

        Shares carry the weights of the rows and, where rows are scaled, the scales too.
        Moments add: those of all blocks together are the sum of those of each. `kept` is what
        the scores of the same block and components kept, to be used up; None where a partition
        is given and nothing was scored.
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

    def anchored(self, stats: Statistics) -> "Family":
        """Return the family with its prior centred on a first partition of the data."""
        return self

    def refreshed(self, fresh: "Family") -> "Family":
        """Return a newly made family that goes on with what this one was anchored on.

        Raises a ValueError where components of this family cannot be those of `fresh`.
        """
        return fresh

    def unions(self, stats: Statistics, components: Any, alive: Array) -> Any:
        """Return what tells how much is lost where two of the components `alive` become one.

        It has `counts` (M,), ``excess(i)``, the log-likelihood (M,) lost beyond `chance_gain`
        where part i is joined with each other, and ``join(i, j)``, which adds part j to part i.
        Raises a ValueError where there is no such measure.
        """
        raise ValueError(
            f"{type(self).__name__} components cannot be merged: the family has no `unions`."
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
        """Return what Fisher vectors are made of; raises a ValueError where there are none."""
        raise ValueError(
            f"{type(self).__name__} components have no Fisher vectors: use a "
            "VonMisesFisherMixture, or a Gaussian mixture with covariance_type='diag'."
        )


class Posterior(ABC):
    """How a row is shared out among the components."""

    @abstractmethod
    def assign(
        self, scores: Scores, weights: Array, row_weights: Array, row_scales: Array | None = None
    ) -> tuple[Responsibilities, Array, Array]:
        """Return shares, the weighted counts (K,), and each row's value (n,).

        The value of a row is the most that <q, log p> less the price of its shares q can be.
        A share is multiplied by the row's weight, and by its scale where there are scales.
        `scores` is used up.
        """

    def values(self, scores: Scores, weights: Array) -> Array:
        """Return each row's value alone, (n,), as `assign` does; `scores` may be used up."""
        return self.assign(scores, weights, np.ones(len(scores.products)))[2]

    @abstractmethod
    def label(
        self, scores: Scores, weights: Array, row_weights: Array
    ) -> tuple[Array, Array, Array]:
        """Return the component with the largest share, the weighted counts, and its score."""

    @abstractmethod
    def weight_value(self, counts: Array, weights: Array) -> float | None:
        """Return what of the summed values depends on the weights, the shares being given.

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
