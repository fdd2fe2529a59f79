"""From a fitted mixture down to fewer components: join two, fit a little, and so on."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.base import clone

from .._engine.contracts.model_parts import Posterior
from .._engine.contracts.responsibilities import DenseResponsibilities, Responsibilities, as_dense
from .._engine.contracts.statistics import Params, Statistics
from .._engine.data.blocks import Block
from .._engine.em.fitted import FittedMixture
from .._engine.em.loop import run_em
from .._engine.em.mixture_model import MixtureModel
from .._engine.families.merge_costs import chance_gain
from .._engine.initialization.partitions import partition_statistics
from .._engine.parallel.blas import limited_blas
from .._sklearn import check_sample_weight
from .._typing import Array
from ..mixture._base import BaseMixture
from ..mixture._initialization import Initialization

_STEPS = 3  # of EM after components have been joined


class MergePath:
    """Mixtures of fewer and fewer components, each from the one before.

    Parameters
    ----------
    mixture : BaseMixture
        A fitted mixture, the first.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    sample_weight : array-like of shape (n_samples,) or None
        Their weights.

    Attributes
    ----------
    mixture : BaseMixture
        The mixture of this moment, without labels.
    nodes : ndarray of shape (n_components,)
        Its components as nodes of the tree: a component of the first mixture by its number, a
        union by that of the first mixture's components plus its place in `unions`.
    unions : list of (int, int, float)
        The two nodes that were joined, and what it lost in log-likelihood.
    """

    def __init__(self, mixture: BaseMixture, X: Any, sample_weight: Any) -> None:
        X = mixture._validated(X, reset=False)
        weights = check_sample_weight(sample_weight, X)
        self._rows = mixture._make_rows(X, weights, moments=True)
        self._n_leaves = int(mixture.n_components)
        self.mixture = mixture
        self.nodes = np.arange(self._n_leaves)
        self.unions: list[tuple[int, int, float]] = []

    @property
    def fitted(self) -> FittedMixture:
        """The parameters of this moment."""
        return self.mixture._fitted

    @property
    def n_active(self) -> int:
        """How many components have not left the mixture."""
        return int(self.mixture.n_active_components_)

    def measures(self) -> dict[str, float]:
        """Return what the mixture of this moment makes of the rows."""
        mixture = self.mixture
        log_likelihood, n_samples = mixture._fitted.log_likelihood(self._rows)
        n_parameters = mixture._n_parameters()
        bic = -2 * log_likelihood + n_parameters * float(np.log(max(n_samples, 1)))
        return {
            "n_components": len(self.nodes),
            "n_parameters": n_parameters,
            "lower_bound": mixture.lower_bound_,
            "log_likelihood": log_likelihood,
            "bic": bic,
            "icl": bic + 2 * self._entropy(),
        }

    def to(self, n_components: int) -> None:
        """Go down to so many components: join the pairs that lose least, and fit a little.

        Those that have left the mixture are joined first, and a mixture is left by none: where
        some leave in the fit, it is one of fewer components.
        """
        with limited_blas() as limit, limit:
            while len(self.nodes) > n_components or self.n_active < len(self.nodes):
                n_components = min(n_components, self.n_active)
                stats = self._statistics()
                groups = self._groups(stats, n_components)
                self._refit(groups, stats.counts, n_components)

    def end(self) -> None:
        """Join what is left without another fit, so that the tree has one root."""
        self._groups(self._statistics(), 1)

    def _entropy(self) -> float:
        """Return the weighted entropy of the rows' responsibilities."""
        posterior = self.mixture._posterior()
        entropy: float = self._rows.map_reduce(partial(_entropy, self.fitted, posterior))
        return entropy

    def _statistics(self) -> Statistics:
        fitted = self.fitted
        model = _model(self.mixture, fitted)
        stats: Statistics = self._rows.map_reduce(partial(model.expect, fitted.params))
        return stats

    # Which components become one.

    def _groups(self, stats: Statistics, n_groups: int) -> Array:
        """Join nodes; return which of the new ones each component (K,) is part of."""
        K = len(self.nodes)
        self.nodes = self.nodes.copy()
        group = np.arange(K)
        alive = np.flatnonzero((stats.counts[:K] > 0) & (self.mixture.weights_[:K] > 0))
        fitted = self.fitted
        centres = fitted.family.centres(fitted.params.components)
        for k in np.setdiff1d(np.arange(K), alive)[: K - n_groups]:  # they had left already
            nearest = alive[np.linalg.norm(centres[alive] - centres[k], axis=1).argmin()]
            self._join(group, nearest, k, 0.0)
        n_left = n_groups - (len(np.unique(group)) - len(alive))
        if n_left < len(alive):
            self._join_alive(stats, fitted, alive, group, n_left)
        kept, group = np.unique(group, return_inverse=True)
        self.nodes = self.nodes[kept]
        return group

    def _join_alive(
        self, stats: Statistics, fitted: FittedMixture, alive: Array, group: Array, n_left: int
    ) -> None:
        """Join the pairs of components with rows whose union loses least beyond chance."""
        parts = fitted.family.unions(stats, fitted.params.components, alive)
        excess = np.array([parts.excess(i) for i in range(len(alive))])
        np.fill_diagonal(excess, np.inf)
        left = np.ones(len(alive), dtype=bool)
        for _ in range(len(alive) - n_left):
            i, j = sorted(np.unravel_index(excess.argmin(), excess.shape))
            chance = chance_gain(parts.counts[i], parts.counts[j], fitted.family.dim)
            self._join(group, alive[i], alive[j], max(float(excess[i, j] + chance), 0.0))
            parts.join(i, j)
            left[j] = False
            others = left & (np.arange(len(left)) != i)
            excess[j], excess[:, j] = np.inf, np.inf
            excess[i] = excess[:, i] = np.where(others, parts.excess(i), np.inf)

    def _join(self, group: Array, i: int, j: int, loss: float) -> None:
        """Put the components of the group of j into that of i, under a new node."""
        first, second = sorted((group[i], group[j]))
        self.unions.append((int(self.nodes[first]), int(self.nodes[second]), loss))
        group[group == second] = first
        self.nodes[first] = self._n_leaves + len(self.unions) - 1

    # The fit of fewer components.

    def _refit(self, group: Array, counts: Array, n_components: int) -> None:
        """Fit a mixture whose components begin with the rows of the groups' components."""
        before, rows = self.mixture, self._rows
        mixture = clone(before).set_params(n_components=n_components)
        family, params = self._start(mixture, group, counts)
        params = replace(params, weights=mixture._weight_prior().lift(params.weights))
        fitted = replace(before._fitted, family=family, params=params)
        model = _model(mixture, fitted)
        result = run_em(model, rows, params, max_iter=_STEPS, tol=mixture.tol)
        self._keep_order(mixture, result.params)
        fitted = mixture._finished(replace(fitted, params=result.params))
        _take_features(mixture, before)
        mixture._publish(
            fitted, n_iter_=result.n_iter, converged_=False, lower_bound_=result.bounds[-1]
        )
        self.mixture = mixture

    def _start(self, mixture: BaseMixture, group: Array, counts: Array) -> tuple[Any, Params]:
        """Return a family and first parameters: those of the groups' shares."""
        K = len(self.nodes)
        share = self._share_in_groups(group)
        family = mixture._make_family(self._rows)
        fitted = self.fitted
        largest = [int(np.argmax(np.where(group == k, counts[: len(group)], -1))) for k in range(K)]
        centres = fitted.family.centres(fitted.params.components)[largest]
        stats, about = partition_statistics(family, self._rows, centres, share)
        family = family.anchored(stats)
        components = family.initial(stats, about)
        beside = fitted.params.weights[len(group) :]  # of what is no component
        weights = np.append((1 - beside.sum()) * stats.counts / stats.counts.sum(), beside)
        params = Params.first(weights, components).pruned()
        self._keep_order(mixture, params)
        return family, mixture._constrained(Initialization(K, share), family, params)

    def _share_in_groups(self, group: Array) -> Any:
        """Return what shares a block out among the groups of this moment's components."""
        mixture, fitted = self.mixture, self.fitted
        model, posterior = _model(mixture, fitted), mixture._posterior()
        K = len(self.nodes)
        members = np.zeros((len(group), K))
        members[np.arange(len(group)), group] = 1

        def share(block: Block) -> tuple[Responsibilities, Array]:
            scores = model.scores(fitted.params, block)
            responsibilities, counts, _ = posterior.assign(
                scores, fitted.params.weights, block.weights, block.scales
            )
            resp = as_dense(responsibilities.first_components(len(group)), len(group))
            joined = np.ascontiguousarray(resp @ members.astype(resp.dtype))
            return DenseResponsibilities(joined), counts[: len(group)] @ members

        return share

    def _keep_order(self, mixture: BaseMixture, params: Params) -> None:
        """Put nodes into the order in which the mixture keeps its components."""
        self.nodes = self.nodes[mixture._order(params.components)]


