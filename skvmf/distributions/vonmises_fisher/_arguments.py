"""Arguments of the von Mises-Fisher functions: broadcasting over dimensions, and checks."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..._typing import Array, Values

_MAX_CONCENTRATION = 1e150  # its square is still finite
_MAX_DIM = 10**15  # floats tell integers apart up to ten times as much
_ROUNDING = 1e-12  # what the limits give way, for values that were computed


def by_dimension(evaluate: Callable[..., None], dim: ArrayLike, *arguments: Array) -> Values:
    """Broadcast, then call ``evaluate(d, out, *flat arguments)`` once per dimension."""
    dims = checked_dims(dim)
    shape = np.broadcast_shapes(dims.shape, *(x.shape for x in arguments))
    out = np.empty(shape)
    flat = [_flat(x, shape) for x in arguments]
    if dims.ndim == 0:
        evaluate(int(dims), out.reshape(-1), *flat)
        return out[()]
    every = np.broadcast_to(dims, shape).reshape(-1)
    order = np.argsort(every, kind="stable")
    distinct, starts = np.unique(every[order], return_index=True)
    for d, rows in zip(distinct, np.split(order, starts[1:]), strict=False):  # none: one empty
        part = np.empty(len(rows))
        evaluate(int(d), part, *(x[rows] for x in flat))
        out.reshape(-1)[rows] = part
    return out


def _flat(values: Array, shape: tuple[int, ...]) -> Array:
    """Return a 1-D array that every kernel accepts: one compiled signature for all."""
    if values.shape != shape:
        values = np.broadcast_to(values, shape)
    flat = np.require(values, np.float64, ["C", "A", "E"])
    if not (flat.flags.owndata and flat.flags.writeable):  # NumPy 1 warns if asked of lent ones
        flat = flat.copy()
    return flat.reshape(-1)


def checked_dims(dim: ArrayLike) -> Array:
    dims = np.asarray(dim)
    if dims.dtype.kind in "iu":
        whole = dims.astype(np.int64, copy=False)
    elif dims.dtype.kind == "f" and np.all(dims == np.floor(dims)) and np.all(np.isfinite(dims)):
        whole = dims.astype(np.int64)
    else:
        raise ValueError(f"dim must be an integer of at least 2, not {dim!r}.")
    if whole.size and whole.min() < 2:
        raise ValueError(f"dim must be an integer of at least 2; the smallest is {whole.min()}.")
    if whole.size and whole.max() > _MAX_DIM:
        raise ValueError(f"dim must be at most 1e15; the largest is {whole.max()}.")
    return whole


def checked_kappa(kappa: ArrayLike) -> Array:
    values = np.asarray(kappa, dtype=np.float64)
    if values.size and not (
        values.min() >= 0 and values.max() <= _MAX_CONCENTRATION * (1 + _ROUNDING)
    ):
        raise ValueError(
            "kappa, the concentration, must be finite, at least 0 and at most 1e150; "
            f"its values are within [{values.min()}, {values.max()}]."
        )
    return values


def checked_lengths(
    r: ArrayLike, complement: ArrayLike | None, dim: ArrayLike
) -> tuple[Array, ...]:
    """Return (r,) or (r, 1 - r) after checking that they are in range and fit together."""
    least = (
        0.5 * (checked_dims(dim) - 1.0) / _MAX_CONCENTRATION
    )  # kappa is (d - 1)/(2 (1 - r)) there
    lengths = np.asarray(r, dtype=np.float64)
    if lengths.size == 0:
        return (lengths,)
    low, high = lengths.min(), lengths.max()
    if complement is None:
        if not (low >= 0 and high < 1):
            raise ValueError(
                "r, the mean resultant length, must be at least 0 and less than 1; "
                f"its values are within [{low}, {high}]."
            )
        return (lengths,)
    rest = np.asarray(complement, dtype=np.float64)
    q_low, q_high = rest.min(), rest.max()
    if not (low >= 0 and high <= 1 and q_low > 0 and q_high <= 1):
        raise ValueError(
            "r must be at least 0 and less than 1 and its complement 1 - r above 0; they are "
            f"within [{low}, {high}] and [{q_low}, {q_high}]."
        )
    if abs(high + q_low - 1) > 1e-6 or abs(low + q_high - 1) > 1e-6:
        raise ValueError(
            f"complement must be 1 - r: r is within [{low}, {high}], "
            f"complement within [{q_low}, {q_high}]."
        )
    if np.any(rest < least * (1 - _ROUNDING)):
        raise ValueError(
            "complement, 1 - r, must be at least (dim - 1)/2 * 1e-150, that of a concentration of "
            f"1e150; its values are within [{q_low}, {q_high}]."
        )
    return lengths, rest
