"""Variational autoencoders of images, with posteriors and observations of finite support."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._sklearn import Interval, StrOptions, validate_data
from .._typing import Array
from ._autoencoder import Autoencoder
from ._entmax import binary_entmax
from ._losses import BinaryEntmaxLoss
from ._networks import Loss, VariationalNetwork

LATENTS = {"gaussian": 1.0, "triweight": 4 / 3, "biweight": 1.5, "epanechnikov": 2.0}
ROUNDING = 1e-6  # by which values scaled in float32 may exceed 1


class FenchelYoungVAE(Autoencoder):
    """Variational autoencoder of values in [0, 1], such as the pixels of images.

    Two perceptrons, trained together: an encoder gives each row a distribution over few latent
    variables, a decoder what is observed at a draw from it. What is minimized is a Fenchel-Young
    free energy: the loss of the reconstruction plus `beta` times the divergence of the posterior
    from a standard Gaussian score. Posteriors of finite support never put mass far away;
    the sparse observation model gives pixels that are exactly 0 and 1.

    Parameters
    ----------
    n_components : int, default=32
        Number of latent variables.
    latent : {'gaussian', 'triweight', 'biweight', 'epanechnikov'} or float, default='gaussian'
        Family of the posterior of each latent variable: beta-Gaussians with alpha 1, 4/3, 3/2
        and 2, or any alpha of at least 1. The divergence is that of the same alpha.
    observation : {'bernoulli', 'binary-entmax'}, default='bernoulli'
        How scores become values: the logistic function, or alpha-entmax of two classes.
    entmax_alpha : float, default=2.0
        At least 1. The alpha of 'binary-entmax'; 'bernoulli' is the same as alpha = 1.
    beta : float, default=1.0
        Weight of the divergence. With a Gaussian posterior, Bernoulli observations and beta = 1
        the score is the evidence lower bound less its value for a perfect reconstruction. The
        losses of 'binary-entmax' are smaller: start at 0.01 to 0.1.
    hidden_layer_sizes : sequence of int, default=(512, 256)
        Units of the encoder's hidden layers; the decoder has them in reverse.
    batch_size : int, default=64
        Rows per step of Adam.
    learning_rate : float, default=0.001
        Step size of Adam.
    max_epochs : int, default=50
        Number of passes over the rows, at most.
    early_stopping : bool, default=False
        Whether to hold out rows, to stop when their free energy falls no more, and to keep the
        network that was best on them.
    validation_fraction : float, default=0.1
        The part of the rows held out.
    n_epochs_no_change : int, default=5
        Epochs without a new best after which training stops.
    random_state : int, RandomState instance or None, default=None
        Source of the first weights, the order of rows and the draws.
    verbose : int, default=0
        Whether to print a line every `verbose_interval` epochs.
    verbose_interval : int, default=1
        Number of epochs between lines.

    Attributes
    ----------
    network_ : torch.nn.Module
        With the modules ``encoder``, to centers and logarithms of scales, and ``decoder``, to
        scores.
    losses_ : list of float
        Mean free energy of the rows while they were trained on, by epoch.
    validation_losses_ : list of float
        Mean free energy of the rows held out, by epoch; empty without early stopping.
    n_epochs_ : int
        Number of epochs.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    See Also
    --------
    FenchelYoungDocumentModel : The same for counts of words.
    BetaGaussian : The family of the posteriors.
    BinaryEntmaxLoss : The loss of the reconstruction.

    Notes
    -----
    The network is in float32, on a GPU where torch finds one: ``CUDA_VISIBLE_DEVICES=""`` prevents
    it. The divergence is summed over the latent variables as those of one-dimensional posteriors;
    the divergence of a posterior with alpha > 1 is not zero at the standard Gaussian but at the
    beta-Gaussian of scale 1, from which `sample` draws. Pickles keep the network, but not Adam's
    moments. The same seed gives the same result on one machine with one number of threads.

    References
    ----------
    .. [1] Sklaviadis et al., "Fenchel-Young variational learning", sections 3.4 and 4.2.
    .. [2] Kingma and Welling, "Auto-encoding variational Bayes", ICLR 2014.

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
    >>> images = vae.inverse_transform(vae.transform(X))
    >>> bool((images == 0).mean() > 0.1)
    True
    """

    _parameter_constraints = {
        **Autoencoder._parameter_constraints,
        "latent": [StrOptions(set(LATENTS)), Interval(Real, 1, None, closed="left")],
        "observation": [StrOptions({"bernoulli", "binary-entmax"})],
        "entmax_alpha": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 32,
        *,
        latent: str | float = "gaussian",
        observation: str = "bernoulli",
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

    def _rows(self, X: Any, reset: bool) -> Any:
        return self._in_range(validate_data(self, X, dtype=[np.float32, np.float64], reset=reset))

    def _in_range(self, X: Array) -> Array:
        low, high = X.min(), X.max()
        if low < -ROUNDING or high > 1 + ROUNDING:
            raise ValueError(
                f"{type(self).__name__} takes values from 0 to 1, and X holds values from "
                f"{low:.6g} to {high:.6g}. Divide pixels of 8 bits by 255, and scale others, for "
                "instance with MinMaxScaler(clip=True)."
            )
        return X

    def _batch(self, X: Any, device: torch.device) -> tuple[Tensor, Tensor]:
        values = torch.from_numpy(X.astype(np.float32, order="C")).clamp_(0, 1).to(device)
        return values, values

    def _network(self, n_features: int) -> VariationalNetwork:
        sizes = [n_features, *self.hidden_layer_sizes, self.n_components]
        alpha = LATENTS[self.latent] if isinstance(self.latent, str) else float(self.latent)
        return VariationalNetwork(sizes, sizes[::-1], torch.nn.ReLU, alpha)

    @property
    def _alpha(self) -> float:
        return 1.0 if self.observation == "bernoulli" else self.entmax_alpha

    def _loss(self) -> Loss:
        loss = BinaryEntmaxLoss(self._alpha, reduction="none")
        return lambda scores, target: loss(scores, target).sum(-1)

    def _observed(self, scores: Tensor) -> Tensor:
        return binary_entmax(scores, self._alpha)