def refined(mixture: BaseMixture, fitted: FittedMixture, X: Any, sample_weight: Any) -> BaseMixture:
    """Return a mixture that goes on from a fit, one of a descent, until it has converged."""
    K = len(fitted.family.centres(fitted.params.components))
    best: BaseMixture = clone(mixture).set_params(n_components=K, warm_start=True)
    if best.checkpoint is not None:  # which is that of the first fit
        best.set_params(checkpoint=None)
    best._publish(fitted)
    _take_features(best, mixture)
    best.fit(X, sample_weight=sample_weight)
    best.set_params(warm_start=mixture.warm_start)
    return best


def _model(mixture: BaseMixture, fitted: FittedMixture) -> MixtureModel:
    """Return the model that the fit of a mixture has climbed."""
    model = mixture._model(fitted.family, mixture._weight_prior())
    return replace(model, background=fitted.background_log_density)


def _take_features(mixture: BaseMixture, before: BaseMixture) -> None:
    """Let a mixture know the features that one before it has seen."""
    mixture.n_features_in_ = before.n_features_in_
    if hasattr(before, "feature_names_in_"):
        mixture.feature_names_in_ = before.feature_names_in_


def _entropy(fitted: FittedMixture, posterior: Posterior, block: Block) -> float:
    """Return the weighted entropy of a block's responsibilities, the background's among them."""
    weights, ones = fitted.params.weights, np.ones(len(block.weights))
    responsibilities, *_ = posterior.assign(fitted.scores(block), weights, ones)
    resp = as_dense(responsibilities, len(weights)).astype(np.float64, copy=False)
    return float(block.weights @ entr(resp).sum(axis=1))
