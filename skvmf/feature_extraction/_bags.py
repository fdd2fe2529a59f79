"""Bags of vectors: arrays of them, or counts of words, whose vectors are a model's or learned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from .._typing import Array, DType, Matrix
from ..distributions._arguments import checked_array
from ..mixture._rows import holds_texts

# Arrays of a list are put together by so many bytes at a time, few enough that the allocator hands
# out the same memory each time instead of fresh pages.
_BLOCK_BYTES = 2**21


@dataclass(frozen=True, eq=False)
class Bags:
    """Bag n holds row ``indices[j]`` of `table`, if in `used`, ``data[j]`` times for each j."""

    indptr: Array
    indices: Array
    data: Array
    table: Array
    used: Array | None = None

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def from_counts(cls, counts: Any, table: Array, present: Array) -> "Bags":
        """Count the rows of a table; those outside `present` are left out."""
        counts = sparse.csr_array(counts)
        used = np.zeros(len(table), dtype=bool)
        used[counts.indices] = True
        used &= present
        return cls(counts.indptr, counts.indices, counts.data, table, used)

    @classmethod
    def from_arrays(cls, arrays: Sequence[Array], dtype: npt.DTypeLike) -> "Bags":
        """Concatenate arrays to a table in which each row counts once."""
        table = np.concatenate(arrays, dtype=dtype)
        indptr = np.cumsum([0, *map(len, arrays)])
        return cls(indptr, np.arange(len(table)), np.ones(len(table)), table)


def refuse_texts(X: Any) -> None:
    """Refuse texts, and texts split into words: counts or vectors are expected."""
    is_list = isinstance(X, list | tuple) and len(X) > 0
    if holds_texts(X) or (is_list and holds_texts(X[0])):
        raise ValueError(
            "X holds texts, and Fisher vectors are made of counts of words or of arrays of "
            "vectors. Count the words first: sklearn.feature_extraction.text.CountVectorizer"
            "(vocabulary=words) can be a step of a Pipeline before this one; for texts that are "
            "lists of words it takes analyzer=list. Words and embeddings come from "
            "skvmf.feature_extraction.embedding_table."
        )


def are_arrays(X: object) -> TypeGuard[Sequence[Array]]:
    """Whether X holds arrays of vectors, and is not a matrix of counts or a list of lists."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object and _hold_vectors(X))
    return isinstance(X, list | tuple) and _hold_vectors(X)


def _hold_vectors(items: Iterable[ArrayLike]) -> bool:
    return any(
        (hasattr(item, "__array__") and np.ndim(item) > 0)
        or (isinstance(item, list | tuple) and len(item) > 0 and _is_row(item[0]))
        for item in items
    )


def _is_row(item: ArrayLike) -> bool:
    return isinstance(item, list | tuple) or np.ndim(item) > 0


