"""The base class of the autoencoders: training, and scikit-learn's conventions."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._sklearn import BaseEstimator, CallbackSupportMixin, Interval, fit_context, with_callbacks
from .._typing import Array
from .._version import stamp, unstamp
from ..distributions._arguments import check_count
from ._beta_gaussian import BetaGaussian
from ._networks import Loss, VariationalNetwork, as_array, device_of, rows_at_once
from ._progress import Progress
from ._training import Training, mean_free_energy, seeded, split


class Autoencoder(
    ClassNamePrefixFeaturesOutMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base of the autoencoders: minimizes a free energy by Adam, in float32.

    A subclass has the parameters below, and says which rows are valid, what the network is, what
    goes into it, its loss, and how scores become what is observed. Pickles hold the network on
    the CPU, without the moments of Adam.
    """

    _parameter_constraints: dict[str, list[Any]] = {
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
    early_stopping: bool
    validation_fraction: float
    n_epochs_no_change: int
    random_state: int | np.random.RandomState | None
    network_: VariationalNetwork
    n_features_in_: int
    _score_seed: int

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a new network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Present by convention.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If rows are not valid, fewer than two where some are held out, or training diverges.
        """
        rows, features = self._checked(X, new=True)
        training = self._begin(rows.shape[1])
        train, held_out = rows, None
        if self.early_stopping:
            train, held_out = split(rows, self.validation_fraction, training.random_state)
        with Progress(self, {"X": X, "y": y}) as progress:
            self._train(training, train, held_out, features, progress)
            self._publish(training, features)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Train for one more epoch on some rows.

        No rows are held out: `early_stopping` plays no part.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Present by convention.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If rows are not valid, or training diverges.
        """
        new = not hasattr(self, "network_")
        rows, features = self._checked(X, new)
        training = self._begin(rows.shape[1]) if new else Training.resume(vars(self))
        self._epoch(training, rows, None, features, Progress(self))
        self._check_last_step(training, rows)
        self._publish(training, features)
        return self

    def posterior(self, X: Any) -> BetaGaussian:
        """Return the distributions of the latent variables of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        BetaGaussian
            With parameters of shape (n_samples, n_components), without gradients. Its draws come
            from torch's global generator, not from `random_state`.
        """
        self._check_ready()
        batches = self._batches(self._rows(X, reset=False), device_of(self.network_))
        with torch.no_grad():
            parts = [self.network_.posterior(inputs) for inputs, _ in batches]
            loc, scale = (torch.cat([getattr(p, name) for p in parts]) for name in ("loc", "scale"))
            return BetaGaussian(loc, scale, self.network_.alpha, validate_args=False)

    def transform(self, X: Any) -> Array:
        """Return the means of the latent variables of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            Latent coordinates.
        """
        return as_array(self.posterior(X).mean)

    def inverse_transform(self, X: Any) -> Array:
        """Return what is observed on average at latent coordinates.

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
        X = X.detach().cpu() if isinstance(X, torch.Tensor) else X
        X = check_array(X, dtype=np.float32, ensure_min_samples=0, input_name="X")
        n_components = self._n_features_out
        if X.shape[1] != n_components:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {type(self).__name__} has {n_components} latent "
                "coordinates."
            )
        return self._decoded(torch.from_numpy(X.copy()))

    def sample(self, n_samples: int = 1) -> Array:
        """Return what is observed on average at latent coordinates drawn from the prior.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
            The decoder's probabilities. The prior is the standard one of the posterior's family.
        """
        self._check_ready()
        check_count(n_samples, "n_samples")
        with seeded(check_random_state(self.random_state)):
            return self._decoded(self.network_.prior(n_samples).sample())

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative free energy, per row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Present by convention.

        Returns
        -------
        float
            Minus the mean reconstruction loss less beta times the Fenchel-Young divergence, with
            one draw of the latent variables of each row, the same in every call; -inf where
            that is beyond float32, for rows far from any in training.

        Notes
        -----
        Scores are comparable only between models with the same beta, the same kind of target or
        observation, and the same alphas: another of these is another loss. Choose them by a
        scorer of your own, such as the one below.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.model_selection import GridSearchCV
        >>> from skvmf.neural import FenchelYoungVAE
        >>> def reconstruction(model, X, y=None):
        ...     return -np.abs(model.inverse_transform(model.transform(X)) - X).mean()
        >>> vae = FenchelYoungVAE(4, hidden_layer_sizes=(32,), max_epochs=5, random_state=0)
        >>> search = GridSearchCV(vae, {"beta": [0.01, 1.0]}, scoring=reconstruction, cv=2)
        >>> search.fit(load_digits().data / 16).best_params_
        {'beta': 0.01}
        """
        self._check_ready()
        rows = self._rows(X, reset=False)
        free_energy = self._free_energy(self.network_, rows, self._score_seed)
        return -free_energy if np.isfinite(free_energy) else -np.inf

    def _check_ready(self) -> None:
        """Raise where there is no network, or parameters set after the fit are invalid."""
        check_is_fitted(self)
        self._validate_params()

    def _checked(self, X: Any, new: bool) -> tuple[Any, dict[str, Any]]:
        """Return rows, and the attributes that describe their features.

        For a new network a copy of the estimator checks them: this one stays as it is.
        """
        model = clone(self) if new else self
        rows = model._rows(X, reset=new)
        names = ("n_features_in_", "feature_names_in_")
        return rows, {name: vars(model)[name] for name in names if name in vars(model)}

    def _begin(self, n_features: int) -> Training:
        """Draw a network."""
        sizes = self.hidden_layer_sizes
        if not all(isinstance(size, Integral) and int(size) > 0 for size in sizes):
            raise ValueError(f"hidden_layer_sizes must hold positive integers, not {sizes!r}.")
        random_state = check_random_state(self.random_state)
        return Training.begin(lambda: self._network(n_features), random_state)

    def _train(
        self,
        training: Training,
        train: Any,
        held_out: Any,
        features: dict[str, Any],
        progress: Progress,
    ) -> None:
        """Train until it is time to stop, and keep the network that was best on rows held out."""
        best, best_state, waited, stop = np.inf, None, 0, False
        while len(training.losses) < self.max_epochs and not stop:
            stop = self._epoch(training, train, held_out, features, progress)
            if held_out is None:
                continue
            waited += 1
            if training.validation_losses[-1] < best:
                best, waited = training.validation_losses[-1], 0
                state = training.network.state_dict()
                best_state = {name: value.clone() for name, value in state.items()}
            stop |= waited == self.n_epochs_no_change
        if best_state is not None:
            training.network.load_state_dict(best_state)
        self._check_last_step(training, train)

    def _epoch(
        self,
        training: Training,
        X: Any,
        held_out: Any,
        features: dict[str, Any],
        progress: Progress,
    ) -> bool:
        """Train once on each row; return whether a callback asks to stop."""
        progress.begin_epoch()
        batches = partial(self._batches, X, device_of(training.network))
        loss, beta, turns = self._loss(), self.beta, self._turns()
        self._check_finite(
            training.descend(X.shape[0], batches, loss, beta, self.learning_rate, turns)
        )
        if held_out is not None:
            energy = self._free_energy(training.network, held_out, training.score_seed)
            self._check_finite(energy)
            training.validation_losses.append(energy)
        return progress.end_epoch(
            training.losses,
            training.validation_losses,
            lambda: deepcopy(features | training.attributes()),
        )

    def _batches(
        self, X: Any, device: torch.device, order: Array | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches of rows: in an order for training, or all as they come."""
        size = rows_at_once(X.shape[1]) if order is None else self.batch_size
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            yield self._batch(X[rows if order is None else order[rows]], device)

    def _free_energy(self, network: VariationalNetwork, X: Any, seed: int) -> float:
        batches = self._batches(X, device_of(network))
        return mean_free_energy(network, batches, self._loss(), self.beta, seed)

    def _check_last_step(self, training: Training, X: Any) -> None:
        """Raise where the step after the last free energy was too far."""
        some = X[: self.batch_size]
        self._check_finite(self._free_energy(training.network, some, training.score_seed))

    def _check_finite(self, free_energy: float) -> None:
        if not np.isfinite(free_energy):
            raise ValueError(
                "Training diverged: the free energy is not finite any more. Choose a smaller "
                f"learning_rate (now {self.learning_rate})."
            )

    def _publish(self, training: Training, features: dict[str, Any]) -> None:
        """Set all attributes at once, so that no fit is half done."""
        others = {name: value for name, value in vars(self).items() if name != "feature_names_in_"}
        self.__dict__ = others | features | training.attributes()

    @abstractmethod
    def _rows(self, X: Any, reset: bool) -> Any:
        """Return valid rows, dense or CSR, and take note of their features on `reset`."""

    @abstractmethod
    def _batch(self, X: Any, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the network's inputs for some rows, and the targets of its outputs."""

    @abstractmethod
    def _network(self, n_features: int) -> VariationalNetwork:
        """Draw a network."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss of scores and targets, one number per row."""

    @abstractmethod
    def _observed(self, scores: Tensor) -> Tensor:
        """Return what scores say is observed on average."""

    def _turns(self) -> Sequence[str]:
        """Return the modules that the passes of an epoch train; "" is the whole network."""
        return ("",)

    def _decoded(self, latent: Tensor) -> Array:
        """Return what is observed on average at latent coordinates, as an array."""
        size = rows_at_once(self.n_features_in_)
        parts = latent.to(device_of(self.network_)).split(size)
        with torch.no_grad():
            observed = [self._observed(self.network_.decoder(part)) for part in parts]
            return as_array(torch.cat(observed))

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__() | {"_adam": None}
        if "network_" in state:
            state["network_"] = deepcopy(self.network_).cpu()
        return stamp(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unstamp(state, type(self).__name__))
