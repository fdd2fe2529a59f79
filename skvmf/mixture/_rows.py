"""The door: what users give as X becomes rows that the engine reads, or is refused."""

from collections.abc import Callable, Iterator, Sized
from functools import wraps
from os import PathLike
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._engine.rows.sources import RowSource
from .._sklearn import Method, validate_data
from .._typing import Array, MatrixLike, warn

if TYPE_CHECKING:
    import dask.array as da


# What is given as rows and holds none, or no numbers.


def holds_texts(X: object) -> bool:
    """Return whether X is a text or a sequence of texts."""
    if hasattr(type(X), "to_numpy") and getattr(X, "ndim", 2) == 1:  # a series of texts
        X = np.asarray(X)
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and len(X) > 0 else None
    return isinstance(X, str) or isinstance(first, str)


def refuse_no_rows(X: Any) -> None:
    """Refuse texts, paths, generators, lazy frames, and dates, which NumPy turns into numbers."""
    if is_lazy(X):
        from ._dask import checked_rows

        checked_rows(X)
        return
    if isinstance(X, str | PathLike) or holds_texts(X):
        subject, read = "X holds texts", ""
        if isinstance(X, str | PathLike):
            subject = f"X={X!r} is a text or a path"
            read = "Read a file first, for example with numpy.load or pandas.read_csv. "
        raise ValueError(
            f"{subject}, and not rows of numbers. {read}Turn texts into rows first, for example "
            "with sklearn.feature_extraction.text.TfidfVectorizer or a sentence encoder; both can "
            "be steps of a Pipeline."
        )
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, and a fit reads the rows "
            "many times. Give all rows, for example np.vstack(list(X)), or call partial_fit with "
            "each batch."
        )
    if hasattr(X, "collect") and not hasattr(X, "__array__"):
        raise TypeError(f"X is a {type(X).__name__}, which holds no rows yet: give X.collect().")
    dtypes = X.dtypes if _is_frame(X) else [getattr(X, "dtype", None)]
    if len(getattr(X, "shape", "")) == 1 or any(map(_is_time, dtypes)):
        refuse_no_numbers(X)


def validated_rows(estimator: object, X: MatrixLike, **options: Any) -> Any:
    """Return rows as scikit-learn validates them; refuse what holds no numbers."""
    refuse_no_rows(X)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest floats
        try:
            options["dtype"] = _read_as(X, options["dtype"])
            return validate_data(estimator, X, **options)
        except (TypeError, ValueError):
            refuse_no_numbers(X)
            raise


def _read_as(X: Any, dtypes: Any) -> Any:
    """Return the type to read rows as, where scikit-learn would take the first of `dtypes`.

    It does so for other byte orders, and for frames but those of pandas: only of floats is the
    type taken from no rows, as integers may have missing values.
    """
    is_frame = hasattr(X, "columns")
    dtype = np.asarray(X[:0]).dtype if is_frame else getattr(X, "dtype", None)
    if not isinstance(dtype, np.dtype) or (dtype.kind != "f" if is_frame else dtype in dtypes):
        return dtypes
    native = dtype.newbyteorder("=")
    return native if native in dtypes else dtypes


def _is_frame(X: object) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _is_time(dtype: Any) -> bool:
    """Return whether a type, also one of polars, is that of dates or durations."""
    return getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)()


def refuse_no_numbers(X: Any) -> None:
    """Refuse frames and arrays that hold anything but numbers."""
    columns = []
    if len(getattr(X, "shape", "")) == 1 or _is_time(getattr(X, "dtype", None)):
        columns = [("X", "X", X)]
    elif _is_frame(X):
        columns = [(f"Column {name!r} of X", f"X[{name!r}]", X[name]) for name in X.columns]
    reasons = ((subject, _no_numbers(column, code)) for subject, code, column in columns)
    found = [f"{subject} {reason}" for subject, reason in reasons if reason is not None]
    if found:
        raise ValueError(next((each for each in found if "np.vstack" in each), found[0]))


def _no_numbers(column: Any, code: str) -> str | None:
    """Return why a column holds no numbers and what to do, None if it does."""
    values = np.asarray(column)
    if values.dtype.kind in "mM":
        return (
            f"does not hold numbers: its type is {values.dtype}. Leave it out, or make it a "
            "number, such as the days since the first one."
        )
    first = values.flat[0] if values.dtype == object and values.size else ""
    is_vector = isinstance(first, Sized) and not isinstance(first, str | bytes)
    if is_vector or values.ndim > len(column.shape):
        return f"holds vectors, and X should hold their numbers: give np.vstack({code})."
    if values.dtype.kind not in "OSU":
        return None
    try:
        values.astype(np.float64)
    except (TypeError, ValueError) as error:
        return (
            f"does not hold numbers: {shorten(str(error), 80, placeholder=' ...')}. Leave it out, "
            "or encode it, for example with sklearn.compose.make_column_transformer."
        )
    return None


