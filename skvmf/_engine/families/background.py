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

FIRST_WEIGHT = 0.1  # of the rows, before any has been seen


@dataclass(frozen=True)
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
        """Return the uniform distribution in the box around rows of a family."""
        low, high = rows.extent(slice(None))
        largest = np.maximum(np.abs(low), np.abs(high))
        # So wide that constant features leave the box a volume: as if of the least variance.
        variances = family.scale
        if family.units is not None and not family.divided:
            variances = family.units**2
        least_variances = np.maximum(family.regularization, 1e-12 * variances)
        narrowest = np.maximum(np.sqrt(12 * least_variances), 16 * np.spacing(largest))
        missing = np.maximum(narrowest - (high - low), 0)
        bounds = np.array([low - missing / 2, high + missing / 2])
        return cls.in_box(bounds, None if family.divided else family.units)

    @property
    def log_widths(self) -> Array:
        """Logarithms of the widths of the box (d,), in the units of its density."""
        assert self.bounds is not None
        widths = self.bounds[1] - self.bounds[0]
        return np.log(widths if self.units is None else widths / self.units)

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
        values = np.zeros((len(scores.products), len(self)), dtype=scores.products.dtype)
        if self.bounds is not None and block.missing is not None:  # these are integrated out
            values += np.dot(np.isnan(block.X), self.log_widths)[:, None]
        bias = np.append(scores.bias, self.log_densities)
        return replace(scores, products=np.hstack([scores.products, values]), bias=bias)

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
        parts = [np.empty((0, dim))]
        for size in counts:
            if self.bounds is None:
                parts.append(vmf.rvs(np.eye(1, dim)[0], 0.0, size=size, random_state=rng))
            else:
                low, high = self.bounds
                parts.append(rng.uniform(low, high, size=(size, dim)))
        return np.concatenate(parts)


NO_BACKGROUND = Background()
