"""From what users give as X to rows that the engine reads."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._engine.data.base import RowSource
from .._engine.data.rows import make_rows
from .._engine.data.validation import READABLE
from .._engine.em.fitted import FittedMixture
from .._sklearn import validate_data
from .._typing import Array, MatrixLike
from ._attributes import FittedAttributes
from ._chunkwise import checked_row_weights, is_lazy
from ._hints import refuse_no_rows, refuse_sparse_rows, refuse_text_column


class MixtureRows(FittedAttributes):
    """Validates X, in memory or as a Dask array, and wraps it for the engine."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._family_class.sparse_rows
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validated(self, X: MatrixLike, *, reset: bool) -> Any:
        """Return rows as scikit-learn validates them, or raise a ValueError."""
        refuse_no_rows(X)
        accepts_sparse = self._family_class.sparse_rows
        if is_lazy(X):
            from ._dask import checked_rows

            X, row = checked_rows(X, sparse_rows=accepts_sparse)
            validate_data(self, row, reset=reset)
            return X
        if sparse.issparse(X) and not accepts_sparse:
            refuse_sparse_rows("X.toarray()")
        with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest floats
            try:
                return validate_data(
                    self,
                    X,
                    accept_sparse="csr" if accepts_sparse else False,
                    dtype=[np.float64, np.float32] if sparse.issparse(X) else READABLE,
                    ensure_all_finite=False,  # the engine looks, in a pass that it makes anyway
                    reset=reset,
                )
            except (TypeError, ValueError):
                refuse_text_column(X)
                raise

    def _make_rows(
        self, X: MatrixLike, weights: Array | None, *, moments: bool = False
    ) -> RowSource:
        """Wrap validated rows for the engine."""
        columns = moments and self._posterior().temperature > 0
        width = int(self.n_components)  # without moments each block is read once
        options: dict[str, Any] = {"unit": self._family_class.unit_rows, "columns": columns}
        if is_lazy(X):
            from ._dask import make_lazy_rows

            return make_lazy_rows(X, weights, width=width, **options)
        return make_rows(X, weights, width=width, ahead=moments, **options)

    def _new_rows(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> RowSource:
        """Return rows for a fitted mixture."""
        check_is_fitted(self)
        self._validate_params()
        X = self._validated(X, reset=False)
        return self._make_rows(X, checked_row_weights(sample_weight, X))

    def _predict_lazily(
        self, method: str, X: MatrixLike, dtype: Any, wide: bool, is_sparse: bool
    ) -> Array:
        """Return what a method returns for a Dask array: one too, in the chunks of X."""
        from ._dask import mapped

        check_is_fitted(self)
        self._validate_params()
        X = self._validated(X, reset=False)
        width = self._fitted.n_components if wide else None  # n_components may be new
        return mapped(self._lean(self._fitted), method, X, dtype, width, is_sparse)

    def _labelled(
        self, fitted: FittedMixture, X: MatrixLike, rows: RowSource
    ) -> tuple[Array, Array]:
        """Return the labels of validated rows, and the responsibilities of those components."""
        if not is_lazy(X):
            return fitted.most_responsible(rows, self._posterior())
        from ._dask import mapped

        lean = self._lean(fitted)
        return mapped(lean, "predict", X, np.int64), mapped(lean, "_largest_responsibilities", X)

    def _largest_responsibilities(self, X: MatrixLike) -> Array:
        """Return the responsibility of each row's most probable component."""
        return self._fitted.most_responsible(self._new_rows(X), self._posterior())[1]

    def _lean(self, fitted: FittedMixture) -> Self:
        """Return an estimator with a fit and without what only fits need, to send to workers."""
        params = self.get_params(deep=False)
        defaults = {name: None for name in params if name.endswith("_init") and name != "n_init"}
        lean = type(self)(**(params | defaults | {"init_params": "kmeans"}))
        lean._publish(fitted)
        lean.n_features_in_ = fitted.family.dim
        return lean
