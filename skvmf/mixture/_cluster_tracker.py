"""ClusterTracker: clusters of a stream with ids that last, births, deaths and merges."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import betainc
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._engine.families.family import MergeCost
from .._engine.families.merging import chance_gain, merge_greedily
from .._sklearn import (
    Interval,
    RowsEstimator,
    all_or_nothing,
    check_sample_weight,
    fit_context,
    safe_indexing,
)
from .._typing import Array, MatrixLike, ParameterConstraints, RandomState
from ..distributions._arguments import checked_generator
from ._base import BaseMixture
from ._relative_gmm import RelativeGMM
from ._rows import _validated_array, in_memory

# Rows for each fine cluster, on average: with 15 or 30 the topics of newsgroups had about the same
# evidence, and fewer clusters are faster.
_ROWS_PER_FINE_CLUSTER = 30
# Steps of EM for fine clusters, which begin at random rows: 10 gained little more than 5.
_FINE_STEPS = 5
# A new cluster has this many times its share of earlier rows in the window: below it, shares that
# change a little would count as new, however sure the change is.
_MIN_RATIO = 2.0
# Fine clusters that are further apart than this share of the median gap between a live cluster and
# its nearest one are not one new cluster. A smaller share gives a cluster several ids, a larger
# one several clusters one id.
_MAX_GAP = 0.5
# A cut of a new cluster in two has parts of at least so many rows: a few rows are always far apart.
_MIN_PART = 8
# Fine clusters with fewer rows have none but for rounding.
_LEAST_COUNT = 1e-6
# Passes in which a new component and the live ones share out the rows.
_BIRTH_STEPS = 2
# A cluster dies where its faded weight is below this share of its largest, and the window has less
# than half of what this share of it would have: others' rows go astray, so that a cluster that has
# ended still gets some. A smaller share keeps ended clusters longer, a larger one ends live ones.
_DEAD_SHARE = 0.65
# Two clusters are one where a merge loses less than chance in so many batches one after the other.
_MERGE_BATCHES = 5
# A batch is far from all clusters where 9 of 10 of its rows are less likely than 99 of 100 rows of
# each batch before.
_FAR_QUANTILE = 0.9
_LEAST_QUANTILE = 0.01
_MIN_ROWS_TO_JUDGE = 10
_TINY = float(np.finfo(np.float64).tiny)


class _Batch(NamedTuple):
    """The rows of a batch in the window."""

    number: int
    first_row: int  # its number, counted from the first row of `fit`
    rows: Any
    weights: Array
    ids: Array
    least_score: float


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
    significance : float, default=0.01
        The chance that a batch has a birth although it and the rows before are alike: at most, by
        a Bonferroni correction for all groups of rows and spans of batches that are tried.
    max_clusters : int, default=None
        Number of live clusters at which births end.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the reservoir and of the search for births.

    Attributes
    ----------
    mixture_ : estimator instance
        The live clusters as a fitted mixture: its component k is the cluster ``ids_[k]``. So
        ``component_summary(tracker.mixture_, X)`` and ``cluster_report`` describe them.
    ids_ : ndarray of shape (n_clusters,)
        The ids of the live clusters.
    labels_ : ndarray of shape (n_samples,)
        Ids of the rows of the last batch; -1 is the background.
    clusters_ : dict of str to ndarray of shape (n_clusters,)
        The live clusters: "id", the batch in which each was "born" (0 is the fit) and "last_seen",
        the "size" with decay, and the "parent" whose rows it took most of, or -1.
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
    to a tree, and each node of it is tested for having more rows of the last batches, for one
    batch up to the whole window, than it would if these and the reservoir were alike: the
    prospective scan statistics of Kulldorff [1]_ [2]_. Because fine clusters are found without
    asking which rows are new, the binomial test is exact. Rows of clusters that were born within
    ``window + half_life`` batches are left out: they are known to be new.

    With K clusters of d features and batches of n rows, the memory is about ``(window * n +
    reservoir_size) * d`` numbers of the rows' type and the mixture's.

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
    events_: list[dict[str, Any]]
    n_batches_: int
    n_features_in_: int

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "mixture": [BaseMixture],
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
        significance: float = 0.01,
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
        if isinstance(self.mixture, RelativeGMM):
            raise ValueError("RelativeGMM sorts its components, and clusters would change ids.")
        if getattr(self.mixture, "size_limits", None) is not None:
            raise ValueError(
                f"The mixture has size_limits={self.mixture.size_limits!r}, and the clusters of a "
                "stream grow and fade: use size_limits=None."
            )
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
            weights = _weights(sample_weight, rows)
            labels = np.array(mixture.labels_)
            if known_labels is not None:
                known = np.asarray(known_labels)
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
            self._sizes = _sums(labels, weights, alive)
            self._largest = self._sizes.copy()
            self._merging: dict[tuple[int, int], int] = {}
            self._window: list[_Batch] = []
            self._n_rows = len(labels)
            self._least_score = _least_score(mixture.score_samples(X))
            self._reservoir = rows[:0]
            self._reservoir_ids = labels[:0]
            self._reservoir_keys = np.empty(0)
            self._past_weight = 0.0
            self._to_reservoir(rows, weights, labels)
            if len(alive) < mixture.n_components:
                self.mixture_ = self._estimated()
            self._tell_clusters()
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
        X = in_memory(X)
        with all_or_nothing(self):
            self._refuse_other_features(X)
            components = self.mixture_.predict(X)
            scores = self.mixture_.score_samples(X)
            self._refuse_far(scores)
            rows = _validated_array(self.mixture_, X, reset=False)
            weights = _weights(sample_weight, rows)
            ids = np.where(components < 0, -1, self.ids_[components])
            if known_labels is not None:
                ids = self._with_known(ids, known_labels)
            self.n_batches_ += 1
            least = _least_score(scores)
            batch = _Batch(self.n_batches_, self._n_rows, rows, weights, ids, least)
            self._n_rows += len(ids)
            self._window = [*self._window, batch]
            self._sizes = self._sizes * self._decay + _sums(ids, weights, self.ids_)
            self._largest = np.maximum(self._largest, self._sizes)
            seen = np.isin(self.ids_, ids)
            self._last_seen = np.where(seen, self.n_batches_, self._last_seen)
            self._past_weight *= self._decay
            self.events_ = list(self.events_)
            if len(self._window) > self.window:
                first = self._window[0]
                self._window = self._window[1:]
                self._to_reservoir(first.rows, first.weights, first.ids)
            self._find_deaths()
            self.mixture_ = self._estimated()
            self._find_merges()
            self._find_births()
            self.labels_ = self._window[-1].ids
            self._tell_clusters()
        return self

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

    def _tell_clusters(self) -> None:
        self.clusters_ = {
            "id": self.ids_.copy(),
            "born": self._born.copy(),
            "last_seen": self._last_seen.copy(),
            "size": self._sizes.copy(),
            "parent": self._parents.copy(),
        }

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
                f"X has {shape[1]} features, but the clusters have {self.n_features_in_}. Rows of "
                "another embedding model cannot go on with them: embed earlier rows with it, too, "
                "and fit a new ClusterTracker."
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
        known = np.asarray(known_labels)
        if known.shape != ids.shape or not np.isin(known, [-1, *self.ids_]).all():
            raise ValueError(
                "known_labels should be the id of a live cluster or -1 for each row of X; live are "
                f"{self.ids_.tolist()}."
            )
        return np.where(known >= 0, known, ids)

    # Rows that are kept.

    @property
    def _decay(self) -> float:
        return float(0.5 ** (1 / self.half_life))

    def _to_reservoir(self, rows: Any, weights: Array, ids: Array) -> None:
        """Let rows compete for a place: an exponential key over the weight wins if it is small.

        In place of fading the weights of old rows, those of later ones are larger.
        """
        rng = np.random.default_rng([self._seed, self.n_batches_, 0])
        age = len(self._window) if self.n_batches_ else 0
        with np.errstate(divide="ignore"):
            keys = np.log(rng.exponential(size=len(ids))) - np.log(weights)
        keys -= (self.n_batches_ - age) * np.log(2) / self.half_life
        self._past_weight += float(weights.sum()) * self._decay**age
        rows = _stacked([self._reservoir, rows])
        ids = np.append(self._reservoir_ids, ids)
        keys = np.append(self._reservoir_keys, keys)
        kept = np.sort(np.argsort(keys, kind="stable")[: self.reservoir_size])
        kept = kept[keys[kept] < np.inf]
        self._reservoir = safe_indexing(rows, kept)
        self._reservoir_ids = ids[kept]
        self._reservoir_keys = keys[kept]

    def _kept(self) -> tuple[Any, Array, Array, Array]:
        """Return rows of the window and the reservoir, their ids, weights and ages; -1: earlier."""
        window = self._window
        n_earlier = len(self._reservoir_ids)
        rows = _stacked([*(batch.rows for batch in window), self._reservoir])
        ids = np.concatenate([*(batch.ids for batch in window), self._reservoir_ids])
        weights = [batch.weights for batch in window] + [np.ones(n_earlier)]
        ages = [np.full(len(batch.ids), self.n_batches_ - batch.number) for batch in window]
        return rows, ids, np.concatenate(weights), np.concatenate([*ages, np.full(n_earlier, -1)])

    def _estimated(self, ids: Array | None = None, live: Array | None = None) -> BaseMixture:
        """Return the mixture of the live clusters, from the rows that are kept and their ids."""
        rows, own_ids, weights, ages = self._kept()
        ids = own_ids if ids is None else ids
        live = self.ids_ if live is None else live
        of_earlier = self._past_weight / max(int(np.count_nonzero(ages < 0)), 1)
        weights = np.where(ages < 0, of_earlier, weights * self._decay ** np.maximum(ages, 0))
        used = np.isin(ids, live) | ((ids == -1) & self.mixture.background)
        used &= weights > 0
        components = np.where(ids[used] < 0, -1, np.searchsorted(live, ids[used]))
        params = self._plain_params() | {
            "n_components": len(live),
            "init_params": components,
            "max_iter": 0,
            "background": bool(components.min() < 0),
        }
        mixture: BaseMixture = clone(self.mixture).set_params(**params)
        mixture.fit(safe_indexing(rows, np.flatnonzero(used)), sample_weight=weights[used])
        if "feature_names_in_" in vars(self):
            mixture.feature_names_in_ = vars(self)["feature_names_in_"]
        return mixture

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters of a mixture without what is given for its first components."""
        params = self.mixture.get_params(deep=False)
        plain: dict[str, Any] = dict.fromkeys(name for name in params if name.endswith("_init"))
        plain |= {"weight_concentration_prior": 1.0, "weight_floor": None, "fixed": ()}
        if np.ndim(params.get("degrees_of_freedom", 0.0)) > 0:
            plain["degrees_of_freedom"] = "estimated"
        return plain | {"n_init": 1, "warm_start": False, "checkpoint": None, "random_state": 0}

    # Deaths and merges.

    def _find_deaths(self) -> None:
        """End clusters that have faded, or of which no row is kept; one stays."""
        _, ids, weights, ages = self._kept()
        in_window = _sums(ids[ages >= 0], weights[ages >= 0], self.ids_)
        kept = np.isin(self.ids_, ids)
        n_recent = len(self._window)
        # What a cluster of its largest size has in the window.
        expected = self._largest * (1 - self._decay**n_recent)
        faded = self._sizes < _DEAD_SHARE * self._largest
        faded &= in_window < _DEAD_SHARE / 2 * expected
        faded &= n_recent == self.window
        dead = faded | (self._sizes < self.min_size / 3) & (in_window < 1) | ~kept
        dead[np.argmax(self._sizes)] = False
        for k in np.flatnonzero(dead).tolist():
            self._note("death", int(self.ids_[k]), float(self._sizes[k]))
        self._keep_clusters(~dead)

    def _find_merges(self) -> None:
        """Join two clusters that no merge has lost more than chance of, for some batches."""
        family = self.mixture_._fitted.family
        statistics = self.mixture_._running_statistics
        K = len(self.ids_)
        assert statistics is not None
        statistics = statistics.first_components(K)
        alive = np.flatnonzero(statistics.counts > 0)
        cost = family.merge_cost(statistics, self.mixture_._fitted.components, alive)
        merging = {}
        for a, k in enumerate(alive[:-1].tolist()):
            others = np.arange(a + 1, len(alive))
            chance = chance_gain(cost.counts[others], cost.counts[a], cost.dim)
            excess = cost.losses(a, others) - chance
            for b in np.flatnonzero(excess < 0).tolist():
                pair = int(self.ids_[k]), int(self.ids_[alive[others[b]]])
                merging[pair] = self._merging.get(pair, 0) + 1
        self._merging = merging
        due = [pair for pair, n in merging.items() if n >= _MERGE_BATCHES]
        if due:
            into, gone = due[0]  # one a batch: the next one is judged by what is then there
            self._note("merge", gone, 0.0, into=into)
            self._window = [
                batch._replace(ids=np.where(batch.ids == gone, into, batch.ids))
                for batch in self._window
            ]
            self._reservoir_ids = np.where(self._reservoir_ids == gone, into, self._reservoir_ids)
            sizes = self._sizes.copy()
            sizes[self.ids_ == into] += sizes[self.ids_ == gone]
            self._sizes = sizes
            self._largest = np.maximum(self._largest, sizes)
            self._keep_clusters(self.ids_ != gone)
            self.mixture_ = self._estimated()

    def _keep_clusters(self, kept: Array) -> None:
        for name in ("ids_", "_born", "_last_seen", "_parents", "_sizes", "_largest"):
            setattr(self, name, getattr(self, name)[kept])

    def _note(self, kind: str, cluster: int, evidence: float, **more: Any) -> None:
        event = {"kind": kind, "id": cluster, "batch": self.n_batches_, "evidence": evidence}
        self.events_.append(event | more)

    # Births.

    def _find_births(self) -> None:
        """Find groups of rows that the last batches have and earlier rows had not."""
        rows, ids, weights, ages = self._kept()
        young = self.ids_[(self._born > 0) & (self.n_batches_ - self._born < self._n_young)]
        tested = self._sampled(np.flatnonzero(~np.isin(ids, young) & (weights > 0)), ages)
        ages, weights = ages[tested], weights[tested]
        n_fine = len(tested) // _ROWS_PER_FINE_CLUSTER
        if n_fine < 2 or not (ages < 0).any() or not (ages >= 0).any():
            return
        of_tested = safe_indexing(rows, tested)
        labels, nodes, largest_gap = self._fine_tree(of_tested, ids[tested], n_fine)
        spans = np.bincount(ages[ages >= 0], weights[ages >= 0], self.window).cumsum()
        earlier = float(weights[ages < 0].sum())
        counts = np.zeros((n_fine, self.window + 1))
        np.add.at(counts, (labels, ages), weights)  # earlier rows, of age -1, come last
        of_nodes = np.array([counts[node].sum(axis=0) for node in nodes])
        log_p = _log_p_values(of_nodes, spans, earlier, self.min_size)
        best = log_p.min(axis=1)
        threshold = np.log(self.significance / log_p.size)
        taken: set[int] = set()
        for node in np.argsort(best, kind="stable").tolist():
            is_full = self.max_clusters is not None and len(self.ids_) >= self.max_clusters
            if best[node] > threshold or is_full:
                break
            if taken.isdisjoint(nodes[node]):
                taken.update(nodes[node])
                candidates = tested[np.isin(labels, nodes[node])]
                for part in self._parts(rows, candidates, largest_gap):
                    self._bear(part, float(best[node]), largest_gap)

    def _sampled(self, tested: Array, ages: Array) -> Array:
        """Return the rows to test: a sample of the window's where it has more than the reservoir.

        More would take the square of the time: fine clusters are as many as rows allow.
        """
        recent = tested[ages[tested] >= 0]
        size = int(self.reservoir_size)
        if len(recent) <= size:
            return tested
        rng = np.random.default_rng([self._seed, self.n_batches_, 2])
        drawn = np.sort(rng.choice(recent, size, replace=False))
        return np.append(drawn, tested[ages[tested] < 0])

    def _one_part(self, rows: Any, own: Array, candidates: Array, largest_gap: float) -> Array:
        """Leave out rows of another new cluster: old ones may be further from them than this one.

        Of the parts that are far apart, the one with most candidates stays.
        """
        parts = self._parts(rows, np.flatnonzero(own), largest_gap)
        largest = max(parts, key=lambda part: np.count_nonzero(np.isin(part, candidates)))
        return np.isin(np.arange(len(own)), largest)

    @property
    def _n_young(self) -> float:
        return self.window + self.half_life

    def _fine_tree(
        self, rows: Any, ids: Array, n_fine: int
    ) -> tuple[Array, list[list[int]], float]:
        """Return fine clusters of rows, nodes of a tree that joins near ones, and the largest gap.

        A node is no longer one where it joins what is as far apart as live clusters are: two new
        clusters have more evidence together than each alone.
        """
        fine, alive = self._fine_clusters(rows, n_fine, "random_from_data")
        largest_gap = _MAX_GAP * _typical_gap(
            _merge_cost(fine, alive), _majorities(fine.labels_, ids, alive)
        )
        cost = _merge_cost(fine, alive)
        counts = cost.counts.copy()
        groups = {i: [int(k)] for i, k in enumerate(alive)}
        is_node = dict.fromkeys(groups, True)
        nodes = list(groups.values())
        for i, j, loss in merge_greedily(cost, 1)[1]:
            gap = _gap(loss, counts[i], counts[j], cost.dim)
            is_node[i] = bool(is_node[i] and is_node[j] and gap <= largest_gap)
            groups[i] = groups[i] + groups[j]
            counts[i] += counts[j]
            if is_node[i]:
                nodes.append(groups[i])
        return fine.labels_, nodes, largest_gap

    def _fine_clusters(self, rows: Any, n_fine: int, init: str) -> tuple[BaseMixture, Array]:
        """Return a mixture of simple components for rows, and those that have rows."""
        seed = int(np.random.default_rng([self._seed, self.n_batches_, 1]).integers(2**31))
        params = self._plain_params() | {
            "n_components": n_fine,
            "init_params": init,
            "background": False,
            "max_iter": _FINE_STEPS,
            "tol": 0.0,
            "random_state": seed,
            "verbose": 0,
        }
        if hasattr(self.mixture, "concentration_type"):
            params["concentration_type"] = "tied"
        else:  # which few rows suffice to estimate
            params["covariance_type"] = "spherical"
        fine: BaseMixture = clone(self.mixture).set_params(**params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            fine.fit(rows)
        assert fine._running_statistics is not None
        counts = fine._running_statistics.counts[:n_fine]
        return fine, np.flatnonzero(counts > _LEAST_COUNT)

    def _parts(self, rows: Any, candidates: Array, largest_gap: float) -> list[Array]:
        """Return the candidates for one new cluster, cut in two while parts are far apart."""
        if len(candidates) < 2 * _MIN_PART:
            return [candidates]
        fine, alive = self._fine_clusters(safe_indexing(rows, candidates), 2, "kmeans")
        parts = [candidates[fine.labels_ == k] for k in alive]
        if len(parts) < 2 or min(map(len, parts)) < _MIN_PART:
            return [candidates]
        cost = _merge_cost(fine, alive)
        (loss,) = cost.losses(0, np.array([1]))
        if _gap(loss, cost.counts[0], cost.counts[1], cost.dim) <= largest_gap:
            return [candidates]
        return [each for part in parts for each in self._parts(rows, part, largest_gap)]

    def _bear(self, candidates: Array, evidence: float, largest_gap: float) -> None:
        """Let rows become a cluster if it takes enough of the window and few earlier rows."""
        rows, ids, weights, ages = self._kept()
        new = self._next_id
        recent = ages >= 0
        live = np.append(self.ids_, new)
        own = np.isin(np.arange(len(ids)), candidates)
        for _ in range(_BIRTH_STEPS):
            if not (own & recent).any():
                return
            trial_ids = np.where(own & recent, new, ids)
            present = np.isin(live, trial_ids)
            if not present.all():  # it would take all that is left of an old one
                return
            trial = self._estimated(trial_ids, live)
            own = trial.predict(rows) == len(self.ids_)
            own = self._one_part(rows, own, candidates, largest_gap)
        taken = float(weights[own & recent].sum())
        share = taken / float(weights[recent].sum())
        earlier = float(weights[own & ~recent].sum() / weights[~recent].sum())
        if taken < self.min_size or share < _MIN_RATIO * earlier:
            return
        moved = own & recent
        remaining = np.where(moved, new, ids)
        if not np.isin(live, remaining).all():
            return
        parents, counts = np.unique(ids[moved], return_counts=True)
        row_numbers = [np.arange(len(b.ids)) + b.first_row for b in self._window]
        numbers = np.concatenate([*row_numbers, np.full(len(self._reservoir_ids), -1)])
        self._note("birth", new, evidence, rows=numbers[moved])
        ends = np.cumsum([len(batch.ids) for batch in self._window])
        of_batches = np.split(remaining[: ends[-1]], ends[:-1])
        self._window = [
            batch._replace(ids=of_batch)
            for batch, of_batch in zip(self._window, of_batches, strict=True)
        ]
        faded = weights[moved] * self._decay ** ages[moved]
        sizes = np.maximum(self._sizes - _sums(ids[moved], faded, self.ids_), 0.0)
        self._sizes = np.append(sizes, faded.sum())
        self._largest = np.append(self._largest, faded.sum())
        self._born = np.append(self._born, self.n_batches_)
        self._last_seen = np.append(self._last_seen, self.n_batches_ - ages[moved].min())
        self._parents = np.append(self._parents, parents[counts.argmax()])
        self.ids_ = live
        self._next_id = new + 1
        self.mixture_ = self._estimated()


def _weights(sample_weight: ArrayLike | None, rows: Any) -> Array:
    """Return checked weights (n,), one where none are given."""
    if sample_weight is None:
        return np.ones(rows.shape[0])
    return np.asarray(check_sample_weight(in_memory(sample_weight), rows), dtype=np.float64)


def _stacked(parts: list[Any]) -> Any:
    """Return rows one after the other, dense or CSR."""
    if any(map(sparse.issparse, parts)):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def _sums(ids: Array, weights: Array, live: Array) -> Array:
    """Return the weight of the rows of each live cluster."""
    known = np.isin(ids, live)
    return np.bincount(np.searchsorted(live, ids[known]), weights[known], len(live))


def _merge_cost(fine: BaseMixture, alive: Array) -> MergeCost:
    """Return what merges of fine clusters cost, of those that have rows."""
    fitted, statistics = fine._fitted, fine._running_statistics
    assert statistics is not None
    statistics = statistics.first_components(fitted.n_components)
    cost: MergeCost = fitted.family.merge_cost(statistics, fitted.components, alive)
    return cost


def _gap(loss: Any, a: Any, b: Any, dim: int) -> Any:
    """Return what merging clusters of a and b rows loses beyond chance, whatever their sizes."""
    return (loss - chance_gain(a, b, dim)) * (1 / a + 1 / b)


def _majorities(labels: Array, ids: Array, alive: Array) -> Array:
    """Return the id that most rows of each fine cluster have, those of `alive` by number."""
    live, numbers = np.unique(ids, return_inverse=True)
    counts = np.zeros((labels.max(initial=alive.max()) + 1, len(live)))
    np.add.at(counts, (labels, numbers), 1.0)
    return live[counts[alive].argmax(axis=1)]


def _typical_gap(cost: MergeCost, ids: Array) -> float:
    """Return the median gap between a live cluster and its nearest one, from fine clusters."""
    first = np.unique(ids, return_index=True)[1]
    if len(first) < 2:
        return np.inf
    for i in first.tolist():
        for j in np.flatnonzero(ids == ids[i])[1:].tolist():
            cost.merge(i, j)
    gaps = []
    for i in first.tolist():
        others = first[first != i]
        losses = cost.losses(i, others)
        gaps.append(_gap(losses, cost.counts[others], cost.counts[i], cost.dim).min())
    return float(np.median(gaps))


def _least_score(scores: Array) -> float:
    return float(np.quantile(scores, _LEAST_QUANTILE))


def _log_p_values(counts: Array, spans: Array, earlier: float, min_size: int) -> Array:
    """Return log p-values (m, window) of nodes for the last batches, 0 where too few are new.

    `counts` (m, window + 1) are weights of rows by age, and of earlier rows. Given the sum a + b of
    recent and earlier rows, a is binomial where nothing is new.
    """
    recent = counts[:, :-1].cumsum(axis=1)
    before = counts[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        is_new = recent / spans > _MIN_RATIO * before / earlier
        # A node need not have all rows of a cluster that is born.
        is_new &= (recent >= 0.6 * min_size) & (spans > 0)
    log_p = np.zeros(recent.shape)
    node, span = np.nonzero(is_new)
    a = recent[node, span]
    b = before[node, 0]
    share = spans[span] / (spans[span] + earlier)
    log_p[node, span] = np.log(np.maximum(betainc(a, b + 1, share), _TINY))
    return log_p
