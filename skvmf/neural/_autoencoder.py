"""The base of the autoencoders: networks, training and progress."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags, check_array, check_random_state
from torch import Tensor

from .._sklearn import (
    NO_TASKS,
    CallbackSupportMixin,
    CallbackTasks,
    ClassNamePrefixFeaturesOutMixin,
    Interval,
    RowsEstimator,
    TransformerMixin,
    all_or_nothing,
    fit_context,
    with_callbacks,
)
from .._typing import Array, Attributes, Matrix, MatrixLike, ParameterConstraints, is_integer
from ..distributions._arguments import check_count
from ._beta_gaussian import BetaGaussian

# Of scores and target, one number per row.
Loss = Callable[[Tensor, Tensor], Tensor]

# Inputs and target.
Batches = Iterator[tuple[Tensor, Tensor]]

# Rows that pass a network together outside training; if they have many features as many as take
# 32 MiB in float32.
MAX_ROWS = 1024
MAX_NUMBERS = 2**23

# Torch has one generator for all threads.
_GENERATOR_LOCK = Lock()

# Also within a caller's no_grad.
_with_gradients = partial(torch.inference_mode, False)


class VariationalNetwork(torch.nn.Module):
    """Encoder and decoder of given layer sizes; `alpha` is that of the posterior."""

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
    return values.detach().cpu().numpy()


def device_of(network: torch.nn.Module) -> torch.device:
    return next(network.parameters()).device


def rows_at_once(n_features: int) -> int:
    """Return how many rows pass a network together outside training."""
    return max(1, min(MAX_ROWS, MAX_NUMBERS // n_features))


@dataclass
class Progress(AbstractContextManager["Progress"]):
    """Report the epochs of one fit, as lines and to callbacks; leaving it ends every open task."""

    _tasks: CallbackTasks
    _verbose: int
    _verbose_interval: int
    _epoch_start: float = 0.0

    def __exit__(self, error: object, *details: object) -> None:
        # After an error there are no attributes to give.
        self._tasks.end(0, {} if error is None else None)

    def begin_epoch(self) -> None:
        self._epoch_start = perf_counter()
        self._tasks.begin("epoch", 0)

    def end_epoch(
        self,
        losses: list[float],
        validation_losses: list[float],
        attributes: Callable[[], dict[str, Any]],
    ) -> bool:
        """Report an epoch; return whether a callback, given `attributes`, stops the training."""
        n_epochs = len(losses)
        if self._verbose and n_epochs % self._verbose_interval == 0:
            line = f"Epoch {n_epochs}: free energy {losses[-1]:.6g}"
            if validation_losses:
                line += f", of rows held out {validation_losses[-1]:.6g}"
            print(f"{line} ({perf_counter() - self._epoch_start:.1f} s)")
        return self._tasks.end(1, attributes)


@dataclass
class Training:
    """A network in training; its fields become public attributes of an estimator when it is done.

    `_score_seed` seeds the draws of free energies that are compared; `_adam` is None before the
    first step. The losses are mean free energies per epoch.
    """

    network_: VariationalNetwork
    _random_state: np.random.RandomState
    _score_seed: int
    _adam: Any = None
    losses_: list[float] = field(default_factory=list)
    validation_losses_: list[float] = field(default_factory=list)

    @classmethod
    def resume(cls, attributes: Mapping[str, Any]) -> Training:
        """Return a copy of an estimator's attributes, to continue from."""
        names = [each.name for each in fields(cls)]
        with _with_gradients():
            return cls(*deepcopy([attributes[name] for name in names]))

    def attributes(self) -> dict[str, Any]:
        """Return what becomes the attributes of an estimator."""
        return vars(self) | {"n_epochs_": len(self.losses_)}

    def descend(
        self,
        n_rows: int,
        batches: Callable[[Any], Batches],
        loss: Loss,
        beta: float,
        learning_rate: float,
        modules: Sequence[str],
    ) -> float:
        """Pass over all rows once per module, with a step of Adam that trains it per batch.

        `modules` are names within the network. Returns the mean free energy.
        """
        self._prepare_adam(learning_rate)
        # A float64 tensor: a number would wait for the GPU in each step.
        total: Tensor | float = 0.0
        for name in modules:
            module = self.network_.get_submodule(name)
            freeze = _freeze_except(self.network_, module)
            with _with_gradients(), seeded(self._random_state), freeze:
                for inputs, target in batches(torch.randperm(n_rows).numpy()):
                    energy = self.network_.free_energies(inputs, target, loss, beta).sum()
                    self._adam.zero_grad()
                    (energy / len(target)).backward()
                    self._adam.step()
                    total += energy.detach().double()
        self.losses_.append(float(total) / (n_rows * len(modules)))
        return self.losses_[-1]

    def _prepare_adam(self, learning_rate: float) -> None:
        """Begin with new moments, at first and if a user has changed the layers."""
        parameters = list(self.network_.parameters())
        optimized = [] if self._adam is None else self._adam.param_groups[0]["params"]
        if list(map(id, optimized)) != list(map(id, parameters)):
            self._adam = torch.optim.Adam(parameters, fused=True)
        self._adam.param_groups[0]["lr"] = learning_rate


