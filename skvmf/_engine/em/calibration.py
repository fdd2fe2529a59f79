"""The temperature at which memberships are those that other fits, or known labels, say."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ..._typing import Array

# Beyond it, the memberships of a component that is 1e4 nats ahead are e times the others'.
MAX_TEMPERATURE = 1e4
# Neighbours on the grid differ by a factor of 2.5: the loss has one minimum between two of them.
_N_GRID = 11
# No row is worse predicted than by this membership. Without a limit, single rows between components
# that are thousands of nats apart decide: diagonal Gaussians on 64 latent dimensions of texts then
# get a temperature of 74 instead of 13, and their calibration error triples. 1e-3 to 1e-12 differ
# little.
_LEAST_LOG_MEMBERSHIP = float(np.log(1e-6))


@dataclass(frozen=True, eq=False)
class Judged:
    """What a mixture says of rows, and what another fit, or known labels, say of them."""

    log_odds: Array  # (n, K + the background's), float64: the mixture's, up to a constant of a row
    memberships: Array  # (n, K + the background's), float64: the other fit's; 0 without a match
    weights: Array  # (n,)

    def logs_at(self, temperature: float) -> Array:
        """Return logarithms of the mixture's memberships at a temperature."""
        logs = self.log_odds / temperature
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return logs


def log_loss(judged: Sequence[Judged], temperature: float) -> float:
    """Return the mean log loss of memberships at a temperature, 0 where nothing is known."""
    total = 0.0
    weight = 0.0
    for each in judged:
        logs = np.maximum(each.logs_at(temperature), _LEAST_LOG_MEMBERSHIP)
        logs *= each.memberships
        total -= float((logs.sum(axis=1) * each.weights).sum())
        weight += float((each.memberships.sum(axis=1) * each.weights).sum())
    return total / weight if weight > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Reliability:
    """What memberships say of rows, in bins of about as many, and what other fits say of them."""

    prob_pred: Array  # (n_bins,): mean largest membership of the rows of a bin
    prob_true: Array  # (n_bins,): mean membership in the same components that the others say
    weights: Array  # (n_bins,): of the rows, adding up to one
    error: float  # the expected calibration error: the mean difference of the two
    log_loss: float


def reliability(judged: Sequence[Judged], temperature: float, n_bins: int) -> Reliability:
    """Return how memberships at a temperature hold."""
    largest = []
    others = []
    for each in judged:
        logs = each.logs_at(temperature)
        labels = logs.argmax(axis=1)[:, np.newaxis]
        largest.append(np.exp(np.take_along_axis(logs, labels, axis=1)[:, 0]))
        others.append(np.take_along_axis(each.memberships, labels, axis=1)[:, 0])
    said = np.concatenate(largest)
    held = np.concatenate(others)
    weights = np.concatenate([each.weights for each in judged])
    weights = weights / weights.sum()
    # Equal memberships, such as many of 1, are in one bin.
    order = np.argsort(said, kind="stable")
    last_of_bins = np.searchsorted(np.cumsum(weights[order]), np.arange(1, n_bins) / n_bins)
    edges = np.unique(said[order][np.minimum(last_of_bins, len(said) - 1)])
    bins = np.searchsorted(edges, said)
    of_bins = np.bincount(bins, weights, minlength=len(edges) + 1)
    used = of_bins > 0
    of_bins = of_bins[used]
    prob_pred = np.bincount(bins, weights * said, minlength=len(used))[used] / of_bins
    prob_true = np.bincount(bins, weights * held, minlength=len(used))[used] / of_bins
    error = float((of_bins * np.abs(prob_pred - prob_true)).sum())
    return Reliability(prob_pred, prob_true, of_bins, error, log_loss(judged, temperature))


def best_temperature(judged: Sequence[Judged]) -> float:
    """Return the temperature, from 1 to 10,000, with the least log loss; 1 where all have one."""

    def loss(log_temperature: float) -> float:
        return log_loss(judged, float(np.exp(log_temperature)))

    grid = np.linspace(0, np.log(MAX_TEMPERATURE), _N_GRID)
    best = int(np.argmin([loss(each) for each in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, _N_GRID - 1)]
    # Temperatures that differ by a thousandth give memberships that differ less than fits do.
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3}).x
    # A search between bounds never returns these.
    if loss(found) >= loss(grid[best]):
        found = grid[best]
    return min(float(np.exp(found)), MAX_TEMPERATURE)
