"""What users give, checked before any work: weights, means, partitions, rows, a background."""

from collections.abc import Callable, Iterator, Sized
from functools import partial, wraps
from os import PathLike
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._engine.em.mixture import Point
from .._engine.families.background import NO_BACKGROUND, Background
from .._engine.families.vonmises_fisher import MAX_CONCENTRATION
from .._engine.rows.sources import MAX_MAGNITUDE, RowSource
from .._engine.search.kmeans import count_distinct
from .._engine.search.partitions import Assignment, assign_labels, assign_responsibilities
from .._sklearn import Method, validate_data
from .._typing import Array, MatrixLike, warn
from ..distributions._arguments import checked_array

if TYPE_CHECKING:
    import dask.array as da


def checked_weights(weights: ArrayLike, n_components: int, name: str) -> Array:
    """Return weights as float64 that sum to one, or raise a ValueError that names them."""
    weights = checked_array(weights, name).astype(np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {weights.shape}.")
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1, rtol=1e-6):
        raise ValueError(
            f"{name} should be non-negative and sum to 1, "
            f"got minimum {weights.min():.5g} and sum {weights.sum():.5g}."
        )
    return weights / weights.sum()


def checked_means(means: ArrayLike, name: str, shape: tuple[int, int] | None = None) -> Array:
    """Return means as finite float64, (n_components, n_features), or raise a ValueError."""
    means = checked_array(means, name).astype(np.float64)
    if means.ndim != 2 or means.size == 0 or shape not in (None, means.shape):
        expected = "(n_components, n_features)" if shape is None else shape
        raise ValueError(f"{name} should have the shape {expected}, got {means.shape}.")
    if not np.isfinite(means).all():
        raise ValueError(f"{name} contains nan or inf: give finite means.")
    return means


def checked_directions(means: Array, name: str) -> Array:
    """Return means at unit length, or raise a ValueError."""
    largest = np.abs(means).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError(f"{name} contains a zero row, which has no direction.")
    means = means / largest
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def checked_concentrations(concentrations: ArrayLike | None, n_components: int, name: str) -> Array:
    """Return concentrations (n_components,) as float64, or raise a ValueError."""
    kappa = checked_array(concentrations, name).astype(np.float64)
    if kappa.shape != (n_components,):
        raise ValueError(f"{name} should have the shape ({n_components},), got {kappa.shape}.")
    if not ((kappa >= 0) & (kappa <= MAX_CONCENTRATION)).all():
        raise ValueError(f"{name} should be from 0 to {MAX_CONCENTRATION:g}, got {kappa}.")
    return kappa


def refuse_unequal(kappa: Array, tied: bool) -> None:
    """Refuse concentrations that differ where all components share one."""
    if tied and np.ptp(kappa) > 1e-5 * kappa.max():
        raise ValueError(f"concentration_type='tied' needs one concentration, got {kappa}.")


