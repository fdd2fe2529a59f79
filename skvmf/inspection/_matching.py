"""Which components of two mixtures are the same, and which come again when rows are resampled."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import Bunch, check_random_state

from .._engine.em.calibration import Judged, best_temperature
from .._engine.em.matching import best_pairs
from .._typing import Array, MatrixLike, RandomState, is_integer, warn
from ..mixture._base import BaseMixture
from ..mixture._calibration import classes_of_rows, judged_by_labels, judged_of, limits_of_drawn
from ..mixture._rows import array_in_memory, in_memory, weights_of
from ._components import join, log_affinities, read_mixture, with_features_of
from ._memberships import before_and_after, refuse_others
from ._pipeline import split_pipeline

if TYPE_CHECKING:
    from ._components import AnyMixture


def match_components(
    reference: AnyMixture, mixture: AnyMixture, *, min_overlap: float = 0.0
) -> Bunch:
    """Match the components of two mixtures of the same rows, or of older and newer ones.

    Components are paired one to one, so that the sum of the pairs' overlaps is largest. An overlap
    is the Bhattacharyya coefficient, the integral of sqrt(p q): in closed form, or of Student-t
    components by an integral of one variable. Pruned components match none.

    Parameters
    ----------
    reference, mixture : VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture, \
RelativeGMM or GaussianMixture
        Fitted mixtures of the same features, both of directions or neither. Where both have
        `feature_names_in_`, features are told by name, in any order, else by their place.
    min_overlap : float, default=0.0
        Pairs that overlap less are none: one component is gone, the other is new.

    Returns
    -------
    matched : :class:`~sklearn.utils.Bunch`
        The entries are

        indices : ndarray of shape (n_components of the reference,)
            The component of the mixture that matches each one of the reference; -1 if it is gone.
        overlaps : ndarray of shape (n_components of the reference,)
            Bhattacharyya coefficients of the pairs: 0 is apart, 1 the same; 0 if it is gone.
        new : ndarray of shape (n_new,)
            The components of the mixture that match none.

    Raises
    ------
    ValueError
        If the mixtures have different features or kinds of components.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> from skvmf.inspection import match_components
    >>> means, ones = np.array([[0.0, 0], [5, 0], [0, 5]]), np.tile(np.eye(2), (3, 1, 1))
    >>> old = SparseGaussianMixture.from_parameters([0.5, 0.5], means[:2], ones[:2])
    >>> new = SparseGaussianMixture.from_parameters(np.ones(3) / 3, means[::-1], ones)
    >>> matched = match_components(old, new)
    >>> matched.indices, matched.new
    (array([2, 1]), array([0]))
    """
    old = read_mixture(reference)
    new = with_features_of(reference, mixture, read_mixture(mixture))
    active_old = np.flatnonzero(old.weights)
    active_new = np.flatnonzero(new.weights)
    # In the joined mixture, the new components come after all old ones.
    K = len(old.weights)
    near, log_overlaps = log_affinities(join(old, new), active_old, K + active_new)
    columns = np.searchsorted(active_new, near - K)
    rows, columns, overlaps = _assigned(np.exp(log_overlaps), columns)

    is_pair = overlaps >= max(min_overlap, np.finfo(np.float64).tiny)
    old_of_pairs = active_old[rows[is_pair]]
    new_of_pairs = active_new[columns[is_pair]]
    matched = Bunch(indices=np.full(K, -1), overlaps=np.zeros(K))
    matched.indices[old_of_pairs] = new_of_pairs
    matched.overlaps[old_of_pairs] = overlaps[is_pair]
    matched.new = np.setdiff1d(active_new, new_of_pairs)
    return matched


def _assigned(overlaps: Array, columns: Array) -> tuple[Array, Array, Array]:
    """Return rows and columns of pairs with the largest sum of overlaps (m, n), and these."""
    m, n = overlaps.shape
    if m == 0 or n > columns.max():
        # Each row has an overlap with every column.
        rows, assigned = linear_sum_assignment(overlaps, maximize=True)
        return rows, assigned, overlaps[rows, assigned]

    places = np.repeat(np.arange(m), n), columns.ravel()
    shape = m, int(columns.max()) + 1
    return best_pairs(coo_array((overlaps.ravel(), places), shape=shape))


def renumber_components(
    reference: AnyMixture, mixture: BaseMixture, *, min_overlap: float = 0.0
) -> BaseMixture:
    """Give the components of a mixture the numbers of those of a reference that they match.

    New components get the numbers after these. A component of the reference that is gone keeps its
    number with the weight 0, as if it were pruned, so that no other one gets it.

    Parameters
    ----------
    reference : estimator instance
        A fitted mixture, as for :func:`match_components`.
    mixture : VonMisesFisherMixture, SparseGaussianMixture or StudentTMixture
        A fitted mixture of the same features. It stays as it is.
    min_overlap : float, default=0.0
        Pairs that overlap less are none.

    Returns
    -------
    renumbered : estimator instance
        A mixture with the same components. It has no `labels_`: use `predict`. `partial_fit`
        continues as it would from `mixture`.

    Raises
    ------
    TypeError, ValueError
        If mixtures are not of skvmf, cannot be matched, or the mixture sorts its components.

    Examples
    --------
    >>> from skvmf import VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> from skvmf.inspection import renumber_components
    >>> X, _ = make_vonmises_fisher_blobs(600, 16, centers=5, concentration=50.0, random_state=0)
    >>> last_week = VonMisesFisherMixture(5, random_state=0).fit(X[:500])
    >>> today = VonMisesFisherMixture(5, random_state=1).fit(X)
    >>> bool((today.predict(X[:500]) == last_week.labels_).all())
    False
    >>> today = renumber_components(last_week, today)
    >>> bool((today.predict(X[:500]) == last_week.labels_).all())
    True
    """
    refuse_others(mixture)
    matched = match_components(reference, mixture, min_overlap=min_overlap)
    return mixture._skvmf_renumbered(np.append(matched.indices, matched.new))


def component_stability(
    mixture: BaseMixture,
    X: MatrixLike,
    *,
    n_resamples: int = 20,
    sample_weight: ArrayLike | None = None,
    known_labels: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Bunch:
    """Tell which components come again if the rows were others: a bootstrap.

    The mixture is fitted again, from a new start, with the number of times as the weight of each
    row that it is drawn with replacement. :func:`match_components` pairs the components with those
    of the mixture. Clusters that the rows do not show, such as two parts of one, change most: see
    Hennig, "Cluster-wise assessment of cluster stability", Computational Statistics and Data
    Analysis 52, 2007, who compares clusters by their rows.

    Parameters
    ----------
    mixture : estimator instance
        A fitted mixture of skvmf, or a fitted pipeline that ends with one, whose other steps are
        not fitted again. It stays as it is; copies of the mixture are fitted.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit, of a pipeline as its first step takes them; Dask arrays are read into
        memory.
    n_resamples : int, default=20
        Number of fits.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the rows in the fit.
    known_labels : array-like of shape (n_samples,), default=None
        The known labels of the rows in the fit. Those of the rows that are drawn are known again,
        and the others judge memberships, as in `calibrate`.
    random_state : int, RandomState instance or None, default=None
        Seed of the weights and of the starts.

    Returns
    -------
    stability : :class:`~sklearn.utils.Bunch`
        The entries are

        components : ndarray of shape (n_components,)
            The mean overlap of each component with those that match it: 1 is always the same, 0 is
            lost each time. Pruned components have 0. In thousands of dimensions, as of words,
            densities overlap hardly even if clusters come again: then take the mean of `rows` in
            each cluster.
        rows : ndarray of shape (n_samples,)
            The share of the fits that give each row the same label.
        scores : ndarray of shape (n_resamples,)
            The adjusted Rand index of each fit's labels and those of the mixture.
        interval : ndarray of shape (2,)
            The 2.5 % and 97.5 % quantiles of these scores.
        temperature : float or None
            The temperature of memberships that these fits ask for, as
            :meth:`~skvmf.SparseGaussianMixture.calibrate` finds it; None for memberships with exact
            zeros, or without a row to judge by.
        reliability : :class:`~sklearn.utils.Bunch` or None
            What :func:`membership_reliability` returns, after being at that temperature.

    Raises
    ------
    TypeError, ValueError
        If the mixture is not one of skvmf, or `n_resamples` is not a positive whole number.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> from skvmf.inspection import component_stability
    >>> X = np.repeat([0.0, 6, 12], 50)[:, None] + np.random.default_rng(0).normal(size=(150, 1))
    >>> mixture = SparseGaussianMixture(3, random_state=0).fit(X)
    >>> stability = component_stability(mixture, X, n_resamples=5, random_state=0)
    >>> bool(stability.components.min() > 0.9), bool(stability.scores.min() > 0.9)
    (True, True)
    """
    mixture, X, _ = split_pipeline(mixture, in_memory(X))
    refuse_others(mixture)
    if not is_integer(n_resamples) or n_resamples < 1:
        raise ValueError(f"n_resamples should be a whole number of at least 1, got {n_resamples}.")
    rng = check_random_state(random_state)
    labels = mixture.predict(X)
    n_rows = len(labels)
    weights = weights_of(sample_weight, X)
    known = None
    classes = None
    if known_labels is not None:
        known = array_in_memory(known_labels, "known_labels")
        classes = classes_of_rows(mixture, X, known)
    elif mixture._skvmf_has_known_labels:
        warn(
            "The mixture was fitted with known labels, and it is fitted again without them, which "
            "says how stable it would be if none were known. Give known_labels.",
            UserWarning,
        )
    overlaps = []
    same_label = []
    scores = []
    judged: list[Judged] = []
    for _ in range(int(n_resamples)):
        again = clone(mixture).set_params(random_state=rng.randint(2**31 - 1))
        # The file is that of the given mixture.
        again.checkpoint = None
        n_draws = np.bincount(rng.randint(n_rows, size=n_rows), minlength=n_rows)
        with warnings.catch_warnings():
            # Of few steps and lost components: the numbers show these.
            warnings.simplefilter("ignore", ConvergenceWarning)
            row_weights = n_draws * weights
            again.size_limits = limits_of_drawn(mixture, X, row_weights)
            again.fit(X, sample_weight=row_weights, known_labels=_of_drawn(known, row_weights))
        labels_again = again.predict(X)
        matched = match_components(mixture, again)
        # The label that each row would have again; the last entry is that of the background, -1.
        expected = np.append(matched.indices, -1)[labels]
        # A component that matches none has the label -1, too, but is no background.
        has_match = (expected >= 0) | (labels < 0)
        overlaps.append(matched.overlaps)
        same_label.append((labels_again == expected) & has_match)
        scores.append(adjusted_rand_score(labels, labels_again))
        unseen = np.flatnonzero((n_draws == 0) & (weights > 0))
        if classes is None:
            judged += judged_of(mixture, again, X, unseen, weights, matched.indices)
        else:
            drawn = np.flatnonzero(row_weights > 0)
            judged += judged_by_labels(again, X, drawn, unseen, weights, classes)
    temperature = None
    reliability = None
    if judged:
        temperature = best_temperature(judged)
        reliability = before_and_after(judged, temperature)
    return Bunch(
        components=np.mean(overlaps, axis=0),
        rows=np.mean(same_label, axis=0),
        scores=np.array(scores),
        interval=np.quantile(scores, [0.025, 0.975]),
        temperature=temperature,
        reliability=reliability,
    )


def _of_drawn(known: Array | None, weights: Array) -> Array | None:
    """Return the known labels of rows with a weight; a class may have none of them."""
    if known is None:
        return None
    return np.where(weights > 0, known, -1)
