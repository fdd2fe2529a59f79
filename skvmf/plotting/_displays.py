"""Displays of mixtures: components on the sphere, and two features of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from .._kernels.rows import normalize_rows
from .._sklearn import num_samples, validate_data
from .._typing import Array, MatrixLike, Options
from ..distributions import vonmises_fisher as vmf
from ..distributions.vonmises_fisher._maps import log_affinities
from ..mixture._gaussian import BaseEllipticalMixture, ellipses
from ..mixture._rows import array_in_memory, in_memory, rows_to_show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.mixture import GaussianMixture

# Rounds of pushing discs apart, at most: discs that overlap after them stay so.
_MAX_ROUNDS = 500
# Between edges that touch, the eye sees no gap.
_GAP = 1.08
# Components that a map is computed from: eigenvectors of so many take less than a second.
_MAX_LANDMARKS = 1000
# The part of a disc's radius that rows are scattered over, which leaves its edge to be seen.
_ROW_SPREAD = 0.8
# Letters of names on a map, in points: smaller ones cannot be read, larger ones look like titles.
_MIN_FONT_SIZE = 7.0
_MAX_FONT_SIZE = 14.0
# Letters in a line of a name: longer lines need smaller letters, shorter ones more lines.
_LINE_LENGTH = 16
# Inches up to which a figure grows to give all names room.
_MAX_FIGURE_SIZE = 30.0


def get_axes(ax: Axes | None, projection: str | None = None) -> Axes:
    """Return axes to draw on, new ones unless some are given."""
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
    """Return one label per row: the given ones, or those that are predicted."""
    if labels is None:
        labels = predict(X)
    labels = array_in_memory(labels, "labels")
    n_rows = num_samples(X)
    if labels.shape != (n_rows,):
        raise ValueError(f"labels should be of shape ({n_rows},), got {labels.shape}.")
    return labels


def row_colours(labels: Array) -> list[str]:
    """Return each row's colour: that of its component or class, and grey for outliers."""
    values, numbers = np.unique(labels, return_inverse=True)
    if labels.dtype.kind not in "biuf":
        # Names of classes have no number of their own.
        values = np.arange(len(values))
    colours = ["0.7" if value < 0 else component_colour(int(value)) for value in values]
    return [colours[i] for i in numbers]


