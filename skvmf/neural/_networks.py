"""An encoder to a distribution of latent variables, and a decoder to scores."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from .._typing import Array
from ._beta_gaussian import BetaGaussian

# Outside training; of many features as many rows as take 32 MiB in float32.
ROWS_AT_ONCE, NUMBERS_AT_ONCE = 1024, 2**23

Loss = Callable[[Tensor, Tensor], Tensor]  # of scores and target, one number per row


class VariationalNetwork(torch.nn.Module):
    """Encoder and decoder of a variational autoencoder.

    Sizes are numbers of units from the first layer to the last; `alpha` is that of the posterior.
    """

    def __init__(
        self,
        encoder_sizes: Sequence[int],
        decoder_sizes: Sequence[int],
        activation: type[torch.nn.Module],
        alpha: float,
    ) -> None:
        super().__init__()
        *sizes, self.n_components = encoder_sizes
        self.encoder = _perceptron([*sizes, 2 * self.n_components], activation)
        self.decoder = _perceptron(decoder_sizes, activation)
        self.alpha = alpha

    def prior(self, n_samples: int) -> BetaGaussian:
        """Return rows of the distribution from which the divergence is measured."""
        zeros = self.decoder[0].weight.new_zeros(n_samples, self.n_components)
        return BetaGaussian(zeros, zeros + 1, self.alpha, validate_args=False)

    def posterior(self, inputs: Tensor) -> BetaGaussian:
        """Return the distribution of the latent variables of each row."""
        loc, log_scale = self.encoder(inputs).chunk(2, dim=-1)
        return BetaGaussian(loc, log_scale.exp(), self.alpha, validate_args=False)

    def free_energies(self, inputs: Tensor, target: Tensor, loss: Loss, beta: float) -> Tensor:
        """Return the free energy of each row, with one draw of its latent variables."""
        posterior = self.posterior(inputs)
        reconstruction = loss(self.decoder(posterior.rsample()), target)
        return reconstruction + beta * posterior.fenchel_young_divergence().sum(-1)


def _perceptron(sizes: Sequence[int], activation: type[torch.nn.Module]) -> torch.nn.Sequential:
    """Return linear layers with activations between them."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), activation()]
    return torch.nn.Sequential(*layers[:-1])


def as_array(values: Tensor) -> Array:
    """Return a tensor from any device as an array."""
    return values.detach().cpu().numpy()


def device_of(network: torch.nn.Module) -> torch.device:
    """Return the device of a network."""
    return next(network.parameters()).device


def rows_at_once(n_features: int) -> int:
    """Return how many rows pass a network together outside training."""
    return max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // n_features))
