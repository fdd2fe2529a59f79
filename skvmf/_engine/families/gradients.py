"""Gradients of the log-likelihood of bags of vectors in the parameters, for Fisher vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..._typing import Array

Bags: TypeAlias = tuple[Array, ...]  # starts, words and amounts, as `pad_bags` prepares them
_MAX_FLOAT = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class VectorResponsibilities:
    """Responsibilities (V, K) for the vectors of a table, or compressed rows if most are zero.

    A vector left out has none. `table` (V, d) and `scales` (V,) are vectors as the mixture sees
    them.
    """

    resp: Array | tuple[Array, Array, Array]
    table: Array
    scales: Array

    @property
    def packed(self) -> bool:
        """Whether responsibilities are compressed rows."""
        return isinstance(self.resp, tuple)


@dataclass(frozen=True, eq=False)
class ParameterBlock:
    """Slope and variance of a statistic: what one kind of parameter adds to a Fisher vector.

    Parameters
    ----------
    slope : ndarray of shape (K,) or (K, d)
        What the statistic is multiplied by in the gradient.
    variance : ndarray of the same shape
        The variance of the statistic for one vector.
    """

    slope: Array
    variance: Array

    def factor(self, normalization: str | None) -> Array:
        """Return the factor of the statistic: finite; 0 for a component without weight."""
        if normalization is None:
            return self.slope
        if normalization == "fisher":
            return _inverse(np.sqrt(self.variance))
        return _inverse(self.slope * self.variance)


class Gradients(ABC):
    """Gradients of the log-likelihood of bags of vectors, in weights and components.

    Parameters
    ----------
    weights : ndarray of shape (K,)
        Weights of the mixture.
    components : object
        The family's components.
    tangent : bool
        Whether gradients in directions are taken along the sphere.
    """

    names: ClassVar[dict[str, str]]  # the kinds of parameters, each with the name of one of them
    blocks: dict[str, ParameterBlock]  # slopes and variances of the statistics of each kind

    @abstractmethod
    def __init__(self, weights: Array, components: Any, *, tangent: bool) -> None: ...

    @abstractmethod
    def statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, kinds: Sequence[str]
    ) -> tuple[dict[str, Array], Array]:
        """Return the statistics of each kind, (n, K, d) or (n, K), and the bags' sizes (n,)."""


GradientsType: TypeAlias = type[Gradients]


def repeat_columns(first: Array, second: Array, d: int) -> tuple[Array, Array]:
    """Repeat the values of components for each dimension.

    Parameters
    ----------
    first, second : ndarray of shape (K,)
        Values of components, such as slopes and variances.
    d : int
        Number of dimensions.

    Returns
    -------
    first, second : ndarray of shape (K, d)
        The values, once per dimension.
    """
    return np.tile(first[:, None], d), np.tile(second[:, None], d)


def _inverse(values: Array) -> Array:
    # Components without weight have no variance. Beyond the largest float it is taken for that.
    with np.errstate(over="ignore"):
        inverses = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return np.minimum(inverses, _MAX_FLOAT)
