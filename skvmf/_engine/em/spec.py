"""A mixture as a value: all that a fit needs to know of an estimator."""

from dataclasses import dataclass, replace

from ..contracts.constraint import Constraint
from ..contracts.model_parts import AnyFamily, Posterior, Prior, Update, WeightUpdate
from ..contracts.start import Start
from ..contracts.statistics import Params, Statistics
from ..families.background import NO_BACKGROUND, Background
from .fitted import FittedMixture
from .mixture_model import MixtureModel


@dataclass(frozen=True)
class MixtureSpec:
    """The answers that make up a mixture, and what its fits begin with.

    An estimator turns its parameters into one; nothing below an estimator sees the estimator.
    """

    family: AnyFamily  # what a component is
    posterior: Posterior  # how responsibilities follow from log-densities
    weight_prior: Prior
    weight_update: WeightUpdate  # how counts become weights
    update: Update = Update()  # how statistics move components
    background: Background = NO_BACKGROUND  # what rows may belong to in place of a component
    constraint: Constraint = Constraint()  # what components must fulfil
    start: Start | None = None  # None for a fit that continues an earlier one

    @property
    def model(self) -> MixtureModel:
        """The mixture whose lower bound the loop increases."""
        return MixtureModel(
            self.family,
            self.posterior,
            self.weight_prior,
            self.weight_update,
            self.update,
            self.background,
        )

    def continued(self, fitted: FittedMixture) -> tuple["MixtureSpec", Params]:
        """Return the mixture, and first parameters, of a fit that continues an earlier one."""
        family = fitted.family.continued_by(self.family)
        components = self.constraint.convert(family, fitted.params.components)
        weights = self.background.weights_after(fitted.params)
        params = Params.first(weights, components).pruned()
        return replace(self, family=family), self.constraint.apply(family, params)

    def refitted(self, fitted: FittedMixture) -> "MixtureSpec":
        """Return the mixture with the family and the background of a fit."""
        return replace(self, family=fitted.family, background=fitted.background)

    def fitted(
        self, params: Params, stats: Statistics | None = None
    ) -> tuple[FittedMixture, Statistics | None]:
        """Return a fit and its statistics, with components in the order to publish."""
        params, stats = self.constraint.sort(self.family, params, stats)
        return FittedMixture(self.family, params, self.background), stats