@contextmanager
def _freeze_except(network: torch.nn.Module, module: torch.nn.Module) -> Iterator[None]:
    """Let only the parameters of one module have gradients: Adam skips those without."""
    trained = {id(parameter) for parameter in module.parameters()}
    frozen = [p for p in network.parameters() if p.requires_grad and id(p) not in trained]
    for parameter in frozen:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)


@contextmanager
def seeded(random_state: np.random.RandomState) -> Iterator[None]:
    """Seed and then restore the one generator of torch, for which threads take turns."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with _GENERATOR_LOCK, torch.random.fork_rng(devices):
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


class Autoencoder(
    ClassNamePrefixFeaturesOutMixin, CallbackSupportMixin, TransformerMixin, RowsEstimator, ABC
):
    """Base class of the autoencoders: minimizes a free energy by Adam, in float32.

    Subclasses define the valid rows, the network, its inputs, its loss, and the map from scores to
    observations. Pickles hold the network on the CPU, without Adam's moments.

    Parameters
    ----------
    batch_size : int, default=64
        Rows per step of Adam.
    learning_rate : float, default=0.001
        Step size of Adam.
    max_epochs : int, default=50
        Maximum number of passes over the rows.
    early_stopping : bool, default=False
        Whether to hold out rows, stop when their free energy no longer falls, and keep the best
        network.
    validation_fraction : float, default=0.1
        Fraction of the rows to hold out.
    n_epochs_no_change : int, default=5
        Epochs without improvement after which training stops.
    random_state : int, RandomState instance or None, default=None
        Source of the first weights, the order of rows and the draws: a seed fixes the result on
        one machine with one number of threads.
    verbose : int, default=0
        Whether to print a line every `verbose_interval` epochs.
    verbose_interval : int, default=1
        Number of epochs between lines.

    Attributes
    ----------
    network_ : torch.nn.Module
        The modules ``encoder``, to centers and log-scales, and ``decoder``, to scores, on a GPU if
        torch finds one (``CUDA_VISIBLE_DEVICES=""`` prevents it). Pickles leave out Adam's moments.
    losses_ : list of float
        Mean free energy of the training rows per epoch, over all its passes.
    validation_losses_ : list of float
        Mean free energy of the validation rows per epoch; empty without early stopping.
    n_epochs_ : int
        Number of epochs.
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "hidden_layer_sizes": ["array-like"],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_epochs": [Interval(Integral, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_epochs_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    hidden_layer_sizes: Sequence[int]
    beta: float
    batch_size: int
    learning_rate: float
    max_epochs: int
    verbose: int
    verbose_interval: int
    early_stopping: bool
    validation_fraction: float
    n_epochs_no_change: int
    random_state: int | np.random.RandomState | None
    network_: VariationalNetwork
    n_features_in_: int
    _score_seed: int

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Train a new network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
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
        with all_or_nothing(self):
            train = self._rows(X, reset=True)
            training = self._begin(train.shape[1])
            held_out = None
            if self.early_stopping:
                train, held_out = split(train, self.validation_fraction, training._random_state)
            tasks = CallbackTasks(self, {"X": X, "y": y}, self.max_epochs)
            with Progress(tasks, self.verbose, self.verbose_interval) as progress:
                self._train(training, train, held_out, progress)
                self.__dict__.update(training.attributes())
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: MatrixLike, y: object = None) -> Self:
        """Train for one more epoch on some rows; early stopping does not apply.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
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
        is_first = not hasattr(self, "network_")
        with all_or_nothing(self):
            rows = self._rows(X, reset=is_first)
            training = self._begin(rows.shape[1]) if is_first else Training.resume(vars(self))
            progress = Progress(NO_TASKS, self.verbose, self.verbose_interval)
            self._epoch(training, rows, None, progress)
            self._check_last_step(training, rows)
            self.__dict__.update(training.attributes())
        return self

    def posterior(self, X: MatrixLike) -> BetaGaussian:
        """Return the distributions of the latent variables of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        BetaGaussian
            Parameters of shape (n_samples, n_components), without gradients. Draws come from
            torch's global generator, not from `random_state`.
        """
        self._check_ready()
        batches = self._batches(self._rows(X, reset=False), device_of(self.network_))
        with torch.no_grad():
            parts = [self.network_.posterior(inputs) for inputs, _ in batches]
            loc = torch.cat([part.loc for part in parts])
            scale = torch.cat([part.scale for part in parts])
            return BetaGaussian(loc, scale, self.network_.alpha, validate_args=False)

    def transform(self, X: MatrixLike) -> Array:
        """Return the means of the latent variables of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            Latent coordinates.
        """
        return as_array(self.posterior(X).mean)

    def inverse_transform(self, X: MatrixLike) -> Array:
        """Return the mean observations at latent coordinates.

        Parameters
        ----------
        X : {array-like, Tensor} of shape (n_samples, n_components)
            Latent coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
            The decoder's probabilities.
        """
        self._check_ready()
        if isinstance(X, torch.Tensor):
            X = X.detach().cpu()
        rows = check_array(X, dtype=np.float32, ensure_min_samples=0, input_name="X")
        if rows.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {rows.shape[1]} columns, but {type(self).__name__} has "
                f"{self._n_features_out} latent coordinates."
            )
        # A copy: torch warns of arrays that are read-only.
        return self._decoded(torch.from_numpy(rows.copy()))

    def sample(self, n_samples: int = 1) -> Array:
        """Return the mean observations at latent coordinates drawn from the prior.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws from the standard density of the posterior's family.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
            The decoder's probabilities.
        """
        self._check_ready()
        check_count(n_samples, "n_samples")
        with seeded(check_random_state(self.random_state)):
            return self._decoded(self.network_.prior(n_samples).sample())

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Return the negative free energy per row.

        Compare models of the same beta, alphas and kind of target or observation only: each changes
        the loss. To choose these, compare errors of ``inverse_transform(transform(X))`` instead.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        float
            Minus the mean of reconstruction loss plus beta times Fenchel-Young divergence. Each row
            has one draw of its latent variables, the same in every call. -inf beyond float32, for
            rows far from all in training.
        """
        self._check_ready()
        rows = self._rows(X, reset=False)
        free_energy = self._free_energy(self.network_, rows, self._score_seed)
        if not np.isfinite(free_energy):
            return -np.inf
        return -free_energy

    def _begin(self, n_features: int) -> Training:
        """Draw a network of the parameters, to be trained."""
        sizes = self.hidden_layer_sizes
        if not all(is_integer(size) and int(size) > 0 for size in sizes):
            raise ValueError(f"hidden_layer_sizes must hold positive integers, not {sizes!r}.")
        random_state = check_random_state(self.random_state)
        score_seed = int(random_state.randint(2**31))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        with _with_gradients(), seeded(random_state):
            network = self._network(n_features).to(device, torch.float32)
        return Training(network, random_state, score_seed)

    def _train(
        self, training: Training, train: Matrix, held_out: Matrix | None, progress: Progress
    ) -> None:
        """Train until it is time to stop, and keep the network that was best on validation rows."""
        best_loss = np.inf
        best_state = None
        n_epochs_waited = 0
        stop = False
        while len(training.losses_) < self.max_epochs and not stop:
            stop = self._epoch(training, train, held_out, progress)
            if held_out is None:
                continue
            loss = training.validation_losses_[-1]
            if loss < best_loss:
                best_loss = loss
                state = training.network_.state_dict()
                best_state = {name: value.clone() for name, value in state.items()}
                n_epochs_waited = 0
            else:
                n_epochs_waited += 1
            stop = stop or n_epochs_waited == self.n_epochs_no_change
        if best_state is not None:
            training.network_.load_state_dict(best_state)
        self._check_last_step(training, train)

    def _epoch(
        self, training: Training, X: Matrix, held_out: Matrix | None, progress: Progress
    ) -> bool:
        """Train once on each row; return whether a callback stops the training."""
        progress.begin_epoch()
        batches = partial(self._batches, X, device_of(training.network_))
        energy = training.descend(
            X.shape[0], batches, self._loss(), self.beta, self.learning_rate, self._modules()
        )
        self._check_finite(energy)
        if held_out is not None:
            energy = self._free_energy(training.network_, held_out, training._score_seed)
            self._check_finite(energy)
            training.validation_losses_.append(energy)
        return progress.end_epoch(
            training.losses_, training.validation_losses_, lambda: deepcopy(training.attributes())
        )

    def _batches(self, X: Matrix, device: torch.device, order: Array | None = None) -> Batches:
        """Yield batches of rows: in an order for training, or all as they come."""
        size = rows_at_once(X.shape[1]) if order is None else self.batch_size
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            yield self._batch(X[rows if order is None else order[rows]], device)

    def _free_energy(self, network: VariationalNetwork, X: Matrix, seed: int) -> float:
        """Return the mean free energy of rows, with the same draws each time."""
        loss = self._loss()
        total = 0.0
        with torch.no_grad(), seeded(np.random.RandomState(seed)):
            for inputs, target in self._batches(X, device_of(network)):
                energies = network.free_energies(inputs, target, loss, self.beta)
                total += energies.sum(dtype=torch.float64).item()
        return total / X.shape[0]

    def _check_last_step(self, training: Training, X: Matrix) -> None:
        """Raise if the step after the last free energy diverged."""
        batch = X[: self.batch_size]
        self._check_finite(self._free_energy(training.network_, batch, training._score_seed))

    def _check_finite(self, free_energy: float) -> None:
        """Raise a ValueError that says what to do unless a free energy is finite."""
        if not np.isfinite(free_energy):
            raise ValueError(
                "Training diverged: the free energy is not finite any more. Choose a smaller "
                f"learning_rate (now {self.learning_rate})."
            )

    @abstractmethod
    def _rows(self, X: MatrixLike, reset: bool) -> Matrix:
        """Return valid rows, dense or CSR, and record their features on `reset`."""

    @abstractmethod
    def _batch(self, X: Matrix, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the network's inputs for some rows, and the targets of its outputs."""

    @abstractmethod
    def _network(self, n_features: int) -> VariationalNetwork:
        """Draw a network."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss of scores and targets, one number per row."""

    @abstractmethod
    def _observed(self, scores: Tensor) -> Tensor:
        """Return the mean observations of scores."""

    def _modules(self) -> Sequence[str]:
        """Return the modules that the passes of an epoch train; "" is the whole network."""
        return ("",)

    def _decoded(self, latent: Tensor) -> Array:
        """Return the mean observations at latent coordinates, as an array."""
        parts = latent.to(device_of(self.network_)).split(rows_at_once(self.n_features_in_))
        with torch.no_grad():
            return as_array(torch.cat([self._observed(self.network_.decoder(z)) for z in parts]))

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> Attributes:
        state = super().__getstate__() | {"_adam": None}
        if "network_" in state:
            state["network_"] = deepcopy(self.network_).cpu()
        return state