def _weight_of(responsibilities: Array, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows per component."""
    return np.asarray(weights @ responsibilities[start : start + len(weights)])


def checked_partition(
    partition: ArrayLike, rows: RowSource, n_components: int, least: int = 0
) -> Assignment:
    """Return how `init_params`, labels or responsibilities, assigns the rows of a block.

    Responsibilities may have any scale: they are divided by the largest. Labels are at least
    `least`; rows with the label -1 belong to no component.
    """
    given = checked_array(partition, "init_params")
    shape = rows.n_rows, n_components
    labels = given.shape == shape[:1] and np.isin(given, np.arange(least, n_components)).all()
    if labels and rows.map_reduce_weights(partial(_weight_of, given >= 0)).any():
        return partial(assign_labels, given.astype(np.int32), n_components)
    if given.shape == shape and np.isfinite(given).all() and (given >= 0).all() and given.any():
        resp = (given / given.max()).astype(rows.dtype)
        if rows.map_reduce_weights(partial(_weight_of, resp)).any():
            return partial(assign_responsibilities, resp)
    values = f" and values from {given.min()} to {given.max()}" if given.size else ""
    raise ValueError(
        f"init_params as an array should hold labels from {least} to {n_components - 1} of "
        f"shape {shape[:1]} or non-negative responsibilities of shape {shape}, "
        f"got shape {given.shape}{values}."
    )


def _weight_by_label(labels: Array, n_labels: int, start: int, weights: Array) -> Array:
    """Return the weight of a block's rows for each label from -1 on."""
    labels = labels[start : start + len(weights)] + 1
    return np.bincount(labels, weights=weights, minlength=n_labels + 1)


def checked_known_labels(
    known_labels: Any, rows: RowSource, mixture: Any, *, start: bool
) -> Array | None:
    """Return labels as `Mixture.known` has them, None if no row's is known.

    For a start each class needs a weight: that of its rows, and that of `weights_init`.
    """
    if known_labels is None:
        return None
    K, least = int(mixture.n_components), -2 if mixture.background else -1
    given = checked_array(in_memory(known_labels), "known_labels")
    if given.shape != (rows.n_rows,) or not np.isin(given, np.arange(least, K)).all():
        why = f"got shape {given.shape}"
        if given.shape == (rows.n_rows,):
            why = f"got {given[~np.isin(given, np.arange(least, K))][0]:g}"
            if given.min() == -2 and least == -1:
                why += "; -2, an outlier, needs background=True"
        raise ValueError(
            f"known_labels should be integers from {least} to n_components - 1 = {K - 1}, one for "
            f"each of the {rows.n_rows} rows, -1 where it is not known: {why}."
        )
    labels = np.where(given == -2, K, given).astype(np.int32)
    if (labels < 0).all():
        return None
    if start:
        weights = rows.map_reduce_weights(partial(_weight_by_label, labels, K + 1))[1 : K + 1]
        if mixture.weights_init is not None:
            weights = weights * checked_weights(mixture.weights_init, K, "weights_init")
        for k in np.unique(labels[(labels >= 0) & (labels < K)]):
            if weights[k] == 0:
                raise ValueError(
                    f"known_labels has rows of class {k}, and they weigh nothing: give one of them "
                    "a sample_weight, a direction and the component a weight, or set them to -1."
                )
    return labels


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

        checked_rows(X, sparse_rows=True)
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


# What is refused before a fit: rows and parameters that do not go together.

_DISTINCT_SAMPLE = 1000  # rows among which distinct ones are counted


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


def checked_features(mixture: Any, features: Any) -> Array:
    """Return the numbers of distinct features, given by number or name."""
    check_is_fitted(mixture)
    d, given = mixture._fitted.family.dim, np.asarray(features)
    names = getattr(mixture, "feature_names_in_", np.empty(0)).tolist()
    if given.dtype.kind in "OU" and given.ndim == 1 and set(given.tolist()) <= set(names):
        given = np.array([names.index(name) for name in given.tolist()])
    distinct = given.ndim == 1 and 0 < len(set(given.tolist())) == len(given)
    if given.dtype.kind not in "iu" or not distinct or given.min() < 0 or given.max() >= d:
        raise ValueError(
            f"features should be distinct numbers from 0 to {d - 1}, or names that fit has seen, "
            f"got {features!r}."
        )
    return given


def warn_if_few_distinct(rows: RowSource, labels: Array, n_components: int) -> bool:
    """Warn, and say so, if there are fewer distinct rows than components in a sample."""
    n_rows_each = np.bincount(labels[labels >= 0], minlength=n_components)
    if n_rows_each.all():
        return False
    drawn = rows.draw(min(rows.n_rows, max(_DISTINCT_SAMPLE, 10 * n_components)), seed=0)
    n_distinct = count_distinct(rows.subset(*drawn, width=1))
    if n_distinct < n_components:
        warn(
            f"There are fewer distinct rows ({n_distinct} among {len(drawn[0])}) than "
            f"n_components={n_components}: components are empty or equal. Use fewer components, "
            "or check the data for duplicates.",
            ConvergenceWarning,
        )
    return n_distinct < n_components


def warn_if_fewer(n_left: int, n_first: int) -> None:
    """Warn if components that a fit began with have left, though no prior removes them."""
    if n_left < n_first:
        warn(
            f"The fit ended with {n_left} of {n_first} components: the others have lost their rows "
            "twice, or theirs were too few to estimate them. Use fewer components, or another "
            "start.",
            ConvergenceWarning,
        )


# The mean of the rows' largest responsibilities should go this far from the largest weight to one.
# Measured: .05 and less if labels mean nothing any more, .25 and more if they still do.
_NEARLY_UNIFORM = 0.05


def warn_if_unfinished(mixture: Any, warm: bool) -> None:
    """Warn if a fit has ended before it converged."""
    if not mixture.converged_ and mixture.max_iter > 0:
        n_starts = 1 if warm else mixture.n_init
        best = "The fit" if n_starts == 1 else f"The best of {n_starts} starts"
        warn(
            f"{best} did not reach tol={mixture.tol} within max_iter={mixture.max_iter} "
            "iterations. Increase max_iter or tol, or check for degenerate data.",
            ConvergenceWarning,
        )


def warn_if_uniform(temperature: float, probabilities: Array, weights: Array) -> None:
    """Warn if the rows' largest responsibilities are nearly the weights."""
    largest = weights.max()
    if float(probabilities.mean()) - largest < _NEARLY_UNIFORM * (1 - largest):
        warn(
            f"temperature={temperature} is far too large: all rows have nearly the same "
            "responsibilities, and all components are nearly equal. Use a lower one; 1 is low "
            "enough for any number of features.",
            UserWarning,
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


def check_warm_start(fitted: Point, mixture: Any) -> None:
    """Refuse to continue with fewer components, or with more if parameters are fixed."""
    before, now = fitted.n_components, mixture.n_components
    fixed = before < now and {"weights", "means"} & set(mixture.fixed)
    if now < before or fixed:
        advice = "Merge components with skvmf.ComponentPath, or set"
        if fixed:
            advice = f"fixed={mixture.fixed!r} leaves new components no place: change it, or set"
        raise ValueError(
            f"warm_start: the fitted mixture has {before} components, n_components is {now}. "
            f"{advice} warm_start=False to start from scratch."
        )


def check_stream_continues(name: str, before: object, now: object) -> None:
    """Refuse a parameter, given by name, that a stream cannot change."""
    if now != before:
        raise ValueError(
            f"partial_fit continues with {name}={before}, and {name} is {now} now: set it "
            "back, or start from scratch with a clone of the mixture."
        )


def refuse_overflow(largest: float, holder: str) -> None:
    """Refuse rows or means of such a magnitude that their squares overflow."""
    if largest > MAX_MAGNITUDE:
        raise ValueError(
            f"{holder} values up to {largest:.3g}, whose squares overflow. Rescale "
            "the features, for example with sklearn.preprocessing.StandardScaler."
        )


def read_only(value: Any) -> Any:
    """Return a view of an array that cannot be written to; the engine's own stays writable."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


# The background as users give it: whether there is one, its weight and its box.


def with_background(background_weight: ArrayLike, params: dict[str, object]) -> dict[str, object]:
    """Return constructor parameters that say whether there is a background."""
    given = bool(np.any(np.not_equal(background_weight, 0)))
    if given and not params.get("background", True):
        raise ValueError(
            f"background=False contradicts background_weight={background_weight!r}: leave out one "
            "of them."
        )
    return {"background": given} | params


def checked_weights_and_background(
    weights: ArrayLike, n_components: int, background_weight: ArrayLike | None
) -> Array:
    """Return weights, followed by that of a background if there is one, or raise a ValueError."""
    if background_weight is None:
        return checked_weights(weights, n_components, "weights")
    weights = checked_array(weights, "weights").astype(np.float64)
    share = checked_array(background_weight, "background_weight").astype(np.float64)
    if weights.shape != (n_components,) or share.shape != ():
        raise ValueError(
            f"weights should have the shape ({n_components},) and background_weight be a number, "
            f"got shapes {weights.shape} and {share.shape}."
        )
    together = "weights and background_weight together"
    return checked_weights(np.append(weights, share), n_components + 1, together)


def background_in(bounds: ArrayLike | None, d: int, background: bool) -> Background:
    """Return the background in the box of given corners (2, d), or none, or raise a ValueError."""
    if background:
        if bounds is None:
            raise ValueError("A background needs background_bounds, the corners of its box.")
    elif bounds is not None:
        raise ValueError("background_bounds needs a background: give background_weight, too.")
    else:
        return NO_BACKGROUND
    checked = checked_array(bounds, "background_bounds").astype(np.float64)
    if checked.shape != (2, d) or not np.isfinite(checked).all():
        expected = f"finite and of shape {(2, d)}"
        raise ValueError(f"background_bounds should be {expected}, got {checked.shape}.")
    refuse_overflow(np.abs(checked).max(), "background_bounds holds")
    if not (checked[0] < checked[1]).all():
        raise ValueError(
            "background_bounds should be the least corner of a box and then the largest; along "
            f"feature {np.argmin(checked[0] < checked[1])} it has no width."
        )
    return Background.in_box(checked)


# Measured: on texts and embeddings the broad component has 2.5 to 6 times the average weight, more
# than twice that of the next, and .15 to .35 of the others' concentration. Among clusters that are
# there, also very unequal ones, the largest has .65 or more.
_TIMES_AVERAGE, _TIMES_NEXT, _OF_OTHERS = 2.5, 2.0, 0.4


def warn_if_broad(weights: Array, concentrations: Array) -> None:
    """Warn if free concentrations have let one broad component take most rows."""
    active = np.flatnonzero(weights)
    if len(active) < 3:
        return
    order = active[np.argsort(weights[active])]
    largest, others = int(order[-1]), order[:-1]
    by_concentration = others[np.argsort(concentrations[others])]
    cumulative = np.cumsum(weights[by_concentration])  # the weighted median is typical
    middle = by_concentration[np.searchsorted(cumulative, cumulative[-1] / 2)]
    is_large = (
        weights[largest] > _TIMES_AVERAGE * weights[active].mean()
        and weights[largest] > _TIMES_NEXT * weights[others].max()
    )
    least = min(_OF_OTHERS * concentrations[middle], concentrations[others].min())
    if is_large and concentrations[largest] < least:
        warn(
            f"Component {largest} is by far the broadest and holds {weights[largest]:.0%} of the "
            "rows, as happens with free concentrations in many dimensions. Unless there is such "
            "a cluster, use concentration_type='tied' or a larger concentration_prior; if these "
            "rows are outliers, use background=True.",
            UserWarning,
        )


def is_lazy(X: object) -> "TypeGuard[da.Array]":
    """Return whether X is a Dask array or frame, or an xarray array of one."""
    return getattr(X, "__dask_graph__", lambda: None)() is not None


def in_memory(X: object) -> Any:
    """Return rows, labels or weights in memory, also those of a Dask array."""
    return X.compute() if is_lazy(X) else X


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
