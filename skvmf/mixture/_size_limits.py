"""The parameter `size_limits`: what it means for rows, and what it does not go together with."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from .._engine.em.mixture import MixtureResult, Point
from .._engine.em.size_limits import TOLERANCE, SizeLimits
from .._engine.rows.copies import heaviest_row
from .._engine.rows.sources import RowSource
from .._typing import Array, Attributes, ParameterConstraints
from ._base import BaseMixture
from ._rows import Data


class SizeLimitedMixture(BaseMixture):
    """A mixture whose components may have limits on the weight of their rows.

    Parameters
    ----------
    size_limits : tuple of two numbers or None, default=None
        The least and the largest weight of the rows of a component, either may be None. Integers
        are rows, and floats multiples of the mean weight: ``(0.5, 1.25)`` is half to 1.25 times the
        mean, and ``(20, 100)`` 20 to 100 rows. `labels_` keep the limits: exactly if rows weigh the
        same, and otherwise up to the largest weight of a row. Only multiples that no whole numbers
        of rows keep, such as ``(1.0, 1.0)`` for 10 rows and 3 components, mean the next ones, 3 to
        4 rows.
        Responsibilities, and so `weights_`, keep them up to half a percent of all rows. The fit is
        that without limits if it keeps them; otherwise EM goes on with `size_offsets_`. It needs
        rows in memory or in a `numpy.memmap`, and keeps 192 bytes for each.

    Attributes
    ----------
    size_offsets_ : ndarray of shape (n_components,) or None
        The price of a place in each component, in nats: positive where the upper limit of
        `size_limits` binds, negative where the lower one does, otherwise 0. `predict`,
        `predict_proba` and `responsibilities` subtract it from log-densities; `score_samples` and
        `score` do not. None without limits.
    """

    size_offsets_: Array | None

    size_limits: tuple[float | None, float | None] | None

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **BaseMixture._parameter_constraints,
        "size_limits": "no_validation",  # a message of its own says what a pair is
    }

    def _size_limits_of(self, data: Data) -> SizeLimits | None:
        """Return the limits in the unit of the rows; refuse those that cannot be met."""
        if self.size_limits is None:
            return None
        self._refuse_others(data)
        least, most = _checked(self.size_limits)
        rows = data.rows
        K = int(self.n_components)
        limits = _in_rows(least, most, rows, K)
        _refuse_unreachable(self.size_limits, limits, rows, K)
        return limits

    def _refuse_others(self, data: Data) -> None:
        """Refuse what limits on sizes do not go together with."""
        subject = f"size_limits={self.size_limits!r}"
        if self.background:
            raise ValueError(
                f"{subject} and background=True do not go together: a background takes any number "
                "of rows, and would take those that limits push out of their components. Leave "
                "outliers out first, by score_samples of a mixture with a background."
            )
        if self.entmax_alpha > 1:
            raise ValueError(
                f"{subject} needs entmax_alpha=1, got {self.entmax_alpha}: only softmax and hard "
                "responsibilities have offsets that act like log-weights."
            )
        if np.any(self._weight_prior().alpha < 1):
            raise ValueError(
                f"{subject} and weight_concentration_prior={self.weight_concentration_prior!r} "
                "contradict each other: a prior below 1 removes components, and limits keep all "
                "of them. Use 1 or more."
            )
        keeps_weights = "weights" in self.fixed and self.weights_init is not None
        if keeps_weights and not np.all(np.asarray(self.weights_init) > 0):
            raise ValueError(
                f"{subject} needs positive weights_init if fixed={self.fixed!r} keeps them: a "
                "component of weight 0 has no rows."
            )
        if data.known is not None:
            raise ValueError(
                f"{subject} does not take known_labels, whose rows stay where they are: fit "
                "without one of the two."
            )
        if data.chunks is not None:
            raise ValueError(
                f"{subject} needs rows in memory or in a numpy.memmap, as rows compete for places: "
                "fit a sample of the Dask array, X.compute() if it fits into memory, or a file "
                "that numpy.memmap opens."
            )

    def _stream_to_continue(self) -> Point | None:
        if self.size_limits is not None:
            raise ValueError(
                f"partial_fit sees one batch at a time, and size_limits={self.size_limits!r} are "
                "those of all rows: use fit, also on a numpy.memmap, or size_limits=None."
            )
        continued = super()._stream_to_continue()
        if continued is None:
            return None
        # Offsets are the prices of limits that a stream has not.
        return continued.at(replace(continued.params, offsets=None))

    def _attributes(self, fitted: Point, result: MixtureResult | None = None) -> Attributes:
        has_limits = self.size_limits is not None or fitted.params.offsets is not None
        offsets = fitted.offsets if has_limits else None
        return super()._attributes(fitted, result) | {"size_offsets_": offsets}


def _checked(given: Any) -> tuple[Any, Any]:
    """Return the least and the largest size as they are given, or raise a ValueError."""
    is_pair = isinstance(given, tuple) and len(given) == 2
    if not is_pair or not all(limit is None or _is_size(limit) for limit in given):
        raise ValueError(
            "size_limits should be a pair (least, most), a tuple such as (20, 200) for 20 to 200 "
            "rows, (None, 200) for at most 200, or (0.5, 1.25) for half to 1.25 times the mean "
            f"size; got {given!r}."
        )
    return given


def _is_size(limit: Any) -> bool:
    """Return whether a limit is a number that is not negative."""
    is_number = isinstance(limit, Real) and not isinstance(limit, bool)
    return is_number and bool(limit >= 0)


def _in_rows(
    least: float | None, most: float | None, rows: RowSource, n_components: int
) -> SizeLimits:
    """Return limits in the unit of the rows' weights.

    If weights are whole numbers, multiples of the mean are rounded to whole rows: towards it, so
    that they are kept, or away from it where not all components could be of the rounded size.
    """
    unit = rows.weight_unit
    weights = rows.sampling_weights() * unit
    total = float(weights.sum())
    mean = total / n_components
    are_whole = bool((weights == np.rint(weights)).all())

    def size(limit: Any) -> float:
        if isinstance(limit, Integral):
            return float(limit)
        multiple = float(limit) * mean
        # 1.2 times a mean of 50 is a little more than 60 in floats.
        if are_whole:
            multiple = round(multiple, 6)
        return multiple

    # A component may be empty, or have all rows.
    lower = 0.0
    if least is not None:
        lower = size(least)
    upper = total
    if most is not None:
        upper = min(size(most), total)
    if are_whole:
        lower = _whole(lower, up=bool(np.ceil(lower) <= mean))
        upper = _whole(upper, up=bool(np.floor(upper) < mean))
    # What offsets may leave to moves: a part of all rows, or one row if these are few.
    tolerance = max(TOLERANCE * total, float(weights.max()))
    return SizeLimits(lower / unit, upper / unit, tolerance / unit)


def _whole(size: float, up: bool) -> float:
    """Return the next whole number of rows, up or down."""
    whole = np.floor(size)
    if up:
        whole = np.ceil(size)
    return float(whole)


def _refuse_unreachable(given: Any, limits: SizeLimits, rows: RowSource, n_components: int) -> None:
    """Refuse limits that no labels of the rows keep."""
    unit = rows.weight_unit
    total = rows.total_weight * unit
    least = limits.least * unit
    most = limits.most * unit
    # What a sum of many weights may be off by. It is far less than a row.
    rounding = 1e-9 * total
    if least > most:
        raise ValueError(f"size_limits={given!r}: the least size is above the largest.")
    if n_components * least > total + rounding:
        raise ValueError(
            f"size_limits={given!r} needs {n_components} times {least:g} = "
            f"{n_components * least:g} rows, and there are {total:g}: use fewer components or a "
            "lower limit."
        )
    if n_components * most < total - rounding:
        raise ValueError(
            f"size_limits={given!r} leaves room for {n_components} times {most:g} = "
            f"{n_components * most:g} rows, and there are {total:g}: use more components or a "
            "higher limit."
        )
    if most < total - rounding:
        heaviest = heaviest_row(rows) * unit
        if heaviest > most + rounding:
            raise ValueError(
                f"size_limits={given!r} allows {most:g} rows in a component, and one row with its "
                f"copies weighs {heaviest:g}: they would be in several components that are equal. "
                "Remove duplicates first, or raise the limit."
            )
