"""Displays of mixtures: components on the sphere, and two features of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._docstrings import complete_docstring
from .._kernels.rows import normalize_rows
from .._sklearn import check_rows, num_samples
from .._typing import Array, MatrixLike, Options
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._maps import log_affinities
from ..mixture._gaussian import ellipses
from ..mixture._rows import in_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.mixture import GaussianMixture

    from ..mixture._gaussian import BaseEllipticalMixture

_ROUNDS = 500  # of pushing discs apart, at most
_SMALLEST, _LARGEST = 7.0, 14.0  # letters of names on a map, in points
_LINE = 16  # characters in a line of them
_WIDEST = 30.0  # inches, up to which a figure grows for them


class Display:
    """What the descriptions of displays have in common."""

    _of_self: ClassVar[dict[str, str]]
    _of_methods: ClassVar[dict[str, str]] = {
        "labels": """labels : array-like of shape (n_samples,), default=None
    What colours the rows, as numbers or names; None is ``estimator.predict(X)``.""",
        "ax": """ax : matplotlib Axes, default=None
    Axes to draw on; None creates new ones.""",
        "kwargs": """**kwargs : dict
    Arguments of :meth:`plot`.""",
    }

    def __init_subclass__(cls) -> None:
        cls._of_self = {"Returns": f"display : {cls.__name__}\n    The display, drawn."}
        complete_docstring(cls)


def get_axes(ax: Axes | None, projection: str | None = None) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skvmf.plotting needs matplotlib. Install it with: pip install 'skvmf[plotting]'"
        ) from error
    if ax is not None:
        return ax
    return plt.subplots(subplot_kw={"projection": projection}, layout="constrained")[1]


def labels_of(predict: Callable[[MatrixLike], Array], X: MatrixLike, labels: Any) -> Array:
    chosen = predict(X) if labels is None else np.asarray(in_memory(labels))
    n_rows = num_samples(X)
    if chosen.shape != (n_rows,):
        raise ValueError(f"labels should be of shape ({n_rows},), got {chosen.shape}.")
    return chosen


def row_colours(labels: Array) -> list[str]:
    """Return each row's colour: that of its component or class, and grey for outliers."""
    values, numbers = np.unique(labels, return_inverse=True)
    shown = values if labels.dtype.kind in "biuf" else np.arange(len(values))  # names of classes
    colours = ["0.7" if label < 0 else component_colour(int(label)) for label in shown]
    return [colours[i] for i in numbers]


