"""A report of clusters as one HTML file: map, tree, words, texts, outliers, search."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from html import escape
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from sklearn.utils.validation import check_is_fitted

from .._sklearn import safe_indexing
from .._typing import Array
from ..inspection import ComponentSummary, component_summary
from ..inspection._components import log_affinities, log_affinities_with_first, read_mixture
from ..inspection._pipeline import split_pipeline
from ..inspection._summary import components_of, of_labels, parts_of_rows
from ..inspection._words import count_words
from ..mixture import ClusterTracker
from ..mixture._rows import in_memory
from ..model_selection import ComponentPath
from ._displays import map_landmarks, map_positions, row_middles, row_positions
from ._word_index import word_index

if TYPE_CHECKING:
    from ..inspection._components import AnyMixture

# More dots than this hide each other on a screen; the search goes through the same rows.
_MAX_POINTS = 20_000
# Characters of a text: about two lines of a list.
_MAX_TEXT_LENGTH = 200
# Characters that texts are cut to before rows are left out: a line of a list on a telephone.
_MIN_TEXT_LENGTH = 50
_MIN_POINTS = 100
# Bytes for the labels of all rows, of two each: a third of what a file may have, in base64.
_MAX_LABEL_BYTES = 1_200_000
# What a mail takes, and a browser opens at once.
_MAX_BYTES = 5_000_000
# As many as a reader goes through.
_N_OUTLIERS = 20
_N_WORDS = 8

# Returns the number of a row and its text, as the report shows them.
Row: TypeAlias = Callable[[int], tuple[int, str]]


def cluster_report(
    path_or_mixture: ComponentPath | AnyMixture | None,
    X: Any,
    texts: Sequence[str] | None = None,
    *,
    file: str | PathLike[str],
    title: str = "Clusters",
    names: Mapping[int, str] | Sequence[str] | None = None,
    labels: ArrayLike | None = None,
    vectorizer: Any = None,
    stability: Mapping[str, Array] | None = None,
) -> None:
    """Write a report of clusters: one HTML file to open in a browser, without a server or network.

    It has a map of the clusters and their rows, a tree to fold or to cut into any number of
    clusters, the words, typical and doubtful rows of each cluster, the least likely rows, a search
    through the words of all texts, and the labels to save as CSV. ``#3`` after the file's name
    opens component 3. A file has at most 5 MB: of more than 20,000 rows, the map and the search
    have a sample.

    Parameters
    ----------
    path_or_mixture : estimator instance or None
        A fitted :class:`~skvmf.model_selection.ComponentPath`, whose best mixture and tree are
        shown, or a fitted mixture, or a fitted pipeline that ends with one. The tree of a mixture
        is that of Ward's method on Bhattacharyya distances. Or a fitted
        :class:`~skvmf.ClusterTracker`, with its last batch as X: its clusters have their ids, the
        batch of their birth, and their rows in the batch before. With `labels`, it says what kind
        of components rows get, and may be None, as in
        :func:`~skvmf.inspection.component_summary`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to show, as the mixture, or the first step of the pipeline, takes them; Dask arrays are
        read into memory.
    texts : sequence of str of length n_samples, default=None
        The texts that the rows come from. They are shown as text, whatever they contain. None shows
        X if it is texts, else the numbers of rows.
    file : str or path-like
        Where to write. A file there is replaced.
    title : str, default="Clusters"
        The title of the report.
    names : dict or sequence of str, default=None
        Names by the number of a component. Others are named after their words.
    labels : array-like of shape (n_samples,), default=None
        Labels from 0 that any clusterer, or :meth:`~skvmf.model_selection.ComponentPath.cut`, gives
        the rows, with -1 for outliers. The report is then of the clusters; with those of a cut and
        the path, its tree is the path's.
    vectorizer : estimator instance, default=None
        How the words of `texts` are counted, as in :func:`~skvmf.inspection.component_summary`.
    stability : Bunch, default=None
        What :func:`~skvmf.inspection.component_stability` has returned for the mixture.

    Raises
    ------
    ValueError
        If the mixture is of another kind, there is not one text or label per row, or a name is of
        no component.

    Examples
    --------
    >>> from skvmf import ComponentPath, VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.plotting import cluster_report
    >>> X, y = make_vonmises_fisher_blobs(300, 10, centers=5, random_state=0)
    >>> path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=10).fit(X)
    >>> cluster_report(path, X, file="clusters.html")  # doctest: +SKIP
    """
    X = in_memory(X)
    if texts is None and _are_texts(X):
        texts = X
    if texts is not None:
        texts = list(texts)
    path, X, _ = split_pipeline(path_or_mixture, X)
    mixture: Any
    if labels is None:
        check_is_fitted(path)
        mixture = components_of(path)
        # A tracker's are the ids of its clusters.
        of_rows = np.asarray(path.predict(X))
    else:
        mixture, of_rows = of_labels(path, X, labels)
    is_tracker = isinstance(path, ClusterTracker)
    summary = component_summary(
        path if is_tracker else mixture,
        X,
        texts=texts,
        n_features=_N_WORDS,
        n_rows=5,
        vectorizer=vectorizer,
        stability=stability,
        labels=None if labels is None else of_rows,
    )
    # The report counts clusters from 0, the largest first, without pruned components.
    cluster_of = {k: i for i, k in enumerate(summary.labels.tolist())}
    components = list(cluster_of)
    if is_tracker:
        components = np.searchsorted(path.ids_, components).tolist()
    radii = np.sqrt(summary.weights / summary.weights.sum())
    neighbours, affinities = _affinities(mixture, components)
    landmarks = map_landmarks(radii)
    if len(radii) == affinities.shape[1]:
        with_landmarks = affinities[:, landmarks]
    else:
        with_landmarks = _affinities_with(mixture, components, landmarks)
    # Of so many clusters that it would take minutes, only the first are compared with all.
    landmarks = landmarks[: with_landmarks.shape[1]]
    positions = map_positions(with_landmarks, landmarks, radii)
    merges = _merges(path, X, of_rows, labels is not None, cluster_of)
    if merges is None:
        merges = _merges_by_overlap(neighbours, affinities)
    clusters = np.array([cluster_of.get(k, -1) for k in range(-1, summary.n_components)])
    clusters = clusters[of_rows + 1]
    unlikely = _least_likely(mixture.score_samples(X), clusters)
    words = _words_of_merges(texts, clusters, merges, len(cluster_of), vectorizer)

    @cache
    def sample(n_points: int) -> tuple[dict[str, list[Any]], dict[str, str]]:
        """Return rows for the map and the index of their words."""
        points = _points(mixture, X, clusters, components, positions, radii, n_points)
        searched = [] if texts is None else [texts[i] for i in points["row"]]
        return points, word_index(searched)

    def data(n_points: int, length: int) -> dict[str, Any]:
        row = partial(_row, texts, length)
        points, index = sample(n_points)
        return {
            "title": title,
            "n_rows": len(of_rows),
            "n_outliers": summary.n_outliers,
            "reliability": summary.reliability,
            "clusters": _clusters(summary, _names(summary, names), positions, radii, row),
            "merges": merges,
            "words": words,
            "points": points | {"text": [row(i)[1] for i in points["row"]]},
            "index": index,
            "labels": _packed_labels(clusters),
            "outliers": [row(i) for i in unlikely],
        }

    Path(file).write_bytes(_page(data, title, len(of_rows)))


def _page(data: Callable[[int, int], dict[str, Any]], title: str, n_rows: int) -> bytes:
    """Return the page of data, given how many points it has and how long texts are, that fits."""
    template = Path(__file__).with_name("_report.html").read_text(encoding="utf-8")
    n_points = min(_MAX_POINTS, n_rows)
    length = _MAX_TEXT_LENGTH
    while True:
        text = json.dumps(data(n_points, length), ensure_ascii=False, separators=(",", ":"))
        # No text may end the script that holds it.
        text = text.replace("<", "\\u003c")
        # The title comes first in the page, so that no text and no title is taken for a place.
        page = template.replace("DATA", text, 1).replace("TITLE", escape(title), 1)
        encoded = page.encode("utf-8", "replace")
        if len(encoded) <= _MAX_BYTES or n_points < _MIN_POINTS:
            return encoded
        # The search knows all words: a text may be cut to what a line has before rows are left out.
        if length > _MIN_TEXT_LENGTH:
            length = max(_MIN_TEXT_LENGTH, length // 2)
        else:
            n_points = 3 * n_points // 4


def _least_likely(log_densities: Array, clusters: Array) -> list[int]:
    """Return the numbers of the least likely outliers, or rows if there are no outliers."""
    candidates = np.flatnonzero(clusters < 0)
    if len(candidates) == 0:
        candidates = np.arange(len(clusters))
    order = np.argsort(log_densities[candidates], kind="stable")
    return candidates[order[:_N_OUTLIERS]].tolist()


def _are_texts(X: Any) -> bool:
    """Whether rows are texts, as the first step of a pipeline may take them."""
    return not hasattr(X, "shape") and len(X) > 0 and all(isinstance(row, str) for row in X)


def _names(
    summary: ComponentSummary, given: Mapping[int, str] | Sequence[str] | None
) -> dict[int, str]:
    """Return the name of each component: the given one, or its first words, or its number."""
    first_words = summary.names()
    names = {k: first_words[k] for k in summary.labels.tolist()}
    names = {k: name if name != str(k) else f"Cluster {k}" for k, name in names.items()}
    if given is None:
        return names
    if isinstance(given, str):
        raise TypeError("names should be a dict or a sequence of strings, got one string.")
    own = dict(given) if isinstance(given, Mapping) else dict(enumerate(given))
    strangers = [k for k in own if k not in range(summary.n_components)]
    if strangers:
        raise ValueError(
            f"names should be of components 0 to {summary.n_components - 1}, got {strangers[0]!r}."
        )
    return names | {int(k): str(name) for k, name in own.items() if k in names}


def _rounded(column: Array | None, i: int) -> float | None:
    """Return a number of a column, None where there is none."""
    if column is None or np.isnan(column[i]):
        return None
    return round(float(column[i]), 4)


def _row(texts: Sequence[str] | None, length: int, i: int) -> tuple[int, str]:
    """Return the number of a row and the beginning of its text, in one line."""
    if texts is None:
        return i, ""
    # A long text has its beginning split only; ten times as much leaves room for white space.
    return i, " ".join(texts[i][: 10 * length].split())[:length]


def _affinities(mixture: Any, components: list[int]) -> tuple[Array, Array]:
    """Return the neighbours of all clusters (K, m), and the logarithms of the overlaps with them.

    Of few clusters these are all clusters, of many the nearest.
    """
    labels = np.array(components, dtype=np.intp)
    near, logs = log_affinities(read_mixture(mixture), labels, labels)
    cluster_of = np.empty(labels.max(initial=-1) + 1, dtype=np.intp)
    cluster_of[labels] = np.arange(len(labels))
    return cluster_of[near], logs


def _affinities_with(mixture: Any, components: list[int], landmarks: Array) -> Array:
    """Return the logarithms of the overlaps (K, L) of all clusters with the first landmarks."""
    labels = np.array(components, dtype=np.intp)
    return log_affinities_with_first(read_mixture(mixture), labels[landmarks], labels)


def _clusters(
    summary: ComponentSummary, names: dict[int, str], positions: Array, radii: Array, row: Row
) -> list[dict[str, Any]]:
    """Return what the report shows of each cluster."""
    cluster_of = {k: i for i, k in enumerate(names)}
    words = summary.features if summary.words is None else summary.words
    assert summary.sizes is not None
    assert summary.typical is not None
    assert summary.doubtful is not None
    clusters = []
    for k, i in cluster_of.items():
        x, y = positions[i].round(4).tolist()
        cluster = {
            "k": k,
            "name": names[k],
            "size": int(summary.sizes[i]),
            "weight": float(summary.weights[i]),
            "cosine": _rounded(summary.cosines, i),
            "before": None if summary.before is None else float(summary.before[i]),
            "born": None if summary.born is None else int(summary.born[i]),
            "stability": None if summary.stability is None else float(summary.stability[i]),
            "membership": _rounded(summary.memberships, i),
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
    clusters: Array,
    components: list[int],
    positions: Array,
    radii: Array,
    n_points: int,
) -> dict[str, list[Any]]:
    """Return rows for the map: so many, if there are, and the same each time."""
    n_rows = len(clusters)
    rng = np.random.default_rng(0)
    indices = np.sort(rng.choice(n_rows, min(n_points, n_rows), replace=False))
    middles = np.empty((len(indices), 2))
    spreads = np.empty(len(indices))
    for part in parts_of_rows(len(indices), len(radii)):
        resp = mixture.predict_proba(safe_indexing(X, indices[part]))[:, components]
        middles[part], spreads[part] = row_middles(resp, positions, radii)
    xy = row_positions(middles, spreads).round(3)
    return {
        "x": xy[:, 0].tolist(),
        "y": xy[:, 1].tolist(),
        "k": clusters[indices].tolist(),
        "row": indices.tolist(),
    }


def _packed_labels(clusters: Array) -> str | None:
    """Return the cluster of each row plus one, as base64 of two bytes each, if there is room."""
    if 2 * len(clusters) > _MAX_LABEL_BYTES or clusters.max(initial=0) >= 2**16 - 1:
        return None
    return b64encode((clusters + 1).astype("<u2").tobytes()).decode("ascii")


def _words_of_merges(
    texts: Sequence[str] | None,
    clusters: Array,
    merges: list[list[int]],
    n_clusters: int,
    vectorizer: Any,
) -> list[list[str]]:
    """Return the words of each node of the tree that joins two: those it has beside its sibling.

    A node without a sibling is beside all other texts, of which the whole tree has none: it gets
    the words of its two children.
    """
    if texts is None:
        return [[] for _ in merges]
    counted = count_words(texts, clusters, _N_WORDS, vectorizer, phrases=False)
    members = [np.array([i]) for i in range(n_clusters)]
    sibling: dict[int, int] = {}
    for a, b in merges:
        members.append(np.concatenate([members[a], members[b]]))
        sibling |= {a: b, b: a}
    words = []
    for node, (a, b) in enumerate(merges, n_clusters):
        if node in sibling:
            words.append(counted.beside(members[node], members[sibling[node]], _N_WORDS))
        else:
            both = [counted.beside(members[i], members[j], _N_WORDS) for i, j in ((a, b), (b, a))]
            words.append([word for pair in zip_longest(*both) for word in pair if word])
    return words


def _merges(
    path: Any, X: Any, labels: Array, are_given: bool, cluster_of: dict[int, int]
) -> list[list[int]] | None:
    """Return the pairs of nodes that a path's tree joins, None if there is no such tree."""
    if not isinstance(path, ComponentPath):
        return None
    if not are_given:
        return _merges_of_path(path, cluster_of)
    check_is_fitted(path)
    n_leaves = len(path.linkage_) + 1
    K = int(labels.max()) + 1
    if K > n_leaves or not np.array_equal(labels, path.cut(K, X)):
        return None
    # The clusters of the cut are nodes of the path's tree: those without a parent below the cut.
    below = path.linkage_[: n_leaves - K, :2].astype(int)
    tops = np.setdiff1d(np.arange(2 * n_leaves - K), below)
    order = np.argsort([_first_leaf(path, node) for node in tops.tolist()])
    number = {
        int(node): cluster_of[k] for k, node in enumerate(tops[order].tolist()) if k in cluster_of
    }
    return _joined(path, number, len(cluster_of))


