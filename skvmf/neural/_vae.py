"""Variational autoencoders of images, whose posteriors and observations may be bounded."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from .._sklearn import Interval, StrOptions, validate_data
from .._typing import Array, Matrix, MatrixLike, ParameterConstraints
from ._autoencoder import Autoencoder, Loss, VariationalNetwork
from ._entmax import BinaryEntmaxLoss, binary_entmax

LATENTS = {"gaussian": 1.0, "triweight": 4 / 3, "biweight": 1.5, "epanechnikov": 2.0}
ROUNDING = 1e-6  # by which values scaled in float32 may exceed 1


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

    latent: str | float
    observation: str

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
        self._keep_parameters(locals())

    def _rows(self, X: MatrixLike, reset: bool) -> Matrix:
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

    def _batch(self, X: Matrix, device: torch.device) -> tuple[Tensor, Tensor]:
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
