"""How means are learned: vector fields, trajectories, and curves by iteration."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, Options
from ._axes import get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mixture import RelativeGMM

_BACKGROUND = "skvmf-singular"
_KINDS = ("means", "log-likelihood", "distance")


@dataclass(eq=False, repr=False)
class DynamicsDisplay:
    """How two means are learned: a trajectory, a vector field, or both.

    The plane of the means is (mu_1, mu_2), or (mu_1, Delta) with Delta = mu_2 - mu_1. On the dotted
    line the components coincide. Grey is what relative coordinates exclude: the other order and
    gaps below the clearance.

    Create it with :meth:`from_estimator` for a trajectory and :meth:`from_velocity` for a field.

    Parameters
    ----------
    path : ndarray of shape (n_iter + 1, 2), default=None
        The two means at the start and after each step.
    lower_bounds : array-like of shape (n_iter + 1,), default=None
        The log-likelihood per row at the start and after each step.
    points, velocity : ndarray of shape (..., 2), default=None
        Points (mu_1, mu_2), and the velocity of these means there.
    truth : array-like of shape (2,), default=None
        The true means.
    clearance : float, default=0.0
        The minimum gap.
    name : str, default=None
        Name in a legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the picture.
    line_ : matplotlib Line2D or None
        The trajectory or the curve.
    quiver_ : matplotlib Quiver or None
        The vector field.

    See Also
    --------
    skvmf.inspection.expected_gradient : A vector field.
    MixtureDisplay : Components over rows.

    References
    ----------
    .. [1] Esser and Nielsen, "On the influence of enforcing model identifiability on learning
       dynamics of Gaussian mixture models", figures 1, 2 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import RelativeGMM
    >>> from skvmf.plotting import DynamicsDisplay
    >>> X = np.random.default_rng(0).normal(-5, 1, (200, 1))
    >>> mixture = RelativeGMM(
    ...     2, means_init=[[-2.5], [2.0]], fixed=("weights", "covariances"), store_path=True
    ... ).fit(X)
    >>> display = DynamicsDisplay.from_estimator(mixture, truth=[-5, -5])
    >>> display.line_.get_xydata().shape == (mixture.n_iter_ + 1, 2)
    True
    """

    path: Array | None = None
    _: KW_ONLY
    lower_bounds: ArrayLike | None = None
    points: Array | None = None
    velocity: Array | None = None
    truth: ArrayLike | None = None
    clearance: float = 0.0
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: RelativeGMM,
        *,
        truth: ArrayLike | None = None,
        components: tuple[int, int] = (0, 1),
        feature: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> DynamicsDisplay:
        """Draw the path of a fitted mixture.

        Parameters
        ----------
        estimator : estimator instance
            A :class:`~skvmf.RelativeGMM` fitted with ``store_path=True``.
        truth : array-like of shape (2,), default=None
            The true means of the two components along the feature.
        components : tuple of two int, default=(0, 1)
            The components to draw.
        feature : int, default=None
            The feature to draw; None is the ordering feature.
        name : str, default=None
            Name in a legend.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : DynamicsDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there is no path, or components or feature are not the estimator's.
        """
        check_is_fitted(estimator)
        path = getattr(estimator, "path_", None)
        if path is None:
            raise ValueError(
                f"This {type(estimator).__name__} has no path_ of its means: fit a RelativeGMM "
                "with store_path=True."
            )
        feature = estimator.ordering_feature if feature is None else feature
        K, n_features = path.shape[1:]
        first, second = components
        if not 0 <= feature < n_features or not {first, second} <= set(range(K)):
            raise ValueError(
                f"components={components} and feature={feature} are not among the {K} components "
                f"and {n_features} features."
            )
        display = cls(
            path[:, [first, second], feature],
            lower_bounds=estimator.lower_bounds_,
            truth=truth,
            clearance=estimator.clearance * (second - first),
            name=name,
        )
        return display.plot(**kwargs)

    @classmethod
    def from_velocity(
        cls,
        points: ArrayLike,
        velocity: ArrayLike,
        *,
        truth: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> DynamicsDisplay:
        """Draw a vector field.

        Parameters
        ----------
        points, velocity : array-like of shape (..., 2)
            Points (mu_1, mu_2), and the velocity of these means there, such as that of
            :func:`skvmf.inspection.expected_gradient`.
        truth : array-like of shape (2,), default=None
            The true means.
        name : str, default=None
            Name in a legend.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : DynamicsDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the shapes do not agree.
        """
        points, velocity = np.asarray(points), np.asarray(velocity)
        if points.shape != velocity.shape or points.shape[-1:] != (2,):
            raise ValueError(
                "points and velocity should be of the same shape (..., 2), got "
                f"{points.shape} and {velocity.shape}."
            )
        return cls(points=points, velocity=velocity, truth=truth, name=name).plot(**kwargs)

    def plot(
        self,
        kind: Literal["means", "log-likelihood", "distance"] = "means",
        *,
        coordinates: Literal["absolute", "relative"] = "absolute",
        ax: Axes | None = None,
        name: str | None = None,
        quiver_kwargs: Options | None = None,
        **kwargs: Any,
    ) -> DynamicsDisplay:
        """Draw the plane of the means, or a curve by iteration.

        Parameters
        ----------
        kind : {'means', 'log-likelihood', 'distance'}, default='means'
            The plane of the means, with path, field, truth and singular line as far as known; or by
            iteration the log-likelihood per row, or the distance to the true means.
        coordinates : {'absolute', 'relative'}, default='absolute'
            The plane: (mu_1, mu_2) or (mu_1, Delta).
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        name : str, default=None
            Name in a legend; None is the display's own name.
        quiver_kwargs : dict, default=None
            Arguments of ``Axes.quiver``.
        **kwargs : dict
            Arguments of ``Axes.plot`` for the trajectory or the curve.

        Returns
        -------
        display : DynamicsDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there is no such kind, or nothing to draw of it.
        """
        if kind not in _KINDS or coordinates not in ("absolute", "relative"):
            raise ValueError(
                f"kind should be one of {_KINDS} and coordinates 'absolute' or 'relative', "
                f"got {kind!r} and {coordinates!r}."
            )
        curve: Any = None if kind == "means" else self._curve(kind)
        ax = get_axes(ax)
        self.line_ = self.quiver_ = None
        options = {"label": self.name if name is None else name} | kwargs
        if kind == "means":
            self._plot_plane(ax, coordinates == "relative", options, quiver_kwargs or {})
        else:
            (self.line_,) = ax.plot(np.arange(len(curve)), curve, **options)
            labels = {"log-likelihood": "log-likelihood per row", "distance": "distance to truth"}
            ax.set(xlabel="iteration", ylabel=labels[kind])
        if options["label"] is not None:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curve(self, kind: str) -> Any:
        """Return the values by iteration."""
        if kind == "log-likelihood" and self.lower_bounds is not None:
            return np.asarray(self.lower_bounds)
        if kind == "distance" and self.path is not None and self.truth is not None:
            return np.linalg.norm(self.path - np.asarray(self.truth), axis=1)
        raise ValueError(
            f"There is no {kind} to draw: a log-likelihood needs lower_bounds, a distance needs "
            "a path and the truth."
        )

    def _plot_plane(
        self, ax: Axes, relative: bool, options: Options, quiver_options: Options
    ) -> None:
        """Draw field, path, truth and the singular line in one of the planes."""
        if self.velocity is not None:
            points = self._in_plane(self.points, relative).reshape(-1, 2)
            velocity = self._in_plane(self.velocity, relative).reshape(-1, 2)
            style = {"angles": "xy", "cmap": "viridis", "pivot": "mid"} | quiver_options
            speed = np.linalg.norm(velocity, axis=1)
            self.quiver_ = ax.quiver(*points.T, *velocity.T, speed, **style)
        if self.path is not None:
            path = self._in_plane(self.path, relative)
            (self.line_,) = ax.plot(*path.T, **{"marker": ".", "markersize": 4} | options)
        if self.truth is not None:
            truth = self._in_plane(np.asarray(self.truth, dtype=float), relative)
            ax.plot(*truth, marker="+", color="tab:green", markersize=12, markeredgewidth=2)
        self._plot_singular_line(ax, relative)
        ax.set(xlabel="$\\mu_1$", ylabel="$\\Delta$" if relative else "$\\mu_2$")

    def _plot_singular_line(self, ax: Axes, relative: bool) -> None:
        """Draw where components coincide, and shade what relative coordinates exclude.

        It replaces what an earlier display drew of this kind on the same axes. It does not change
        the limits of the axes, except that they include a gap of 0.
        """
        from matplotlib.lines import Line2D
        from matplotlib.patches import Polygon

        for artist in [artist for artist in ax.get_children() if artist.get_gid() == _BACKGROUND]:
            artist.remove()
        if relative:
            ax.update_datalim([(0, 0)], updatex=False)
        ax.autoscale_view()
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        x = np.array([2 * left - right, 2 * right - left])  # as wide again on both sides
        overlap = np.zeros(2) if relative else x
        bottom = min(2 * low - high, overlap[0])
        edge = [*zip(x, overlap + self.clearance, strict=True), (x[1], bottom), (x[0], bottom)]
        style: Options = {"gid": _BACKGROUND, "zorder": 0}
        ax.add_artist(Polygon(edge, color="0.92", linewidth=0, **style))
        ax.add_artist(Line2D(x, overlap, linestyle=":", color="black", linewidth=1, **style))

    @staticmethod
    def _in_plane(means: Any, relative: bool) -> Any:
        """Return pairs (mu_1, mu_2), or velocities of them, as (mu_1, Delta) if `relative`."""
        return means @ np.array([[1, -1], [0, 1]]) if relative else means
