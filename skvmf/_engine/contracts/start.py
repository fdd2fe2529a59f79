"""Where a fit starts: what the user gives of its first parameters, and how the rest is found."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._typing import Array
from ..data.base import RowSource
from .model_parts import AnyFamily
from .statistics import Params


class Start(ABC):
    """Where the starts of a fit come from."""

    weights: Array | None
    """First weights that the user has given."""

    shapes: Array | None
    """First covariances, scale matrices or concentrations that the user has given."""

    @abstractmethod
    def describe(self, n_rows: int) -> tuple[str, str, int | None]:
        """Return the title of a search among `n_rows` rows, a detail, and its most steps.

        The latter is None for a search whose first step takes long.
        """

    @property
    @abstractmethod
    def n_starts(self) -> int:
        """How many starts continue on all rows."""

    @abstractmethod
    def first(
        self,
        family: AnyFamily,
        rows: RowSource,
        rng: np.random.RandomState,
        on_iteration: Callable[[int, list[float], Any], bool],  # as `run_em` calls it
    ) -> tuple[AnyFamily, Params]:
        """Return a family whose prior is centred on a first partition, and first parameters."""
