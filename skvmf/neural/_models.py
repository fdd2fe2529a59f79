"""Variational autoencoders of documents, and of values in [0, 1] such as the pixels of images."""

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
from ._entmax import BinaryEntmaxLoss, EntmaxLoss, binary_entmax, entmax

# Up to this count, totals and losses stay finite in float32.
MAX_COUNT = 1e30

# Values that were scaled to [0, 1] in float32 may leave it by some of its roundings, 6e-8 each.
MAX_EXCESS = 1e-6

# The alphas of named posteriors.
LATENTS = {"gaussian": 1.0, "triweight": 4 / 3, "biweight": 1.5, "epanechnikov": 2.0}


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
        score is the evidence lower bound minus that of a perfect reconstruction. Losses of
        proportions are smaller by the document's length.
    beta : float, default=1.0
        Weight of the divergence. Start near 1e-4 for ``target="proportions"``, and at 0.01 or below
        for tf-idf rows. At beta = 1 and alpha above 1, posteriors often collapse to the prior.
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
        self.n_components = n_components
        self.entmax_alpha = entmax_alpha
        self.target = target
        self.beta = beta
        self.hidden_layer_sizes = hidden_layer_sizes
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.alternating_epochs = alternating_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_epochs_no_change = n_epochs_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval

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
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", None)
        names = np.asarray(feature_names, dtype=object)
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
        target = counts if self.target == "counts" else proportions
        # Square roots of proportions have unit length, however many words there are.
        return proportions.sqrt(), target

    def _network(self, n_features: int) -> VariationalNetwork:
        sizes = [n_features, *self.hidden_layer_sizes, self.n_components]
        return VariationalNetwork(sizes, [self.n_components, n_features], torch.nn.Tanh, 1.0)

    def _modules(self) -> Sequence[str]:
        n = self.alternating_epochs
        if n is None:
            return super()._modules()
        return ["decoder"] * n + ["encoder"] * n

    def _loss(self) -> Loss:
        return EntmaxLoss(self.entmax_alpha, reduction="none")

    def _observed(self, scores: Tensor) -> Tensor:
        return entmax(scores, self.entmax_alpha)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class FenchelYoungVAE(Autoencoder):
    """Variational autoencoder of values in [0, 1], such as the pixels of images.

    An encoder gives each row a distribution over a few latent variables, and a decoder maps a draw
    from it to observations. Training minimizes a Fenchel-Young free energy: the loss of the
    reconstruction plus `beta` times the divergence of the posterior from a standard Gaussian score.
    Posteriors can have finite support, and pixels can be exactly 0 and 1. Read more in the
    :doc:`user guide </user_guide/neural>`, and in Sklaviadis et al., "Fenchel-Young variational
    learning", sections 3.4 and 4.2.

    Parameters
    ----------
    n_components : int, default=32
        Number of latent variables.
    latent : {'gaussian', 'triweight', 'biweight', 'epanechnikov'} or float, default='gaussian'
        Family of the posteriors and of their divergence: beta-Gaussians with alpha 1, 4/3, 3/2 and
        2, or any alpha of at least 1.
    observation : {'bernoulli', 'binary-entmax'}, default='bernoulli'
        How scores become values: the logistic function, or alpha-entmax of two classes.
    entmax_alpha : float, default=2.0
        The alpha of 'binary-entmax', at least 1; 'bernoulli' is the same as alpha = 1.
    beta : float, default=1.0
        Weight of the divergence. With a Gaussian posterior, Bernoulli observations and beta = 1 the
        score is the evidence lower bound minus that of a perfect reconstruction. The losses of
        'binary-entmax' are smaller: start at 0.01 to 0.1.
    hidden_layer_sizes : sequence of int, default=(512, 256)
        Units of the encoder's hidden layers; the decoder has them in reverse.

    Notes
    -----
    The divergence sums over latent variables. For alpha > 1 it is zero at the beta-Gaussian of
    scale 1, from which `sample` draws, and not at the standard Gaussian.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skvmf.neural import FenchelYoungVAE
    >>> X = load_digits().data / 16
    >>> vae = FenchelYoungVAE(
    ...     8, latent="epanechnikov", observation="binary-entmax", beta=0.1,
    ...     hidden_layer_sizes=(64,), max_epochs=5, random_state=0,
    ... ).fit(X)
    >>> vae.transform(X).shape
    (1797, 8)
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **Autoencoder._parameter_constraints,
        "latent": [StrOptions(set(LATENTS)), Interval(Real, 1, None, closed="left")],
        "observation": [StrOptions({"bernoulli", "binary-entmax"})],
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 32,
        *,
        latent: Literal["gaussian", "triweight", "biweight", "epanechnikov"] | float = "gaussian",
        observation: Literal["bernoulli", "binary-entmax"] = "bernoulli",
        entmax_alpha: float = 2.0,
        beta: float = 1.0,
        hidden_layer_sizes: Sequence[int] = (512, 256),
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        max_epochs: int = 50,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_epochs_no_change: int = 5,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        verbose_interval: int = 1,
    ) -> None:
        self.n_components = n_components
        self.latent = latent
        self.observation = observation
        self.entmax_alpha = entmax_alpha
        self.beta = beta
        self.hidden_layer_sizes = hidden_layer_sizes
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_epochs_no_change = n_epochs_no_change
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def _rows(self, X: MatrixLike, reset: bool) -> Matrix:
        return self._in_range(validate_data(self, X, dtype=[np.float32, np.float64], reset=reset))

    def _in_range(self, X: Array) -> Array:
        """Raise a ValueError unless all values are in [0, 1]."""
        low, high = X.min(), X.max()
        if low < -MAX_EXCESS or high > 1 + MAX_EXCESS:
            raise ValueError(
                f"{type(self).__name__} takes values from 0 to 1, and X holds values from "
                f"{low:.6g} to {high:.6g}. Divide pixels of 8 bits by 255, and scale others, for "
                "instance with MinMaxScaler(clip=True)."
            )
        return X

    def _batch(self, X: Matrix, device: torch.device) -> tuple[Tensor, Tensor]:
        values = torch.from_numpy(X.astype(np.float32, order="C")).clamp_(0, 1).to(device)
        return values, values

    def _network(self, n_features: int) -> VariationalNetwork:
        sizes = [n_features, *self.hidden_layer_sizes, self.n_components]
        alpha = LATENTS[self.latent] if isinstance(self.latent, str) else float(self.latent)
        return VariationalNetwork(sizes, sizes[::-1], torch.nn.ReLU, alpha)

    @property
    def _alpha(self) -> float:
        """The alpha of observations."""
        return 1.0 if self.observation == "bernoulli" else self.entmax_alpha

    def _loss(self) -> Loss:
        loss = BinaryEntmaxLoss(self._alpha, reduction="none")
        return lambda scores, target: loss(scores, target).sum(-1)

    def _observed(self, scores: Tensor) -> Tensor:
        return binary_entmax(scores, self._alpha)
