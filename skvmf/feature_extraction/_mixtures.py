"""Validation of the mixture of a FisherVectorTransformer, and its default."""

from collections.abc import Iterable, Sequence

from sklearn.frozen import FrozenEstimator

from .._typing import Array
from ..mixture import VonMisesFisherMixture
from ..mixture._base import BaseMixture

N_COMPONENTS = 15  # the paper's; more made no difference there


def checked_mixture(
    mixture: BaseMixture | FrozenEstimator | None, kinds: Sequence[str]
) -> BaseMixture:
    """Return the mixture to use or to fit; refuse one without gradients of these kinds."""
    frozen = isinstance(mixture, FrozenEstimator)
    if isinstance(mixture, FrozenEstimator):
        mixture = mixture.estimator
    if mixture is None:
        mixture = VonMisesFisherMixture(N_COMPONENTS)
    if isinstance(mixture, type) or not hasattr(mixture, "__gradient_names__"):
        raise ValueError(
            "mixture should be one of skvmf's mixtures, or one of them fitted in a "
            f"FrozenEstimator, or None, got {mixture!r}. To use parameters of another library, "
            "build a mixture with from_parameters."
        )
    names = mixture.__vector_model__().names if frozen else mixture.__gradient_names__()
    check_kinds(kinds, names)
    return mixture


def check_kinds(kinds: Sequence[str], known: Iterable[str]) -> None:
    """Refuse gradients that are not known, or repeated."""
    kinds = list(kinds)
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(known):
        raise ValueError(
            f"gradients should hold one or more of {list(known)}, each once, got {kinds}."
        )


def count_distinct(vectors: Array, enough: int) -> int:
    """Count distinct rows, up to as many as are enough."""
    seen: set[bytes] = set()
    for row in vectors:
        seen.add(row.tobytes())
        if len(seen) == enough:
            break
    return len(seen)
