"""The first mixture of a path, and its steps as mixtures of their own."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._engine.model import FittedMixture
from .._typing import Array, MatrixLike
from ..mixture._base import BaseMixture


def first_mixture(estimator: object, min_components: int, max_components: int) -> BaseMixture:
    """Return the mixture that a path begins with, not fitted; refuse other estimators."""
    if not isinstance(estimator, BaseMixture):
        raise TypeError(
            "estimator should be a mixture of skvmf, such as VonMisesFisherMixture(), got "
            f"{estimator!r}. A ComponentPath can be a step of a Pipeline, after the steps that "
            "prepare the rows."
        )
    if min_components > max_components:
        raise ValueError(
            f"min_components={min_components} is larger than max_components={max_components}."
        )
    if "n_components" not in estimator.get_params(deep=False):
        raise TypeError(
            f"A path sets n_components, which the constructor of {type(estimator).__name__} should "
            "take as a parameter."
        )
    first: BaseMixture = clone(estimator).set_params(n_components=max_components)
    if first.fixed and min_components < max_components:  # merging components would change them
        raise ValueError(
            f"fixed={first.fixed!r} does not go with a path, which merges components and "
            "estimates their parameters. Leave it out, or choose n_components with "
            "sklearn.model_selection.GridSearchCV."
        )
    for name in ("weight_concentration_prior", "degrees_of_freedom"):
        if np.ndim(getattr(first, name, 0.0)) > 0:
            raise ValueError(
                f"{name} should be one for all components: the mixtures of a path have "
                "different numbers of them."
            )
    return first


class Step(NamedTuple):
    """A mixture on the path, the nodes of its components, and its measures by name."""

    fitted: FittedMixture
    nodes: Array
    measures: dict[str, float]


def published(mixture: BaseMixture, fitted: FittedMixture) -> BaseMixture:
    """Return a mixture with the parameters of another one, and the fit of a step."""
    step: BaseMixture = clone(mixture).set_params(n_components=fitted.n_components)
    step._publish(fitted)
    step.n_features_in_ = mixture.n_features_in_
    if hasattr(mixture, "feature_names_in_"):
        step.feature_names_in_ = mixture.feature_names_in_
    return step


def refined(
    mixture: BaseMixture, fitted: FittedMixture, X: MatrixLike, sample_weight: ArrayLike | None
) -> BaseMixture:
    """Return a mixture that continues from a step of the path until it has converged."""
    best = published(mixture, fitted)
    best.warm_start, best.checkpoint = True, None  # that is the file of the first fit
    best.fit(X, sample_weight=sample_weight)
    best.warm_start = mixture.warm_start
    return best
