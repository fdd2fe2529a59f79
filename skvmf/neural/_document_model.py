"""Variational autoencoders of documents: topics in coordinates of any sign."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_non_negative
from torch import Tensor

from .._sklearn import Interval, StrOptions, validate_data
from .._typing import Array, Matrix, MatrixLike, ParameterConstraints
from ..distributions._arguments import check_count
from ._autoencoder import Autoencoder, Loss, VariationalNetwork, as_array
from ._entmax import EntmaxLoss, entmax

MAX_COUNT = 1e30  # totals and losses stay finite in float32


class FenchelYoungDocumentModel(Autoencoder):
    """Neural variational document model with a softmax or alpha-entmax decoder.

    A perceptron maps the square roots of a document's word proportions to a Gaussian of a few topic
    coordinates. A linear decoder maps a draw from it to scores of all words, and these to
    probabilities. With alpha-entmax, words that do not fit a document have probability zero.
    Training minimizes a Fenchel-Young free energy: the loss of the words plus `beta` times the
    Kullback-Leibler divergence from the standard Gaussian. Read more in the :doc:`user guide
    </user_guide/neural>`, and in Sklaviadis et al., "Fenchel-Young variational learning", section
    4.3 and appendix A.2.

    Parameters
    ----------
    n_components : int, default=50
        Number of topics.
    entmax_alpha : float, default=1.0
        At least 1. 1 is softmax, the model of Miao et al., ICML 2016; 1.5 and 2 are sparse.
    target : {'counts', 'proportions'}, default='counts'
        What is reconstructed. Counts weigh a document by its length; with softmax and beta = 1 the
        score is the evidence lower bound minus that of a perfect reconstruction. Proportions weigh
        all documents equally. Their losses are smaller by the document's length.
    beta : float, default=1.0
        Weight of the divergence. Start near 1e-4 for ``target="proportions"``, and at 0.01 or below
        for tf-idf rows, whose sums are small. At beta = 1 and alpha above 1, posteriors often
        collapse to the prior: all documents have the same coordinates.
    hidden_layer_sizes : sequence of int, default=(500,)
        Units of the encoder's hidden layers.
    alternating_epochs : int, default=None
        Number of passes per epoch that train the decoder alone, followed by as many that train the
        encoder alone. None trains both at once, in one pass per epoch.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features), float32
        The score that a unit of each topic coordinate adds to each word.

    Notes
    -----
    Entries need not be integers: tf-idf rows count as counts. An empty document has no loss.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skvmf.neural import FenchelYoungDocumentModel
    >>> texts = ["moon orbit rocket", "orbit moon", "salt butter pan", "pan butter"] * 10
    >>> X = CountVectorizer().fit_transform(texts)
    >>> model = FenchelYoungDocumentModel(2, entmax_alpha=1.5, beta=0.1, random_state=0).fit(X)
    >>> model.transform(X).shape
    (40, 2)
    """

    target: str
    alternating_epochs: int | None

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **Autoencoder._parameter_constraints,
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
        "target": [StrOptions({"counts", "proportions"})],
        "alternating_epochs": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 50,
        *,
        entmax_alpha: float = 1.0,
        target: Literal["counts", "proportions"] = "counts",
        beta: float = 1.0,
        hidden_layer_sizes: Sequence[int] = (500,),
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        max_epochs: int = 50,
        alternating_epochs: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_epochs_no_change: int = 5,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        verbose_interval: int = 1,
    ) -> None:
        self._keep_parameters(locals())

    @property
    def components_(self) -> Array:
        """The weights of the decoder."""
        check_is_fitted(self)
        return as_array(self.network_.decoder[0].weight).T.copy()

    def top_words(self, feature_names: Any = None, n_words: int = 10) -> list[list[str]]:
        """Return the words whose scores each topic raises most.

        Coordinates have both signs: a document with a negative coordinate is about the words whose
        scores the topic lowers most.

        Parameters
        ----------
        feature_names : array-like of shape (n_features,), default=None
            The words, such as ``vectorizer.get_feature_names_out()``; None takes
            `feature_names_in_`.
        n_words : int, default=10
            Words per topic.

        Returns
        -------
        list of list of str
            The words of each topic, the heaviest first.

        Raises
        ------
        ValueError
            If there is not one name per feature, or `n_words` is not a positive integer.
        """
        topics = self.components_
        check_count(n_words, "n_words")
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        names = np.asarray(names, dtype=object)
        if names.shape != topics.shape[1:]:
            raise ValueError(
                f"top_words needs a name for each of the {topics.shape[1]} features, such as "
                "vectorizer.get_feature_names_out()."
            )
        heaviest = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
        return [[str(names[j]) for j in topic] for topic in heaviest]

    def _rows(self, X: MatrixLike, reset: bool) -> Matrix:
        floats = [np.float32, np.float64]
        counts: Matrix = validate_data(self, X, accept_sparse="csr", dtype=floats, reset=reset)
        check_non_negative(counts, type(self).__name__)
        largest = counts.max()
        if largest > MAX_COUNT:
            raise ValueError(f"X holds {largest:.6g}: counts above {MAX_COUNT:g} are too large.")
        return counts

    def _batch(self, X: Matrix, device: torch.device) -> tuple[Tensor, Tensor]:
        if isinstance(X, np.ndarray):
            rows = X.astype(np.float32, order="C")
        else:
            rows = X.astype(np.float32).toarray()
        counts = torch.from_numpy(rows).to(device)
        totals = counts.sum(-1, keepdim=True)
        proportions = counts / torch.where(totals > 0, totals, 1)
        # Square roots of proportions have unit length, however many words there are.
        return proportions.sqrt(), counts if self.target == "counts" else proportions

    def _network(self, n_features: int) -> VariationalNetwork:
        sizes = [n_features, *self.hidden_layer_sizes, self.n_components]
        return VariationalNetwork(sizes, [self.n_components, n_features], torch.nn.Tanh, 1.0)

    def _turns(self) -> Sequence[str]:
        n = self.alternating_epochs
        return ("",) if n is None else ("decoder",) * n + ("encoder",) * n

    def _loss(self) -> Loss:
        return EntmaxLoss(self.entmax_alpha, reduction="none")

    def _observed(self, scores: Tensor) -> Tensor:
        return entmax(scores, self.entmax_alpha)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
