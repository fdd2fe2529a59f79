"""A table of the components of a fitted mixture: sizes, typical rows, words and texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._engine.em.mixture import Point
from .._engine.rows.reading import canonical
from .._kernels.rows import csr_normalize, normalize_rows
from .._sklearn import num_samples, safe_indexing
from .._typing import Array, Matrix
from ..mixture import ClusterTracker, RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from ..mixture._base import BaseMixture
from ..mixture._parameters import of_other_components
from ..mixture._rows import array_in_memory, in_memory, rows_to_show
from ._components import is_directional, log_affinities, log_densities, read_mixture, select
from ._memberships import reliability_in_words
from ._pipeline import split_pipeline
from ._words import count_words

# Characters of the beginning of a text, which leave room for the other columns of the table.
_MAX_TEXT_LENGTH = 60
# Components that are printed: more would push the first ones, the largest, out of sight.
_MAX_LINES = 40
# Responsibilities that are held at once: 16 MiB, of which copies are made in the processor's cache.
_MAX_HELD = 2**21
# Columns of text, aligned to the left; numbers are to the right.
_LISTS = "words", "features", "texts", "typical", "doubtful"


def component_rows(
    mixture: Any, fitted: Point, active: Array, X: Any, n_rows: int, labels: Any
) -> tuple[Array, dict[str, Any]]:
    """Return the labels of rows, and what a summary tells about the rows of components `active`."""
    X = in_memory(X)
    # Predictions take X as it is given: with its names, if it has any.
    if labels is None:
        labels = mixture.predict(X)
    own_proba = _responsibilities_of_labels(mixture, X, labels, len(fitted.weights))
    # The mixture has refused missing values already unless it takes them.
    dtypes = [np.float64, np.float32]
    rows = rows_to_show(X, has_missing=True, accept_sparse="csr", dtype=dtypes)
    n_missing = np.zeros(len(labels))
    if not sparse.issparse(rows) and np.isnan(rows).any():
        n_missing = np.isnan(rows).sum(axis=1)
        rows = mixture.impute(X)

    names = "sizes", "memberships", "cosines", "typical", "doubtful"
    columns: dict[str, Any] = {name: [] for name in names}
    by_label = np.argsort(labels, kind="stable")
    sorted_labels = labels[by_label]
    for k in active:
        first, last = np.searchsorted(sorted_labels, [k, k + 1])
        members = by_label[first:last]
        # An imputed value is the most probable one. A value that is known is expected to be half a
        # nat less probable: without that, rows that lack most would be the most typical.
        closeness = _closeness(fitted, k, rows[members]) - n_missing[members] / 2
        known = closeness[~np.isnan(closeness)]
        columns["sizes"].append(len(members))
        own = own_proba[members]
        columns["memberships"].append(_mean(own))
        columns["cosines"].append(_mean(known))
        columns["typical"].append(members[np.argsort(-closeness, kind="stable")[:n_rows]])
        columns["doubtful"].append(members[np.argsort(own, kind="stable")[:n_rows]])
    columns |= {name: np.array(columns[name]) for name in ("sizes", "memberships", "cosines")}
    # Memberships that are not calibrated are too sure in many dimensions.
    if getattr(mixture, "_skvmf_reliability", None) is None:
        columns["memberships"] = None
    if not is_directional(fitted):
        columns["cosines"] = None
    return labels, columns | {"n_outliers": int(np.count_nonzero(labels == -1))}


def _mean(values: Array) -> float:
    """Return the mean of values (n,), nan of none."""
    if len(values) == 0:
        return np.nan
    return float(values.mean())


def _responsibilities_of_labels(mixture: Any, X: Any, labels: Array, n_components: int) -> Array:
    """Return the responsibilities of rows for their labels, (n,); 0 for -1."""
    own = []
    for part in parts_of_rows(len(labels), n_components):
        proba = mixture.predict_proba(safe_indexing(X, part))
        own.append(np.take_along_axis(proba, np.maximum(labels[part], 0)[:, np.newaxis], axis=1))
    return np.where(labels < 0, 0, np.concatenate(own)[:, 0])


def parts_of_rows(n_rows: int, n_components: int) -> Iterator[slice]:
    """Yield parts of the rows whose responsibilities are few enough to be held at once."""
    yield from gen_batches(n_rows, max(1, _MAX_HELD // max(1, n_components)))


def _closeness(fitted: Point, k: int, X: Matrix) -> Array:
    """Return cosines of rows with direction k, nan for zeros, or log-densities, (n,)."""
    if X.shape[0] == 0:
        return np.empty(0)
    if not is_directional(fitted):
        return log_densities(select(fitted, np.array([k])), X.astype(np.float64))[:, 0]
    if sparse.issparse(X):
        X = canonical(X).astype(np.float64)
        csr_normalize(X.indptr, X.data)
    else:
        X = X.astype(np.float64)
        normalize_rows(X)
    cosines = np.asarray(safe_sparse_dot(X, fitted.params.components.directions[:, k])).ravel()
    has_direction = np.asarray(abs(X).sum(axis=1)).ravel() > 0
    return np.where(has_direction, cosines, np.nan)


def checked_texts(texts: Any, n_rows: int) -> Sequence[str]:
    """Return one text per row, or say what is wrong with them."""
    if isinstance(texts, str):
        raise TypeError("texts should be a sequence of strings, one per row, got one string.")
    given: list[str] = list(texts)
    if len(given) != n_rows:
        raise ValueError(f"texts should be one per row: X has {n_rows} rows, got {len(given)}.")
    for i, text in enumerate(given):
        if not isinstance(text, str):
            raise TypeError(f"texts should be strings, got {type(text).__name__} at index {i}.")
    return given


def beginning(text: str) -> str:
    """Return the beginning of a text in one line."""
    # Only a part of a long text is split; ten times as much leaves room for white space.
    line = " ".join(text[: 10 * _MAX_TEXT_LENGTH].split())
    if len(line) <= _MAX_TEXT_LENGTH:
        return line
    return line[: _MAX_TEXT_LENGTH - 3].rstrip() + "..."


@dataclass(frozen=True, eq=False)
class ComponentSummary:
    """The components of a fitted mixture, the largest first, or a tracker's, the newest first.

    It prints as a table, and as an HTML table in a notebook. :func:`component_summary` creates it.

    Parameters
    ----------
    labels : ndarray of shape (n_active_components,)
        The numbers of the components, without pruned ones, or the ids of a tracker's live clusters.
    weights : ndarray of shape (n_active_components,)
        Their weights.
    angles : ndarray of shape (n_active_components,) or None
        Typical angles in degrees between a row and the mean direction of its component, whose
        cosine is the mean resultant length. None for components that are not directions.
    nearest : ndarray of shape (n_active_components,)
        The component that overlaps most with each; -1 if there is no other.
    overlaps : ndarray of shape (n_active_components,)
        Bhattacharyya coefficient with that component: 0 is apart, 1 the same.
    features : list of list of str or None
        Names of the features that distinguish each component most; None if features have no names.
    sizes : ndarray of shape (n_active_components,) or None
        The number of rows with each label.
    typical, doubtful : list of ndarray or None
        Numbers of the rows nearest to the middle of each component, and of those with the smallest
        membership in it.
    background_weight : float
        Weight of the background.
    n_outliers : int or None
        The number of rows with the label -1.
    cosines : ndarray of shape (n_active_components,) or None
        How tight each cluster is: the mean cosine between the rows with its label and its mean
        direction, whatever the concentrations and their prior. Rows of zeros are left out.
    words : list of list of str or None
        The words that distinguish the texts of each component most.
    texts : list of list of str or None
        Beginnings of the most typical texts.
    n_components : int
        The number of components, with pruned ones, or of a tracker's ids.
    stability : ndarray of shape (n_active_components,) or None
        How much of each component comes again where rows are resampled, from 0 to 1.
    memberships : ndarray of shape (n_active_components,) or None
        The mean membership of the rows with each label, if the mixture is calibrated.
    reliability : str or None
        How memberships hold, in a sentence, if the mixture is calibrated.
    born : ndarray of shape (n_active_components,) or None
        The batch in which each cluster of a :class:`~skvmf.ClusterTracker` was born.
    before : ndarray of shape (n_active_components,) or None
        The weight of its rows in the batch before the last one.
    """

    labels: Array
    weights: Array
    angles: Array | None
    nearest: Array
    overlaps: Array
    features: list[list[str]] | None
    sizes: Array | None = None
    typical: list[Array] | None = None
    doubtful: list[Array] | None = None
    background_weight: float = 0.0
    n_outliers: int | None = None
    cosines: Array | None = None
    words: list[list[str]] | None = None
    texts: list[list[str]] | None = None
    n_components: int = 0
    stability: Array | None = None
    memberships: Array | None = None
    reliability: str | None = None
    born: Array | None = None
    before: Array | None = None

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns of the table by name, as text.

        Clusters of rows are as tight as their cosines, components without rows as their angles. If
        there are texts, they take the place of row numbers.
        """
        numbers = {
            "component": (self.labels, "d"),
            "rows": (self.sizes, ".0f"),
            "before": (self.before, ".0f"),
            "born": (self.born, "d"),
            "weight": (self.weights, ".3f"),
            "stability": (self.stability, ".2f"),
            "membership": (self.memberships, ".2f"),
            "cosine": (self.cosines, ".2f"),
            "angle": (self.angles, ".0f"),
        }
        if self.cosines is not None:
            del numbers["angle"]
        table = {
            name: ["" if np.isnan(each) else format(each, form) for each in column]
            for name, (column, form) in numbers.items()
            if column is not None
        }
        if "angle" in table:
            table["angle"] = [f"{angle} deg" for angle in table["angle"]]
        pairs = zip(self.nearest, self.overlaps, strict=True)
        table["nearest"] = ["" if k < 0 else f"{k} ({overlap:.2f})" for k, overlap in pairs]
        lists: dict[str, Any] = {
            "words": self.words,
            "features": self.features,
            "texts": self.texts,
        }
        if self.texts is None:
            lists |= {"typical": self.typical, "doubtful": self.doubtful}
        for name, column in lists.items():
            if column is not None:
                separator = "\n" if name == "texts" else ", "
                table[name] = [separator.join(map(str, each)) for each in column]
        if self.background_weight > 0:
            last = {"component": "-1", "weight": f"{self.background_weight:.3f}"}
            last |= {"rows": str(self.n_outliers), "nearest": "(background)"}
            table = {name: [*column, last.get(name, "")] for name, column in table.items()}
        return table

    def names(self, n_words: int = 3, separator: str = ", ") -> list[str]:
        """Return a name for each component of the mixture, for displays.

        Parameters
        ----------
        n_words : int, default=3
            Number of words per name.
        separator : str, default=", "
            What is between words, such as a line break.

        Returns
        -------
        names : list of str
            In the order of the components: the first words or, without texts, features. The number
            of a component is its name if it has neither, or no weight.
        """
        names = [str(k) for k in range(self.n_components)]
        words = self.words
        if words is None:
            words = self.features
        for k, words_of_k in zip(self.labels, words or [], strict=False):
            names[k] = separator.join(words_of_k[:n_words]) or names[k]
        return names

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with numbers that are not rounded.

        Returns
        -------
        frame : pandas.DataFrame
            One row per component with weight, without the background. Its columns are the
            attributes of the summary that are not None.
        """
        import pandas as pd

        columns = {
            "rows": self.sizes,
            "before": self.before,
            "born": self.born,
            "weight": self.weights,
            "stability": self.stability,
            "membership": self.memberships,
            "cosine": self.cosines,
            "angle": self.angles,
            "nearest": self.nearest,
            "overlap": self.overlaps,
            "words": self.words,
            "features": self.features,
            "texts": self.texts,
            "typical": self.typical,
            "doubtful": self.doubtful,
        }
        known = {name: list(column) for name, column in columns.items() if column is not None}
        return pd.DataFrame(known, index=pd.Index(self.labels, name="component"))

    def __str__(self) -> str:
        columns = self.columns
        aligned = []
        for name, column in columns.items():
            cells = [text.partition("\n")[0] for text in [name, *column[:_MAX_LINES]]]
            align = str.ljust if name in _LISTS else str.rjust
            width = max(map(len, cells))
            aligned.append([align(cell, width) for cell in cells])
        lines = ["  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]
        n_left_out = len(columns["component"]) - _MAX_LINES
        if n_left_out > 0:
            lines.append(f"... and {n_left_out} more")
        if self.reliability is not None:
            lines.append(self.reliability)
        # A console may lack letters of the texts.
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        return "\n".join(lines).encode(encoding, "backslashreplace").decode(encoding)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns = self.columns
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = (
            "".join(f"<td>{escape(cell)}</td>".replace("\n", "<br>") for cell in cells)
            for cells in zip(*columns.values(), strict=True)
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        below = ""
        if self.reliability is not None:
            below = f"<p>{escape(self.reliability)}</p>"
        return (
            '<div style="max-height: 40em; overflow: auto"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
        )


def component_summary(
    mixture: Any = None,
    X: Any = None,
    *,
    labels: ArrayLike | None = None,
    texts: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int = 5,
    n_rows: int = 3,
    vectorizer: Any = None,
    stability: Mapping[str, Array] | None = None,
) -> ComponentSummary:
    """Summarize the components of a fitted mixture: sizes, tightness, neighbours, words, rows.

    Parameters
    ----------
    mixture : estimator instance, default=None
        A fitted mixture of skvmf, or scikit-learn's ``GaussianMixture``, or a fitted
        :class:`~skvmf.model_selection.ComponentPath`, or a fitted pipeline that ends with one:
        `X` is then what its first step takes, and features are those that the mixture sees, by the
        names that the steps before give them. With `labels`, what kind of components rows
        get: a mixture or path of skvmf, fitted or not; None is a ``VonMisesFisherMixture()``.
        Of a :class:`~skvmf.ClusterTracker`, components are the live clusters by their ids, the
        newest first, with the batch of their birth and their rows in the batch before the last.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Rows to count and to choose from; Dask arrays are read into memory. None leaves these
        columns out. For a tracker, give its last batch.
    labels : array-like of shape (n_samples,), default=None
        Labels from 0 that any clusterer, or :meth:`~skvmf.model_selection.ComponentPath.cut`, gives
        the rows, with -1 for outliers. The summary is then of the clusters.
    texts : sequence of str of length n_samples, default=None
        The texts that the rows of X come from. Each component then gets its words, by class-based
        tf-idf, and the beginnings of its most typical texts.
    feature_names : sequence of str, default=None
        Names of the features, such as ``vectorizer.get_feature_names_out()``; None takes
        ``feature_names_in_``. Features without names are left out.
    n_features : int, default=5
        Number of words and of features to name per component: of directions those with the largest
        coordinates, else those furthest from the overall mean, in standard deviations, with a sign.
    n_rows : int, default=3
        Number of the most typical and of the most doubtful rows to give.
    vectorizer : estimator instance, default=None
        How the words of `texts` are counted. None is scikit-learn's ``CountVectorizer`` without
        English stop words, without tokens that have no letter, and of five clusters or more without
        words that nearly all of them share; a word counts as the root of how often a text has it,
        and two words that mostly follow each other are one.
    stability : Bunch, default=None
        What :func:`component_stability` has returned for the mixture, to show it.

    Returns
    -------
    summary : ComponentSummary
        Prints as a table.

    Raises
    ------
    TypeError, ValueError
        If the mixture is of another kind, texts are no strings, names, texts or labels do not fit
        X, or `stability` is that of other components.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.inspection import component_summary
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[5.0, 1, 0], [0, 1, 5]], [60, 40], axis=0) + rng.normal(size=(100, 3))
    >>> mixture = VonMisesFisherMixture(2, random_state=0).fit(X)
    >>> summary = component_summary(mixture, X, feature_names=["tea", "ice", "puck"], n_features=2)
    >>> summary.features, summary.sizes.tolist()
    ([['tea', 'ice'], ['puck', 'ice']], [60, 40])
    """
    _refuse_together(X, labels, texts, stability)
    mixture, X, names = split_pipeline(mixture, in_memory(X))
    if isinstance(mixture, ClusterTracker) and labels is not None:
        raise ValueError("labels are of other clusters than a ClusterTracker's: leave them out.")
    if labels is not None:
        mixture, labels = of_labels(mixture, X, labels)
    check_is_fitted(mixture)
    tracker = None
    if isinstance(mixture, ClusterTracker):
        tracker = mixture
    mixture = components_of(mixture)
    fitted = read_mixture(mixture)
    active = np.flatnonzero(fitted.weights)
    active = active[np.argsort(-fitted.weights[active], kind="stable")]
    if tracker is not None:
        born = tracker.clusters_["born"][active]
        active = active[np.argsort(-born, kind="stable")]

    angles = None
    if is_directional(fitted):
        angles = np.degrees(np.arccos(fitted.params.components.lengths))[active]
    if feature_names is None:
        feature_names = getattr(mixture, "feature_names_in_", names)
    features = _features(fitted, active, feature_names, n_features)
    nearest, overlaps = _nearest(fitted, active)
    summary = ComponentSummary(
        active,
        fitted.weights[active],
        angles,
        nearest,
        overlaps,
        features,
        background_weight=fitted.params.background_weight,
        n_components=len(fitted.weights),
        stability=_of_components(stability, active, len(fitted.weights)),
        reliability=reliability_in_words(mixture),
    )
    if X is not None:
        labels, columns = component_rows(mixture, fitted, active, X, n_rows, labels)
        if texts is not None:
            texts = checked_texts(texts, len(labels))
            counted = count_words(texts, labels, n_features, vectorizer)
            # A component may be no row's most probable one, and then has no words.
            columns["words"] = [counted.of_class(k, n_features) for k in active.tolist()]
            columns["texts"] = [[beginning(texts[i]) for i in rows] for rows in columns["typical"]]
        summary = replace(summary, **columns)
    if tracker is not None:
        summary = _of_tracker(summary, tracker)
    return summary


def components_of(estimator: Any) -> Any:
    """Return the mixture whose components an estimator has: its own, a path's best, a tracker's."""
    if isinstance(estimator, ClusterTracker):
        return estimator.mixture_
    return getattr(estimator, "best_estimator_", estimator)


def _of_tracker(summary: ComponentSummary, tracker: ClusterTracker) -> ComponentSummary:
    """Return a summary of a tracker's components by the ids of its clusters."""
    ids = tracker.ids_[summary.labels]
    sizes = summary.sizes
    if sizes is None:
        sizes = tracker.sizes_[-1, ids]
    before = None
    if len(tracker.sizes_) > 1:
        before = tracker.sizes_[-2, ids]
    return replace(
        summary,
        labels=ids,
        nearest=np.where(summary.nearest < 0, -1, tracker.ids_[summary.nearest]),
        n_components=tracker.sizes_.shape[1],
        sizes=sizes,
        born=tracker.clusters_["born"][summary.labels],
        before=before,
    )


