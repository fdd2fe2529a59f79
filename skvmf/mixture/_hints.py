"""What to write here instead of what is written elsewhere."""

from inspect import Signature, signature
from typing import Any, ClassVar, Self

import numpy as np

_PARAMETERS = {
    "n_clusters": "components are counted by n_components",
    "n_jobs": "a fit uses all cores; limit them with threadpoolctl.threadpool_limits or "
    "OMP_NUM_THREADS",
    "nruns": "starts are counted by n_init",
    "force_weights": "a large weight_concentration_prior holds weights; the user guide says how",
}


class ArgumentHints:
    """Says what a parameter or attribute of other libraries is called here."""

    _attribute_hints: ClassVar[dict[str, str]] = {"cluster_centers_": "means_"}

    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        """Let `help` and editors show the parameters of `__init__`, not those of `__new__`."""
        super().__init_subclass__(**options)
        of_init = signature(cls.__init__)
        cls.__signature__ = of_init.replace(parameters=list(of_init.parameters.values())[1:])

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse parameters that other libraries have."""
        for name in parameters:
            if name in _PARAMETERS:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}: {_PARAMETERS[name]}.")
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        hint = self._attribute_hints.get(name)
        here = "" if hint is None else f": what other libraries call so is {hint} here"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{here}")


def holds_texts(X: Any) -> bool:
    """Whether X is a text or a sequence of texts."""
    if hasattr(type(X), "to_numpy") and getattr(X, "ndim", 2) == 1:  # a series of texts
        X = X.to_numpy()
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and len(X) > 0 else None
    return isinstance(X, str) or isinstance(first, str)


def refuse_texts(X: Any) -> None:
    """Refuse texts where rows of numbers are expected."""
    if holds_texts(X):
        raise ValueError(
            "X holds texts, and a mixture takes rows of numbers. Turn the texts into rows first, "
            "for example with sklearn.feature_extraction.text.TfidfVectorizer or a sentence "
            "encoder; both can be steps of a Pipeline."
        )
