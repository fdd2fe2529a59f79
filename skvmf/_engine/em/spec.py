"""A mixture as a value: all that a fit needs to know of an estimator."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ..._typing import Array
from ..contracts.constraint import Constraint
from ..contracts.model_parts import Family, Posterior, Prior, Update, WeightUpdate
from ..contracts.statistics import Params, Statistics
from ..data.base import RowSource
from ..families.background import Background
from ..updates.closed_form import ClosedForm
from .fitted import FittedMixture
from .loop import OnIteration
from .mixture_model import MixtureModel


class Start(ABC):
    """Where the starts of a fit come from."""

    weights: Array | None
    """First weights that the user has given."""

    covariances: Array | None
    """First covariances that the user has given."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What progress reports call the search for first parameters."""

    @property
    @abstractmethod
    def max_steps(self) -> int | None:
        """Number of steps that a search reports at most; None if that is not known."""

    @property
    @abstractmethod
    def n_starts(self) -> int:
        """How many starts go on to all rows."""

    @property
    @abstractmethod
    def reports_late(self) -> bool:
        """Whether a search has worked for a while when it reports its first step."""

    @abstractmethod
    def first(
        self,
        family: Family,
        rows: RowSource,
        rng: np.random.RandomState,
        on_iteration: OnIteration,
    ) -> tuple[Family, Params]:
        """Return a family whose prior is centred on a first partition, and first parameters."""


@dataclass(frozen=True)
class MixtureSpec:
    """The answers that make up a mixture, and what its fits begin with.

    An estimator turns its parameters into one; nothing below an estimator sees the estimator.

    Parameters
    ----------
    family : Family
        What a component is.
    posterior : Posterior
        How responsibilities follow from log-densities.
    weight_prior : Prior
        The prior on the weights.
    weight_update : WeightUpdate
        How counts become weights.
    update : Update
        How statistics move components.
    background : Background or None
        What rows may belong to beside the components.
    constraint : Constraint
        What components must fulfil beyond their family's bounds.
    start : Start or None
        Where starts come from; None for a fit that goes on from an earlier one.
    """

    family: Family
    posterior: Posterior
    weight_prior: Prior
    weight_update: WeightUpdate
    update: Update = ClosedForm()
    background: Background | None = None
    constraint: Constraint = Constraint()
    start: Start | None = None

    @property
    def model(self) -> MixtureModel:
        """The mixture whose lower bound the loop climbs."""
        background = None if self.background is None else self.background.log_density
        return MixtureModel(
            self.family,
            self.posterior,
            self.weight_prior,
            self.weight_update,
            self.update,
            background,
        )

    def continued(self, fitted: FittedMixture) -> tuple["MixtureSpec", Params]:
        """Return the mixture, and first parameters, of a fit that goes on from an earlier one."""
        family = fitted.family.continued_by(self.family)
        components = self.constraint.convert(family, fitted.params.components)
        weights = fitted.weights_with(self.background is not None)
        params = Params.first(weights, components).pruned()
        return replace(self, family=family), self.constraint.apply(family, params)

    def fitted(
        self, params: Params, stats: Statistics | None = None
    ) -> tuple[FittedMixture, Statistics | None]:
        """Return a fit and its statistics, with components in the order to publish."""
        params, stats = self.constraint.sort(self.family, params, stats)
        return FittedMixture(self.family, params, self.background), stats