def component_colour(k: int | np.integer[Any]) -> str:
    """Return the colour of a component: of matplotlib's cycle, and darker in its second round."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex, to_rgb

    colour = np.array(to_rgb(f"C{k}"))
    if k // len(rcParams["axes.prop_cycle"]) % 2:
        colour /= 2
    return to_hex(colour)


def map_landmarks(radii: Array) -> Array:
    """Return the numbers of the discs that a map is computed from: all, or the largest of many."""
    return np.argsort(-radii, kind="stable")[:_MAX_LANDMARKS]


def map_positions(log_affinities: Array, landmarks: Array, radii: Array) -> Array:
    """Return positions (K, 2) for discs of given radii (K,).

    Classical scaling of Bhattacharyya distances (minus the log-overlaps with landmarks, (K, L)),
    scaled to the area of the discs, which are then pushed apart until none overlap. Discs are
    placed by their distances to the landmarks (de Silva and Tenenbaum, "Sparse multidimensional
    scaling using landmark points", 2004).
    """
    K = len(radii)
    if K < 2:
        return np.zeros((K, 2))
    # The distances are taken for squared ones: those of two Gaussian components of the same
    # covariance are squares of a Mahalanobis distance. Components without overlap are finitely far.
    squares = -np.maximum(log_affinities, -1e6)
    # The mean of both directions, which may differ by rounding.
    among = squares[landmarks]
    squares[landmarks] = 0.5 * (among + among.T)
    squares[landmarks, np.arange(len(landmarks))] = 0
    # Rows far from the mean of the landmarks have large squared distances to all of them.
    centred = squares - squares[landmarks].mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    eigenvalues, eigenvectors = np.linalg.eigh(-0.5 * centred[landmarks])
    largest_two = np.maximum(eigenvalues[::-1][:2], 0)
    # Eigenvalues of zero, of components that are all alike, spread nothing.
    scales = np.divide(1, np.sqrt(largest_two), out=np.zeros(2), where=largest_two > 0)
    positions = -0.5 * centred @ (eigenvectors[:, ::-1][:, :2] * scales)

    # The signs of eigenvectors depend on the machine: the largest coordinate becomes positive.
    outermost = np.abs(positions).argmax(axis=0)
    positions *= np.where(positions[outermost, [0, 1]] < 0, -1, 1)
    # A map of about three times the area of all discs, so that few of them have to move far.
    return _apart(_gathered(positions) * 1.2 * np.sqrt((radii**2).sum()), radii)


def _gathered(positions: Array) -> Array:
    """Return positions with a mean squared distance of one, with those far out moved in."""
    distances = np.sqrt((positions**2).sum(axis=1, keepdims=True))
    width = np.sqrt((distances**2).mean())
    if width <= 1e-6:
        # Components that are all alike have no positions.
        return _sunflower(len(positions))
    near = positions / (distances + width)
    return near / np.sqrt((near**2).sum(axis=1).mean())


def _apart(positions: Array, radii: Array) -> Array:
    """Return nearby positions at which discs do not overlap."""
    # Two discs at one position have no direction to move in: the sunflower gives them one.
    positions = positions + 1e-3 * radii.mean() * _sunflower(len(radii))
    n = len(radii)
    first, second = _nearby(positions, radii)
    found_at = positions
    for _ in range(_MAX_ROUNDS):
        if (((positions - found_at) ** 2).sum(axis=1) > (radii / 2) ** 2).any():
            first, second = _nearby(positions, radii)
            found_at = positions
        gaps = positions[first] - positions[second]
        distances = np.sqrt((gaps**2).sum(axis=1))
        overlaps = np.maximum(_GAP * (radii[first] + radii[second]) - distances, 0)
        if (overlaps <= 1e-3 * np.minimum(radii[first], radii[second])).all():
            break
        # Less than half the way for each of two discs, as other neighbours push them, too, and at
        # most one radius, so that no disc jumps over another.
        pushes = 0.3 * (overlaps / np.maximum(distances, 1e-12))[:, np.newaxis] * gaps
        moves = np.column_stack(
            [np.bincount(first, push, n) - np.bincount(second, push, n) for push in pushes.T]
        )
        lengths = np.sqrt((moves**2).sum(axis=1))
        parts = np.minimum(1, radii / np.maximum(lengths, 1e-12))
        positions = positions + moves * parts[:, np.newaxis]
    return positions


def _nearby(positions: Array, radii: Array) -> tuple[Array, Array]:
    """Return the pairs of discs that overlap, or may when each has moved by half its radius.

    How far discs reach depends on the larger one of a pair. So discs of about one size search
    together, for those of their size and below.
    """
    sizes = np.frexp(radii)[1]
    firsts = []
    seconds = []
    for size in np.unique(sizes):
        large = np.flatnonzero(sizes == size)
        others = np.flatnonzero(sizes <= size)
        reach = (2 * _GAP + 1) * radii[large].max()
        tree = KDTree(positions[others])
        near = KDTree(positions[large]).sparse_distance_matrix(tree, reach, output_type="ndarray")
        first = large[near["i"]]
        second = others[near["j"]]
        # Two of one size find each other twice, and each finds itself.
        chosen = (sizes[second] < size) | (first < second)
        firsts.append(first[chosen])
        seconds.append(second[chosen])
    return np.concatenate(firsts), np.concatenate(seconds)


def _sunflower(n: int) -> Array:
    """Return points (n, 2) that fill a disc evenly, with a mean squared distance of one.

    Each is turned by the golden angle from the one before (Vogel, "A better way to construct the
    sunflower head", Mathematical Biosciences 44, 1979).
    """
    angles = np.arange(n) * np.pi * (3 - np.sqrt(5))
    distances = np.sqrt(2 * (np.arange(n) + 0.5) / n)
    return distances[:, np.newaxis] * np.column_stack([np.cos(angles), np.sin(angles)])


def row_positions(middles: Array, spreads: Array) -> Array:
    """Return the positions of rows (n, 2) on a map: around their middles, as far as they spread."""
    # The same numbers each time, so that a picture drawn again is the same.
    rng = np.random.default_rng(0)
    angles = 2 * np.pi * rng.random(len(middles))
    # Roots spread points evenly over the unit disc.
    lengths = np.sqrt(rng.random(len(middles)))
    offsets = np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)])
    return middles + _ROW_SPREAD * spreads[:, np.newaxis] * offsets


def row_middles(resp: Array, positions: Array, radii: Array) -> tuple[Array, Array]:
    """Return where rows are between the discs of their components, (n, 2), and mean radii (n,)."""
    totals = resp.sum(axis=1, keepdims=True)
    # An outlier belongs to no component, and is drawn in the middle of all.
    is_outlier = totals == 0
    equal_parts = 1 / max(len(radii), 1)
    resp = np.where(is_outlier, equal_parts, resp / np.where(is_outlier, 1, totals))
    return resp @ positions, resp @ radii


@dataclass(eq=False, repr=False)
class DirectionsDisplay:
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
        labels : array-like of shape (n_samples,), default=None
            What colours the rows, as numbers or names; None is ``estimator.predict(X)``.
        names : sequence of str, default=None
            Names of the components in order; None is their numbers.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : DirectionsDisplay
            The display, drawn.

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
                rows = rows_to_show(X, has_missing=False, accept_sparse="csr", dtype=np.float64)
                if sparse.issparse(rows):
                    rows = rows.toarray()
                else:
                    rows = rows.copy()
                normalize_rows(rows)
        display = cls(
            estimator.weights_,
            estimator.mean_directions_,
            estimator.concentrations_,
            rows,
            resp,
            row_labels,
            names=names,
        )
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

        Returns
        -------
        display : DirectionsDisplay
            The display, drawn.
        """
        d = self.mean_directions.shape[1]
        self._active = np.flatnonzero(self.weights > 0).tolist()
        self._scatter_options = scatter_kwargs or {}
        self._text_options = {"ha": "center", "va": "center"} | (text_kwargs or {})
        self.scatter_: Any = None
        self.positions_: Array | None = None
        self.components_: list[Any] = []
        self.texts_: list[Any] = []
        self._figure_is_new = ax is None
        self.ax_ = get_axes(ax, projection="3d" if d == 3 else None)
        self.figure_ = self.ax_.figure
        if d == 2:
            self._draw_circle()
        elif d == 3:
            self._draw_sphere()
        else:
            self._draw_map()
        return self

    def _name(self, k: int) -> str:
        if self.names is None:
            return str(k)
        return str(self.names[k])

    def _write(self, position: Array, text: str, style: Options) -> None:
        self.texts_.append(self.ax_.text(*position, text, **style | self._text_options))

    def _scatter(self, *coordinates: Array) -> None:
        assert self.labels is not None
        # The more rows, the smaller their dots, as long as a dot can be seen.
        size = min(10, max(1, 5000 / max(len(self.labels), 1)))
        style = {"c": row_colours(self.labels), "s": size, "alpha": 0.6, "linewidths": 0}
        self.scatter_ = self.ax_.scatter(*coordinates, **style | self._scatter_options)

    def _draw_circle(self) -> None:
        # A point every half degree.
        angles = np.linspace(-np.pi, np.pi, 721)
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        log_parts = {
            k: np.log(self.weights[k])
            + vmf.logpdf(circle, self.mean_directions[k], self.concentrations[k])
            for k in self._active
        }
        highest = max((log_part.max() for log_part in log_parts.values()), default=0.0)
        self.ax_.plot(*circle.T, color="0.5", linewidth=1)

        for k, log_part in log_parts.items():
            heights = np.exp(log_part - highest)
            outline = (1 + heights) * circle.T
            ring = np.hstack([outline, circle.T[:, ::-1]])
            self.ax_.fill(*ring, color=component_colour(k), alpha=0.2, linewidth=0)
            # Where a component is this low, its outline would hide the circle.
            outline[:, heights < 1e-2] = np.nan
            self.components_ += self.ax_.plot(*outline, color=component_colour(k))
            above_the_peak = (1.12 + heights.max()) * self.mean_directions[k]
            self._write(above_the_peak, self._name(k), {})
        if self.X is not None:
            # At random depths, which shows how many rows have a direction.
            depths = 1 - 0.15 * np.random.default_rng(0).random(len(self.X))
            self._scatter(*(depths * self.X.T))
        self.ax_.set_aspect("equal")
        self.ax_.set_axis_off()

    def _draw_sphere(self) -> None:
        # Meridians and parallels, 15 degrees apart.
        turns, heights = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
        ball = [np.cos(turns) * np.sin(heights), np.sin(turns) * np.sin(heights), np.cos(heights)]
        self.ax_.plot_wireframe(*ball, color="0.85", linewidth=0.5)
        lengths = vmf.mean_resultant_length(self.concentrations, 3)
        for k in self._active:
            ring = _ring(self.mean_directions[k], lengths[k])
            self.components_ += self.ax_.plot(*ring, color=component_colour(k), linewidth=1.5)
            style = {"color": component_colour(k), "weight": "bold", "zorder": 10}
            self._write(1.25 * self.mean_directions[k], self._name(k), style)
        if self.X is not None:
            self._scatter(*self.X.T)
        self.ax_.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
        # Larger than matplotlib makes it, which leaves room for the axes that are off.
        self.ax_.set_box_aspect((1, 1, 1), zoom=1.3)
        self.ax_.set_axis_off()

    def _draw_map(self) -> None:
        from matplotlib.patches import Circle

        weights = self.weights[self._active]
        directions = self.mean_directions[self._active]
        kappa = self.concentrations[self._active]
        # The areas of the discs are the weights.
        radii = np.sqrt(weights / weights.sum())
        landmarks = map_landmarks(radii)
        numbers = np.arange(len(weights))
        affinities = np.empty((len(numbers), len(landmarks)))
        for column, i in enumerate(landmarks.tolist()):
            affinities[:, column] = log_affinities(directions, kappa, i, numbers)
        self.positions_ = map_positions(affinities, landmarks, radii)
        for k, position, radius in zip(self._active, self.positions_, radii, strict=True):
            disc = Circle(position, radius, facecolor=component_colour(k), alpha=0.35)
            self.components_.append(self.ax_.add_patch(disc))
        if self.responsibilities is not None:
            resp = self.responsibilities[:, self._active].astype(np.float64)
            middles = row_middles(resp, self.positions_, radii)
            self._scatter(*row_positions(*middles).T)
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
        lines = [
            [
                part
                for line in self._name(k).split("\n")
                for part in wrap(line, _LINE_LENGTH) or [""]
            ]
            for k in self._active
        ]
        # Letters of size one are about 0.6 wide, and lines 1.2 high, also of the shortest names.
        boxes = np.array([[0.6 * max(map(len, each)), 1.2 * len(each)] for each in lines])
        boxes = np.maximum(boxes.reshape(-1, 2), 1.2)
        if self._figure_is_new:
            # A square, as discs are packed in a round.
            side = self.figure_.get_size_inches().mean()
            self.figure_.set_size_inches(side, side)

        while True:
            points = self._points_per_unit()
            # A name is as wide as a disc, less a margin.
            sizes = np.clip(1.7 * radii * points / boxes[:, 0], _MIN_FONT_SIZE, _MAX_FONT_SIZE)
            extents = sizes[:, None] * boxes / points
            self.ax_.update_datalim(self.positions_ - 0.5 * extents)
            self.ax_.update_datalim(self.positions_ + 0.5 * extents)
            with_room = _without_overlaps(self.positions_, extents, radii)
            n_left_out = len(lines) - len(with_room)
            inches = self.figure_.get_size_inches()
            if not self._figure_is_new or n_left_out == 0 or inches.max() > _MAX_FIGURE_SIZE:
                break
            self.figure_.set_size_inches(1.1 * inches)

        for i in with_room:
            self._write(self.positions_[i], "\n".join(lines[i]), {"fontsize": sizes[i]})
        if n_left_out > 0:
            note = f"{n_left_out} of {len(lines)} names have no room"
            style = {"ha": "right", "va": "bottom", "fontsize": _MIN_FONT_SIZE, "color": "0.4"}
            self.ax_.text(1, 0, note, transform=self.ax_.transAxes, **style)

    def _points_per_unit(self) -> float:
        """Return how many points, as in the size of letters, there are in a unit of the map."""
        self.ax_.autoscale_view()
        self.ax_.apply_aspect()
        pixels = np.diff(self.ax_.transData.transform([[0.0, 0.0], [1.0, 0.0]])[:, 0])[0]
        return float(pixels * 72 / self.figure_.dpi)


def _without_overlaps(positions: Array, extents: Array, radii: Array) -> list[int]:
    """Return the indices of boxes that do not overlap: those of large discs first."""
    indices: list[int] = []
    for i in np.argsort(-radii, kind="stable").tolist():
        min_gaps = (extents[indices] + extents[i]) / 2
        gaps = np.abs(positions[indices] - positions[i])
        if (gaps >= min_gaps).any(axis=1).all():
            indices.append(i)
    return sorted(indices)


def _ring(direction: Array, cosine: float) -> Array:
    """Return the points (3, m) of the sphere at a cosine from a direction."""
    across = np.linalg.svd(direction[np.newaxis])[2][1:]
    turns = np.linspace(0, 2 * np.pi, 100)
    around = np.outer(across[0], np.cos(turns)) + np.outer(across[1], np.sin(turns))
    # Rounding may bring a cosine above 1.
    sine = np.sqrt(max(1 - cosine**2, 0))
    return cosine * direction[:, np.newaxis] + sine * around


@dataclass(eq=False, repr=False)
class MixtureDisplay:
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
        features: Sequence[int] | None = None,
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
            The rows, of which those are drawn that lack none of the features; Dask arrays are read
            into memory.
        features : tuple of one or two int, default=None
            The features to draw; None is the first two, or the only one. Of one feature, rows have
            random heights, and only the widths of ellipses mean something.
        labels : array-like of shape (n_samples,), default=None
            What colours the rows, as numbers or names; None is ``estimator.predict(X)``.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : MixtureDisplay
            The display, drawn.

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
        n_features = estimator.means_.shape[1]
        if features is None:
            features = range(min(n_features, 2))
        features = list(features)
        known = all(isinstance(i, int | np.integer) and 0 <= i < n_features for i in features)
        if len(features) not in (1, 2) or not known:
            raise ValueError(
                f"features should be one or two of the {n_features} features, counted from 0, got "
                f"{features}."
            )
        X = in_memory(X)
        # Given labels, no prediction compares the names of features.
        validate_data(estimator, X, reset=False, skip_check_array=True)
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"feature {i}" for i in range(n_features)]
        covariances = ellipses(estimator, features)
        assert covariances is not None
        display = cls(
            estimator.weights_,
            estimator.means_[:, features],
            covariances,
            X=rows_to_show(X, has_missing=True)[:, features],
            labels=labels_of(estimator.predict, X, labels),
            feature_names=[names[i] for i in features],
        )
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
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        n_std : float, default=2.0
            Half the axes of an ellipse, in standard deviations or roots of a scale matrix.
        scatter_kwargs, ellipse_kwargs : dict, default=None
            Arguments of ``Axes.scatter`` and of ``matplotlib.patches.Ellipse``.

        Returns
        -------
        display : MixtureDisplay
            The display, drawn.
        """
        self.ax_ = get_axes(ax)
        self.figure_ = self.ax_.figure
        self.scatter_ = None
        if self.X is not None:
            colours: Any = "0.6"
            if self.labels is not None:
                colours = row_colours(self.labels)
            style = {"c": colours, "s": 10, "alpha": 0.6, "linewidths": 0}
            x = self.X[:, 0]
            if self._is_flat:
                # The same heights each time, so that a picture drawn again is the same.
                y = np.random.default_rng(0).random(len(x))
            else:
                y = self.X[:, 1]
            self.scatter_ = self.ax_.scatter(x, y, **style | (scatter_kwargs or {}))
        active = np.flatnonzero(self.weights > 0)
        self.ellipses_ = [self._ellipse(k, n_std, ellipse_kwargs or {}) for k in active]
        for ellipse in self.ellipses_:
            self.ax_.add_patch(ellipse)
        self.ax_.autoscale_view()
        if self.feature_names is not None:
            self.ax_.set_xlabel(self.feature_names[0])
            if not self._is_flat:
                self.ax_.set_ylabel(self.feature_names[1])
        if self._is_flat:
            self.ax_.set_yticks([])
        return self

    @property
    def _is_flat(self) -> bool:
        """Whether there is one feature, so that heights mean nothing."""
        return self.means.shape[1] == 1

    def _ellipse(self, k: int | np.integer[Any], n_std: float, options: Options) -> Any:
        """Return the ellipse of component k, as opaque as its weight."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Ellipse

        variances, axes = np.linalg.eigh(self.covariances[k])
        # Rows stay visible below the heaviest component, and the edge of the lightest, too.
        opacity = 0.4 * self.weights[k] / self.weights.max()
        style: Options = {
            "facecolor": to_rgba(component_colour(k), opacity),
            "edgecolor": to_rgba(component_colour(k), 0.3 + opacity),
            "linewidth": 1.5,
        }
        if self._is_flat:
            width = 2 * n_std * np.sqrt(variances[0])
            return Ellipse((self.means[k, 0], 0.5), width, 1.0, **style | options)
        # Rounding may give a singular matrix a negative eigenvalue.
        width, height = 2 * n_std * np.sqrt(np.maximum(variances, 0))
        angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
        return Ellipse(self.means[k], width, height, angle=angle, **style | options)
