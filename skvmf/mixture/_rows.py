"""The door: what users give as X becomes rows that the engine reads, or is refused."""

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import sparse

from .._engine.em.mixture import Point
from .._engine.rows.reading import READABLE
from .._engine.rows.sources import Rows, RowSource, make_rows
from .._sklearn import (
    Method,
    check_rows,
    check_sample_weight,
    num_samples,
    refuse_mask,
    validate_data,
)
from .._typing import Array, MatrixLike, warn
from ._checks import checked_known_labels, refuse_overflow

if TYPE_CHECKING:
    import dask.array as da

_FLOATS = [np.dtype(np.float64), np.dtype(np.float32)]

Role: TypeAlias = Literal["fit", "first batch", "batch", "prediction"]


@dataclass(frozen=True, eq=False)
class Data:
    """What users give for a fit or a prediction, as the engine takes it."""

    rows: RowSource
    known: Array | None = None  # int32 (n_samples,): known components, as `Mixture.known` has them
    chunks: "da.Array | None" = None  # the same rows, where they are those of a Dask array


def read_rows(
    mixture: Any,
    X: MatrixLike,
    sample_weight: ArrayLike | None = None,
    known_labels: ArrayLike | None = None,
    *,
    role: Role = "prediction",
    fitted: Point | None,
) -> Data:
    """Return what users give as the engine takes it, or raise a TypeError or a ValueError.

    Features should be those of the fit that rows are for, or go on with. Without one a fit begins,
    and the mixture gets their number and their names.
    """
    begins = fitted is None
    for_fit = role != "prediction"
    are_first = role in ("fit", "first batch")  # no statistics of other rows are continued
    chunks = None
    rows: RowSource
    if is_lazy(X):
        from ._dask import make_lazy_rows

        chunks = validated_chunks(mixture, X, reset=begins)
        rows = make_lazy_rows(chunks, sample_weight, **_options(mixture, for_fit))
    else:
        array = _validated_array(mixture, X, reset=begins)
        if are_first:
            warn_if_encoded(array)
        rows = rows_in_memory(mixture, array, sample_weight, for_fit=for_fit)
    if not for_fit:
        return Data(rows)
    refuse_overflow(rows.largest, "The data holds")
    if are_first:
        finds_components = begins and role == "first batch"
        _refuse_too_few(rows.n_rows, int(mixture.n_components), finds_components)
        if rows.total_weight == 0:
            raise ValueError(
                "All rows with positive weight are zero: a zero row has no direction, so "
                "there is nothing to fit. Remove empty rows or check the preprocessing."
            )
    if rows.incomplete and (begins or role == "fit"):
        _refuse_unobserved(rows, getattr(mixture, "feature_names_in_", None))
    known = None
    if known_labels is not None:
        known = checked_known_labels(in_memory(known_labels), rows, mixture, begins=begins)
    return Data(rows, known, chunks)


def rows_in_memory(
    mixture: Any, X: Any, sample_weight: ArrayLike | None = None, *, for_fit: bool = False
) -> Rows:
    """Return rows that are validated, with weights that are checked here."""
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(in_memory(sample_weight), X)
    # A prediction reads each block once: it is measured as it is read, not ahead of that.
    return make_rows(X, weights, ahead=for_fit, **_options(mixture, for_fit))


def _options(mixture: Any, for_fit: bool) -> dict[str, Any]:
    """Return how the engine should read the rows of a mixture."""
    n_components = mixture.n_components if for_fit else mixture._fitted.n_components
    # Sums with hard responsibilities visit each row once: a copy by columns does not help them.
    is_soft = mixture._posterior().temperature > 0
    return {
        "unit": mixture._family_class.unit_rows,
        "missing": mixture.missing_values == "marginal",
        "width": int(n_components),  # which may be a uint8
        "columns": for_fit and is_soft,
    }


# Validation by scikit-learn, for its messages, and for the number and the names of features.


