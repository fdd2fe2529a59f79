"""Vectors of words: taken from a model, or learned from counts."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from .._typing import Array, Matrix
from ..distributions._arguments import checked_array

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
    if isinstance(vocabulary, str):  # which is a sequence of letters
        raise ValueError(f"vocabulary should be a list of words, got the text {vocabulary!r}.")
    index, vectors = _index_and_vectors(keyed_vectors)
    if vocabulary is None:
        words = sorted(index, key=lambda word: index[word])
    elif isinstance(vocabulary, Mapping):
        words = sorted(vocabulary, key=lambda word: vocabulary[word])
    else:
        words = sorted(vocabulary) if isinstance(vocabulary, Set) else list(vocabulary)
    rows = np.array([index.get(word, -1) for word in words], dtype=np.intp)
    matrix = np.full((len(words), vectors.shape[1]), np.nan, dtype=vectors.dtype)
    matrix[rows >= 0] = vectors[rows[rows >= 0]]
    return words, matrix


def _index_and_vectors(keyed_vectors: Any) -> tuple[Mapping[str, int], Array]:
    """Return the row of each word, and the rows, as float32 or float64."""
    if hasattr(keyed_vectors, "key_to_index") and hasattr(keyed_vectors, "vectors"):
        index, vectors = keyed_vectors.key_to_index, np.asarray(keyed_vectors.vectors)
    elif isinstance(keyed_vectors, Mapping):
        index = {word: row for row, word in enumerate(keyed_vectors)}
        rows = [np.asarray(vector) for vector in keyed_vectors.values()]
        if len({row.shape for row in rows}) > 1:
            raise ValueError(
                f"The vectors have different shapes: {sorted({row.shape for row in rows})}."
            )
        vectors = np.array(rows)
    else:
        hint = " Give its wv." if hasattr(keyed_vectors, "wv") else ""
        raise ValueError(
            "keyed_vectors should be a mapping from words to vectors or have `vectors` and "
            f"`key_to_index`, and a {type(keyed_vectors).__name__} does not.{hint}"
        )
    if vectors.ndim != 2 or len(vectors) == 0:
        raise ValueError(f"There are no vectors: their array has the shape {vectors.shape}.")
    return index, vectors if vectors.dtype == np.float32 else vectors.astype(np.float64)


def checked_embeddings(embeddings: Any) -> Array:
    """Return embeddings as a contiguous matrix of float32 or float64."""
    if hasattr(embeddings, "key_to_index") or hasattr(embeddings, "wv"):
        raise ValueError(_NO_TABLE.format("a model"))
    if isinstance(embeddings, Mapping):
        raise ValueError(_NO_TABLE.format("a mapping"))
    table = checked_array(embeddings, "embeddings")
    if table.ndim != 2:
        raise ValueError(
            f"embeddings should have the shape (n_features, n_dims), got {table.shape}."
        )
    table = np.ascontiguousarray(table, dtype=np.float32 if table.dtype == np.float32 else float)
    if np.isinf(table).any():
        raise ValueError("embeddings contain inf. A word without a vector has a row of nan.")
    return table


def leave_out(table: Array) -> tuple[Array, Array]:
    """Return a table with zeros in rows with nan, and which rows are vectors."""
    missing = np.asarray(np.isnan(table).any(axis=1))
    if missing.any():
        table = np.where(missing[:, None], table.dtype.type(0), table)
    return table, np.asarray(table.any(axis=1))


def lsi_vectors(X: Matrix, n_dims: int, random_state: np.random.RandomState) -> Array:
    """Learn a vector for each column of X by latent semantic indexing.

    The rows of V S in the truncated singular value decomposition X = U S V', with at most as many
    dimensions as the rank of X. A column of zeros gets zeros.
    """
    n_dims = min(n_dims, *X.shape)
    left, values, _ = randomized_svd(X, n_dims, random_state=random_state)
    rank = int(np.sum(values > values[0] * max(X.shape) * np.finfo(values.dtype).eps))
    if rank < 2:
        raise ValueError(
            f"X has n_samples = {X.shape[0]}, n_features = {X.shape[1]} and rank {rank}: word "
            "vectors are learned from X in at most as many dimensions as its rank, and they need "
            "two. Give embeddings or more documents."
        )
    return np.ascontiguousarray(X.T @ left[:, :rank])
