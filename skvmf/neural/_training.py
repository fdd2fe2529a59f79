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

from .._typing import Matrix
from ._networks import Loss, VariationalNetwork

Batches = Iterable[tuple[Tensor, Tensor]]  # inputs and target
_GENERATOR = Lock()
_with_gradients = partial(torch.inference_mode, False)  # also within a caller's no_grad


@dataclass
class Training:
    """A network in training, which an estimator publishes when it is done.

    `score_seed` seeds the draws of free energies that are compared with each other; `adam` keeps
    its moments, and is None before the first step. The losses are mean free energies per epoch.
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
        """Return a copy of published attributes, to continue from."""
        names = ("network_", "_random_state", "_score_seed", "_adam", "losses_")
        with _with_gradients():
            return cls(*deepcopy([attributes[name] for name in (*names, "validation_losses_")]))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that an estimator publishes."""
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

        Each turn passes over the rows and trains the module of its name; "" is the whole network.
        """
        parameters = list(self.network.parameters())
        moving = [] if self.adam is None else self.adam.param_groups[0]["params"]
        if list(map(id, moving)) != list(map(id, parameters)):  # or a user changed the layers
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
    """Let only the parameters of one module have gradients: Adam skips those without."""
    trained = {id(parameter) for parameter in moved.parameters()}
    still = [p for p in network.parameters() if p.requires_grad and id(p) not in trained]
    for parameter in still:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in still:
            parameter.requires_grad_(True)


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
    """Seed torch within a block, and restore its global generator afterwards.

    All threads have one generator: those that fit or score at the same time take turns.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with _GENERATOR, torch.random.fork_rng(devices):
        torch.manual_seed(int(random_state.randint(2**31)))
        yield


def split(X: Matrix, fraction: float, random_state: np.random.RandomState) -> tuple[Matrix, Matrix]:
    """Return the rows to train on, and a random fraction of them to hold out."""
    n = X.shape[0]
    held_out = max(1, round(fraction * n))
    if held_out >= n:
        raise ValueError(
            f"early_stopping=True holds out {held_out} of n_samples={n}: nothing is left to "
            "train on. Take more rows, or early_stopping=False."
        )
    order = random_state.permutation(n)
    return X[order[held_out:]], X[order[:held_out]]
