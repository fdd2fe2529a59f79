"""The parameters that all mixtures share, and hints for wrong ones."""

from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._engine.em.checkpoint import WARM_START, Description, digest
from .._engine.em.mixture import Point
from .._engine.em.posterior import FenchelYoungPosterior
from .._engine.em.weight_prior import ModifiedDirichlet
from .._engine.families.params import as_dict
from .._engine.rows.sources import RowSource
from .._sklearn import (
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    Interval,
    RowsEstimator,
    SomeOf,
    StrOptions,
    TransformerMixin,
)
from .._typing import Numbers, ParameterConstraints, RandomState
from .._version import __version__
from ..distributions._arguments import checked_array
from ._hints import HINTS, with_hints

_COLD = 1e-12  # a temperature below which scores would overflow: it is 0
# The weight at which a component rests before a prior removes it: positive, as its logarithm counts
# in the bound, and small, so that densities hardly feel it.
_FLOOR = 1e-5

InitParams: TypeAlias = (
    Literal["merging", "kmeans", "k-means++", "random", "random_from_data"] | Numbers
)
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


class MixtureParameters(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DensityMixin,
    RowsEstimator,
):
    """The parameters of every mixture. Estimators describe only what is different.

    Parameters
    ----------
    n_components : int, default=1
        Number of components. With a `weight_concentration_prior` below 1 it is an upper bound.
    entmax_alpha : float, default=1.0
        How rows are assigned to components. 1 is softmax, as in standard EM. Above 1 it is
        alpha-entmax, which gives responsibilities that are exactly 0 (Sklaviadis et al.,
        "Fenchel-Young variational learning", sections 3.3 and 4.1).
    temperature : float, default=1.0
        Divides the log-densities. Larger values make responsibilities softer, and 0 is hard
        (classification) EM. With ``entmax_alpha=1``, responsibilities are proportional to
        ``(pi_k p_k) ** (1 / temperature)``. 1 is low enough for any number of features. Clusters
        stay as they are up to a third of the median gap between the two largest log-densities of a
        row. If it is far too large, as the number of features is, all rows get the same
        memberships and `fit` warns. `calibrate` softens memberships without changing the fit.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Parameter of the modified Dirichlet prior on the weights: any real number. 1 is a flat
        prior. A number below 1, and especially below 0, removes small components (Tu, "Modified
        Dirichlet distribution: allowing negative parameters to induce stronger sparsity", 2016).
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
        Number of starts; the best one is kept. Starts by merging are cheap: they are compared on
        the sample, and only the best of them is fitted to all rows. Of other starts, each is fitted
        to all rows, and the fit with the largest `lower_bound_` is kept.
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
        to the sample weights. None is 100 per component and at least 10,000, from 1,000
        components on 250 up to a million rows, or twice as many with a background. For fewer
        components of directions without a background, 'merging' goes on with up to 600 per
        component if it explains the sample better than other rows, by more than chance;
        ``verbose=1`` tells.
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
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts and of `sample`. Fits are bit-identical for any number of threads, which
        the limit of BLAS sets (``threadpoolctl``, ``OMP_NUM_THREADS``).
    warm_start : bool, default=False
        Whether `fit` continues from the last fit, and forgets what `calibrate` has found. With a
        larger `n_components`, old components keep their numbers and begin where they are (a
        :class:`RelativeGMM` sorts them). New ones begin at clusters of the start that are not next
        to an old one. What was given for each component, such as priors, stays with the old ones;
        new ones have a prior of 1 and, where degrees of freedom are given by number, 4 of them.
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
    missing_values: str = "error"
    size_limits: tuple[float | None, float | None] | None = None
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

    _family_class: ClassVar[Any]
    _hints: ClassVar[Mapping[str, str]] = HINTS
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
        "random_state": ["random_state", np.random.Generator],
        "warm_start": ["boolean"],
        "learning_decay": [Interval(Real, 0, 1, closed="right")],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = with_hints(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    def _with_params(cls, params: Mapping[str, object]) -> Self:
        """Return an estimator with parameters, also those that its constructor does not take."""
        taken = signature(cls.__init__).parameters
        if any(each.kind is Parameter.VAR_KEYWORD for each in taken.values()):
            return cls(**params)
        hidden = params.keys() & cls._parameter_constraints.keys() - taken.keys()
        mixture = cls(**{name: value for name, value in params.items() if name not in hidden})
        for name in hidden:
            setattr(mixture, name, params[name])
        return mixture

    def _all_params(self) -> dict[str, Any]:
        """Return the parameters, also those that the constructor of a subclass does not take."""
        params = {name: getattr(self, name) for name in self._parameter_constraints}
        return params | self.get_params(deep=False)

    def _posterior(self) -> FenchelYoungPosterior:
        temperature = float(self.temperature)
        if temperature < _COLD:
            temperature = 0.0
        return FenchelYoungPosterior(float(self.entmax_alpha), temperature)

    def _weight_prior(self, total_weight: float = np.inf) -> ModifiedDirichlet:
        """Return the prior on the weights, for rows of such a weight in all."""
        K = int(self.n_components)
        given = self.weight_concentration_prior
        if given is None:
            keeps_all = "weights" in self.fixed or self.size_limits is not None
            is_flat = self.entmax_alpha > 1 or keeps_all
            # With a row each, 0 would leave one component, whichever it is.
            given = 1.0 if is_flat or total_weight <= K else 0.0
        alpha = checked_array(given, "weight_concentration_prior")
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
        removes = bool((alpha < 1).any())
        if floor is None:
            # Half of the average at most, so that some weights are above the floor.
            floor = min(_FLOOR, 1 / (2 * K)) if removes else 0.0
        if floor == 0 and removes:
            raise ValueError(
                "weight_floor=0 cannot be used with a weight_concentration_prior below 1: the "
                "density would be unbounded. Give a positive weight_floor, or None."
            )
        n_weights = K
        subject = f"{K} components"
        if self.background:
            n_weights += 1
            subject += " and a background"
        if floor * n_weights > 1:
            raise ValueError(
                f"weight_floor={floor} is too high: {subject} need at most 1/{n_weights}."
            )
        alpha = alpha.astype(np.float64)
        if (alpha == 1).all():
            alpha = np.ones(())  # a flat prior is one for all: it costs nothing
        elif self.background:  # whose own prior is flat
            alpha = np.append(np.broadcast_to(alpha, K), 1.0)
        return ModifiedDirichlet(alpha[()], float(floor))


def of_other_components(mixture: MixtureParameters) -> dict[str, Any]:
    """Return parameters for a mixture of the same kind with other components.

    What is said of the mixture's own components is left out, and its weights are as likely as any.
    """
    params = mixture.get_params(deep=False)
    plain: dict[str, Any] = dict.fromkeys(name for name in params if name.endswith("_init"))
    plain |= {"weight_concentration_prior": 1.0, "weight_floor": None, "fixed": (), "n_init": 1}
    if np.ndim(params.get("degrees_of_freedom", 0.0)) > 0:
        plain["degrees_of_freedom"] = "estimated"
    if "size_limits" in params:
        plain["size_limits"] = None
    return plain | {"warm_start": False, "checkpoint": None, "verbose": 0}


# What does not change the result of a fit.
_WITHOUT_EFFECT = {"checkpoint", "verbose", "verbose_interval", "warm_start", "learning_decay"}


def fit_description(
    estimator: str, params: dict[str, object], rows: RowSource, warm_start: Point | None
) -> Description:
    """Return what two runs of one fit have in common, by name."""
    description = {
        "the version of skvmf": __version__,
        "the estimator": estimator,
        "the number of rows": str(rows.n_rows),
        "the number of features": str(rows.n_features),
        "the dtype": rows.dtype.name,
    }
    if warm_start is not None:
        family = as_dict(warm_start.family)
        background = as_dict(warm_start.background)
        description[WARM_START] = digest([warm_start.params.to_dict(), family, background])
    for name in sorted(params.keys() - _WITHOUT_EFFECT):
        description[name] = _as_text(params[name])
    return description


def _as_text(value: Any) -> str:
    """Return a parameter as a short text that tells it from others."""
    if isinstance(value, np.random.Generator):
        return f"Generator {digest(value.bit_generator.state)}"
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state(legacy=False)
        return f"RandomState {state['bit_generator']} {digest(state)}"
    if isinstance(value, np.generic):
        value = value.item()  # so that it reads like Python's
    if not isinstance(value, bool) and isinstance(value, Real):
        return f"{float(value):.17g}"  # 1 and 1.0 are the same
    if isinstance(value, str | tuple) or np.ndim(value) == 0:
        return repr(value)
    array = np.asarray(value)
    return f"array of shape {array.shape} {digest(array)}"
