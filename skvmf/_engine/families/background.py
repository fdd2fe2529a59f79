"""The background: a uniform distribution, on the sphere or in a box, beside the components."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from ..._typing import Array
from ...distributions import vonmises_fisher as vmf
from ..rows.sources import RowSource
from .family import Scores
from .params import Params

FIRST_WEIGHT = 0.1  # of a background, before any rows have been seen: few rows are outliers


@dataclass(frozen=True, eq=False)
class Background:
    """The uniform outlier component of a mixture, or nothing.

    Weights, counts and scores have an entry per uniform distribution after those of the
    components, so no caller has to ask whether there is one.

    `log_densities` holds the log-density, also at rows outside the box: they are no less outlying
    than those inside. It is empty if there is no background. `bounds` (2, d) are the least and the
    largest corner of the box; None is the sphere. The density is that of features in `units` (d,),
    as is that of the components (`Family.units`).
    """

    log_densities: tuple[float, ...] = ()
    bounds: Array | None = None
    units: Array | None = None

    @classmethod
    def on_sphere(cls, dim: int) -> "Background":
        """Return the uniform distribution on the unit sphere."""
        return cls((-float(vmf.log_sphere_area(dim)),))

    @classmethod
    def in_box(cls, bounds: Array, units: Array | None = None) -> "Background":
        """Return the uniform distribution between two corners (2, d), its density in units (d,)."""
        background = cls((0.0,), bounds, units)
        return replace(background, log_densities=(-float(background.log_widths.sum()),))

    @classmethod
    def around(cls, rows: RowSource, family: Any) -> "Background":
        """Return the uniform distribution in the box around rows, for components of a family."""
        units = family.units_of_density
        low, high = rows.extent(slice(None))
        # So wide that constant features leave the box a volume: as a uniform distribution of the
        # least variance is (a width w has w^2 / 12), and wider than the rounding of its corners.
        variances = family.scale if units is None else units**2
        least_variance = np.maximum(family.regularization, 1e-12 * variances)
        rounding = np.spacing(np.maximum(np.abs(low), np.abs(high)))
        least_width = np.maximum(np.sqrt(12 * least_variance), 16 * rounding)
        added = np.maximum(least_width - (high - low), 0)
        return cls.in_box(np.array([low - added / 2, high + added / 2]), units)

    @property
    def log_widths(self) -> Array:
        """Logarithms of the widths of the box (d,), in the units of its density."""
        assert self.bounds is not None
        widths = self.bounds[1] - self.bounds[0]
        if self.units is not None:
            widths = widths / self.units
        return np.log(widths)

    def in_units(self, units: Array) -> "Background":
        """Return the background of rows whose features are divided by units (d,)."""
        return self if self.bounds is None else self.in_box(self.bounds / units)

    def with_units(self, units: Array | None) -> "Background":
        """Return the background with its density in other units (d,)."""
        return self if self.bounds is None else self.in_box(self.bounds, units)

    def __len__(self) -> int:
        return len(self.log_densities)

    def add_scores(self, scores: Scores, block: Any) -> Scores:
        """Return the scores of components followed by those of the background."""
        if len(self) == 0:
            return scores
        values = np.zeros((len(scores.unnormalized), len(self)), dtype=scores.unnormalized.dtype)
        if self.bounds is not None and block.missing is not None:
            # Missing values are integrated out: the box has no side along them.
            values += np.dot(np.isnan(block.X), self.log_widths)[:, None]
        bias = np.append(scores.bias, self.log_densities)
        return replace(scores, unnormalized=np.hstack([scores.unnormalized, values]), bias=bias)

    def add_weight(self, weights: Array, weight: float) -> Array:
        """Return weights (K,), scaled, followed by that of the background: they sum to one."""
        return np.append((1 - len(self) * weight) * weights, np.full(len(self), weight))

    def weights_after(self, params: Params) -> Array:
        """Return the weights for a fit that continues one with or without a background."""
        if len(params.weights) == params.n_components + len(self):
            return params.weights
        weights = params.conditional_weights
        if not weights.any():
            weights = np.full(params.n_components, 1 / params.n_components)
        return self.add_weight(weights, FIRST_WEIGHT)

    def draw(self, counts: Array, dim: int, rng: Generator) -> Array:
        """Draw ``counts.sum()`` rows; `counts` is as long as the background."""
        n_rows = counts.sum()
        if n_rows == 0:
            return np.empty((0, dim))
        if self.bounds is None:
            any_direction = np.eye(1, dim)[0]
            return vmf.rvs(any_direction, 0.0, size=n_rows, random_state=rng)
        low, high = self.bounds
        return rng.uniform(low, high, size=(n_rows, dim))


NO_BACKGROUND = Background()
