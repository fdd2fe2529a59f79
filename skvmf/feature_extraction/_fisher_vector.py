"""FisherVectorTransformer: a vector of each document, by the components of a mixture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state

from .._engine.em.vectors import VectorModel
from .._engine.families.gradients import Gradients, VectorResponsibilities
from .._engine.rows.parallel import for_each, limited_blas
from .._engine.rows.reading import check_structure
from .._kernels.fisher import WORDS_PER_STEP, pad_bags
from .._sklearn import (
    BaseEstimator,
    Interval,
    StrOptions,
    TransformerMixin,
    all_or_nothing,
    fit_context,
    refuse_mask,
    validate_data,
)
from .._typing import Array, DType, Matrix, MatrixLike, ParameterConstraints, RandomState
from ..mixture import VonMisesFisherMixture
from ..mixture._base import BaseMixture
from ..mixture._rows import is_lazy, refuse_no_rows
from ._bags import (
    BagList,
    Bags,
    are_arrays,
    checked_embeddings,
    leave_out,
    lsi_vectors,
    refuse_texts,
)

# The number in Zhang et al., where more made no difference.
_N_COMPONENTS = 15
# Bytes of the features of one block of documents, which stays in the cache.
_BLOCK_BYTES = 2**20
# Squared lengths of rows, by their type, in which nothing has over- or underflown that matters.
_SAFE_SQUARES = {"f": (1e-30, 1e37), "d": (1e-280, 1e300)}
_MAX_FLOAT = float(np.finfo(np.float64).max)


def checked_mixture(
    mixture: BaseMixture | FrozenEstimator | None, kinds: Sequence[str]
) -> BaseMixture:
    """Return the mixture to use or to fit; refuse one without gradients of these kinds."""
    if mixture is None:
        mixture = VonMisesFisherMixture(_N_COMPONENTS)
    to_use = mixture.estimator if isinstance(mixture, FrozenEstimator) else mixture
    if isinstance(to_use, type) or not hasattr(to_use, "_skvmf_gradient_names"):
        raise ValueError(
            "mixture should be one of skvmf's mixtures, or one of them fitted in a "
            f"FrozenEstimator, or None, got {to_use!r}. To use parameters of another library, "
            "build a mixture with from_parameters."
        )
    if to_use is mixture:
        names = to_use._skvmf_gradient_names()
    else:
        # A frozen mixture has the gradients of its fit, whatever its parameters are now.
        names = to_use._skvmf_vector_model().names
    check_kinds(kinds, names)
    return to_use


def check_kinds(kinds: Sequence[str], names: Iterable[str]) -> None:
    """Refuse gradients that are not known, or repeated."""
    kinds = list(kinds)
    names = list(names)
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(names):
        raise ValueError(f"gradients should hold one or more of {names}, each once, got {kinds}.")


def count_distinct(vectors: Array, enough: int) -> int:
    """Count distinct rows, up to as many as are enough."""
    seen: set[bytes] = set()
    for row in vectors:
        seen.add(row.tobytes())
        if len(seen) == enough:
            break
    return len(seen)


@dataclass(frozen=True, eq=False)
class Encoder:
    """Writes Fisher vectors.

    `tangent` takes gradients in directions along the sphere; `kinds` are the blocks in the order of
    the features. The other fields are those of `FisherVectorTransformer`.
    """

    model: VectorModel
    tangent: bool
    kinds: tuple[str, ...]
    normalization: str | None
    power: float
    norm: str | None

    @cached_property
    def gradients(self) -> Gradients:
        return self.model.gradients(tangent=self.tangent)

    @cached_property
    def factors(self) -> list[Array]:
        """The factors of the statistics of each kind, each (K,) or (K, d)."""
        return [self.gradients.blocks[kind].factor(self.normalization) for kind in self.kinds]

    @property
    def n_features(self) -> int:
        return sum(factor.size for factor in self.factors)

    def names(self) -> Iterator[str]:
        for kind, factor in zip(self.kinds, self.factors, strict=True):
            for index in np.ndindex(factor.shape):
                yield self.gradients.names[kind] + "_".join(map(str, index))

    def encode(self, bags: Bags, out: Array) -> None:
        """Write the Fisher vectors of bags to the rows of `out`, float32 or float64."""
        responsibilities = self.model.responsibilities(bags.table, bags.used)
        size = max(1, _BLOCK_BYTES // (8 * self.n_features))
        spans = [slice(i, min(i + size, len(bags))) for i in range(0, len(bags), size)]
        for_each(lambda span: self._write(bags, responsibilities, span, out[span]), spans)

    def _write(
        self, bags: Bags, responsibilities: VectorResponsibilities, span: slice, out: Array
    ) -> None:
        statistics, sizes, row_factors = self._statistics(bags, responsibilities, span)
        # Rows that over- or underflow here are written once more.
        with np.errstate(over="ignore", invalid="ignore"):
            start = 0
            for statistic, factor in zip(statistics, self.factors, strict=True):
                block = out[:, start : start + factor.size].reshape(statistic.shape)
                np.multiply(statistic, factor, out=block, casting="same_kind")
                start += factor.size
            # Scaled to unit length, a row does not change by a factor.
            if self.norm is None:
                out *= row_factors[:, None]
            if self.power != 1:
                magnitude = np.abs(out)
                magnitude **= self.power
                np.copysign(magnitude, out, out=out)
            squares = np.einsum("nf,nf->n", out, out)
            if self.norm == "l2":
                out /= np.sqrt(np.where(squares > 0, squares, 1))[:, None]

        low, high = _SAFE_SQUARES[out.dtype.char]
        # Without a norm, small features may be as small as they are.
        is_safe = (squares < high) & ((squares > low) | (self.norm is None))
        unsafe = np.flatnonzero(~is_safe & (sizes > 0))
        if len(unsafe):
            parts = [statistic[unsafe] for statistic in statistics]
            out[unsafe] = self._by_logarithms(parts, row_factors[unsafe], out.dtype)

    def _statistics(
        self, bags: Bags, responsibilities: VectorResponsibilities, span: slice
    ) -> tuple[list[Array], Array, Array]:
        """Return the statistics of each kind, the bags' sizes, and factors of the rows."""
        indptr = bags.indptr[span.start : span.stop + 1]
        n = len(indptr) - 1
        # Bags are filled up with words that count 0 times, as kernels take several at a time.
        n_steps = -(-np.diff(indptr) // WORDS_PER_STEP)
        ptr = np.zeros(n + 1, dtype=np.intp)
        np.cumsum(n_steps * WORDS_PER_STEP, out=ptr[1:])
        words = np.empty(ptr[-1], dtype=np.intp)
        counts = np.empty(ptr[-1])
        largest_counts = np.empty(n)
        pad_bags(indptr, bags.indices, bags.data, ptr, words, counts, largest_counts)
        statistics, sizes = self.gradients.statistics(
            (ptr, words, counts), responsibilities, self.kinds
        )
        # Counts are relative to the bag's largest one.
        row_factors = largest_counts
        if self.normalization == "fisher":
            # The information of a bag is that of its vectors, as many as the sum of its counts.
            row_factors = np.sqrt(largest_counts) / np.sqrt(np.where(sizes > 0, sizes, 1.0))
        return [statistics[kind] for kind in self.kinds], sizes, row_factors

    def _by_logarithms(self, parts: list[Array], row_factors: Array, dtype: DType) -> Array:
        """Return rows of features without overflow, at most the largest float."""
        statistics = np.hstack([statistic.reshape(len(row_factors), -1) for statistic in parts])
        factors = np.hstack([factor.ravel() for factor in self.factors])
        with np.errstate(divide="ignore"):
            logs = np.log(np.minimum(np.abs(statistics), _MAX_FLOAT)) + np.log(factors)
        if self.norm is None:
            logs += np.log(row_factors)[:, None]
        logs *= self.power
        if self.norm == "l2":
            highest = logs.max(axis=1, keepdims=True)
            logs -= np.where(np.isneginf(highest), 0.0, highest)
        features = np.exp(np.minimum(logs, np.log(float(np.finfo(dtype).max))))
        if self.norm == "l2":
            # The largest entry is one, or all are zero.
            features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
        return np.copysign(features, statistics)


class FisherVectorTransformer(TransformerMixin, BaseEstimator):
    """Fisher vectors of bags of vectors: texts as words, images as descriptors.

    A mixture is fitted to the vectors. A bag becomes the gradient of its log-likelihood in the
    parameters of the mixture, relative to its typical size: the change of each component that would
    fit this bag better [1]_, [2]_. The :doc:`user guide </user_guide/fisher_vectors>` has the
    formulas.

    Parameters
    ----------
    mixture : mixture of skvmf or FrozenEstimator, default=None
        The mixture to fit to the vectors: a `VonMisesFisherMixture`, or a Gaussian one with
        ``covariance_type="diag"``. One in scikit-learn's `FrozenEstimator` is used as fitted. None
        is ``VonMisesFisherMixture(15)``, or fewer components for fewer distinct vectors.
    embeddings : array-like of shape (n_features, n_dims), default=None
        The vectors of the columns of X, if X holds counts. A word whose row holds nan, or only
        zeros, is left out. None learns vectors from the counts by latent semantic indexing.
    embedding_dim : int, default=50
        Dimension of vectors learned from counts, at most the rank of X.
    fit_on : {'types', 'tokens'}, default='types'
        Whether the mixture is fitted to each row of the table of vectors once, or as often as X
        counts it. Arrays of vectors are always tokens.
    gradients : tuple of str, default=('means',)
        The parameters of the gradients: 'means', 'concentrations' (von Mises-Fisher), 'variances'
        (Gaussian) and 'weights', in the order of the features.
    geometry : {'euclidean', 'tangent'}, default='euclidean'
        Gradient in the mean directions of a von Mises-Fisher mixture. 'euclidean' treats them as
        free vectors, as the paper does, which suits classification. 'tangent' is along the sphere,
        zero on average, and suits clustering. For Gaussian mixtures both are the same.
    normalization : {'fisher', 'paper'} or None, default='fisher'
        The factor of the gradients: the inverse root of the diagonal of the bag's Fisher
        information (derived here), the inverse information of one vector, as the paper's eq. 12
        prints, or none.
    power : float, default=1.0
        Features become ``sign(z) * abs(z) ** power``, for a power in (0, 1].
    norm : {'l2'} or None, default='l2'
        Whether rows are scaled to unit length at the end.
    random_state : int, RandomState instance or None, default=None
        Seed of learned vectors, and of a mixture that has none of its own.

    Attributes
    ----------
    mixture_ : mixture of skvmf
        The fitted mixture.
    embeddings_ : ndarray of shape (n_features_in_, n_dims) or None
        The vectors of the columns, with zeros for missing ones; None after a fit on arrays.
    n_missing_embeddings_ : int
        Number of columns without a vector, whose words are left out.
    n_features_in_ : int
        Number of columns, after a fit on counts.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, after a fit on counts that have them.

    Notes
    -----
    X is either a matrix of non-negative counts or tf-idf weights, dense or sparse, of shape
    (n_documents, n_features), whose column i counts the vector in row i of `embeddings`. Or it is a
    list (or an object array, or an array of three dimensions) of arrays of shape (n_vectors,
    n_dims). A list of lists of numbers is a matrix. An empty document is a row of zeros, and so is
    one whose gradient is no more than the rounding of double precision. A sparse or hard posterior
    (``entmax_alpha``, ``temperature``) makes the sums over documents faster.

    References
    ----------
    .. [1] Zhang, Guo, Lan, Xu and Cheng, "Aggregating neural word embeddings for document
       representation", ECIR 2018, section 3: mixtures of von Mises-Fisher distributions.
    .. [2] Sanchez, Perronnin, Mensink and Verbeek, "Image classification with the Fisher vector:
       theory and practice", IJCV 105, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import FisherVectorTransformer, VonMisesFisherMixture
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(n, 4)) for n in (7, 3, 5)]
    >>> transformer = FisherVectorTransformer(VonMisesFisherMixture(2), random_state=0)
    >>> transformer.fit_transform(bags).shape
    (3, 8)
    >>> print(*transformer.get_feature_names_out()[:5])
    mean0_0 mean0_1 mean0_2 mean0_3 mean1_0
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        # `checked_mixture` and `checked_embeddings` refuse others, and say more.
        "mixture": "no_validation",
        "embeddings": "no_validation",
        "embedding_dim": [Interval(Integral, 2, None, closed="left")],
        "fit_on": [StrOptions({"types", "tokens"})],
        "gradients": [tuple, list],
        "geometry": [StrOptions({"euclidean", "tangent"})],
        "normalization": [StrOptions({"fisher", "paper"}), None],
        "power": [Interval(Real, 0, 1, closed="right")],
        "norm": [StrOptions({"l2"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        mixture: BaseMixture | FrozenEstimator | None = None,
        *,
        embeddings: ArrayLike | None = None,
        embedding_dim: int = 50,
        fit_on: Literal["types", "tokens"] = "types",
        gradients: tuple[str, ...] = ("means",),
        geometry: Literal["euclidean", "tangent"] = "euclidean",
        normalization: Literal["fisher", "paper"] | None = "fisher",
        power: float = 1.0,
        norm: Literal["l2"] | None = "l2",
        random_state: RandomState = None,
    ) -> None:
        self.mixture = mixture
        self.embeddings = embeddings
        self.embedding_dim = embedding_dim
        self.fit_on = fit_on
        self.gradients = gradients
        self.geometry = geometry
        self.normalization = normalization
        self.power = power
        self.norm = norm
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Fit the mixture to the vectors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_features) or list of array-like
            Counts, or arrays of vectors of shape (n_vectors, n_dims).
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        with all_or_nothing(self), limited_blas():
            mixture = checked_mixture(self.mixture, self.gradients)
            if is_lazy(X):
                raise TypeError(
                    "fit takes documents in memory, and got a Dask array: fit on a sample of "
                    "them, such as X[:10_000].compute(). transform takes Dask arrays."
                )
            refuse_texts(X)
            rng = check_random_state(self.random_state)
            if are_arrays(X):
                vectors, weights = self._fit_on_arrays(X)
            else:
                vectors, weights = self._fit_on_counts(X, rng)

            if not isinstance(self.mixture, FrozenEstimator):
                mixture = clone(mixture)
                if self.mixture is None:
                    # Equal vectors are no two components.
                    mixture.set_params(n_components=count_distinct(vectors, _N_COMPONENTS))
                has_no_seed = mixture.get_params(deep=False).get("random_state", 0) is None
                if has_no_seed and self.random_state is not None:
                    mixture.set_params(random_state=rng.randint(np.iinfo(np.int32).max))
                mixture.fit(vectors, sample_weight=weights)
            elif mixture.n_features_in_ != vectors.shape[1]:
                raise ValueError(
                    f"The frozen mixture was fitted on {mixture.n_features_in_} dimensions, and "
                    f"the vectors have {vectors.shape[1]}."
                )
            self.mixture_ = mixture
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Return the Fisher vectors of documents.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} or list of array-like
            Counts of shape (n_documents, n_features), or arrays of vectors of shape (n_vectors,
            n_dims).

        Returns
        -------
        features : ndarray or dask array of shape (n_documents, n_features_out)
            One row per document, blocks in the order of `gradients`, each component by component.
            float32 if the counts or the arrays of vectors are; integer counts take the type of
            `embeddings`. Values beyond the largest float are set to it. Those of a Dask array are
            computed on demand.

        Raises
        ------
        ValueError
            If the data does not fit that of `fit`, or a parameter changed since is invalid.
        """
        encoder = self._encoder()
        refuse_texts(X)
        if are_arrays(X):
            return self._transform_arrays(X, encoder)
        if self.embeddings_ is None:
            raise ValueError(
                "X is a matrix, and the transformer was fitted on arrays of vectors: there are "
                "no embeddings that say what its columns mean. Give a list of arrays of shape "
                "(n_vectors, n_dims), or fit on counts."
            )
        if is_lazy(X):
            return self._transform_chunks(X, self.embeddings_, encoder.n_features)
        counts = self._counts(X, self.embeddings_, reset=False)
        bags = Bags.from_counts(counts, self.embeddings_, self._present)
        features = np.empty((len(bags), encoder.n_features), dtype=counts.dtype)
        with limited_blas():
            encoder.encode(bags, features)
        return features

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return a name for each feature: its parameter, component and dimension.

        Parameters
        ----------
        input_features : Ignored
            Present by convention.

        Returns
        -------
        names : ndarray of str
            Such as ``"mean3_17"``: the mean of component 3, dimension 17.
        """
        return np.array(list(self._encoder().names()), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _encoder(self) -> Encoder:
        self._check_ready()
        model = self.mixture_._skvmf_vector_model()
        check_kinds(self.gradients, model.names)
        return Encoder(
            model,
            tangent=self.geometry == "tangent",
            kinds=tuple(self.gradients),
            normalization=self.normalization,
            power=float(self.power),
            norm=self.norm,
        )

    def _fit_on_arrays(self, X: Sequence[Array]) -> tuple[Array, None]:
        """Return all vectors, each of which counts once; there is no table to keep."""
        if self.embeddings is not None:
            raise ValueError(
                "embeddings are the vectors of the columns of a matrix of counts, and X is a "
                "list of arrays of vectors. Leave embeddings out, or give counts."
            )
        bags = BagList(X)
        bags.check_finite()
        self.embeddings_: Array | None = None
        self.n_missing_embeddings_ = 0
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        return bags.table(), None

    def _fit_on_counts(
        self, X: MatrixLike, rng: np.random.RandomState
    ) -> tuple[Array, Array | None]:
        """Set the table; return its rows that are vectors, and how often X counts them."""
        table = None if self.embeddings is None else checked_embeddings(self.embeddings)
        counts = self._counts(X, table, reset=True)
        if table is None:
            table = lsi_vectors(counts, self.embedding_dim, rng)
        if len(table) != counts.shape[1]:
            raise ValueError(
                f"embeddings have {len(table)} rows, and X has {counts.shape[1]} columns: row i "
                "should be the vector of column i. See skvmf.feature_extraction.embedding_table."
            )
        table, present = leave_out(table)
        if not present.any():
            raise ValueError("No column of X has a vector: all embeddings are nan or zero.")
        self.embeddings_ = table
        self._present = present
        self.n_missing_embeddings_ = int(np.count_nonzero(~present))
        # Without a copy of the table where all columns have a vector.
        vectors = table if present.all() else table[present]
        if self.fit_on == "types":
            return vectors, None
        return vectors, np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()[present]

    def _transform_arrays(self, X: Sequence[Array], encoder: Encoder) -> Array:
        """Return the Fisher vectors of arrays of vectors, concatenated block by block."""
        bags = BagList(X, self.mixture_.n_features_in_)
        features = np.empty((len(bags), encoder.n_features), dtype=bags.dtype)
        with limited_blas():
            for span, block in bags.blocks():
                try:
                    encoder.encode(block, features[span])
                except ValueError:
                    # The mixture's, which does not know which bag a vector is in.
                    bags.check_finite()
                    raise
        return features

    def _transform_chunks(self, X: MatrixLike, table: Array, n_features: int) -> Any:
        """Return the Fisher vectors of a Dask array of counts, computed on demand."""
        from ..mixture._dask import checked_rows, mapped

        rows, row = checked_rows(X)
        validate_data(self, row, reset=False)
        # What workers get is without what only `fit` needs, and chunks of frames are arrays.
        lean = copy(self)
        lean.mixture = lean.embeddings = None
        vars(lean).pop("feature_names_in_", None)
        dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        if rows.dtype.kind in "biu":
            # As `_counts` takes integers.
            dtype = table.dtype
        return mapped(lean, "transform", rows, dtype, n_features)

    def _counts(self, X: MatrixLike, table: Array | None, *, reset: bool) -> Matrix:
        """Validate counts; integers take the type of the table of vectors."""
        refuse_no_rows(X)
        refuse_mask(X, "X")
        dtype: object = [np.float64, np.float32]
        if table is not None and np.dtype(getattr(X, "dtype", float)).kind in "biu":
            dtype = table.dtype
        options = {"accept_sparse": "csr", "dtype": dtype, "ensure_non_negative": True}
        try:
            counts: Matrix = validate_data(self, X, reset=reset, **options)
        except ValueError as error:
            if not str(error).startswith("Negative values"):
                raise
            raise ValueError(
                f"{error} A matrix counts words, one row per document. If its rows are vectors, "
                "documents are bags of them: give a list of arrays of shape (n_vectors, n_dims), "
                "such as [X], or X[:, None] if each row is a document of one vector."
            ) from None
        if sparse.issparse(counts):
            check_structure(counts)
        return counts