def _refuse_together(X: Any, labels: Any, texts: Any, stability: Any) -> None:
    """Refuse texts and labels without rows, and the stability of other clusters than these."""
    if X is None and texts is not None:
        raise ValueError("texts need X: give the rows that were computed from these texts.")
    if X is None and labels is not None:
        raise ValueError("labels need X: give the rows that have these labels.")
    if labels is not None and stability is not None:
        raise ValueError(
            "stability is of the components of a mixture, and labels are of other clusters: leave "
            "out one of them."
        )


def _of_components(
    stability: Mapping[str, Array] | None, active: Array, n_components: int
) -> Array | None:
    """Return the stability of some components of a mixture, if it is known."""
    if stability is None:
        return None
    components = stability["components"]
    if len(components) != n_components:
        raise ValueError(
            f"stability should be of the {n_components} components of the mixture, got that of "
            f"{len(components)}."
        )
    return components[active]


def of_labels(mixture: Any, X: Any, labels: Any) -> tuple[BaseMixture, Array]:
    """Return a mixture with a component for each label, estimated from the rows that have it."""
    labels = array_in_memory(labels, "labels")
    n_rows = num_samples(X)
    is_valid = labels.shape == (n_rows,) and labels.dtype.kind in "iu"
    if not is_valid or labels.min(initial=0) < -1 or labels.max(initial=-1) < 0:
        raise ValueError(
            "labels should be whole numbers from 0, or -1 for outliers, one for each of the "
            f"{n_rows} rows, got shape {labels.shape} and {labels.dtype}: {labels}."
        )
    kind = getattr(mixture, "estimator", mixture)
    if kind is None:
        kind = VonMisesFisherMixture()
    elif isinstance(kind, RelativeGMM):
        # A RelativeGMM would sort the clusters, which would then have other numbers.
        same = {name: getattr(kind, name) for name in SparseGaussianMixture().get_params()}
        kind = SparseGaussianMixture(**same)
    outliers = {"background": bool(labels.min() < 0)}
    given = {"n_components": int(labels.max()) + 1, "init_params": labels, "max_iter": 0}
    of_labels: BaseMixture = clone(kind).set_params(
        **of_other_components(kind), **outliers, **given
    )
    return of_labels.fit(X), labels


