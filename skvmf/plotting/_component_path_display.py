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

# The number of grey among the ten colours of matplotlib's cycle: the colour of what is above the
# components chosen, which is no component's.
_GREY = 7
_N_COLOURS = 10
# Losses below, in nats of all rows, are all drawn alike: a logarithmic axis would give them most of
# its length.
_MIN_LOSS = 1.0
# Numbers that have room side by side below a figure of matplotlib's size, and if they stand.
_MAX_LEVEL_NUMBERS = 15
_MAX_NUMBERS = 60
# Inches: of a leaf and of a letter, by which a new figure grows, and of the widest figure.
_LEAF_WIDTH = 0.14
_LETTER_WIDTH = 0.06
_MAX_FIGURE_WIDTH = 30.0


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
        # The number of rows that the path has seen, by which ``bic`` penalizes parameters.
        penalty = results["bic"][0] + 2 * results["log_likelihood"][0]
        n_samples = float(np.exp(penalty / results["n_parameters"][0]))

        chosen: Any = criterion
        if chosen is None:
            chosen = estimator.criterion
        if isinstance(chosen, str):
            values, name = _in_nats_per_row(chosen, results[chosen], n_samples)
        else:
            values = results["criterion"]
            name = getattr(chosen, "__name__", "criterion").replace("_", " ")
        display = cls(
            results["n_components"],
            values,
            estimator.best_n_components_,
            estimator.linkage_,
            estimator.leaf_weights_,
            estimator.best_nodes_,
            criterion_name=name,
            n_samples=n_samples,
        )
        return display.plot(**kwargs)

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
        figure_is_new = ax is None
        self.ax_ = get_axes(ax)
        self.figure_ = self.ax_.figure
        self.line_ = self.branches_ = self.leaves_ = None
        if kind == "criterion":
            self._plot_criterion(kwargs)
            return self
        if figure_is_new:
            width, height = self.figure_.get_size_inches()
            width = max(width, min(_LEAF_WIDTH * len(self.leaf_weights), _MAX_FIGURE_WIDTH))
            # Names stand upright.
            longest = max(map(len, names or [""]))
            self.figure_.set_size_inches(width, height + _LETTER_WIDTH * longest)
        self._plot_tree(names, kwargs)
        return self

    def _plot_criterion(self, options: Options) -> None:
        from matplotlib.ticker import MaxNLocator

        style = {"marker": ".", "markersize": 5, "linewidth": 1.2} | options
        (self.line_,) = self.ax_.plot(self.n_components, self.criterion, **style)
        best = self.criterion[self.n_components == self.best_n_components]
        label = f"{self.best_n_components} components"
        self.ax_.axvline(self.best_n_components, color="0.7", linewidth=1, zorder=0)
        self.ax_.plot([self.best_n_components], best, "o", color="C3", label=label)
        self.ax_.set(xlabel="number of components", ylabel=self.criterion_name)
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.legend()

    def _plot_tree(self, names: Sequence[str] | None, options: Options) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.ticker import LogFormatter

        class PlainFormatter(LogFormatter):
            """The numbers of a logarithmic axis, not written as powers of ten."""

            def __call__(self, x: float, pos: int | None = None) -> str:
                if super().__call__(x, pos) == "":  # no number belongs there
                    return ""
                return f"{x:g}"

        n_leaves = len(self.linkage) + 1
        tree = self.linkage.copy()
        tree[:, 2] = np.maximum(tree[:, 2], _MIN_LOSS) / (self.n_samples or 1)
        # A logarithmic axis has no zero for the leaves to begin at.
        floor = 0.5 * tree[:, 2].min()
        # Asked for its colour, SciPy's layout returns the number of the node of each link.
        layout = dendrogram(tree, no_plot=True, link_color_func=str)
        links = np.argsort(np.array(layout["color_list"], dtype=int))
        # SciPy puts leaves at 5, 15, 25, ...
        x = (np.array(layout["icoord"])[links] - 5) / 10
        heights = np.maximum(np.array(layout["dcoord"])[links], floor)
        x_of_leaves = np.argsort(layout["leaves"])

        components = self._components_of_nodes()
        colours = self._colours(x_of_leaves, components)
        style: Options = {"colors": colours[n_leaves:], "linewidths": 1.0} | options
        segments = LineCollection(np.stack([x, heights], axis=2), **style)
        self.branches_ = self.ax_.add_collection(segments)

        # In points: the largest dot is half as wide as a leaf, and at most 150 square points.
        largest = min(0.25 * (72 * self.figure_.get_figwidth() / n_leaves) ** 2, 150.0)
        areas = largest * self.leaf_weights / self.leaf_weights.max()
        style = {"c": colours[:n_leaves], "s": areas, "zorder": 3, "clip_on": False}
        self.leaves_ = self.ax_.scatter(x_of_leaves, np.full(n_leaves, floor), **style)

        self.ax_.set_yscale("log")
        self.ax_.yaxis.set_major_formatter(PlainFormatter())
        # Numbers between powers of ten only where the axis spans at most two of these.
        self.ax_.yaxis.set_minor_formatter(PlainFormatter(minor_thresholds=(2, 0.5)))
        label = "log-likelihood lost"
        if self.n_samples is not None:
            label += ", nats per row"
        self.ax_.set(ylabel=label, xlim=(-1, n_leaves))
        self.ax_.set_ylim(floor, 1.5 * heights.max())
        self._name_components(x_of_leaves, components[:n_leaves], names)

    def _colours(self, x_of_leaves: Array, components: Array) -> list[str]:
        """Return the colour of each node: neighbours differ, and none is grey but what is above."""
        of_leaves = components[: len(x_of_leaves)]
        leftmost = [x_of_leaves[of_leaves == k].min() for k in range(len(self.best_nodes))]
        rank = np.argsort(np.argsort(leftmost))
        # Grey is passed over in each round of the cycle.
        numbers = rank + (rank + _N_COLOURS - 1 - _GREY) // (_N_COLOURS - 1)
        return ["0.6" if k < 0 else component_colour(numbers[k]) for k in components]

    def _name_components(
        self, x_of_leaves: Array, components_of_leaves: Array, names: Sequence[str] | None
    ) -> None:
        """Write a name below the middle of the leaves of each chosen component."""
        K = len(self.best_nodes)
        self.ax_.set_xlabel("component")
        if names is None and K > _MAX_NUMBERS:
            self.ax_.set_xticks([])
            return
        ticks = [x_of_leaves[components_of_leaves == k].mean() for k in range(K)]
        labels = [str(k) for k in range(K)]
        rotation = 0
        size = 9
        if K > _MAX_LEVEL_NUMBERS:
            rotation = 90
            size = 7
        if names is not None:
            labels = list(names)
            rotation = 90
        self.ax_.set_xticks(ticks, labels, rotation=rotation)
        self.ax_.tick_params(axis="x", labelsize=size, pad=8)

    def _components_of_nodes(self) -> Array:
        """Return the chosen component of each node, -1 above all of them."""
        n_leaves = len(self.linkage) + 1
        components = np.full(n_leaves + len(self.linkage), -1)
        components[self.best_nodes] = np.arange(len(self.best_nodes))
        # From the root down, so that a node knows its component before its children ask.
        for i in reversed(range(len(self.linkage))):
            if components[n_leaves + i] >= 0:
                components[self.linkage[i, :2].astype(int)] = components[n_leaves + i]
        return components


def _in_nats_per_row(name: str, values: Array, n_samples: float) -> tuple[Array, str]:
    """Return results in units that do not grow with the data, and a label that names them."""
    label = name.replace("_", " ")
    if name == "log_likelihood":
        return values / n_samples, f"{label}, nats per row"
    if name in ("slope", "bic", "icl"):
        # They are twice the nats of all rows.
        values = values / (2 * n_samples)
    elif name != "held_out":
        return values, label
    return values - values.min(), f"{label}: nats per row above the best"
