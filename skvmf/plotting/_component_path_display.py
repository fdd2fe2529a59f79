"""A criterion by number of components, and the dendrogram of their merges."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ._axes import get_axes

_COLOURS = [f"C{i}" for i in range(10) if i != 7]  # C7 is grey, and so is what is above them
_MIN_LOG_LOSS = 1.0  # loss in nats below which heights are all drawn alike
_MAX_LEVEL_NUMBERS = 15  # numbers above which they stand upright
_MAX_NUMBERS = 60  # above which they are left out


class ComponentPathDisplay:
    """A path over numbers of components: a criterion by number, or the dendrogram.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    n_components : ndarray of shape (n_steps,)
        Numbers of components, rising.
    criterion : ndarray of shape (n_steps,)
        The criterion of each: the lowest is best.
    best_n_components : int
        The number chosen.
    linkage : ndarray of shape (max_components - 1, 4)
        The tree, in SciPy's format.
    leaf_weights : ndarray of shape (max_components,)
        The fraction of the rows that each leaf has.
    best_nodes : ndarray of shape (best_n_components,)
        Which nodes of the tree the chosen components are.
    criterion_name : str, default="criterion"
        What the criterion is called.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D or None
        The criterion.
    branches_ : matplotlib LineCollection or None
        The tree.
    leaves_ : matplotlib PathCollection or None
        Its leaves, as large as their weights.

    See Also
    --------
    skvmf.model_selection.ComponentPath : What is drawn.

    Examples
    --------
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.model_selection import ComponentPath
    >>> from skvmf.plotting import ComponentPathDisplay
    >>> X, _ = make_vonmises_fisher_blobs(
    ...     500, 10, centers=3, concentration=50.0, random_state=0
    ... )
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=8).fit(X)
    >>> display = ComponentPathDisplay.from_estimator(path)
    >>> tree = ComponentPathDisplay.from_estimator(path, kind="dendrogram")
    >>> len(tree.branches_.get_segments())
    7
    """

    def __init__(
        self,
        n_components: Array,
        criterion: Array,
        best_n_components: int,
        linkage: Array,
        leaf_weights: Array,
        best_nodes: Array,
        *,
        criterion_name: str = "criterion",
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.best_n_components = best_n_components
        self.linkage = linkage
        self.leaf_weights = leaf_weights
        self.best_nodes = best_nodes
        self.criterion_name = criterion_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, criterion: str | None = None, **kwargs: Any
    ) -> "ComponentPathDisplay":
        """Draw a fitted path.

        Parameters
        ----------
        estimator : estimator instance
            A fitted :class:`~skvmf.model_selection.ComponentPath`.
        criterion : str, default=None
            Which of its `results_` is drawn; None is what chose.
        **kwargs : dict
            Passed on to :meth:`plot`.

        Returns
        -------
        display : ComponentPathDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no such criterion.
        """
        check_is_fitted(estimator)
        results = estimator.results_
        if criterion is not None and criterion not in results:
            raise ValueError(f"criterion should be one of {sorted(results)}, got {criterion!r}.")
        name = criterion
        if name is None:
            chosen = estimator.criterion
            name = chosen if isinstance(chosen, str) else getattr(chosen, "__name__", "criterion")
        display = cls(
            results["n_components"],
            results["criterion" if criterion is None else criterion],
            estimator.best_n_components_,
            estimator.linkage_,
            estimator.leaf_weights_,
            estimator.best_nodes_,
            criterion_name=name.replace("_", " "),
        )
        return display.plot(**kwargs)

    def plot(
        self,
        kind: str = "criterion",
        *,
        ax: Any = None,
        names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> "ComponentPathDisplay":
        """Draw the criterion, or the tree.

        Parameters
        ----------
        kind : {'criterion', 'dendrogram'}, default='criterion'
            The criterion by number of components, with the chosen number marked; or the
            dendrogram, where leaves are dots as large as their weights, and the chosen
            components each have a colour.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes new ones.
        names : list of str of length best_n_components, default=None
            Names of the chosen components in the dendrogram; None is their numbers.
        **kwargs : dict
            Passed on to ``Axes.plot`` for the criterion, to ``LineCollection`` for the tree.

        Returns
        -------
        display : ComponentPathDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there is nothing of that kind, or names are not one for each component.
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
        ax = get_axes(ax)
        self.line_ = self.branches_ = self.leaves_ = None
        if kind == "criterion":
            self._plot_criterion(ax, kwargs)
        else:
            self._plot_tree(ax, names, kwargs)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_criterion(self, ax: Any, options: dict[str, Any]) -> None:
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

    def _plot_tree(self, ax: Any, names: Sequence[str] | None, options: dict[str, Any]) -> None:
        from matplotlib.collections import LineCollection

        order, x, heights = _layout(self.linkage)
        n_leaves, part, K = len(order), self._part_of_nodes(), len(self.best_nodes)
        place = np.argsort(np.argsort([x[:n_leaves][part[:n_leaves] == k].min() for k in range(K)]))
        colours = [_COLOURS[place[k] % len(_COLOURS)] if k >= 0 else "0.6" for k in part]
        segments = []
        for i, (a, b) in enumerate(self.linkage[:, :2].astype(int)):
            top = heights[n_leaves + i]
            segments.append([(x[a], heights[a]), (x[a], top), (x[b], top), (x[b], heights[b])])
        style: dict[str, Any] = {"colors": colours[n_leaves:], "linewidths": 1.0} | options
        self.branches_ = ax.add_collection(LineCollection(segments, **style))
        areas = 0.25 * (72 * ax.figure.get_figwidth() / n_leaves) ** 2
        areas = min(areas, 150.0) * self.leaf_weights / self.leaf_weights.max()
        floor = np.full(n_leaves, heights[0])
        style = {"c": colours[:n_leaves], "zorder": 3, "clip_on": False}
        self.leaves_ = ax.scatter(x[:n_leaves], floor, s=areas, **style)
        ax.set_yscale("log")
        ax.set(ylabel="log-likelihood lost", xlim=(-1, n_leaves))
        ax.set_ylim(heights[0], 1.5 * heights.max())
        self._name_parts(ax, x[:n_leaves], part[:n_leaves], names)

    def _name_parts(self, ax: Any, x: Array, part: Array, names: Sequence[str] | None) -> None:
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
        """Return which chosen component each node is part of, -1 above all of them."""
        n_leaves = len(self.linkage) + 1
        part = np.full(n_leaves + len(self.linkage), -1)
        part[self.best_nodes] = np.arange(len(self.best_nodes))
        for i in range(len(self.linkage) - 1, -1, -1):
            if part[n_leaves + i] >= 0:
                part[self.linkage[i, :2].astype(int)] = part[n_leaves + i]
        return part


def _layout(linkage: Array) -> tuple[list[int], Array, Array]:
    """Return the leaves from left to right, and the x and the height of each node."""
    order = dendrogram(linkage, no_plot=True)["leaves"]
    n_leaves = len(order)
    x, heights = np.empty(n_leaves + len(linkage)), np.empty(n_leaves + len(linkage))
    x[order] = np.arange(n_leaves)
    merges = np.maximum(linkage[:, 2], _MIN_LOG_LOSS)
    heights[:n_leaves], heights[n_leaves:] = 0.5 * merges.min(), merges
    for i, (a, b) in enumerate(linkage[:, :2].astype(int)):
        x[n_leaves + i] = (x[a] + x[b]) / 2
    return order, x, heights