def component_colour(k: int | np.integer[Any]) -> str:
    """Return the colour of a component: of matplotlib's cycle, and darker in its second round."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex, to_rgb

    colour = to_rgb(f"C{k}")
    second = k // len(rcParams["axes.prop_cycle"]) % 2
    return to_hex([part / 2 for part in colour] if second else colour)


def map_positions(log_affinities: Array, radii: Array) -> Array:
    """Return positions (K, 2) for discs of given radii (K,).

    Classical scaling of Bhattacharyya distances (minus the log-overlaps, (K, K)), scaled to the
    area of the discs, which are then pushed apart until none overlap.
    """
    K = len(radii)
    if K < 2:
        return np.zeros((K, 2))
    squares = -np.maximum(log_affinities, -1e6)
    squares = 0.5 * (squares + squares.T)
    np.fill_diagonal(squares, 0)
    centred = squares - squares.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(-0.5 * centred)
    places = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    places *= np.where(places[np.abs(places).argmax(axis=0), np.arange(places.shape[1])] < 0, -1, 1)
    if places.shape[1] < 2:
        places = np.hstack([places, np.zeros((K, 1))])
    return _apart(_gathered(places) * 1.2 * np.sqrt((radii**2).sum()), radii)


def _gathered(places: Array) -> Array:
    """Return places with a mean squared distance of one, with those far out moved in."""
    distances = np.sqrt((places**2).sum(axis=1, keepdims=True))
    width = np.sqrt((distances**2).mean())
    if width <= 1e-6:  # all are alike
        return _sunflower(len(places))
    near = places / (distances + width)
    return near / np.sqrt((near**2).sum(axis=1).mean())


def _apart(places: Array, radii: Array) -> Array:
    """Return nearby places at which discs do not overlap."""
    places = places + 1e-3 * radii.mean() * _sunflower(len(radii))
    wanted = 1.08 * (radii[:, np.newaxis] + radii)
    np.fill_diagonal(wanted, 0)
    for _ in range(_ROUNDS):
        gaps = places[:, np.newaxis] - places
        distances = np.sqrt((gaps**2).sum(axis=-1))
        short = np.maximum(wanted - distances, 0)
        if short.max() <= 1e-3 * radii.min():
            break
        unit = gaps / np.maximum(distances, 1e-12)[:, :, np.newaxis]
        moves = 0.3 * (short[:, :, np.newaxis] * unit).sum(axis=1)
        lengths = np.sqrt((moves**2).sum(axis=1))
        places = places + moves * np.minimum(1, radii / np.maximum(lengths, 1e-12))[:, np.newaxis]
    return places


def _sunflower(n: int) -> Array:
    """Return points (n, 2) that fill a disc evenly, with a mean squared distance of one."""
    angles = np.arange(n) * np.pi * (3 - np.sqrt(5))
    distances = np.sqrt(2 * (np.arange(n) + 0.5) / n)
    return distances[:, np.newaxis] * np.column_stack([np.cos(angles), np.sin(angles)])


_FILLED = 0.8  # of a disc's radius, that rows are scattered over


def row_positions(resp: Array, places: Array, radii: Array) -> Array:
    """Return the positions of rows on a map: between the discs of their components."""
    known = resp.sum(axis=1, keepdims=True)
    resp = np.where(known > 0, resp / np.where(known > 0, known, 1), 1 / max(len(radii), 1))
    n, rng = len(resp), np.random.default_rng(0)
    angles, lengths = 2 * np.pi * rng.random(n), np.sqrt(rng.random(n))  # of the unit disc
    offsets = np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)])
    return resp @ places + _FILLED * (resp @ radii)[:, np.newaxis] * offsets


@dataclass(eq=False, repr=False)
class DirectionsDisplay(Display):
    """Von Mises-Fisher components with rows: a circle, a sphere, or a map.

    For two features, each component's part of the density is drawn outside the circle. For three, a
    ring on the sphere has the typical distance of rows from the mean direction. For more,
    components are discs on a map, whose areas are their weights, near those that they overlap with,
    and rows have random positions in or between their discs. Create it with :meth:`from_estimator`.

    Parameters
    ----------
    weights : ndarray of shape (n_components,)
        Mixture weights; components without weight are not drawn.
    mean_directions : ndarray of shape (n_components, n_features)
        Unit vectors.
    concentrations : ndarray of shape (n_components,)
        Concentrations.
    X : ndarray of shape (n_samples, n_features), default=None
        Unit rows to draw, for two or three features.
    responsibilities : ndarray of shape (n_samples, n_components), default=None
        Responsibilities, which place the rows on a map.
    labels : ndarray of shape (n_samples,), default=None
        The component of each row, which sets its colour; -1 is grey.
    names : sequence of str, default=None
        Names of the components; None is their numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes, three-dimensional ones of a sphere, and figure of the picture.
    scatter_ : matplotlib PathCollection or None
        The rows.
    components_ : list of matplotlib artists
        A curve, ring or disc per component with positive weight.
    texts_ : list of matplotlib Text
        Their names; on a map in given axes, those that have room.
    positions_ : ndarray of shape (n_active_components, 2) or None
        The centres of the discs on a map.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.plotting import DirectionsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(5 * np.eye(4), 30, axis=0) + rng.normal(size=(120, 4))
    >>> mixture = VonMisesFisherMixture(4, random_state=0).fit(X)
    >>> display = DirectionsDisplay.from_estimator(mixture, X, names=["tea", "ice", "fog", "sun"])
    >>> len(display.components_)
    4
    """

    weights: Array
    mean_directions: Array
    concentrations: Array
    X: Array | None = None
    responsibilities: Array | None = None
    labels: Array | None = None
    _: KW_ONLY
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        labels: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted mixture, over rows if there are any.

        Parameters
        ----------
        estimator : VonMisesFisherMixture or ComponentPath
            A fitted mixture, or a path, of which its best mixture is drawn.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            The rows; Dask arrays are read into memory.
        names : sequence of str, default=None
            Names of the components in order; None is their numbers.

        Raises
        ------
        ValueError
            If the estimator has no directions, or the number of names or labels is wrong.
        """
        check_is_fitted(estimator)
        estimator = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(estimator, "concentrations_"):
            raise ValueError(
                f"{type(estimator).__name__} has no mean directions: give a "
                "VonMisesFisherMixture, or draw a MixtureDisplay."
            )
        K, d = estimator.mean_directions_.shape
        if names is not None and len(names) != K:
            raise ValueError(f"names should be those of {K} components, got {len(names)}.")
        rows = resp = row_labels = None
        if X is not None:
            X = in_memory(X)
            row_labels = labels_of(estimator.predict, X, labels)
            resp = estimator.predict_proba(X)
            if d <= 3:
                rows = check_rows(X, accept_sparse="csr", dtype=np.float64)
                rows = rows.toarray() if hasattr(rows, "toarray") else rows.copy()
                normalize_rows(rows)
        shapes = estimator.mean_directions_, estimator.concentrations_
        display = cls(estimator.weights_, *shapes, rows, resp, row_labels, names=names)
        return display.plot(**kwargs)

    def plot(
        self,
        *,
        ax: Any = None,
        scatter_kwargs: dict[str, Any] | None = None,
        text_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the components, and the rows if there are any.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on, three-dimensional ones for three features; None creates new ones, on a
            figure that is large enough for all names.
        scatter_kwargs, text_kwargs : dict, default=None
            Arguments of ``Axes.scatter`` and of ``Axes.text``.
        """
        d = self.mean_directions.shape[1]
        self._active = np.flatnonzero(self.weights > 0).tolist()
        n_rows = 0 if self.labels is None else len(self.labels)
        size = min(10, max(1, 5000 / max(n_rows, 1)))
        self._scatter_options = {"s": size, "alpha": 0.6, "linewidths": 0} | (scatter_kwargs or {})
        self._text_options = {"ha": "center", "va": "center"} | (text_kwargs or {})
        self.scatter_: Any = None
        self.positions_: Array | None = None
        self.components_: list[Any] = []
        self.texts_: list[Any] = []
        self._own_figure = ax is None
        self.ax_ = get_axes(ax, projection="3d" if d == 3 else None)
        self.figure_ = self.ax_.figure
        draw = {2: self._draw_circle, 3: self._draw_sphere}.get(d, self._draw_map)
        draw()
        return self

    def _name(self, k: int) -> str:
        return str(k) if self.names is None else str(self.names[k])

    def _scatter(self, *coordinates: Array) -> None:
        assert self.labels is not None
        options = {"c": row_colours(self.labels)} | self._scatter_options
        self.scatter_ = self.ax_.scatter(*coordinates, **options)

    def _draw_circle(self) -> None:
        angles = np.linspace(-np.pi, np.pi, 721)
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        logs = {}
        for k in self._active:
            logs[k] = vmf.logpdf(circle, self.mean_directions[k], self.concentrations[k])
            logs[k] += np.log(self.weights[k])
        highest = max((log_part.max() for log_part in logs.values()), default=0.0)
        parts = {k: np.exp(log_part - highest) for k, log_part in logs.items()}
        self.ax_.plot(*circle.T, color="0.5", linewidth=1)
        for k, part in parts.items():
            outline = (1 + part) * circle.T
            ring = np.hstack([outline, circle.T[:, ::-1]])
            self.ax_.fill(*ring, color=component_colour(k), alpha=0.2, linewidth=0)
            outline[:, part < 1e-2] = np.nan  # there it is the circle
            self.components_ += self.ax_.plot(*outline, color=component_colour(k))
            place = (1.12 + part.max()) * self.mean_directions[k]
            self.texts_.append(self.ax_.text(*place, self._name(k), **self._text_options))
        if self.X is not None:
            depth = 1 - 0.15 * np.random.default_rng(0).random(len(self.X))  # to see how many
            self._scatter(*(depth * self.X.T))
        self.ax_.set_aspect("equal")
        self.ax_.set_axis_off()

    def _draw_sphere(self) -> None:
        turns, heights = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
        ball = [np.cos(turns) * np.sin(heights), np.sin(turns) * np.sin(heights), np.cos(heights)]
        self.ax_.plot_wireframe(*ball, color="0.85", linewidth=0.5)
        lengths = vmf.mean_resultant_length(self.concentrations, 3)
        for k in self._active:
            ring = _ring(self.mean_directions[k], lengths[k])
            self.components_ += self.ax_.plot(*ring, color=component_colour(k), linewidth=1.5)
            place = 1.25 * self.mean_directions[k]
            style = {"color": component_colour(k), "weight": "bold", "zorder": 10}
            options = style | self._text_options
            self.texts_.append(self.ax_.text(*place, self._name(k), **options))
        if self.X is not None:
            self._scatter(*self.X.T)
        self.ax_.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
        self.ax_.set_box_aspect((1, 1, 1), zoom=1.3)
        self.ax_.set_axis_off()

    def _draw_map(self) -> None:
        from matplotlib.patches import Circle

        active = self._active
        radii = np.sqrt(self.weights[active] / self.weights[active].sum())
        shown = self.mean_directions[active], self.concentrations[active]
        numbers = np.arange(len(shown[1]))
        affinities = np.array([log_affinities(*shown, int(i), numbers) for i in numbers])
        self.positions_ = map_positions(affinities, radii)
        for i, k in enumerate(active):
            style = {"facecolor": component_colour(k), "alpha": 0.35}
            disc = Circle(self.positions_[i], radii[i], **style)
            self.components_.append(self.ax_.add_patch(disc))
        if self.responsibilities is not None:
            resp = self.responsibilities[:, active].astype(np.float64)
            self._scatter(*row_positions(resp, self.positions_, radii).T)
        self.ax_.set_aspect("equal", adjustable="datalim")
        self.ax_.margins(0.01)
        self.ax_.set_axis_off()
        self._write_names(radii)

    def _write_names(self, radii: Array) -> None:
        """Write names into discs, as large as they fit but legible, and none over another.

        A new figure grows until all have room. In axes that are given, heavier components come
        first, and a note counts the names that are left out.
        """
        assert self.positions_ is not None
        places = self.positions_
        lines = [
            [part for line in self._name(k).split("\n") for part in wrap(line, _LINE) or [""]]
            for k in self._active
        ]
        names = ["\n".join(each) for each in lines]
        boxes = np.array([[0.6 * max(map(len, each)), 1.2 * len(each)] for each in lines])
        boxes = np.maximum(boxes.reshape(-1, 2), 1.2)  # width and height of letters of size one
        if self._own_figure:  # discs are packed in a round
            self.figure_.set_size_inches(np.full(2, self.figure_.get_size_inches().mean()))
        while True:
            points = self._points()
            sizes = np.clip(1.7 * radii * points / boxes[:, 0], _SMALLEST, _LARGEST)
            extents = sizes[:, None] * boxes / points
            for corner in (-0.5, 0.5):
                self.ax_.update_datalim(places + corner * extents)
            shown = _without_overlaps(places, extents, radii)
            inches = self.figure_.get_size_inches()
            if not self._own_figure or len(shown) == len(names) or inches.max() > _WIDEST:
                break
            self.figure_.set_size_inches(1.1 * inches)
        for i in shown:
            options = {"fontsize": sizes[i]} | self._text_options
            self.texts_.append(self.ax_.text(*places[i], names[i], **options))
        if len(shown) < len(names):
            note = f"{len(names) - len(shown)} of {len(names)} names have no room"
            style = {"ha": "right", "va": "bottom", "fontsize": _SMALLEST, "color": "0.4"}
            self.ax_.text(1, 0, note, transform=self.ax_.transAxes, **style)

    def _points(self) -> float:
        """Return how many points, as in the size of letters, there are in a unit of the map."""
        self.ax_.autoscale_view()
        self.ax_.apply_aspect()
        pixels = np.diff(self.ax_.transData.transform([[0.0, 0.0], [1.0, 0.0]])[:, 0])[0]
        return float(pixels * 72 / self.figure_.dpi)


def _without_overlaps(places: Array, extents: Array, radii: Array) -> list[int]:
    """Return the numbers of boxes around places that do not overlap: those of large discs first."""
    shown: list[int] = []
    for i in np.argsort(-radii, kind="stable").tolist():
        reach = (extents[shown] + extents[i]) / 2
        if (np.abs(places[shown] - places[i]) >= reach).any(axis=1).all():
            shown.append(i)
    return sorted(shown)


def _ring(direction: Array, cosine: float) -> Array:
    """Return the points (3, m) of the sphere at a cosine from a direction."""
    across = np.linalg.svd(direction[np.newaxis])[2][1:]
    turns = np.linspace(0, 2 * np.pi, 100)
    around = np.outer(across[0], np.cos(turns)) + np.outer(across[1], np.sin(turns))
    return cosine * direction[:, np.newaxis] + np.sqrt(max(1 - cosine**2, 0)) * around


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """Gaussian or Student-t components as ellipses over rows; create it with `from_estimator`.

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
    ) -> Self:
        """Draw a fitted mixture of Gaussian or Student-t components over rows.

        Parameters
        ----------
        estimator : estimator instance
            A fitted mixture with a `covariance_type`, also scikit-learn's ``GaussianMixture``. Of
            Student-t components the scale matrices are drawn.
        X : array-like of shape (n_samples, n_features)
            The rows, of which those are drawn that lack neither feature; Dask arrays are read into
            memory.
        features : tuple of two int, default=(0, 1)
            The features to draw.

        Raises
        ------
        ValueError
            If the estimator has no covariances, or features or labels are wrong.
        """
        check_is_fitted(estimator)
        estimator = getattr(estimator, "best_estimator_", estimator)
        if ellipses(estimator, [0]) is None:
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
        names = getattr(estimator, "feature_names_in_", None)
        names = [f"feature {i}" if names is None else names[i] for i in features]
        rows = check_rows(X, ensure_all_finite="allow-nan")[:, features]
        means, covariances = estimator.means_[:, features], ellipses(estimator, features)
        assert covariances is not None
        display = cls(estimator.weights_, means, covariances, rows, labels, feature_names=names)
        return display.plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        n_std: float = 2.0,
        scatter_kwargs: dict[str, Any] | None = None,
        ellipse_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the components, and the rows if there are any.

        Parameters
        ----------
        n_std : float, default=2.0
            Half the axes of an ellipse, in standard deviations or roots of a scale matrix.
        scatter_kwargs, ellipse_kwargs : dict, default=None
            Arguments of ``Axes.scatter`` and of ``matplotlib.patches.Ellipse``.
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
