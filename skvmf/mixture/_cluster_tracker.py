"""ClusterTracker: clusters of a stream with ids that last, births, deaths and merges."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._engine.families.merging import excess_losses
from .._sklearn import Interval, RowsEstimator, all_or_nothing, fit_context, safe_indexing
from .._typing import Array, MatrixLike, ParameterConstraints, RandomState
from ..distributions._arguments import checked_generator
from ._base import BaseMixture
from ._births import MIN_RATIO, BirthSearch
from ._cluster_gaps import merge_cost, with_rows
from ._gaussian import BaseEllipticalMixture
from ._parameters import of_other_components
from ._relative_gmm import RelativeGMM
from ._rows import _validated_array, array_in_memory, in_memory, weights_of
from ._tracked_rows import (
    TINY,
    Batch,
    KeptRows,
    Reservoir,
    decay_of,
    kept_rows,
    n_effective,
    sums_of_ids,
    with_ids,
)

# Rows of a young cluster among this share of all, the least likely ones, may be of another new one.
# With a larger share parts of the young one would be born again, with a smaller one a new cluster
# has too few rows to be found.
_FAR_SHARE = 0.1
# Passes in which a new component and the live ones share out the rows.
_BIRTH_STEPS = 2
# A cluster may have ended where the window has less than this share of the rows that it had at its
# largest, and of its share of earlier rows: so neither quiet days nor others that grow end it.
# Stationary streams of newsgroups had .54 and more with 15 clusters. What it had is told from its
# size with decay, which grows in the first half-lives. With the largest weight of a window instead,
# 15 topics of 30 ended in place of 14, but also one of 40 clusters of each stationary stream.
_SHRUNK = 0.65
# It has ended where this share or less of its middle half is left: others' rows go astray to a
# cluster that has ended, but to its edges. Topics of newsgroups that had ended had .00 to .08 where
# most of the cluster's rows were theirs, and clusters of stationary streams .55 and more of 15
# clusters, .21 and more of 40, whose rows are too few for the test.
_ENDED = 0.3
# Two clusters are one where a merge loses less than chance in the batches of this share of the
# window, one after the other: a share, so that it does not matter how a day is cut into batches.
_MERGE_SHARE = 0.5
# A batch is far from all clusters where 9 of 10 of its rows are less likely than 99 of 100 rows of
# each batch before.
_FAR_QUANTILE = 0.9
_LEAST_QUANTILE = 0.01
_MIN_ROWS_TO_JUDGE = 10
# What the tracker knows of each live cluster.
_OF_CLUSTERS = (
    "_born",
    "_last_seen",
    "_parents",
    "_sizes",
    "_largest",
    "_first_means",
    "_first_rows",
)


class ClusterTracker(RowsEstimator):
    """Clusters of rows that come in batches, with ids that last, births, deaths and merges.

    Each batch gets the ids of live clusters, and a cluster is born where the last batches have many
    rows that earlier ones had hardly any of. An id is never used again. Labels of earlier rows
    stay, except that a birth takes its rows among those of the window, and `events_` says which.

    Parameters
    ----------
    mixture : estimator instance
        The mixture of the first rows: its kind, number of components, background, and what it
        takes as rows. A :class:`RelativeGMM` is refused, since it sorts components, and so are
        `size_limits`, since clusters of a stream grow and fade.
    window : int, default=10
        Number of batches that are compared with earlier rows.
    reservoir_size : int, default=4000
        Number of earlier rows that are kept: a sample that fades with `half_life`. Of a window with
        more rows than that, births are looked for in a sample of as many, so that small clusters
        among very many rows need a larger number.
    min_size : int, default=25
        Number of rows of the window that a new cluster takes at least.
    half_life : float, default=20.0
        Number of batches after which a row counts half.
    significance : float, default=0.05
        The chance that a batch has a birth although it and the rows before are alike: at most, by
        a Bonferroni correction for all groups of rows and spans of batches that are tried.
    max_clusters : int, default=None
        Number of live clusters at which births end.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the reservoir and of the search for births.

    Attributes
    ----------
    mixture_ : estimator instance
        The live clusters as a fitted mixture: its component k is the cluster ``ids_[k]``.
    ids_ : ndarray of shape (n_clusters,)
        The ids of the live clusters.
    labels_ : ndarray of shape (n_samples,)
        Ids of the rows of the last batch; -1 is the background.
    clusters_ : dict of str to ndarray of shape (n_clusters,)
        The live clusters: "id", the batch in which each was "born" (0 is the fit) and "last_seen",
        the "size" with decay, and the "parent" whose rows it took most of, or -1. "mean" (of shape
        (n_clusters, n_features)) is the mean, or the mean direction. "drift" is how far it is from
        where it was at birth, in standard errors of the difference of two means: the root of the
        mean square over features. Without drift it is 1, or less where the same rows count twice.
    sizes_ : ndarray of shape (n_batches + 1, n_ids)
        The weight of the rows of each batch, the first of which is the fit's, that each id has, as
        `events_` has it: births and merges change the rows of the window.
    events_ : list of dict
        What has happened: "kind" is "birth", "death" or "merge"; "id" the cluster; "into" the one
        that a merge leaves; "batch" the number of the batch; "rows" the numbers of the rows that a
        birth takes, counted from the first row of the fit; "evidence" the logarithm of the
        p-value, or what the merge loses beyond chance, or the size that is left.
    n_batches_ : int
        Calls of `partial_fit`.

    Notes
    -----
    The rows of the window and the reservoir together are clustered finely. Fine clusters are merged
    to a tree, and each node of it is tested for having more rows of the last batches, of one, two,
    four and so on up to the window, than it would if these and the reservoir were alike: the
    prospective scan statistics of Kulldorff [1]_ [2]_. Because fine clusters are found without
    asking which rows are new, the binomial test is exact. Rows of clusters that were born within
    ``window + half_life`` batches are left out: they are known to be new.

    With K clusters of d features and batches of n rows, the memory is about ``(window * n +
    reservoir_size) * d`` numbers of the rows' type, the mixture and ``2 * K * d`` numbers, and
    ``sizes_``: one for each batch and id. The time of a batch is mostly that of fine clusters:
    about ``(window * n + reservoir_size) ** 2 * d / 6`` multiplications, where ``window * n``
    counts up to ``reservoir_size``.

    References
    ----------
    .. [1] Kulldorff, "Prospective time periodic geographical disease surveillance using a scan
       statistic", Journal of the Royal Statistical Society A 164, 2001.
    .. [2] Kulldorff, Fang and Walsh, "A tree-based scan statistic for database disease
       surveillance", Biometrics 59, 2003.

    Examples
    --------
    >>> from skvmf import ClusterTracker, VonMisesFisherMixture
    >>> from skvmf.datasets import make_vonmises_fisher_blobs
    >>> X, y = make_vonmises_fisher_blobs(4000, 16, centers=6, concentration=60.0, random_state=0)
    >>> old, new = X[:2000][y[:2000] < 5], X[2000:]
    >>> tracker = ClusterTracker(VonMisesFisherMixture(5, random_state=0), random_state=0).fit(old)
    >>> for day in range(4):
    ...     _ = tracker.partial_fit(new[200 * day : 200 * (day + 1)])
    >>> [(event["kind"], event["id"]) for event in tracker.events_]
    [('birth', 5)]
    """

    mixture_: BaseMixture
    ids_: Array
    labels_: Array
    clusters_: dict[str, Array]
    sizes_: Array
    events_: list[dict[str, Any]]
    n_batches_: int
    n_features_in_: int

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "mixture": "no_validation",  # fit says better what it may be
        "window": [Interval(Integral, 1, None, closed="left")],
        "reservoir_size": [Interval(Integral, 1, None, closed="left")],
        "min_size": [Interval(Integral, 2, None, closed="left")],
        "half_life": [Interval(Real, 0, None, closed="neither")],
        "significance": [Interval(Real, 0, 1, closed="neither")],
        "max_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        mixture: BaseMixture,
        *,
        window: int = 10,
        reservoir_size: int = 4000,
        min_size: int = 25,
        half_life: float = 20.0,
        significance: float = 0.05,
        max_clusters: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.mixture = mixture
        self.window = window
        self.reservoir_size = reservoir_size
        self.min_size = min_size
        self.half_life = half_life
        self.significance = significance
        self.max_clusters = max_clusters
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture to the first rows; its components are the clusters 0, 1, and so on.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, as the mixture takes them.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The cluster of each row where it is known, otherwise -1.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        _refuse_other_mixtures(self.mixture)
        X = in_memory(X)
        with all_or_nothing(self):
            mixture: BaseMixture = clone(self.mixture).fit(
                X, sample_weight=sample_weight, known_labels=known_labels
            )
            self.mixture_ = mixture
            for name in ("n_features_in_", "feature_names_in_"):
                if name in vars(mixture):
                    setattr(self, name, getattr(mixture, name))
            rows = _validated_array(mixture, X, reset=False)
            weights = weights_of(sample_weight, rows)
            labels = np.array(mixture.labels_)
            if known_labels is not None:
                known = array_in_memory(known_labels, "known_labels")
                labels = np.where(known >= 0, known, labels)
            alive = np.flatnonzero(mixture.weights_ > 0)
            self._seed = int(checked_generator(self.random_state).integers(2**31))
            self.n_batches_ = 0
            self.events_ = []
            self.ids_ = alive
            self.labels_ = labels
            self._next_id = int(mixture.n_components)
            self._born = np.zeros(len(alive), np.int64)
            self._last_seen = np.zeros(len(alive), np.int64)
            self._parents = np.full(len(alive), -1)
            self._sizes = sums_of_ids(labels, weights, alive)
            self._largest = self._sizes.copy()
            self.sizes_ = np.zeros((1, self._next_id))
            self.sizes_[0, alive] = self._sizes
            self._merging: dict[tuple[int, int], int] = {}
            self._window: list[Batch] = []
            self._n_rows = len(labels)
            self._least_score = _least_score(mixture.score_samples(X))
            self._reservoir = Reservoir(rows[:0], labels[:0], np.empty(0), 0.0)
            self._to_reservoir(Batch(0, 0, rows, weights, labels, self._least_score))
            kept = self._kept_rows()
            if len(alive) < mixture.n_components:
                self.mixture_ = self._estimated(kept)
            self._first_means = _means(self.mixture_)
            self._first_rows = n_effective(labels, weights, alive)
            self._tell_clusters(kept)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self,
        X: MatrixLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        known_labels: ArrayLike | None = None,
    ) -> Self:
        """Give the rows of a batch ids, follow the clusters, and look for births and deaths.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The batch: all rows of a day, for example. The first one is that of `fit`.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. A row of weight 2 counts like two equal rows.
        known_labels : array-like of shape (n_samples,), default=None
            The id of a live cluster for each row where it is known, otherwise -1.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data cannot be used, such as rows that are far from all clusters, as those of
            another embedding model are. The estimator then stays as it was.
        """
        if not hasattr(self, "mixture_"):
            return self.fit(X, y, sample_weight, known_labels)
        _refuse_other_mixtures(self.mixture)
        X = in_memory(X)
        with all_or_nothing(self):
            self._refuse_other_features(X)
            components, scores = self.mixture_._labels_and_log_densities(X)
            self._refuse_far(scores)
            rows = _validated_array(self.mixture_, X, reset=False)
            weights = weights_of(sample_weight, rows)
            ids = np.where(components < 0, -1, self.ids_[components])
            if known_labels is not None:
                ids = self._with_known(ids, known_labels)
            self.n_batches_ += 1
            self._add(
                Batch(self.n_batches_, self._n_rows, rows, weights, ids, _least_score(scores))
            )
            # Rows that are kept have no names.
            self.mixture_ = copy(self.mixture_)
            vars(self.mixture_).pop("feature_names_in_", None)
            self.events_ = list(self.events_)
            kept = self._kept_rows()
            self._find_deaths(kept)
            self.mixture_ = self._estimated(kept)
            kept = self._find_merges(kept)
            kept = self._find_births(kept)
            self._window = with_ids(self._window, kept.ids)
            self._reservoir = self._reservoir._replace(ids=kept.ids[~kept.recent])
            self.labels_ = self._window[-1].ids
            self._count_sizes()
            self._tell_clusters(kept)
        return self

    def _add(self, batch: Batch) -> None:
        """Take a batch into the window, and its rows into the sizes; the first one leaves."""
        self._n_rows += len(batch.ids)
        self._window = [*self._window, batch]
        self._sizes = self._sizes * self._decay + sums_of_ids(batch.ids, batch.weights, self.ids_)
        self._largest = np.maximum(self._largest, self._sizes)
        seen = np.isin(self.ids_, batch.ids)
        self._last_seen = np.where(seen, self.n_batches_, self._last_seen)
        self._reservoir = self._reservoir.faded(self._decay)
        if len(self._window) > self.window:
            self._to_reservoir(self._window[0])
            self._window = self._window[1:]

    def predict(self, X: MatrixLike) -> Array:
        """Return the id of the live cluster of each row, without learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ids : ndarray of shape (n_samples,)
            The ids; -1 is the background.
        """
        check_is_fitted(self, "mixture_")
        components = self.mixture_.predict(in_memory(X))
        return np.where(components < 0, -1, self.ids_[components])

    def _count_sizes(self) -> None:
        """Count the rows of the new batch, and again those of the window: ids may have changed."""
        before = self.sizes_
        sizes = np.zeros((self.n_batches_ + 1, self._next_id))
        sizes[: len(before), : before.shape[1]] = before
        every_id = np.arange(self._next_id)
        for batch in self._window:
            sizes[batch.number] = sums_of_ids(batch.ids, batch.weights, every_id)
        self.sizes_ = sizes

    def _tell_clusters(self, kept: KeptRows) -> None:
        if "feature_names_in_" in vars(self):
            self.mixture_.feature_names_in_ = vars(self)["feature_names_in_"]
        means = _means(self.mixture_)
        self.clusters_ = {
            "id": self.ids_.copy(),
            "born": self._born.copy(),
            "last_seen": self._last_seen.copy(),
            "size": self._sizes.copy(),
            "parent": self._parents.copy(),
            "mean": means,
            "drift": self._drift(means, kept),
        }

    def _drift(self, means: Array, kept: KeptRows) -> Array:
        """Return how far means are from those at birth, in standard errors."""
        n_rows = n_effective(kept.ids, kept.faded, self.ids_)
        # A component may have weight and be the likeliest of no row of the fit.
        errors = 1 / np.maximum(n_rows, TINY) + 1 / np.maximum(self._first_rows, 1.0)
        squares = (means - self._first_means) ** 2
        squares = squares / np.maximum(_variances(self.mixture_) * errors[:, np.newaxis], TINY)
        n_free = means.shape[1]
        if not isinstance(self.mixture_, BaseEllipticalMixture):
            n_free = max(n_free - 1, 1)  # a direction has one degree of freedom less
        return np.asarray(np.sqrt(squares.sum(axis=1) / n_free))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.mixture, BaseMixture):
            tags.input_tags = self.mixture.__sklearn_tags__().input_tags
        return tags

    # What a batch may be.

    def _refuse_other_features(self, X: Any) -> None:
        shape = np.shape(X)
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but ClusterTracker is expecting {self.n_features_in_} "
                "features as input. Rows of another embedding model cannot go on with its "
                "clusters: embed earlier rows with it, too, and fit a new ClusterTracker."
            )

    def _refuse_far(self, scores: Array) -> None:
        least = min([self._least_score, *(batch.least_score for batch in self._window)])
        is_judged = len(scores) >= _MIN_ROWS_TO_JUDGE
        if is_judged and np.quantile(scores, _FAR_QUANTILE) < least:
            raise ValueError(
                "Nearly all rows of X are far from all clusters: they are less likely than 99 % of "
                "the rows of every batch before. If the embedding model or the preprocessing has "
                "changed, treat earlier rows the same way and fit a new ClusterTracker."
            )

    def _with_known(self, ids: Array, known_labels: ArrayLike) -> Array:
        known = array_in_memory(known_labels, "known_labels")
        if known.shape != ids.shape or not np.isin(known, [-1, *self.ids_]).all():
            raise ValueError(
                "known_labels should be the id of a live cluster or -1 for each row of X; live are "
                f"{self.ids_.tolist()}."
            )
        return np.where(known >= 0, known, ids)

    # Rows that are kept.

    @property
    def _decay(self) -> float:
        return decay_of(self.half_life)

    def _to_reservoir(self, batch: Batch) -> None:
        now = self.n_batches_
        rng = np.random.default_rng([self._seed, now, 0])
        size = int(self.reservoir_size)
        self._reservoir = self._reservoir.with_batch(batch, now, self.half_life, size, rng)

    def _kept_rows(self) -> KeptRows:
        return kept_rows(self._window, self._reservoir, self.n_batches_, self._decay)

    def _estimated(self, kept: KeptRows, live: Array | None = None) -> BaseMixture:
        """Return the mixture of the live clusters, from the rows that are kept and their ids."""
        live = self.ids_ if live is None else live
        used = np.isin(kept.ids, live) | ((kept.ids == -1) & self.mixture.background)
        used &= kept.faded > 0
        ids = kept.ids[used]
        components = np.where(ids < 0, -1, np.searchsorted(live, ids))
        params = of_other_components(self.mixture) | {
            "random_state": 0,
            "n_components": len(live),
            "init_params": components,
            "max_iter": 0,
            "background": bool(components.min() < 0),
        }
        mixture: BaseMixture = clone(self.mixture).set_params(**params)
        rows = safe_indexing(kept.rows, np.flatnonzero(used))
        mixture.fit(rows, sample_weight=kept.faded[used])
        return mixture

    # Deaths and merges.

    def _find_deaths(self, kept: KeptRows) -> None:
        """End clusters whose middle gets no rows any more, or of which none is kept; one stays."""
        ids, weights, recent = kept.ids, kept.weights, kept.recent
        in_window = sums_of_ids(ids[recent], weights[recent], self.ids_)
        earlier = sums_of_ids(ids[~recent], weights[~recent], self.ids_)
        # What a cluster of its largest size has in the window.
        n_recent = len(self._window)
        expected = self._largest * (1 - self._decay**n_recent)
        ratio = weights[recent].sum() / max(weights[~recent].sum(), 1.0)
        shrunk = in_window < _SHRUNK * np.minimum(expected, ratio * earlier)
        has_faded = (self._sizes < self.min_size / 3) & (in_window < 1)
        if n_recent < self.window:  # a few days without rows are chance
            has_faded[:] = False
            shrunk[:] = False
        is_kept = np.isin(self.ids_, ids)
        dead = has_faded | ~is_kept
        for k in np.flatnonzero(shrunk & ~dead).tolist():
            own = np.flatnonzero(ids == self.ids_[k])
            scores = self.mixture_.score_samples(safe_indexing(kept.rows, own))
            middle = scores > np.median(scores[~recent[own]])
            new = float(weights[own[middle & recent[own]]].sum())
            old = float(weights[own[middle & ~recent[own]]].sum())
            # Given their sum, the new ones are binomial where the cluster goes on.
            p_value = betainc(old, new + 1, 1 / (1 + ratio))
            dead[k] = new < _ENDED * ratio * old and p_value < self.significance / len(dead)
        dead[np.argmax(np.where(is_kept, self._sizes, -1.0))] = False
        for k in np.flatnonzero(dead).tolist():
            self._note("death", int(self.ids_[k]), float(self._sizes[k]))
        self._keep_clusters(~dead)

    def _find_merges(self, kept: KeptRows) -> KeptRows:
        """Join two clusters that no merge has lost more than chance of, for some batches."""
        alive = with_rows(self.mixture_)
        cost = merge_cost(self.mixture_, alive)
        merging = {}
        lost = {}
        for a, k in enumerate(alive[:-1].tolist()):
            others = np.arange(a + 1, len(alive))
            losses = excess_losses(cost, a, others)
            for b in np.flatnonzero(losses < 0).tolist():
                pair = int(self.ids_[k]), int(self.ids_[alive[others[b]]])
                merging[pair] = self._merging.get(pair, 0) + 1
                lost[pair] = float(losses[b])
        self._merging = merging
        due = [pair for pair, n in merging.items() if n >= _MERGE_SHARE * self.window]
        if not due:
            return kept
        into, gone = due[0]  # one a batch: the next one is judged by what is then there
        self._note("merge", gone, lost[into, gone], into=into)
        kept = kept._replace(ids=np.where(kept.ids == gone, into, kept.ids))
        sizes = self._sizes.copy()
        sizes[self.ids_ == into] += sizes[self.ids_ == gone]
        self._sizes = sizes
        self._largest = np.maximum(self._largest, sizes)
        self._keep_clusters(self.ids_ != gone)
        self.mixture_ = self._estimated(kept)
        return kept

    def _keep_clusters(self, live: Array) -> None:
        for name in ("ids_", *_OF_CLUSTERS):
            setattr(self, name, getattr(self, name)[live])

    def _note(self, kind: str, cluster: int, evidence: float, **more: Any) -> None:
        event = {"kind": kind, "id": cluster, "batch": self.n_batches_, "evidence": evidence}
        self.events_.append(event | more)

    # Births.

    def _find_births(self, kept: KeptRows) -> KeptRows:
        """Let groups of rows that the last batches have and earlier ones had not be clusters."""
        seed = int(np.random.default_rng([self._seed, self.n_batches_, 1]).integers(2**31))
        tested = self._tested_rows(kept)
        search = BirthSearch(self.mixture, kept, tested, int(self.window), self.min_size, seed)
        for group, evidence in search.groups(self.significance):
            if self.max_clusters is not None and len(self.ids_) >= self.max_clusters:
                break
            kept = self._bear(group, evidence, kept, search)
        return kept

    def _tested_rows(self, kept: KeptRows) -> Array:
        """Return the rows that births are looked for in.

        Rows of young clusters are known to be new. Those that are far from all clusters are tested
        all the same: until a cluster is born its rows go to the nearest one, young or not.

        Where the window has more rows than the reservoir may have, it is a sample of as many: more
        would take the square of the time, since fine clusters are as many as rows allow.
        """
        is_young = self.n_batches_ - self._born < self.window + self.half_life
        left_out = np.isin(kept.ids, self.ids_[(self._born > 0) & is_young])
        if left_out.any():
            scores = self.mixture_.score_samples(kept.rows)
            left_out &= scores > np.quantile(scores, _FAR_SHARE)
        is_tested = ~left_out & (kept.weights > 0)
        recent = np.flatnonzero(is_tested & kept.recent)
        size = int(self.reservoir_size)
        if len(recent) > size:
            rng = np.random.default_rng([self._seed, self.n_batches_, 2])
            recent = np.sort(rng.choice(recent, size, replace=False))
        return np.append(recent, np.flatnonzero(is_tested & ~kept.recent))

    def _bear(self, group: Array, evidence: float, kept: KeptRows, search: BirthSearch) -> KeptRows:
        """Let rows become a cluster if it takes enough of the window and few earlier rows."""
        weights, recent = kept.weights, kept.recent
        new = self._next_id
        live = np.append(self.ids_, new)
        own = np.isin(np.arange(len(kept.ids)), group)
        for _ in range(_BIRTH_STEPS):
            if not (own & recent).any():
                return kept
            tried = kept._replace(ids=np.where(own & recent, new, kept.ids))
            if not np.isin(live, tried.ids).all():  # it would take all that is left of an old one
                return kept
            trial = self._estimated(tried, live)
            own = trial.predict(kept.rows) == len(self.ids_)
            own = search.part_of(own, group)
        moved = own & recent
        taken = float(weights[moved].sum())
        share = taken / float(weights[recent].sum())
        earlier = float(weights[own & ~recent].sum() / weights[~recent].sum())
        if taken < self.min_size or share < MIN_RATIO * earlier:
            return kept
        born = kept._replace(ids=np.where(moved, new, kept.ids))
        if not np.isin(live, born.ids).all() or _would_merge(trial):
            return kept
        self._note("birth", new, evidence, rows=kept.numbers[moved])
        parents, counts = np.unique(kept.ids[moved], return_counts=True)
        faded = kept.faded[moved]
        sizes = np.maximum(self._sizes - sums_of_ids(kept.ids[moved], faded, self.ids_), 0.0)
        self._sizes = np.append(sizes, faded.sum())
        self._largest = np.append(self._largest, faded.sum())
        self._born = np.append(self._born, self.n_batches_)
        self._last_seen = np.append(self._last_seen, self.n_batches_ - kept.ages[moved].min())
        self._parents = np.append(self._parents, parents[counts.argmax()])
        self.ids_ = live
        self._next_id = new + 1
        self.mixture_ = self._estimated(born)
        self._first_means = np.vstack([self._first_means, _means(self.mixture_)[-1:]])
        n_rows = n_effective(born.ids, born.faded, live)
        self._first_rows = np.append(self._first_rows, n_rows[-1])
        return born


def _refuse_other_mixtures(mixture: object) -> None:
    if not isinstance(mixture, BaseMixture):
        raise TypeError(
            "mixture should be a mixture of skvmf, such as VonMisesFisherMixture(20), got "
            f"{mixture!r}."
        )
    if isinstance(mixture, RelativeGMM):
        raise ValueError("RelativeGMM sorts its components, and clusters would change ids.")
    if mixture.size_limits is not None:
        raise ValueError(
            f"The mixture has size_limits={mixture.size_limits!r}, and the clusters of a stream "
            "grow and fade: use size_limits=None."
        )


def _means(mixture: BaseMixture) -> Array:
    """Return the means or mean directions of components (K, d)."""
    if isinstance(mixture, BaseEllipticalMixture):
        return np.asarray(mixture.means_)
    return np.asarray(mixture._fitted.params.components.directions.T)


def _variances(mixture: BaseMixture) -> Array:
    """Return the squared standard errors that features of a mean have from one row, (K, d).

    They are those of the maximum-likelihood estimate. A direction has as many in each direction of
    its tangent space, in which it moves.
    """
    components: Any = mixture._fitted.params.components
    if not isinstance(mixture, BaseEllipticalMixture):
        information = components.concentrations * components.lengths
        return np.asarray(1 / np.maximum(information, TINY))[:, np.newaxis]
    K, d = mixture.means_.shape
    variances = mixture._fitted.family.type.variances(components.covariances)
    variances = np.broadcast_to(variances, (K, d))
    nu = getattr(mixture, "degrees_of_freedom_", None)
    if nu is not None:  # Lange, Little and Taylor, 1989
        variances = variances * ((nu + d + 2) / (nu + d))[:, np.newaxis]
    return np.asarray(variances)


def _would_merge(mixture: BaseMixture) -> bool:
    """Whether the last component and another are one: a birth that a merge would follow."""
    alive = with_rows(mixture)
    last = len(alive) - 1
    excess = excess_losses(merge_cost(mixture, alive), last, np.arange(last))
    return bool((excess < 0).any())


def _least_score(scores: Array) -> float:
    return float(np.quantile(scores, _LEAST_QUANTILE))
