"""A background: a density that is the same everywhere, for rows that belong to no component."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..data.base import RowSource
from ..data.blocks import DenseBlock

FIRST_SHARE = 0.1  # of the rows, before any has been seen


@dataclass(frozen=True)
class Background:
    """A uniform distribution, on the sphere or in a box.

    Parameters
    ----------
    log_density : float
        Its log-density, also at rows outside the box: they are no less outlying than those
        inside.
    bounds : ndarray of shape (2, d) or None
        The least and the largest corner of the box; None is the sphere.
    """

    log_density: float
    bounds: Array | None = None

    @classmethod
    def on_sphere(cls, dim: int) -> "Background":
        """Return the uniform distribution on the unit sphere."""
        return cls(-float(vmf.log_sphere_area(dim)))

    @classmethod
    def in_box(cls, bounds: Array) -> "Background":
        """Return the uniform distribution between two corners (2, d)."""
        return cls(-float(np.log(bounds[1] - bounds[0]).sum()), bounds)

    @classmethod
    def around(cls, rows: RowSource, reg_covar: float, scale: float) -> "Background":
        """Return the uniform distribution in the box around rows of a mean variance `scale`."""
        return cls.in_box(bounding_box(rows, max(reg_covar, 1e-12 * scale)))

    def draw(self, size: int, dim: int, rng: np.random.RandomState) -> Array:
        """Draw rows (size, dim)."""
        if self.bounds is None:
            return vmf.rvs(np.eye(1, dim)[0], 0.0, size=size, random_state=rng)
        low, high = self.bounds
        drawn: Array = rng.uniform(low, high, size=(size, dim))
        return drawn


@dataclass
class Extent:
    """The least and the largest value of some features, each (m,); extents add."""

    low: Array
    high: Array

    def __iadd__(self, other: "Extent") -> "Extent":
        return Extent(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def extent_of(features: Any, block: DenseBlock) -> Extent:
    """Return the extent of a block's rows that count along some features."""
    X = block.X[block.weights > 0][:, features].astype(np.float64)
    return Extent(X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf))


def bounding_box(rows: RowSource, least_variance: float) -> Array:
    """Return the corners (2, d) of the box around rows that count.

    Along no feature is it narrower than a uniform distribution of the least variance is, so
    that constant features leave it a volume.
    """
    extent = rows.map_reduce(partial(extent_of, slice(None)))
    low, high = extent.low, extent.high
    largest = np.maximum(np.abs(low), np.abs(high))
    narrowest = np.maximum(np.sqrt(12 * least_variance), 16 * np.spacing(largest))
    missing = np.maximum(narrowest - (high - low), 0)
    return np.array([low - missing / 2, high + missing / 2])


def with_share(weights: Array, share: float) -> Array:
    """Return weights (K,) with that of the background behind them, (K + 1,), to sum to one."""
    return np.append((1 - share) * weights, share)
