"""A report of clusters as one HTML file: map, tree, words, texts, outliers, search."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
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

# More dots than this hide each other on a screen; the search goes through the same rows.
_MAX_POINTS = 20_000
# Characters of a text: about two lines of a list.
_MAX_TEXT_LENGTH = 200
# What a mail takes, and a browser opens at once.
_MAX_BYTES = 5_000_000
# As many as a reader goes through.
_N_OUTLIERS = 20

# Returns the number of a row and its text, as the report shows them.
Row: TypeAlias = Callable[[int], tuple[int, str]]


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
    mixture: Any = getattr(path_or_mixture, "best_estimator_", path_or_mixture)
    X = in_memory(X)
    if texts is not None:
        texts = list(texts)
    summary = component_summary(mixture, X, texts=texts, n_features=8, n_rows=5)
    # The report counts clusters from 0, the largest first, without pruned components.
    cluster_of = {k: i for i, k in enumerate(summary.labels.tolist())}
    affinities = _affinities(mixture, cluster_of)
    radii = np.sqrt(summary.weights / summary.weights.sum())
    positions = map_positions(affinities, radii)
    if isinstance(path_or_mixture, ComponentPath):
        merges = _merges_of_path(path_or_mixture, cluster_of)
    else:
        merges = _merges_by_overlap(affinities)
    unlikely = np.argsort(mixture.score_samples(X), kind="stable")[:_N_OUTLIERS].tolist()
    template = Path(__file__).with_name("_report.html").read_text(encoding="utf-8")

    n_points = _MAX_POINTS
    length = _MAX_TEXT_LENGTH
    while True:
        row = partial(_row, texts, length)
        data = {
            "n_rows": num_samples(X),
            "n_outliers": summary.n_outliers,
            "reliability": summary.reliability,
            "clusters": _clusters(summary, cluster_of, positions, radii, row),
            "merges": merges,
            "points": _points(mixture, X, cluster_of, positions, radii, n_points, row),
            "outliers": [row(i) for i in unlikely],
        }
        # No text may end the script that holds it.
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        page = template.replace("DATA", text, 1).encode("utf-8", "replace")
        if len(page) <= _MAX_BYTES or length == 0:
            break
        n_points = 3 * n_points // 4
        length = 3 * length // 4
    Path(file).write_bytes(page)


def _row(texts: Sequence[str] | None, length: int, i: int) -> tuple[int, str]:
    """Return the number of a row and the beginning of its text, in one line."""
    if texts is None:
        return i, ""
    # A long text has its beginning split only; ten times as much leaves room for white space.
    return i, " ".join(texts[i][: 10 * length].split())[:length]


def _affinities(mixture: Any, cluster_of: dict[int, int]) -> Array:
    """Return the logarithms of the overlaps of all clusters with each other (K, K)."""
    labels = np.array(list(cluster_of))
    near, logs = log_affinities(read_mixture(mixture), labels, labels)
    clusters = np.array([[cluster_of[k] for k in others] for others in near.tolist()])
    # Of many components, only the nearest are known; others are as good as apart.
    affinities = np.full((len(labels), len(labels)), -1e6)
    np.put_along_axis(affinities, clusters, logs, axis=1)
    # A component need not be among the nearest of one that is among its own nearest.
    return np.maximum(affinities, affinities.T)


def _clusters(
    summary: ComponentSummary, cluster_of: dict[int, int], positions: Array, radii: Array, row: Row
) -> list[dict[str, Any]]:
    """Return what the report shows of each cluster."""
    names = summary.names()
    words = summary.features if summary.words is None else summary.words
    assert summary.sizes is not None
    assert summary.typical is not None
    assert summary.doubtful is not None
    clusters = []
    for k, i in cluster_of.items():
        cosine = None
        if summary.cosines is not None and not np.isnan(summary.cosines[i]):
            cosine = round(float(summary.cosines[i]), 4)
        membership = None
        if summary.memberships is not None and not np.isnan(summary.memberships[i]):
            membership = round(float(summary.memberships[i]), 4)
        x, y = positions[i].round(4).tolist()
        cluster = {
            "k": k,
            "name": names[k] if names[k] != str(k) else f"Cluster {k}",
            "size": int(summary.sizes[i]),
            "weight": float(summary.weights[i]),
            "cosine": cosine,
            "membership": membership,
            "nearest": cluster_of.get(int(summary.nearest[i]), -1),
            "overlap": round(float(summary.overlaps[i]), 4),
            "words": [] if words is None else words[i],
            "typical": [row(n) for n in summary.typical[i].tolist()],
            "doubtful": [row(n) for n in summary.doubtful[i].tolist()],
            "x": x,
            "y": y,
            "r": radii[i].round(4),
        }
        clusters.append(cluster)
    return clusters


def _points(
    mixture: Any,
    X: Any,
    cluster_of: dict[int, int],
    positions: Array,
    radii: Array,
    n_points: int,
    row: Row,
) -> dict[str, list[Any]]:
    """Return rows for the map: so many, if there are, and the same each time."""
    n_rows = num_samples(X)
    rng = np.random.default_rng(0)
    indices = np.sort(rng.choice(n_rows, min(n_points, n_rows), replace=False))
    rows = safe_indexing(X, indices)
    resp = mixture.predict_proba(rows)[:, list(cluster_of)]
    xy = row_positions(resp, positions, radii).round(3)
    return {
        "x": xy[:, 0].tolist(),
        "y": xy[:, 1].tolist(),
        "k": [cluster_of.get(label, -1) for label in mixture.predict(rows).tolist()],
        "row": indices.tolist(),
        "text": [row(i)[1] for i in indices.tolist()],
    }


def _merges_by_overlap(affinities: Array) -> list[list[int]]:
    """Return the pairs of nodes that a tree joins, those that overlap most first."""
    if len(affinities) < 2:
        return []
    distances = np.minimum(-affinities, 1e6)
    np.fill_diagonal(distances, 0)
    # Rounding may bring the overlap of two equal components above 1.
    condensed = squareform(np.maximum(distances, 0), checks=False)
    # Average linkage: a single pair that overlaps does not chain two groups.
    return hierarchy.linkage(condensed, "average")[:, :2].astype(int).tolist()


def _merges_of_path(path: ComponentPath, cluster_of: dict[int, int]) -> list[list[int]]:
    """Return the pairs of nodes that a path's tree joins above its best components."""
    # The nodes of the report's tree by those of the path's.
    number = {int(path.best_nodes_[k]): i for k, i in cluster_of.items()}
    merges: list[list[int]] = []
    for node, pair in enumerate(path.linkage_[:, :2].astype(int), len(path.linkage_) + 1):
        children = [number[each] for each in pair.tolist() if each in number]
        if len(children) == 2:
            number[node] = len(cluster_of) + len(merges)
            merges.append(children)
        elif children:
            # The other child is a component without weight, which the report leaves out.
            number[node] = children[0]
    return merges
