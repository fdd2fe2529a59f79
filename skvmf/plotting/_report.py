"""A report of clusters as one HTML file: map, tree, words, texts, outliers, search."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from .._sklearn import num_samples, safe_indexing
from .._typing import Array
from ..inspection import ComponentSummary, component_summary
from ..inspection._components import log_affinities, read_mixture
from ..mixture._rows import in_memory
from ..model_selection import ComponentPath
from ._displays import map_positions, row_positions

if TYPE_CHECKING:
    from ..inspection._components import AnyMixture

_POINTS, _LENGTH = 20_000, 200  # rows on the map, and characters of a text, at most
_BYTES = 5_000_000  # of a file, at most
_OUTLIERS = 20
Row: TypeAlias = Callable[[int], tuple[int, str]]  # by its number: that, and its text


def cluster_report(
    path_or_mixture: ComponentPath | AnyMixture,
    X: Any,
    texts: Sequence[str] | None = None,
    *,
    file: str | PathLike[str],
) -> None:
    """Write a report of clusters: one HTML file to open in a browser, without a server or network.

    It has a map of the clusters and their rows, a tree to fold, the words, typical and doubtful
    rows of each cluster, the least likely rows, and a search. A file has at most 5 MB: of more than
    20,000 rows, the map and the search have a sample.

    Parameters
    ----------
    path_or_mixture : estimator instance
        A fitted :class:`~skvmf.model_selection.ComponentPath`, whose best mixture and tree are
        shown, or a fitted mixture. The tree of a mixture joins the clusters that overlap most.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to show, as the mixture takes them; Dask arrays are read into memory.
    texts : sequence of str of length n_samples, default=None
        The texts that the rows come from. They are shown as text, whatever they contain. None shows
        the numbers of rows.
    file : str or path-like
        Where to write. A file there is replaced.

    Raises
    ------
    ValueError
        If the mixture is of another kind, or there is not one text per row.

    Examples
    --------
    >>> from skvmf import ComponentPath, VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.plotting import cluster_report
    >>> X, y = make_vonmises_fisher_blobs(300, 10, centers=5, random_state=0)
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=10).fit(X)
    >>> cluster_report(path, X, file="clusters.html")  # doctest: +SKIP
    """
    check_is_fitted(path_or_mixture)
    path = path_or_mixture if isinstance(path_or_mixture, ComponentPath) else None
    mixture: Any = path_or_mixture if path is None else path.best_estimator_
    X, texts = in_memory(X), None if texts is None else list(texts)
    summary = component_summary(mixture, X, texts=texts, n_features=8, n_rows=5)
    active = summary.labels
    near, logs = log_affinities(read_mixture(mixture), active, active)
    places_of = np.argsort(active)[np.searchsorted(np.sort(active), near)]
    affinities = np.full((len(active), len(active)), -1e6)  # of many, the nearest are known
    np.put_along_axis(affinities, places_of, logs, axis=1)
    affinities = np.maximum(affinities, affinities.T)
    radii = np.sqrt(summary.weights / summary.weights.sum())
    places = map_positions(affinities, radii)
    merges = _merges_of_path(path, active) if path else _merges_by_overlap(affinities)
    template = Path(__file__).with_name("_report.html").read_text(encoding="utf-8")
    n_rows, n_shown, length = num_samples(X), _POINTS, _LENGTH
    unlikely = np.argsort(mixture.score_samples(X), kind="stable")[:_OUTLIERS].tolist()
    while True:

        def row(i: int, length: int = length) -> tuple[int, str]:
            return i, "" if texts is None else " ".join(texts[i][: 10 * length].split())[:length]

        data = {
            "n_rows": n_rows,
            "n_outliers": summary.n_outliers,
            "clusters": _clusters(summary, places, radii, row),
            "merges": merges,
            "points": _points(mixture, X, active, (places, radii), min(n_shown, n_rows), row),
            "outliers": [row(i) for i in unlikely],
        }
        # No text may end the script that holds it.
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        page = template.replace("DATA", text, 1).encode("utf-8", "replace")
        if len(page) <= _BYTES or length == 0:
            break
        n_shown, length = 3 * n_shown // 4, 3 * length // 4
    Path(file).write_bytes(page)


def _clusters(
    summary: ComponentSummary, places: Array, radii: Array, row: Row
) -> list[dict[str, Any]]:
    labels, names = summary.labels.tolist(), summary.names()
    cosines = summary.cosines if summary.cosines is not None else np.full(len(labels), np.nan)
    words = summary.features if summary.words is None else summary.words
    assert summary.sizes is not None
    assert summary.typical is not None
    assert summary.doubtful is not None
    return [
        {
            **{"k": k, "name": names[k] if names[k] != str(k) else f"Cluster {k}"},
            **{"size": int(summary.sizes[i]), "weight": float(summary.weights[i])},
            "cosine": None if np.isnan(cosines[i]) else round(float(cosines[i]), 4),
            "nearest": -1 if summary.nearest[i] < 0 else labels.index(summary.nearest[i]),
            "overlap": round(float(summary.overlaps[i]), 4),
            "words": [] if words is None else words[i],
            "typical": [row(n) for n in summary.typical[i].tolist()],
            "doubtful": [row(n) for n in summary.doubtful[i].tolist()],
            **dict(zip("xyr", np.append(places[i], radii[i]).round(4).tolist(), strict=True)),
        }
        for i, k in enumerate(labels)
    ]


def _points(
    mixture: Any, X: Any, active: Array, discs: tuple[Array, Array], n: int, row: Row
) -> dict[str, list[Any]]:
    """Return the rows of the map: n of them, the same each time."""
    chosen = np.sort(np.random.default_rng(0).choice(num_samples(X), n, replace=False))
    rows = safe_indexing(X, chosen)
    labels, resp = mixture.predict(rows), mixture.predict_proba(rows)[:, active]
    xy = row_positions(resp, *discs).round(3)
    numbers = np.full(mixture.n_components + 1, -1)  # the last is that of the label -1
    numbers[active] = np.arange(len(active))
    return {
        **{"x": xy[:, 0].tolist(), "y": xy[:, 1].tolist(), "k": numbers[labels].tolist()},
        **{"row": chosen.tolist(), "text": [row(i)[1] for i in chosen.tolist()]},
    }


def _merges_by_overlap(affinities: Array) -> list[list[int]]:
    """Return the pairs of nodes that a tree joins, those that overlap most first."""
    if len(affinities) < 2:
        return []
    distances = np.minimum(-affinities, 1e6)
    np.fill_diagonal(distances, 0)
    pairs = hierarchy.linkage(squareform(np.maximum(distances, 0), checks=False), "average")
    joined: list[list[int]] = pairs[:, :2].astype(int).tolist()
    return joined


def _merges_of_path(path: ComponentPath, active: Array) -> list[list[int]]:
    """Return the pairs of nodes that a path's tree joins above its best components."""
    number = {int(path.best_nodes_[k]): i for i, k in enumerate(active)}
    merges: list[list[int]] = []
    for node, pair in enumerate(path.linkage_[:, :2].astype(int), len(path.linkage_) + 1):
        below = [number[each] for each in pair.tolist() if each in number]
        if len(below) == 2:
            number[node] = len(active) + len(merges)
            merges.append(below)
        elif below:
            number[node] = below[0]
    return merges
