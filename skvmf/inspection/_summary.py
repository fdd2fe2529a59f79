"""A table of the components of a fitted mixture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_is_fitted

from .._typing import Array
from ._components import (
    Components,
    DirectionalComponents,
    GaussianComponents,
    full_covariances,
    log_affinities,
    read_components,
)

_SHOWN = 40  # components that are printed


@dataclass(frozen=True)
class ComponentSummary:
    """The components of a fitted mixture, the largest first.

    Printed it is a table, and in a notebook one of HTML. :func:`component_summary` makes it.

    Parameters
    ----------
    labels : ndarray of shape (n_active_components,)
        The numbers of the components, without pruned ones.
    weights : ndarray of shape (n_active_components,)
        Their weights.
    angles : ndarray of shape (n_active_components,) or None
        Typical angles in degrees between a row and the mean direction of its component, those
        whose cosine is the mean resultant length; None for components that are no directions.
    nearest : ndarray of shape (n_active_components,)
        The component that overlaps most with each; -1 where there is no other.
    overlaps : ndarray of shape (n_active_components,)
        Bhattacharyya coefficient with that one: 0 is apart, 1 the same.
    features : list of list of str
        Names of the features that distinguish each component most.
    sizes : ndarray of shape (n_active_components,) or None
        How many rows have the label.
    typical, doubtful : list of ndarray or None
        Numbers of the rows that are nearest to the middle of each component, and of those that
        it shares most with others.
    background_weight : float
        Weight of the background.
    n_outliers : int or None
        How many rows have the label -1.
    """

    labels: Array
    weights: Array
    angles: Array | None
    nearest: Array
    overlaps: Array
    features: list[list[str]]
    sizes: Array | None = None
    typical: list[Array] | None = None
    doubtful: list[Array] | None = None
    background_weight: float = 0.0
    n_outliers: int | None = None

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns of the table by name, as text."""
        table = {"component": [str(label) for label in self.labels]}
        if self.sizes is not None:
            table["rows"] = [str(size) for size in self.sizes]
        table["weight"] = [f"{weight:.3f}" for weight in self.weights]
        if self.angles is not None:
            table["angle"] = [f"{angle:.0f}°" for angle in self.angles]
        pairs = zip(self.nearest, self.overlaps, strict=True)
        table["nearest"] = ["" if k < 0 else f"{k} ({overlap:.2f})" for k, overlap in pairs]
        table["features"] = [", ".join(names) for names in self.features]
        for name, rows in {"typical": self.typical, "doubtful": self.doubtful}.items():
            if rows is not None:
                table[name] = [", ".join(map(str, numbers)) for numbers in rows]
        if self.background_weight > 0:
            last = {"component": "-1", "weight": f"{self.background_weight:.3f}"}
            last |= {"rows": str(self.n_outliers), "features": "(background)"}
            table = {name: [*column, last.get(name, "")] for name, column in table.items()}
        return table

    def __str__(self) -> str:
        columns = self.columns
        n_lines = len(columns["component"])
        left = ("features", "typical", "doubtful")
        shown = {name: column[:_SHOWN] for name, column in columns.items()}
        widths = {name: max(map(len, [name, *column])) for name, column in shown.items()}
        aligned = [
            [
                text.ljust(widths[name]) if name in left else text.rjust(widths[name])
                for text in [name, *column]
            ]
            for name, column in shown.items()
        ]
        lines = ["  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]
        if n_lines > _SHOWN:
            lines.append(f"... and {n_lines - _SHOWN} more")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns = self.columns
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = (
            "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            for cells in zip(*columns.values(), strict=True)
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        return (
            '<div style="max-height: 40em; overflow: auto"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def component_summary(
    mixture: Any,
    X: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    n_features: int = 5,
    n_rows: int = 3,
) -> ComponentSummary:
    """Say what the components of a fitted mixture are: sizes, neighbours, features, rows.

    Parameters
    ----------
    mixture : estimator instance
        A fitted mixture of skvmf, or scikit-learn's ``GaussianMixture``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Rows to count and to choose from, in memory or made of a Dask array; None leaves those
        columns out.
    feature_names : sequence of str, default=None
        Names of the features, such as ``vectorizer.get_feature_names_out()``; None takes
        ``feature_names_in_`` where the mixture has it, and numbers where not.
    n_features : int, default=5
        How many features to name for each component: of directions those with the
        largest coordinates, of other components those in which they are furthest
        above or below the mean of all, in standard deviations (with the sign).
    n_rows : int, default=3
        How many of the most typical and of the most doubtful rows to give.

    Returns
    -------
    summary : ComponentSummary
        Prints as a table, and shows as one in a notebook.

    Raises
    ------
    ValueError
        If the mixture is of another kind, or there is not one name for each feature.

    See Also
    --------
    skvmf.plotting.DirectionsDisplay : A picture of von Mises-Fisher components.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.inspection import component_summary
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[5.0, 1, 0], [0, 1, 5]], [60, 40], axis=0) + rng.normal(size=(100, 3))
    >>> mixture = VonMisesFisherMixture(2, random_state=0).fit(X)
    >>> summary = component_summary(mixture, X, feature_names=["tea", "ice", "puck"], n_features=2)
    >>> summary.features
    [['tea', 'ice'], ['puck', 'ice']]
    >>> summary.sizes.tolist()
    [60, 40]
    """
    check_is_fitted(mixture)
    whole = _read(mixture)
    active = np.flatnonzero(whole.weights)
    active = active[np.argsort(-whole.weights[active], kind="stable")]
    components = whole.some(active)
    names = _names(mixture, feature_names, components.means.shape[1])
    affinities = log_affinities(components)
    np.fill_diagonal(affinities, -np.inf)
    alone = len(active) < 2
    nearest = np.full(len(active), -1) if alone else active[affinities.argmax(axis=1)]
    overlaps = np.exp(affinities.max(axis=1, initial=-np.inf))
    parts = {} if X is None else _rows(mixture, components, active, X, n_rows)
    return ComponentSummary(
        active,
        whole.weights[active],
        _angles(components),
        nearest,
        overlaps,
        _features(components, names, n_features),
        background_weight=float(getattr(mixture, "background_weight_", 0.0)),
        **parts,
    )


def _read(mixture: Any) -> Components:
    if hasattr(mixture, "scale_matrices_"):
        return GaussianComponents(mixture.weights_, mixture.means_, full_covariances(mixture))
    return replace(read_components(mixture), background=None)


def _names(mixture: Any, names: Sequence[str] | None, d: int) -> list[str]:
    if names is None:
        names = [str(name) for name in getattr(mixture, "feature_names_in_", range(d))]
    if len(names) != d:
        raise ValueError(f"feature_names should be {d} names, got {len(names)}.")
    return [str(name) for name in names]


def _angles(components: Components) -> Array | None:
    if not isinstance(components, DirectionalComponents):
        return None
    lengths = np.linalg.norm(components.means, axis=1)
    angles: Array = np.degrees(np.arccos(np.minimum(lengths, 1)))
    return angles


def _features(components: Components, names: list[str], n_features: int) -> list[list[str]]:
    """Return names of the features that distinguish each component."""
    if isinstance(components, DirectionalComponents):
        heaviest = np.argsort(-components.directions, axis=1, kind="stable")[:, :n_features]
        return [[names[i] for i in features] for features in heaviest]
    means, weights = components.means, components.weights
    gaps = means - weights @ means
    inner = np.einsum("kdd->kd", components.covariances)
    spread = np.sqrt(weights @ (inner + gaps**2))
    scores = gaps / np.where(spread > 0, spread, 1.0)
    furthest = np.argsort(-np.abs(scores), axis=1, kind="stable")[:, :n_features]
    return [
        [f"{'+' if score[i] > 0 else '-'}{names[i]}" for i in features]
        for score, features in zip(scores, furthest, strict=True)
    ]


def _rows(
    mixture: Any, components: Components, active: Array, X: Any, n_rows: int
) -> dict[str, Any]:
    """Return sizes, and the most typical and the most doubtful rows of each component."""
    X = X.compute() if hasattr(X, "__dask_graph__") else X
    labels = mixture.predict(X)  # of X as it is given: with its names, if it has any
    proba = mixture.predict_proba(X)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    typical, doubtful = [], []
    for i, k in enumerate(active):
        members = np.flatnonzero(labels == k)
        fit = (
            _closeness(components.some(np.array([i])), X[members]) if len(members) else np.empty(0)
        )
        typical.append(members[np.argsort(-fit, kind="stable")[:n_rows]])
        doubtful.append(members[np.argsort(proba[members, k], kind="stable")[:n_rows]])
    return {
        "sizes": np.array([np.count_nonzero(labels == k) for k in active]),
        "typical": typical,
        "doubtful": doubtful,
        "n_outliers": int(np.count_nonzero(labels == -1)),
    }


def _closeness(component: Components, X: Any) -> Array:
    """Return how near rows are to the middle of one component, (n,)."""
    if isinstance(component, GaussianComponents):
        near: Array = component.log_densities(X)[:, 0]
        return near
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else X.astype(np.float64)
    for size in (
        _largest,
        _lengths,
    ):  # first the largest entry, whose square may over- or underflow
        X = _divided(X, size(X))
    cosines: Array = np.asarray(safe_sparse_dot(X, component.directions[0])).ravel()
    return cosines


def _largest(X: Any) -> Array:
    largest = abs(X).max(axis=1)
    found: Array = largest.toarray() if sparse.issparse(largest) else largest
    return found.ravel()


def _lengths(X: Any) -> Array:
    lengths: Array = np.sqrt(np.asarray((X * X).sum(axis=1), dtype=np.float64)).ravel()
    return lengths


def _divided(X: Any, sizes: Array) -> Any:
    """Return rows divided by their sizes; zero rows stay."""
    sizes = np.where(sizes > 0, sizes, 1.0)
    if not sparse.issparse(X):
        return X / sizes[:, np.newaxis]
    data = X.data / np.repeat(sizes, np.diff(X.indptr))
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
