"""The parameters that all mixtures share: what they mean, their ranges, and what they stand for."""

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._engine.posteriors.fenchel_young import FenchelYoungPosterior
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from .._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    Interval,
    SomeOf,
    StrOptions,
    TransformerMixin,
)
from .._typing import Numbers, ParameterConstraints, RandomState
from ..distributions._arguments import checked_array
from ._hints import ArgumentHints

InitParams: TypeAlias = (
    Literal["merging", "kmeans", "k-means++", "random", "random_from_data"] | Numbers
)
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


class MixtureParameters(
    ArgumentHints,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DensityMixin,
    BaseEstimator,
):
    """The parameters of every mixture. Estimators describe only what is different.

    Parameters
    ----------
    n_components : int, default=1
        Number of components. With a `weight_concentration_prior` below 1 it is an upper bound.
    entmax_alpha : float, default=1.0
        How rows are assigned to components. 1 is softmax, as in standard EM. Above 1 it is
        alpha-entmax, which gives responsibilities that are exactly 0.
    temperature : float, default=1.0
        Divides the log-densities. Larger values make responsibilities softer, and 0 is hard
        (classification) EM. With ``entmax_alpha=1``, responsibilities are proportional to
        ``(pi_k p_k) ** (1 / temperature)``. 1 is low enough for any number of features. If it is
        far too large, all rows get the same memberships and `fit` warns.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Parameter of the modified Dirichlet prior on the weights: any real number. 1 is a flat
        prior. A number below 1, and especially below 0, removes small components.
    weight_floor : float, default=None
        Smallest weight of a component that is not pruned. None is 0 if every prior is at
        least 1, otherwise ``min(1e-5, 1 / (2 * n_components))``.
    flat_start : bool, default=True
        Whether a fit with a prior below 1 first converges with a flat prior. Without it, a
        strong prior may remove all components before they have formed.
    background : bool, default=False
        Whether to add a background: a uniform density, whose weight is fitted, for rows that
        belong to no component. Its domain is the sphere for directions, otherwise the box
        around the data. Rows that most likely belong to it get the label -1.
    n_init : int, default=1
        Number of starts. The fit with the largest lower bound is kept. Starts by merging are
        compared on the sample, and only the best one is fitted to all rows. So more of them can
        end with a slightly lower `lower_bound_`, which more of the other starts cannot.
    init_params : {'merging', 'kmeans', 'k-means++', 'random', 'random_from_data'} or \
array-like, default='merging'
        How a fit starts. 'merging' fits four times too many components to a sample and merges
        pairs that lose the least likelihood. Then it splits and merges as long as that helps. It
        is the most reliable start. 'kmeans' is k-means (spherical k-means for directions), and
        'k-means++' only its seeds, both on a sample. 'random' assigns rows to components at
        random. 'random_from_data' uses distinct random rows as means, with equal weights and the
        spread of all rows. An array is a given partition: labels (n_samples,) or
        responsibilities (n_samples, n_components).
    init_size : int, default=None
        Number of rows in the sample of 'merging', 'kmeans' and 'k-means++', drawn in proportion
        to the sample weights. None is 100 per component and at least 10,000, or twice as many
        with a background.
    weights_init : array-like of shape (n_components,), default=None
        Initial weights.
    means_init : array-like of shape (n_components, n_features), default=None
        Initial means, instead of `init_params`.
    fixed : tuple of str, default=()
        Parameters that a fit does not change: 'weights' (`weights_init`, or equal weights) and
        'means' (`means_init`). With `warm_start` and in `partial_fit`, they keep the values of
        the last fit.
    tol : float, default=1e-3
        EM stops when a step changes `lower_bound_` by at most `tol`.
    max_iter : int, default=100
        Maximum number of EM steps.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.
    warm_start : bool, default=False
        Whether `fit` continues from the last fit.
    learning_decay : float, default=0.7
        How fast `partial_fit` forgets. A batch with a fraction w of the weight seen so far
        gets the weight ``w ** learning_decay`` in the running average. With 1, all rows count
        equally. Smaller values follow a stream that changes. On a stationary stream any value
        above 0.5 converges.
    checkpoint : str or path-like, default=None
        A file in which `fit` saves its progress. If the file exists, `fit` continues from it,
        and the result is bit-identical to that of an uninterrupted fit. A checkpoint of other
        data, parameters or versions raises an error.
    verbose : int, default=0
        1 prints each start (rows of the sample, components before and after merging) and the
        progress of the iterations (seconds, bound, gain, tolerance).
    verbose_interval : int, default=10
        Number of iterations between two lines.
    """

    # Defaults for estimators whose constructors do not have a parameter.
    n_components: int = 1
    entmax_alpha: float = 1.0
    temperature: float = 1.0
    weight_concentration_prior: float | Numbers | None = 1.0
    weight_floor: float | None = None
    flat_start: bool = True
    background: bool = False
    n_init: int = 1
    init_params: InitParams = "merging"
    init_size: int | None = None
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    fixed: Sequence[str] = ()
    tol: float = 1e-3
    max_iter: int = 100
    random_state: RandomState = None
    warm_start: bool = False
    learning_decay: float = 0.7
    checkpoint: str | PathLike[str] | None = None
    verbose: int = 0
    verbose_interval: int = 10
    store_path: bool = False

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "background": ["boolean"],
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "weight_concentration_prior": [Real, "array-like"],
        "weight_floor": [Interval(Real, 0, 1, closed="left"), None],
        "flat_start": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [
            StrOptions({"merging", "kmeans", "k-means++", "random", "random_from_data"}),
            "array-like",
        ],
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "fixed": [SomeOf({"weights", "means"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "learning_decay": [Interval(Real, 0, 1, closed="right")],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def _posterior(self) -> FenchelYoungPosterior:
        cold = self.temperature < 1e-12  # the scores would overflow
        return FenchelYoungPosterior(
            float(self.entmax_alpha), 0.0 if cold else float(self.temperature)
        )

    def _weight_prior(self) -> ModifiedDirichlet:
        given = self.weight_concentration_prior
        if given is None:
            given = 1.0 if self.entmax_alpha > 1 or "weights" in self.fixed else 0.0
        alpha = checked_array(given, "weight_concentration_prior")
        K = self.n_components
        if alpha.shape not in [(), (K,)] or not np.isfinite(alpha).all():
            raise ValueError(
                "weight_concentration_prior should be a finite number or one for each of the "
                f"{K} components, got {self.weight_concentration_prior!r}."
            )
        floor = self.weight_floor
        if "weights" in self.fixed and ((alpha != 1).any() or floor or self.background):
            raise ValueError(
                f"fixed={self.fixed!r} keeps the weights, but weight_concentration_prior, "
                "weight_floor and background need weights that are estimated. Leave them out, or "
                "remove 'weights' from fixed."
            )
        if floor is None:
            floor = 0.0 if (alpha >= 1).all() else min(1e-5, 1 / (2 * K))
        if floor == 0 and (alpha < 1).any():
            raise ValueError(
                "weight_floor=0 cannot be used with a weight_concentration_prior below 1: the "
                "density would be unbounded. Give a positive weight_floor, or None."
            )
        n_weights = K + bool(self.background)
        if floor * n_weights > 1:
            what = "components and a background" if self.background else "components"
            raise ValueError(
                f"weight_floor={floor} is too high: {K} {what} need at most 1/{n_weights}."
            )
        alpha = alpha.astype(np.float64)
        if self.background and (alpha != 1).any():  # the background's own prior is flat
            alpha = np.append(np.broadcast_to(alpha, K), 1.0)
        return ModifiedDirichlet(alpha[()], float(floor))