def check_enough_rows(rows: RowSource, n_components: int, *, first_batch: bool = False) -> None:
    """Refuse rows that cannot be fitted with any parameters."""
    advice = "use fewer components"
    if first_batch:
        advice = (
            "partial_fit finds its first components in the first batch, which should have about "
            "100 rows per component"
        )
    if rows.n_rows < n_components:
        raise ValueError(
            f"Expected n_samples >= n_components but got n_components = {n_components},"
            f" n_samples = {rows.n_rows}: {advice}."
        )
    if rows.total_weight == 0:
        raise ValueError(
            "All rows with positive weight are zero: a zero row has no direction, so "
            "there is nothing to fit. Remove empty rows or check the preprocessing."
        )


def refuse_unobserved(rows: RowSource, names: Array | None) -> None:
    """Refuse features that no row with a weight has."""
    low, high = rows.extent(slice(None))
    lacking = np.flatnonzero(low > high)
    if len(lacking):
        which = lacking.tolist() if names is None else names[lacking].tolist()
        raise ValueError(
            f"No row has a value of the features {which}: leave them out, X without these columns."
        )


# Packed bits of embeddings are bytes of a standard deviation near 74 and a mean near 128, as those
# of uniform ones are; of quantized embeddings and of images the deviation is below 45 or above 85.
_PACKED_DEVIATION, _PACKED_MEAN, _PACKED_FEATURES = (60, 85), (100, 155), (8, 256)


# A frequent word makes up .07 to .25 of the squared lengths of counts, without stop words .04.
_DOMINATING_SHARE, _FEWEST_WORDS = 0.05, 100


def warn_if_encoded(X: Any) -> None:
    """Warn of validated rows that are packed bits, or counts that one feature dominates."""
    if is_lazy(X):
        return
    rows = X[:: max(1, X.shape[0] // 1000)]
    if X.shape[1] > _FEWEST_WORDS and all(map(_are_counts, (rows[:1], rows))):
        _warn_if_dominated(sparse.csr_array(rows) if sparse.issparse(rows) else rows)
    if X.dtype not in (np.uint8, np.int8):
        return
    rows = rows.astype(np.uint8)
    values = np.median(rows.std(axis=1)), rows.mean(), rows.shape[1]
    bounds = _PACKED_DEVIATION, _PACKED_MEAN, _PACKED_FEATURES
    if all(low <= value <= high for value, (low, high) in zip(values, bounds, strict=True)):
        warn(
            "X seems to hold the bits of embeddings, packed into bytes, whose directions mean "
            "nothing: unpack them, 2.0 * np.unpackbits(X.view(np.uint8), axis=1) - 1.",
            UserWarning,
        )


def _are_counts(rows: Any) -> bool:
    values = rows.data if sparse.issparse(rows) else rows
    return bool(((values >= 0) & (values < 1e9) & (values == np.rint(values))).all())


def _warn_if_dominated(counts: Any) -> None:
    squares = counts.astype(np.float64) ** 2
    lengths = np.maximum(squares.sum(axis=1), 1)
    shares = squares.T @ (1 / lengths) / len(lengths)
    if shares.max() > _DOMINATING_SHARE and squares.max() > 1:
        warn(
            f"X seems to hold counts, and feature {shares.argmax()} alone makes up "
            f"{shares.max():.0%} of their squared lengths, as a frequent word does: weight them "
            "first, for example with sklearn.feature_extraction.text.TfidfTransformer.",
            UserWarning,
        )


def is_lazy(X: object) -> "TypeGuard[da.Array]":
    """Return whether X is a Dask array or frame, or an xarray array of one."""
    return getattr(X, "__dask_graph__", lambda: None)() is not None


def in_memory(X: object) -> Any:
    """Return rows, labels or weights in memory, also those of a Dask array."""
    return X.compute() if is_lazy(X) else X


def refuse_sparse_rows(to_dense: str) -> NoReturn:
    """Refuse sparse rows if components need dense ones."""
    raise TypeError(
        "Sparse data was passed, and this mixture takes dense rows. VonMisesFisherMixture takes "
        "sparse rows; sklearn.decomposition.TruncatedSVD makes dense rows of fewer features; "
        f"{to_dense} makes rows dense as they are."
    )


def chunkwise(
    dtype: npt.DTypeLike | None = None, *, wide: bool | str = False, is_sparse: bool = False
) -> Callable[[Method], Method]:
    """Decorate a prediction: of a Dask array it is one too, made chunk by chunk when asked for.

    `dtype` is what it returns, None the type that rows are read in; `wide` says whether it has
    a column for each component, or for each of the "features", `is_sparse` whether it returns CSR.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Any, X: MatrixLike) -> Any:
            if not is_lazy(X):
                return method(self, X)
            return self._predict_lazily(method.__name__, X, dtype, wide, is_sparse)

        return predict  # type: ignore[return-value]

    return decorate
