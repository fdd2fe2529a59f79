"""Components as ellipses over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._sklearn import check_rows
from .._typing import Array, Options
from ..mixture._gaussian import ellipses
from ..mixture._validation import in_memory
from ._axes import component_colour, feature_names, get_axes, labels_of, row_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.mixture import GaussianMixture

    from ..mixture._gaussian import BaseEllipticalMixture


@dataclass(eq=False, repr=False)
class MixtureDisplay:
    """Gaussian or Student-t components as ellipses, over rows coloured by component.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    weights : ndarray of shape (n_components,)
        Mixture weights; the larger, the more opaque an ellipse.
    means : ndarray of shape (n_components, 2)
        Means along the two features.
    covariances : ndarray of shape (n_components, 2, 2)
        Covariances, or scale matrices, of the two features.
    X : ndarray of shape (n_samples, 2), default=None
        Rows to draw.
    labels : ndarray of shape (n_samples,), default=None
        The component of each row, which sets its colour.
    feature_names : list of str, default=None
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the picture.
    scatter_ : matplotlib PathCollection or None
        The rows.
    ellipses_ : list of matplotlib Ellipse
        One per component with positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import RelativeGMM
    >>> from skvmf.plotting import MixtureDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (50, 2)), rng.normal(5, 1, (50, 2))])
    >>> mixture = RelativeGMM(2, random_state=0).fit(X)
    >>> display = MixtureDisplay.from_estimator(mixture, X)
    >>> len(display.ellipses_)
    2
    """

    weights: Array
    means: Array
    covariances: Array
    X: Array | None = None
    labels: Array | None = None
    _: KW_ONLY
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEllipticalMixture | GaussianMixture,
        X: ArrayLike,
        *,
        features: Sequence[int] = (0, 1),
        labels: ArrayLike | None = None,
        **kwargs: Any,
    ) -> MixtureDisplay:
        """Draw a fitted mixture of Gaussian or Student-t components over rows.

        Parameters
        ----------
        estimator : estimator instance
            A fitted mixture with a `covariance_type`, also scikit-learn's ``GaussianMixture``. Of
            Student-t components the scale matrices are drawn.
        X : array-like of shape (n_samples, n_features)
            The rows; Dask arrays are read into memory.
        features : tuple of two int, default=(0, 1)
            The features to draw.
        labels : array-like of shape (n_samples,), default=None
            The component of each row, or a known class, as a number or a name; None is
            ``estimator.predict(X)``. -1 is grey.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : MixtureDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the estimator has neither covariances nor scale matrices, or not these features, or
            the number of labels is wrong.
        """
        check_is_fitted(estimator)
        shapes = ellipses(estimator)
        if shapes is None:
            raise ValueError(
                f"{type(estimator).__name__} has no covariance_type, and MixtureDisplay "
                "draws the ellipses of covariances. Give a Gaussian or Student-t mixture."
            )
        n_features, features = estimator.means_.shape[1], list(features)
        whole = all(isinstance(i, int | np.integer) and 0 <= i < n_features for i in features)
        if len(features) != 2 or not whole:
            raise ValueError(
                f"features should be two of the {n_features} features, counted from 0, got "
                f"{features}."
            )
        X = in_memory(X)
        labels = labels_of(estimator.predict, X, labels)
        names = feature_names(estimator, features)
        rows = check_rows(X)[:, features]
        means = estimator.means_[:, features]
        covariances = _of_features(*shapes, len(means), features)
        display = cls(estimator.weights_, means, covariances, rows, labels, feature_names=names)
        return display.plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        n_std: float = 2.0,
        scatter_kwargs: dict[str, Any] | None = None,
        ellipse_kwargs: dict[str, Any] | None = None,
    ) -> MixtureDisplay:
        """Draw the components, and the rows if there are any.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        n_std : float, default=2.0
            Half the axes of an ellipse, in standard deviations or roots of a scale matrix.
        scatter_kwargs, ellipse_kwargs : dict, default=None
            Arguments of ``Axes.scatter`` and of ``matplotlib.patches.Ellipse``.

        Returns
        -------
        display : MixtureDisplay
            The display itself.
        """
        ax = get_axes(ax)
        self.scatter_ = None
        if self.X is not None:
            colours = "0.6" if self.labels is None else row_colours(self.labels)
            options = {"c": colours, "s": 10, "alpha": 0.6, "linewidths": 0}
            self.scatter_ = ax.scatter(*self.X.T, **options | (scatter_kwargs or {}))
        active = np.flatnonzero(self.weights > 0)
        self.ellipses_ = [self._ellipse(k, n_std, ellipse_kwargs or {}) for k in active]
        for ellipse in self.ellipses_:
            ax.add_patch(ellipse)
        ax.autoscale_view()
        if self.feature_names is not None:
            ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ellipse(self, k: int | np.integer[Any], n_std: float, options: Options) -> Any:
        """Return the ellipse of component k, as opaque as its weight."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Ellipse

        variances, axes = np.linalg.eigh(self.covariances[k])
        width, height = 2 * n_std * np.sqrt(np.maximum(variances, 0))
        opacity = 0.4 * self.weights[k] / self.weights.max()
        style: Options = {
            "facecolor": to_rgba(component_colour(k), opacity),
            "edgecolor": to_rgba(component_colour(k), 0.3 + opacity),
            "linewidth": 1.5,
        }
        angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
        return Ellipse(self.means[k], width, height, angle=angle, **style | options)


def _of_features(covariance_type: str, matrices: Array, K: int, features: list[int]) -> Array:
    """Return the matrices (K, 2, 2) of two features."""
    if covariance_type == "full":
        return matrices[:, features][:, :, features]
    if covariance_type == "tied":
        return np.tile(matrices[np.ix_(features, features)], (K, 1, 1))
    axes = matrices[:, features] if covariance_type == "diag" else matrices[:, np.newaxis]
    return np.eye(2) * axes[:, :, np.newaxis]