def validated_chunks(mixture: Any, X: MatrixLike, *, reset: bool) -> "da.Array":
    """Return the rows of a Dask collection as an array of known chunks, or refuse them."""
    from ._dask import checked_rows

    chunks, row = checked_rows(X)
    if sparse.issparse(chunks._meta) and not mixture._family_class.sparse_rows:
        _refuse_sparse("X.map_blocks(lambda block: block.toarray(), meta=np.empty((0, 0)))")
    validate_data(mixture, row, reset=reset)
    _refuse_integers(mixture, chunks)
    return chunks


def _validated_array(mixture: Any, X: MatrixLike, *, reset: bool) -> Any:
    """Return rows in memory as an array or a CSR matrix of a type that is read, or refuse them."""
    if not reset and _is_valid(mixture, X):
        return X
    X = _without_mask(X, has_missing=mixture.missing_values == "marginal")
    accepts_sparse = mixture._family_class.sparse_rows
    is_sparse = sparse.issparse(X)
    if is_sparse and not accepts_sparse:
        _refuse_sparse("X.toarray()")
    array = validated_rows(
        mixture,
        X,
        accept_sparse="csr" if accepts_sparse else False,
        dtype=[np.float64, np.float32] if is_sparse else READABLE,
        ensure_all_finite=False,  # the engine looks, in a pass that it makes anyway
        reset=reset,
    )
    _refuse_integers(mixture, array)
    return array


def _is_valid(mixture: Any, X: Any) -> bool:
    """Return whether X is an array of floats such as those of the fit, without names.

    scikit-learn would return it as it is: to find that out takes longer than to label a row.
    """
    if type(X) is not np.ndarray or X.dtype not in _FLOATS or X.ndim != 2 or len(X) == 0:
        return False
    of_fit = vars(mixture)
    return "feature_names_in_" not in of_fit and of_fit.get("n_features_in_") == X.shape[1]