class BagList:
    """Checked arrays of vectors, concatenated block by block; (0,) is the shape of an empty bag."""

    def __init__(self, X: Sequence[ArrayLike], n_dims: int | None = None) -> None:
        arrays = [_as_array(x, i) for i, x in enumerate(X)]
        # An empty list of vectors has no dimension: its shape is (0,).
        matrices = {i: array for i, array in enumerate(arrays) if array.ndim == 2}
        source = "the mixture was fitted on"
        if n_dims is None:
            if not any(len(array) for array in matrices.values()):
                raise ValueError("Found 0 vectors: all bags are empty.")
            first = next(iter(matrices))
            n_dims = matrices[first].shape[1]
            source = f"X[{first}] has"
        for i, array in matrices.items():
            if array.shape[1] != n_dims:
                raise ValueError(
                    f"X[{i}] has vectors of dimension {array.shape[1]}, and {source} "
                    f"vectors of dimension {n_dims}."
                )
        self.n_dims = n_dims
        self.dtype: DType = np.dtype(np.float64)
        if {array.dtype for array in matrices.values()} == {np.dtype(np.float32)}:
            self.dtype = np.dtype(np.float32)
        empty = np.empty((0, n_dims), dtype=self.dtype)
        self._arrays = [matrices.get(i, empty) for i in range(len(arrays))]

    def __len__(self) -> int:
        return len(self._arrays)

    def check_finite(self) -> None:
        """Raise a ValueError that names the first bag with nan or inf."""
        for i, array in enumerate(self._arrays):
            if not np.isfinite(array).all():
                raise ValueError(f"X[{i}] contains nan or inf: leave such vectors out.")

    def table(self) -> Array:
        return np.concatenate(self._arrays, dtype=self.dtype)

    def blocks(self) -> Iterator[tuple[slice, Bags]]:
        """Yield the bags by blocks of similar size, of one bag at least."""
        n_vectors = max(1, _BLOCK_BYTES // (self.n_dims * self.dtype.itemsize))
        # Bag n has the vectors from indptr[n] to indptr[n + 1].
        indptr = np.cumsum([0, *map(len, self._arrays)])
        start = 0
        while start < len(self):
            beyond = int(np.searchsorted(indptr, indptr[start] + n_vectors, side="right"))
            stop = max(start + 1, beyond - 1)
            yield slice(start, stop), Bags.from_arrays(self._arrays[start:stop], self.dtype)
            start = stop


def _as_array(x: Any, i: int) -> Array:
    """Return bag i as an array of numbers of two dimensions, or an empty one."""
    array = checked_array(x, f"X[{i}]")
    if array.ndim != 2 and array.shape != (0,):
        raise ValueError(
            f"X[{i}] has {array.ndim} dimensions: a bag is an array of shape (n_vectors, "
            "n_dims). A single vector is a bag as vector[None]."
        )
    return array


_NO_TABLE = (
    "embeddings should be an array with the vector of column i in row i, and {} of words says "
    "nothing of columns: words, vectors = skvmf.feature_extraction.embedding_table(model.wv) "
    "makes one of it, for embeddings=vectors and CountVectorizer(vocabulary=words)."
)


def embedding_table(
    keyed_vectors: Any, vocabulary: Iterable[str] | None = None
) -> tuple[list[str], Array]:
    """Return words and their vectors, row by row, for `CountVectorizer` and Fisher vectors.

    Parameters
    ----------
    keyed_vectors : object or mapping
        A mapping from words to vectors; or an object with ``vectors`` of shape (n_words, n_dims)
        and ``key_to_index``, a mapping from words to its rows, such as gensim's ``KeyedVectors``
        (the ``wv`` of a model).
    vocabulary : iterable of str or mapping of str to int, default=None
        The words to take, such as the ``vocabulary_`` of a fitted ``CountVectorizer``; a mapping
        orders them, a set is sorted. A word without a vector gets a row of nan, which
        :class:`FisherVectorTransformer` leaves out. None takes all words of the model.

    Returns
    -------
    words : list of str
        The words, for the ``vocabulary`` of a ``CountVectorizer``.
    matrix : ndarray of shape (n_words, n_dims)
        Row i is the vector of ``words[i]``, float32 if the vectors are, else float64.

    Raises
    ------
    ValueError
        If there are no vectors, vectors have different dimensions, or the vocabulary is a text.

    Examples
    --------
    >>> from skvmf.feature_extraction import embedding_table
    >>> vectors = {"puck": [1.0, 0.0], "ice": [0.8, 0.6]}
    >>> words, matrix = embedding_table(vectors, vocabulary=["ice", "oven"])
    >>> matrix
    array([[0.8, 0.6],
           [nan, nan]])
    """
    if isinstance(vocabulary, str):
        # A text is a sequence of letters.
        raise ValueError(f"vocabulary should be a list of words, got the text {vocabulary!r}.")
    index, vectors = _index_and_vectors(keyed_vectors)
    if vocabulary is None:
        words = sorted(index, key=lambda word: index[word])
    elif isinstance(vocabulary, Mapping):
        words = sorted(vocabulary, key=lambda word: vocabulary[word])
    elif isinstance(vocabulary, Set):
        words = sorted(vocabulary)
    else:
        words = list(vocabulary)
    rows = np.array([index.get(word, -1) for word in words], dtype=np.intp)
    matrix = np.full((len(words), vectors.shape[1]), np.nan, dtype=vectors.dtype)
    matrix[rows >= 0] = vectors[rows[rows >= 0]]
    return words, matrix


def _index_and_vectors(keyed_vectors: Any) -> tuple[Mapping[str, int], Array]:
    """Return the row of each word, and the rows, as float32 or float64."""
    if hasattr(keyed_vectors, "key_to_index") and hasattr(keyed_vectors, "vectors"):
        index = keyed_vectors.key_to_index
        vectors = np.asarray(keyed_vectors.vectors)
    elif isinstance(keyed_vectors, Mapping):
        index = {word: row for row, word in enumerate(keyed_vectors)}
        rows = [np.asarray(vector) for vector in keyed_vectors.values()]
        shapes = {row.shape for row in rows}
        if len(shapes) > 1:
            raise ValueError(f"The vectors have different shapes: {sorted(shapes)}.")
        vectors = np.array(rows)
    else:
        hint = " Give its wv." if hasattr(keyed_vectors, "wv") else ""
        raise ValueError(
            "keyed_vectors should be a mapping from words to vectors or have `vectors` and "
            f"`key_to_index`, and a {type(keyed_vectors).__name__} does not.{hint}"
        )
    if vectors.ndim != 2 or len(vectors) == 0:
        raise ValueError(f"There are no vectors: their array has the shape {vectors.shape}.")
    return index, _as_floats(vectors)


def _as_floats(vectors: Array) -> Array:
    """Return float32 as it is, and other types as float64."""
    if vectors.dtype == np.float32:
        return vectors
    return vectors.astype(np.float64, copy=False)


def checked_embeddings(embeddings: Any) -> Array:
    """Return embeddings as a contiguous matrix of float32 or float64."""
    if hasattr(embeddings, "key_to_index") or hasattr(embeddings, "wv"):
        raise ValueError(_NO_TABLE.format("a model"))
    if isinstance(embeddings, Mapping):
        raise ValueError(_NO_TABLE.format("a mapping"))
    table = checked_array(embeddings, "embeddings")
    if table.ndim != 2:
        raise ValueError(f"embeddings should be of shape (n_features, n_dims), got {table.shape}.")
    table = np.ascontiguousarray(_as_floats(table))
    if np.isinf(table).any():
        raise ValueError("embeddings contain inf. A word without a vector has a row of nan.")
    return table


def leave_out(table: Array) -> tuple[Array, Array]:
    """Return a table with zeros in rows with nan, and which rows are vectors."""
    is_missing = np.asarray(np.isnan(table).any(axis=1))
    if is_missing.any():
        # Into a copy: the table is the user's.
        table = np.where(is_missing[:, None], table.dtype.type(0), table)
    return table, np.asarray(table.any(axis=1))


def lsi_vectors(X: Matrix, n_dims: int, random_state: np.random.RandomState) -> Array:
    """Learn a vector for each column of X by latent semantic indexing.

    The rows of V S in the truncated singular value decomposition X = U S V', with at most as many
    dimensions as the rank of X. A column of zeros gets zeros.
    """
    n_dims = min(n_dims, *X.shape)
    left, values, _ = randomized_svd(X, n_dims, random_state=random_state)
    # As `numpy.linalg.matrix_rank` does.
    rank = int(np.sum(values > values[0] * max(X.shape) * np.finfo(values.dtype).eps))
    if rank < 2:
        raise ValueError(
            f"X has n_samples = {X.shape[0]}, n_features = {X.shape[1]} and rank {rank}: word "
            "vectors are learned from X in at most as many dimensions as its rank, and they need "
            "two. Give embeddings or more documents."
        )
    return np.ascontiguousarray(X.T @ left[:, :rank])