def _first_leaf(path: ComponentPath, node: int) -> int:
    """Return where the first leaf of a node is in the dendrogram, which numbers clusters."""
    n_leaves = len(path.linkage_) + 1
    if n_leaves == 1:
        return 0
    place = np.argsort(hierarchy.leaves_list(path.linkage_))
    todo, first = [node], n_leaves
    while todo:
        own = todo.pop()
        if own < n_leaves:
            first = min(first, int(place[own]))
        else:
            todo += path.linkage_[own - n_leaves, :2].astype(int).tolist()
    return first


def _merges_by_overlap(neighbours: Array, affinities: Array) -> list[list[int]]:
    """Return the pairs of nodes that a tree joins, those that overlap most first.

    Minus the log-overlap of two Gaussian components of one covariance is the square of a
    Mahalanobis distance, of which Ward's method takes the root. It prefers nodes of like sizes: a
    linkage by mean overlaps adds one component after the other to the same node.
    """
    K = len(neighbours)
    if K < 2:
        return []
    squares = np.maximum(-affinities, 0)
    clusters = np.arange(K)[:, np.newaxis]
    known = squares[(neighbours != clusters) & (squares < 1e6)]
    # Components that are not among the nearest of each other are as far as the farthest known.
    largest = known.max(initial=0) or 1.0
    # The pairs (i, j), i < j, in the order of i and then j, as SciPy has them.
    condensed = np.full(K * (K - 1) // 2, largest)
    for is_first in (clusters < neighbours, clusters > neighbours):
        i, others = np.nonzero(is_first)
        j = neighbours[i, others]
        i, j = np.minimum(i, j), np.maximum(i, j)
        pairs = K * i - i * (i + 1) // 2 + j - i - 1
        # A component need not be among the nearest of one that is among its own nearest.
        condensed[pairs] = np.minimum(condensed[pairs], squares[is_first])
    return hierarchy.linkage(np.sqrt(condensed, out=condensed), "ward")[:, :2].astype(int).tolist()


def _merges_of_path(path: ComponentPath, cluster_of: dict[int, int]) -> list[list[int]]:
    """Return the pairs of nodes that a path's tree joins above its best components."""
    number = {int(path.best_nodes_[k]): i for k, i in cluster_of.items()}
    return _joined(path, number, len(cluster_of))


def _joined(path: ComponentPath, number: dict[int, int], n_clusters: int) -> list[list[int]]:
    """Return the pairs that a path's tree joins, of nodes that have numbers in the report."""
    number = dict(number)
    merges: list[list[int]] = []
    for node, pair in enumerate(path.linkage_[:, :2].astype(int), len(path.linkage_) + 1):
        children = [number[each] for each in pair.tolist() if each in number]
        if len(children) == 2:
            number[node] = n_clusters + len(merges)
            merges.append(children)
        elif children:
            # The other child is a component without weight, which the report leaves out.
            number[node] = children[0]
    return merges