def _nearest(fitted: Point, active: Array) -> tuple[Array, Array]:
    """Return the component that overlaps most with each active one, -1 if none, and how much."""
    if len(active) < 2:
        return np.full(len(active), -1), np.zeros(len(active))
    near, log_overlaps = log_affinities(fitted, active, active)
    log_overlaps[near == active[:, np.newaxis]] = -np.inf
    best = log_overlaps.argmax(axis=1)[:, np.newaxis]
    nearest = np.take_along_axis(near, best, axis=1)[:, 0]
    return nearest, np.exp(np.take_along_axis(log_overlaps, best, axis=1)[:, 0])


def _features(
    fitted: Point, active: Array, names: Sequence[str] | None, n_features: int
) -> list[list[str]] | None:
    """Return names of the features that distinguish each of some components, if they have names."""
    if names is None:
        return None
    if len(names) != fitted.family.dim:
        raise ValueError(f"feature_names should be {fitted.family.dim} names, got {len(names)}.")
    components = fitted.params.components
    if is_directional(fitted):
        heaviest = np.argsort(-components.directions.T, axis=1, kind="stable")[:, :n_features]
        return [[str(names[i]) for i in features] for features in heaviest[active]]

    # Distances from the overall mean in standard deviations of the mixture.
    weights = fitted.params.conditional_weights
    gaps = components.means - weights @ components.means
    variances = np.einsum("kdd->kd", components.covariances)
    spread = np.sqrt(weights @ (variances + gaps**2))
    scores = gaps / np.where(spread > 0, spread, 1.0)
    furthest = np.argsort(-np.abs(scores), axis=1, kind="stable")[:, :n_features]
    signs = np.where(scores > 0, "+", "-")
    return [[f"{signs[k, i]}{names[i]}" for i in furthest[k]] for k in active]