def _without_mask(X: Any, *, has_missing: bool) -> Any:
    """Return a masked array as a plain one, with NaN for masked values, or refuse the mask."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    if not has_missing:
        raise ValueError(
            f"X is a masked array, and {int(X.mask.sum())} of its values are masked. Mixtures "
            "of Gaussian and Student-t components take them as missing with "
            "missing_values='marginal'; else fill them in first, for example with X.filled(0)."
        )
    if X.dtype.kind != "f":
        X = X.astype(np.float64)
    return X.filled(np.nan)


def validated_rows(estimator: object, X: MatrixLike, **options: Any) -> Any:
    """Return rows in memory as scikit-learn validates them; refuse what holds no numbers."""
    _refuse_no_array(X)
    refuse_mask(X, "X")
    with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest floats
        try:
            options["dtype"] = _read_as(X, options["dtype"])
            return validate_data(estimator, X, **options)
        except (TypeError, ValueError):
            _refuse_no_numbers(X)
            raise


def _read_as(X: Any, dtypes: Any) -> Any:
    """Return the type to read rows as, where scikit-learn would take the first of `dtypes`.

    It does so for other byte orders, and for frames but those of pandas: only of floats is the
    type taken from no rows, as integers may have missing values.
    """
    dtype: Any
    if hasattr(X, "columns"):
        dtype = np.asarray(X[:0]).dtype
        is_known = dtype.kind == "f"
    else:
        dtype = getattr(X, "dtype", None)
        is_known = isinstance(dtype, np.dtype) and dtype not in dtypes
    if not is_known:
        return dtypes
    native = dtype.newbyteorder("=")
    return native if native in dtypes else dtypes


def rows_to_show(X: Any, *, has_missing: bool, **options: Any) -> Any:
    """Return rows in memory as a table or a picture needs them, with NaN for what is masked.

    Without missing values, NaN and masks are refused. Options are those of `check_array`.
    """
    _refuse_no_array(X)
    X = _without_mask(X, has_missing=has_missing)
    return check_rows(X, ensure_all_finite="allow-nan" if has_missing else True, **options)


# What is given as rows and is refused.


def holds_texts(X: object) -> bool:
    """Return whether X is a text or a sequence of texts."""
    if hasattr(type(X), "to_numpy") and getattr(X, "ndim", 2) == 1:  # a series of texts
        X = np.asarray(X)
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and len(X) > 0 else None
    return isinstance(X, str) or isinstance(first, str)


def refuse_no_rows(X: Any) -> None:
    """Refuse what is no table of rows, in memory or in a Dask collection."""
    if is_lazy(X):
        from ._dask import checked_rows

        checked_rows(X)
    else:
        _refuse_no_array(X)


def _refuse_no_array(X: Any) -> None:
    """Refuse texts, paths, generators, lazy frames, and dates, which NumPy turns into numbers."""
    advice = (
        "Turn texts into rows first, for example with "
        "sklearn.feature_extraction.text.TfidfVectorizer or a sentence encoder; both can be steps "
        "of a Pipeline."
    )
    if isinstance(X, str | PathLike):
        raise ValueError(
            f"X={X!r} is a text or a path, and not rows of numbers. Read a file first, for example "
            f"with numpy.load or pandas.read_csv. {advice}"
        )
    if holds_texts(X):
        raise ValueError(f"X holds texts, and not rows of numbers. {advice}")
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which can be read only once, and a fit reads the rows "
            "many times. Give all rows, for example np.vstack(list(X)), or call partial_fit with "
            "each batch."
        )
    if hasattr(X, "collect") and not hasattr(X, "__array__"):
        raise TypeError(f"X is a {type(X).__name__}, which holds no rows yet: give X.collect().")
    if all(hasattr(X, name) for name in ("X", "obs", "var")):
        raise TypeError(
            f"X is a {type(X).__name__}, which holds more than rows: give its matrix X.X, or one "
            "such as X.obsm['X_pca']; if it is backed by a file, X.to_memory().X."
        )
    if hasattr(X, "to_memory"):
        raise TypeError(f"X is a {type(X).__name__}, whose rows are in a file: give X.to_memory().")
    dtypes = X.dtypes if _is_frame(X) else [getattr(X, "dtype", None)]
    if len(getattr(X, "shape", "")) == 1 or any(map(_is_time, dtypes)):
        _refuse_no_numbers(X)


def _is_frame(X: object) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _is_time(dtype: Any) -> bool:
    """Return whether a type, also one of polars, is that of dates or durations."""
    return getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)()


def _refuse_no_numbers(X: Any) -> None:
    """Refuse frames and arrays that hold anything but numbers."""
    columns = []
    if len(getattr(X, "shape", "")) == 1 or _is_time(getattr(X, "dtype", None)):
        columns = [("X", "X", X)]
    elif _is_frame(X):
        columns = [(f"Column {name!r} of X", f"X[{name!r}]", X[name]) for name in X.columns]
    reasons = ((subject, _no_numbers(column, code)) for subject, code, column in columns)
    messages = [f"{subject} {reason}" for subject, reason in reasons if reason is not None]
    # Vectors in one column are what was meant, whatever else is in the frame.
    messages.sort(key=lambda message: "np.vstack" not in message)
    if messages:
        raise ValueError(messages[0])


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


def _refuse_sparse(to_dense: str) -> NoReturn:
    """Refuse sparse rows, to a mixture that needs dense ones."""
    raise TypeError(
        "Sparse data was passed, and this mixture takes dense rows. VonMisesFisherMixture takes "
        "sparse rows; sklearn.decomposition.TruncatedSVD makes dense rows of fewer features; "
        f"{to_dense} makes rows dense as they are."
    )


def _refuse_integers(mixture: Any, X: Any) -> None:
    """Refuse types that have no NaN, where NaN is a missing value."""
    if mixture.missing_values == "marginal" and X.dtype.kind != "f":
        raise ValueError(
            f"missing_values='marginal' needs rows of floats: X is of {X.dtype}, which has "
            "no NaN. Give X.astype(float), with NaN where a value is missing."
        )


def _refuse_too_few(n_rows: int, n_components: int, finds_components: bool) -> None:
    """Refuse fewer rows than components."""
    advice = "use fewer components"
    if finds_components:
        advice = (
            "partial_fit finds its first components in the first batch, which should have about "
            "100 rows per component"
        )
    if n_rows < n_components:
        raise ValueError(
            f"Expected n_samples >= n_components but got n_components = {n_components},"
            f" n_samples = {n_rows}: {advice}."
        )


def _refuse_unobserved(rows: RowSource, names: Array | None) -> None:
    """Refuse features that no row with a weight has."""
    low, high = rows.extent(slice(None))
    unobserved = np.flatnonzero(low > high)
    if len(unobserved):
        features = unobserved if names is None else names[unobserved]
        raise ValueError(
            f"No row has a value of the features {features.tolist()}: leave them out, X without "
            "these columns."
        )


# What is given as rows and looks as if something else was meant.

_N_LOOKED_AT = 1000  # rows that are looked at: enough for a median and for the shares of features
# Packed bits of embeddings are bytes of a standard deviation near 74 and a mean near 128, as those
# of uniform ones are; of quantized embeddings and of images the deviation is below 45 or above 85.
_PACKED_DEVIATION = (60, 85)
_PACKED_MEAN = (100, 155)
_PACKED_FEATURES = (8, 256)  # 64 to 2,048 bits: codes of ordinary sizes
# A frequent word makes up .07 to .25 of the squared lengths of counts, without stop words .04.
_DOMINATING_SHARE = 0.05
_MIN_WORDS = 100  # features up to which counts are rarely those of words
_MAX_COUNT = 1e9  # beyond which whole numbers are rarely counts


def warn_if_encoded(X: Any) -> None:
    """Warn of validated rows that are packed bits, or counts that one feature dominates."""
    rows = X[:: max(1, X.shape[0] // _N_LOOKED_AT)]
    # One row is enough to tell most other data from counts.
    if X.shape[1] > _MIN_WORDS and _are_counts(rows[:1]) and _are_counts(rows):
        _warn_if_dominated(sparse.csr_array(rows) if sparse.issparse(rows) else rows)
    if X.dtype in (np.uint8, np.int8) and _are_packed_bits(rows.astype(np.uint8)):
        warn(
            "X seems to hold the bits of embeddings, packed into bytes, whose directions mean "
            "nothing: unpack them, 2.0 * np.unpackbits(X.view(np.uint8), axis=1) - 1.",
            UserWarning,
        )


def _are_packed_bits(rows: Array) -> bool:
    return (
        _is_within(np.median(rows.std(axis=1)), _PACKED_DEVIATION)
        and _is_within(rows.mean(), _PACKED_MEAN)
        and _is_within(rows.shape[1], _PACKED_FEATURES)
    )


def _is_within(value: Any, bounds: tuple[int, int]) -> bool:
    return bool(bounds[0] <= value <= bounds[1])


def _are_counts(rows: Any) -> bool:
    values = rows.data if sparse.issparse(rows) else rows
    return bool(((values >= 0) & (values < _MAX_COUNT) & (values == np.rint(values))).all())


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


# Dask collections: they are read where they are, and predictions are made chunk by chunk.


def is_lazy(X: object) -> "TypeGuard[da.Array]":
    """Return whether X is a Dask array or frame, or an xarray array of one."""
    return getattr(X, "__dask_graph__", lambda: None)() is not None


def in_memory(X: object) -> Any:
    """Return rows, labels or weights in memory, also those of a Dask array."""
    return X.compute() if is_lazy(X) else X


def array_in_memory(values: object, name: str) -> Array:
    """Return labels in memory as an array; refuse masked ones, by the name of the argument."""
    refuse_mask(values, name)
    return np.asarray(in_memory(values))


def weights_of(sample_weight: ArrayLike | None, X: MatrixLike) -> Array:
    """Return checked weights in memory of rows (n,), one each where none are given."""
    if sample_weight is None:
        return np.ones(num_samples(X))
    return np.asarray(check_sample_weight(in_memory(sample_weight), X))


def chunkwise(
    dtype: npt.DTypeLike | None = None,
    *,
    columns: Literal["components", "features"] | None = None,
    is_sparse: bool = False,
) -> Callable[[Method], Method]:
    """Decorate a prediction: of a Dask array it is one too, made chunk by chunk when asked for.

    `dtype` is what it returns, None the type that rows are read in. `columns` is what it has a
    column for, None if it has one number per row, and `is_sparse` whether it returns CSR.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def predict(self: Any, X: MatrixLike) -> Any:
            if not is_lazy(X):
                return method(self, X)
            return self._predict_chunks(method.__name__, X, dtype, columns, is_sparse)

        return predict  # type: ignore[return-value]

    return decorate
