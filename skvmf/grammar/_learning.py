"""The estimate of a grammar's rules from counts, and the first rules of a fit."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._engine.contracts import EMResult
from .._typing import Array, RandomState
from ._model import (
    Arrays,
    DependencyModel,
    Estimate,
    MaximumPosterior,
    MeanField,
    RuleCounts,
    Rules,
    Sentences,
    as_rules,
    each,
    empty_counts,
    log_weight,
)
from ._rules import check_rules

_SMOOTHING = 0.1  # added to the harmonic counts: no rule starts at zero
_MIN_DIRICHLET = 1e-290  # divided by the lowest temperature the weights stay finite


def make_estimate(inference: str, concentration: float, floor: float, n_tags: int) -> Estimate:
    """Return how counts become rules, or say why they cannot."""
    if inference == "mean-field":
        if concentration < _MIN_DIRICHLET:
            raise ValueError(
                f"weight_concentration_prior={concentration}: mean-field inference needs a "
                f"Dirichlet prior, whose parameter is positive, at least {_MIN_DIRICHLET:g}. "
                "Use inference='map'."
            )
        return MeanField(concentration)
    largest = max(n_tags, 2)
    if floor > 1 / largest:
        raise ValueError(
            f"weight_floor={floor} is larger than 1 / {largest}: that many probabilities, "
            "each at least the floor, cannot sum to 1."
        )
    if floor == 0 and concentration < 1:
        raise ValueError(
            f"weight_concentration_prior={concentration} needs a positive weight_floor: "
            "without one the prior has no mode."
        )
    return MaximumPosterior(concentration, floor)


def start_rules(
    model: DependencyModel,
    sentences: Sentences,
    init: str | Sequence[Any],
    distance_power: float,
    random_state: RandomState,
) -> Rules:
    """Return the rules to start from; given ones must make every sentence possible."""
    if isinstance(init, str) and init == "harmonic":
        counts = sentences.harmonic_counts(distance_power)
        return model.estimate.start(each(lambda count: count + _SMOOTHING, counts))
    if isinstance(init, str):
        rng = check_random_state(random_state)
        given = each(
            lambda like: rng.dirichlet(np.ones(like.shape[-1]), size=like.shape[:-1]),
            empty_counts(sentences.n_tags),
        )
    elif len(init) != 3:
        raise ValueError("init should be 'harmonic', 'random' or (root, stop, choose).")
    else:
        given = check_rules(*init, n_tags=sentences.n_tags)
    if isinstance(model.estimate, MeanField):  # a posterior is made from counts
        given = sentences.map_reduce(partial(model.expect, as_rules(given))).counts
    rules = model.estimate.start(given)
    impossible = np.flatnonzero(np.isinf(sentences.log_partitions(rules.log_weights)))
    if len(impossible):
        raise ValueError(
            f"Under the rules given as init, sentence {impossible[0]} of X cannot be "
            "generated. Give every rule that it needs a positive probability."
        )
    return rules


def rules_of_trees(
    model: DependencyModel, sentences: Sentences, heads: Array
) -> EMResult[Rules, RuleCounts]:
    """Estimate the rules from trees; the bound is that of tags and trees together."""
    counts: Arrays = sentences.tree_counts(heads)
    rules = model.estimate.maximize(counts, None)
    value = log_weight(counts, rules)
    bound = model.lower_bound(RuleCounts(value, len(sentences), counts), rules)
    return EMResult(rules, [bound], n_iter=0, converged=True)
