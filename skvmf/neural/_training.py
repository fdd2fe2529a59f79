"""The training of a network by Adam, which can be resumed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._networks import Loss, VariationalNetwork

Batches = Iterable[tuple[Tensor, Tensor]]  # inputs and target
_GENERATOR = Lock()
_with_gradients = partial(torch.inference_mode, False)  # also within a caller's no_grad


@dataclass
class Training:
    """A network on its way; an estimator publishes it once it has arrived.

    Parameters
    ----------
    network : VariationalNetwork
        The network.
    random_state : RandomState
        Source of the order of rows and the draws.
    score_seed : int
        Seed of the draws of free energies that are compared with each other.
    adam : torch.optim.Adam, default=None
        The optimizer, with its moments; None before the first step.
    losses, validation_losses : list of float
        Mean free energies of the rows trained on and of those held out, by epoch.
    """

    network: VariationalNetwork
    random_state: np.random.RandomState
    score_seed: int
    adam: Any = None
    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)

    @classmethod
    def begin(
        cls, draw: Callable[[], VariationalNetwork], random_state: np.random.RandomState
    ) -> "Training":
        """Draw a network."""
        score_seed = int(random_state.randint(2**31))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        with _with_gradients(), seeded(random_state):
            network = draw().to(device, torch.float32)
        return cls(network, random_state, score_seed)

    @classmethod
    def resume(cls, attributes: Mapping[str, Any]) -> "Training":
        """Return a copy of what was published, to go on from."""
        names = ("network_", "_random_state", "_score_seed", "_adam", "losses_")
        with _with_gradients():
            return cls(*deepcopy([attributes[name] for name in (*names, "validation_losses_")]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that an estimator has of this."""
        return {
            "network_": self.network,
            "losses_": self.losses,
            "validation_losses_": self.validation_losses,
            "n_epochs_": len(self.losses),
            "_adam": self.adam,
            "_random_state": self.random_state,
            "_score_seed": self.score_seed,
        }

    def descend(
        self,
        n_rows: int,
        batches: Callable[[Any], Batches],
        loss: Loss,
        beta: float,
        learning_rate: float,
        turns: Sequence[str] = ("",),
    ) -> float:
        """Take one step of Adam per batch, in random order; return the mean free energy.

        Rows are gone through once per turn, which moves the module of that name alone; that
        without a name is the whole network.
        """
        parameters = list(self.network.parameters())
        if self.adam is None or not _same(self.adam.param_groups[0]["params"], parameters):
            self.adam = torch.optim.Adam(parameters, fused=True)
        self.adam.param_groups[0]["lr"] = learning_rate
        total: Tensor | float = 0.0
        for turn in turns:
            moved = self.network.get_submodule(turn)
            with _with_gradients(), seeded(self.random_state), _alone(self.network, moved):
                for inputs, target in batches(torch.randperm(n_rows).numpy()):
                    energy = self.network.free_energies(inputs, target, loss, beta).sum()
                    self.adam.zero_grad()
                    (energy / len(target)).backward()
                    self.adam.step()
                    total += energy.detach().double()
        self.losses.append(float(total) / (n_rows * len(turns)))
        return self.losses[-1]


@contextmanager
def _alone(network: torch.nn.Module, moved: torch.nn.Module) -> Iterator[None]:
    """Let only the parameters of one module have gradients: Adam leaves those without alone."""
    trained = {id(parameter) for parameter in moved.parameters()}
    still = [p for p in network.parameters() if p.requires_grad and id(p) not in trained]
    for parameter in still:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in still:
            parameter.requires_grad_(True)


def _same(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Whether two lists hold the same objects: not so where a user changed a network's layers."""
    return [id(tensor) for tensor in tensors] == [id(tensor) for tensor in others]


def mean_free_energy(
    network: VariationalNetwork, batches: Batches, loss: Loss, beta: float, seed: int
) -> float:
    """Return the mean free energy of the rows of all batches, with the same draws each time."""
    total, n_rows = 0.0, 0
    with torch.no_grad(), seeded(np.random.RandomState(seed)):
        for inputs, target in batches:
            energies = network.free_energies(inputs, target, loss, beta)
            total += energies.sum(dtype=torch.float64).item()
            n_rows += len(target)
    return total / n_rows


@contextmanager
def seeded(random_state: np.random.RandomState) -> Iterator[None]:
    """Let torch draw from a seed of its own, and leave its global generator as it was.

    That generator is one for all threads: those that fit or score at the same time take turns.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with _GENERATOR, torch.random.fork_rng(devices):
        torch.manual_seed(int(random_state.randint(2**31)))
        yield


def split(X: Any, fraction: float, random_state: np.random.RandomState) -> tuple[Any, Any]:
    """Return the rows to train on, and a random fraction of them that is held out."""
    n = X.shape[0]
    held_out = max(1, round(fraction * n))
    if held_out >= n:
        raise ValueError(
            f"early_stopping=True holds out {held_out} of n_samples={n}: nothing is left to "
            "train on. Take more rows, or early_stopping=False."
        )
    order = random_state.permutation(n)
    return X[order[held_out:]], X[order[:held_out]]
