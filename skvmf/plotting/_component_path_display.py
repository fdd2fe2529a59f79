"""A criterion by number of components, and the dendrogram of their merges."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, Options
from ._displays import component_colour, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model_selection import ComponentPath

_GREY = 7  # C7 is grey, and so is what is above the chosen components
_MIN_LOSS = 1.0  # loss in nats of all rows, below which heights are all drawn alike
_MAX_LEVEL_NUMBERS = 15  # numbers above which they stand upright
_MAX_NUMBERS = 60  # above which they are left out
_LEAF, _LETTER, _WIDEST = 0.14, 0.06, 30.0  # inches of a leaf, of a letter, and of a figure


@dataclass(eq=False, repr=False)
class ComponentPathDisplay:
    """A path as a curve of a criterion or as a dendrogram; create it with `from_estimator`.

    Parameters
    ----------
    n_components : ndarray of shape (n_steps,)
        Numbers of components, rising.
    criterion : ndarray of shape (n_steps,)
        The criterion of each number, in the units to draw.
    best_n_components : int
        The chosen number.
    linkage : ndarray of shape (max_components - 1, 4)
        The tree, in SciPy's format.
    leaf_weights : ndarray of shape (max_components,)
        The fraction of the rows in each leaf.
    best_nodes : ndarray of shape (best_n_components,)
        The nodes of the chosen components.
    criterion_name : str, default="criterion"
        Label of the criterion.
    n_samples : float, default=None
        The number of rows, or their total weight, by which the losses in the tree are divided; None
        leaves them as they are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the picture.
    line_ : matplotlib Line2D or None
        The criterion.
    branches_, leaves_ : matplotlib LineCollection, PathCollection or None
        The tree and its leaves, whose areas are their weights.

    Examples
    --------
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.model_selection import ComponentPath
    >>> from skvmf.plotting import ComponentPathDisplay
    >>> X, _ = make_vonmises_fisher_blobs(500, 10, centers=3, random_state=0)
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=8).fit(X)
    >>> tree = ComponentPathDisplay.from_estimator(path, kind="dendrogram")
    >>> len(tree.branches_.get_segments())
    7
    """

    n_components: Array
    criterion: Array
    best_n_components: int
    linkage: Array
    leaf_weights: Array
    best_nodes: Array
    _: KW_ONLY
    criterion_name: str = "criterion"
    n_samples: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: "ComponentPath", *, criterion: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw a fitted path.

        Criteria are drawn in nats per row above the best number of components: a row's log-density,
        less its part of the penalty, is lower by so much on average. What a callable returned is
        drawn as it is.

        Parameters
        ----------
        estimator : estimator instance
            A fitted :class:`~skvmf.model_selection.ComponentPath`.
        criterion : str, default=None
            The key in `results_` to draw; None is the criterion of the choice.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : ComponentPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there is no such criterion.
        """
        check_is_fitted(estimator)
        results = estimator.results_
        if criterion is not None and criterion not in results:
            raise ValueError(f"criterion should be one of {sorted(results)}, got {criterion!r}.")
        values = results["criterion" if criterion is None else criterion]
        chosen = estimator.criterion if criterion is None else criterion
        # The number of rows that the path has seen, by which ``bic`` penalizes parameters.
        penalty = results["bic"][0] + 2 * results["log_likelihood"][0]
        n_samples = float(np.exp(penalty / results["n_parameters"][0]))
        if isinstance(chosen, str):
            values, label = _in_nats_per_row(chosen, values, n_samples)
        else:
            label = getattr(chosen, "__name__", "criterion").replace("_", " ")
        tree = estimator.linkage_, estimator.leaf_weights_, estimator.best_nodes_
        numbers = results["n_components"], values, estimator.best_n_components_
        return cls(*numbers, *tree, criterion_name=label, n_samples=n_samples).plot(**kwargs)

    def plot(
        self,
        kind: Literal["criterion", "dendrogram"] = "criterion",
        *,
        ax: "Axes | None" = None,
        names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the criterion, or the tree.

        Parameters
        ----------
        kind : {'criterion', 'dendrogram'}, default='criterion'
            The criterion by number of components, with the chosen number marked; or the dendrogram,
            with the weights of leaves as dots and a colour per chosen component.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones, on a figure that is large enough for the names.
        names : list of str of length best_n_components, default=None
            Names of the chosen components in the dendrogram; None is their numbers.
        **kwargs : dict
            Arguments of ``Axes.plot`` for the criterion, of ``LineCollection`` for the tree.

        Returns
        -------
        display : ComponentPathDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there is no such kind, there is no tree to draw, or the number of names is wrong.
        """
        if kind not in ("criterion", "dendrogram"):
            raise ValueError(f"kind should be 'criterion' or 'dendrogram', got {kind!r}.")
        if names is not None and len(names) != self.best_n_components:
            raise ValueError(
                f"names should be one for each of the {self.best_n_components} components "
                f"chosen, got {len(names)}."
            )
        if kind == "dendrogram" and len(self.linkage) == 0:
            raise ValueError("A path that begins with one component has no dendrogram.")
        own_figure, ax = ax is None, get_axes(ax)
        if own_figure and kind == "dendrogram":
            width, height = ax.figure.get_size_inches()
            wide = max(width, min(_LEAF * len(self.leaf_weights), _WIDEST))
            longest = max(map(len, names or [""]), default=0)
            ax.figure.set_size_inches(wide, height + _LETTER * longest)
        self.line_ = self.branches_ = self.leaves_ = None
        if kind == "criterion":
            self._plot_criterion(ax, kwargs)
        else:
            self._plot_tree(ax, names, kwargs)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_criterion(self, ax: "Axes", options: Options) -> None:
        from matplotlib.ticker import MaxNLocator

        style = {"marker": ".", "markersize": 5, "linewidth": 1.2} | options
        (self.line_,) = ax.plot(self.n_components, self.criterion, **style)
        chosen = self.criterion[self.n_components == self.best_n_components]
        label = f"{self.best_n_components} components"
        ax.axvline(self.best_n_components, color="0.7", linewidth=1, zorder=0)
        ax.plot([self.best_n_components], chosen, "o", color="C3", label=label)
        ax.set(xlabel="number of components", ylabel=self.criterion_name)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()

    def _plot_tree(self, ax: "Axes", names: Sequence[str] | None, options: Options) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.ticker import LogFormatter

        class Plain(LogFormatter):
            def __call__(self, x: float, pos: int | None = None) -> str:
                return f"{x:g}" if super().__call__(x, pos) else ""

        order, x, heights = _layout(self.linkage, self.n_samples or 1)
        n_leaves, part, K = len(order), self._part_of_nodes(), len(self.best_nodes)
        place = np.argsort(np.argsort([x[:n_leaves][part[:n_leaves] == k].min() for k in range(K)]))
        place += (place + 9 - _GREY) // 9  # by place from the left, never the grey one
        colours = [component_colour(place[k]) if k >= 0 else "0.6" for k in part]
        segments = []
        for i, (a, b) in enumerate(self.linkage[:, :2].astype(int)):
            top = heights[n_leaves + i]
            segments.append([(x[a], heights[a]), (x[a], top), (x[b], top), (x[b], heights[b])])
        style: Options = {"colors": colours[n_leaves:], "linewidths": 1.0} | options
        self.branches_ = ax.add_collection(LineCollection(segments, **style))
        areas = 0.25 * (72 * ax.figure.get_figwidth() / n_leaves) ** 2
        areas = min(areas, 150.0) * self.leaf_weights / self.leaf_weights.max()
        floor = np.full(n_leaves, heights[0])
        style = {"c": colours[:n_leaves], "zorder": 3, "clip_on": False}
        self.leaves_ = ax.scatter(x[:n_leaves], floor, s=areas, **style)
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(Plain())
        ax.yaxis.set_minor_formatter(Plain(minor_thresholds=(2, 0.5)))
        unit = "" if self.n_samples is None else ", nats per row"
        ax.set(ylabel=f"log-likelihood lost{unit}", xlim=(-1, n_leaves))
        ax.set_ylim(heights[0], 1.5 * heights.max())
        self._name_parts(ax, x[:n_leaves], part[:n_leaves], names)

    def _name_parts(self, ax: "Axes", x: Array, part: Array, names: Sequence[str] | None) -> None:
        """Write a name below the middle of the leaves of each chosen component."""
        K = len(self.best_nodes)
        ax.set_xlabel("component")
        if names is None and K > _MAX_NUMBERS:
            ax.set_xticks([])
            return
        labels = [str(k) for k in range(K)] if names is None else list(names)
        ticks = [x[part == k].mean() for k in range(K)]
        upright = K > _MAX_LEVEL_NUMBERS or names is not None
        ax.set_xticks(ticks, labels, rotation=90 if upright else 0)
        ax.tick_params(axis="x", labelsize=7 if K > _MAX_LEVEL_NUMBERS else 9, pad=8)

    def _part_of_nodes(self) -> Array:
        """Return the chosen component of each node, -1 above all of them."""
        n_leaves = len(self.linkage) + 1
        part = np.full(n_leaves + len(self.linkage), -1)
        part[self.best_nodes] = np.arange(len(self.best_nodes))
        for i in range(len(self.linkage) - 1, -1, -1):
            if part[n_leaves + i] >= 0:
                part[self.linkage[i, :2].astype(int)] = part[n_leaves + i]
        return part


def _in_nats_per_row(name: str, values: Array, n_samples: float) -> tuple[Array, str]:
    """Return results in units that do not grow with the data, and a label that names them."""
    label = name.replace("_", " ")
    if name == "log_likelihood":
        return values / n_samples, f"{label}, nats per row"
    if name in ("slope", "bic", "icl"):  # twice the nats of all rows
        values = values / (2 * n_samples)
    elif name != "held_out":
        return values, label
    return values - values.min(), f"{label}: nats per row above the best"


def _layout(linkage: Array, n_samples: float) -> tuple[list[int], Array, Array]:
    """Return the leaves from left to right, and the x and the height per row of each node."""
    order = dendrogram(linkage, no_plot=True)["leaves"]
    n_leaves = len(order)
    x, heights = np.empty(n_leaves + len(linkage)), np.empty(n_leaves + len(linkage))
    x[order] = np.arange(n_leaves)
    merges = np.maximum(linkage[:, 2], _MIN_LOSS) / n_samples
    heights[:n_leaves], heights[n_leaves:] = 0.5 * merges.min(), merges
    for i, (a, b) in enumerate(linkage[:, :2].astype(int)):
        x[n_leaves + i] = (x[a] + x[b]) / 2
    return order, x, heights
