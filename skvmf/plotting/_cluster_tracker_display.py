"""Clusters over time, from the sizes and events of a `ClusterTracker`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, Options
from ._displays import get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..mixture import ClusterTracker

# What marks an event: a triangle that opens upwards is a birth, a cross an end.
_MARKERS = {"birth": "^", "death": "X", "merge": "v"}
_COLOURS_OF_THE_FIT = "0.88", "0.78"


@dataclass(eq=False, repr=False)
class ClusterTrackerDisplay:
    """Sizes of clusters as bands over batches; create it with `from_estimator`.

    The clusters of the first fit are grey, and those that were born later have colours. A triangle
    marks a birth, a cross a death, and a triangle upside down a merge, after which a band goes on
    as that of another cluster.

    Parameters
    ----------
    sizes : ndarray of shape (n_batches + 1, n_ids)
        The ``sizes_`` of a :class:`~skvmf.ClusterTracker`. The first row, that of the fit, is not
        drawn: it may have the rows of many batches.
    events : list of dict
        Its ``events_``.
    names : dict, default={}
        Names by id, for births; others are named by their ids.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the picture.
    bands_ : dict of int to matplotlib PolyCollection
        The band of each id that has rows after the fit.
    marks_ : list of matplotlib Line2D
        The mark of each event.

    Examples
    --------
    >>> from skvmf import ClusterTracker, VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.plotting import ClusterTrackerDisplay
    >>> X, y = make_vonmises_fisher_blobs(4000, 16, centers=6, concentration=60.0, random_state=0)
    >>> old, new = X[:2000][y[:2000] < 5], X[2000:]
    >>> tracker = ClusterTracker(VonMisesFisherMixture(5, random_state=0), random_state=0).fit(old)
    >>> for day in range(4):
    ...     _ = tracker.partial_fit(new[200 * day : 200 * (day + 1)])
    >>> display = ClusterTrackerDisplay.from_estimator(tracker)
    >>> len(display.bands_), len(display.marks_)
    (6, 1)
    """

    sizes: Array
    events: Sequence[Mapping[str, Any]]
    _: KW_ONLY
    names: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def from_estimator(
        cls, estimator: ClusterTracker, *, names: Mapping[int, str] | None = None, **kwargs: Any
    ) -> Self:
        """Draw the clusters of a tracker over its batches.

        Parameters
        ----------
        estimator : ClusterTracker
            A fitted tracker, after one batch at least.
        names : dict, default=None
            Names by id, for births.
        **kwargs : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : ClusterTrackerDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        return cls(estimator.sizes_, estimator.events_, names=names or {}).plot(**kwargs)

    def plot(self, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the bands and the events.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates new ones.
        **kwargs : dict
            Arguments of ``Axes.stackplot``.

        Returns
        -------
        display : ClusterTrackerDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there is no batch after the fit.
        """
        if len(self.sizes) < 2:
            raise ValueError("The tracker has seen its first rows only: call partial_fit first.")
        self.ax_ = get_axes(ax)
        self.figure_ = self.ax_.figure
        batches = np.arange(1, len(self.sizes))
        sizes = self.sizes[1:].T
        drawn = np.flatnonzero(sizes.any(axis=1)).tolist()
        style: Options = {"colors": self._colours(drawn), "linewidth": 0.3, "edgecolor": "white"}
        bands = self.ax_.stackplot(batches, sizes[drawn], **style | kwargs)
        self.bands_ = dict(zip(drawn, bands, strict=True))
        middles = np.cumsum(sizes, axis=0) - sizes / 2
        self.marks_ = []
        for event in self.events:
            k = event["id"]
            batch = event["batch"]
            height = middles[k, batch - 1]
            mark = _MARKERS[event["kind"]]
            (line,) = self.ax_.plot(batch, height, mark, color="k", markersize=5)
            self.marks_.append(line)
            if event["kind"] == "birth":
                name = self.names.get(k, str(k))
                place = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
                self.ax_.annotate(name, (batch, height), fontsize="small", **place)
        self.ax_.set(xlabel="batch", ylabel="rows", xlim=(1, len(batches)))
        return self

    def _colours(self, drawn: Sequence[int]) -> list[str]:
        """Return a colour for each id: a grey for those of the fit, others in turn."""
        born = [event["id"] for event in self.events if event["kind"] == "birth"]
        colours = {k: _COLOURS_OF_THE_FIT[k % 2] for k in drawn}
        colours |= {k: f"C{number}" for number, k in enumerate(born)}
        return [colours[k] for k in drawn]
