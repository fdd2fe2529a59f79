"""What the autoencoders share: training, and scikit-learn's manners."""

from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral, Real
from threading import Lock
from time import perf_counter

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval, fit_context
from .._version import stamp, unstamp
from ._beta_gaussian import BetaGaussian

# Outside training; of many features as many rows as take 32 MiB in float32.
ROWS_AT_ONCE, NUMBERS_AT_ONCE = 1024, 2**23
_GENERATOR = Lock()


class Autoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the autoencoders: minimizes a free energy by Adam, in float32.

    A subclass says what rows are valid (`_rows`), what of them goes into the network and what
    comes out (`_batch`), how the network is built (`_network`), its loss (`_loss`) and how scores
    become what is observed (`_observed`).

    Pickles hold the network on the CPU, and not the moments of Adam: `partial_fit` starts with
    new ones.
    """

    _parameter_constraints = {
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
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
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
        X = self._rows(X, reset=True)
        self._begin(X.shape[1])
        train, held_out = self._split(X)
        best, kept, waited = np.inf, None, 0
        for _ in range(self.max_epochs):
            self._epoch(train, held_out)
            if held_out is None:
                continue
            waited += 1
            if self.validation_losses_[-1] < best:
                best, waited = self.validation_losses_[-1], 0
                kept = {name: value.clone() for name, value in self.network_.state_dict().items()}
            if waited == self.n_epochs_no_change:
                break
        if kept is not None:
            self.network_.load_state_dict(kept)
        return self._checked(train)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
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
        first = not hasattr(self, "network_")
        X = self._rows(X, reset=first)
        if first:
            self._begin(X.shape[1])
        self._epoch(X, None)
        return self._checked(X)

    def posterior(self, X):
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
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        with torch.no_grad():
            parts = [self.network_.posterior(inputs) for inputs, _ in self._batches(X)]
            loc, scale = (torch.cat([getattr(p, name) for p in parts]) for name in ("loc", "scale"))
            return BetaGaussian(loc, scale, self.network_.alpha, validate_args=False)

    def transform(self, X):
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
        return self.posterior(X).mean.cpu().numpy()

    def inverse_transform(self, X):
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
        check_is_fitted(self)
        X = X.detach().cpu() if isinstance(X, torch.Tensor) else X
        X = check_array(X, dtype=np.float32, ensure_min_samples=0, input_name="X")
        n_components = self._n_features_out
        if X.shape[1] != n_components:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {type(self).__name__} has {n_components} latent "
                "coordinates."
            )
        return self._decoded(torch.from_numpy(X.copy()))

    def sample(self, n_samples=1):
        """Return what is observed on average at latent coordinates drawn from the prior.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
            The decoder's probabilities. The prior is what the posterior is drawn to: the
            standard one of its family.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        with seeded(check_random_state(self.random_state)):
            return self._decoded(self.network_.prior(n_samples).sample())

    def score(self, X, y=None):
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
            one draw of the latent variables of each row; the same draws in every call. It is
            -inf where that is beyond float32, for rows far from any in training.

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
        check_is_fitted(self)
        free_energy = self._free_energy(self._rows(X, reset=False))
        return -free_energy if np.isfinite(free_energy) else -np.inf

    @torch.inference_mode(False)  # also within a caller's no_grad or inference_mode
    def _begin(self, n_features):
        """Draw a network, and forget what came before."""
        _check_sizes(self.hidden_layer_sizes)
        self._random_state = check_random_state(self.random_state)
        self._score_seed = int(self._random_state.randint(2**31))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        with seeded(self._random_state):
            self.network_ = self._network(n_features).to(device, torch.float32)
        self._adam = None
        self.n_epochs_ = 0
        self.losses_ = []
        self.validation_losses_ = []

    def _split(self, X):
        """Return the rows to train on, and those held out to stop early, or None."""
        if not self.early_stopping:
            return X, None
        n = X.shape[0]
        held_out = max(1, round(self.validation_fraction * n))
        if held_out >= n:
            raise ValueError(
                f"early_stopping=True holds out {held_out} of n_samples={n}: nothing is left to "
                "train on. Take more rows, or early_stopping=False."
            )
        order = self._random_state.permutation(n)
        return X[order[held_out:]], X[order[:held_out]]

    def _epoch(self, X, held_out):
        """Train once on each row, and write down how it went."""
        began = perf_counter()
        loss = self._descend(X)
        self.n_epochs_ += 1
        self.losses_.append(loss)
        self._check_finite(loss)
        if held_out is not None:
            self.validation_losses_.append(self._free_energy(held_out))
            self._check_finite(self.validation_losses_[-1])
        if self.verbose:
            line = f"Epoch {self.n_epochs_}: free energy {loss:.6g}"
            if held_out is not None:
                line += f", of rows held out {self.validation_losses_[-1]:.6g}"
            print(f"{line} ({perf_counter() - began:.1f} s)")

    @torch.inference_mode(False)
    def _descend(self, X):
        """Take one step of Adam a batch, in random order; return the mean free energy."""
        if self._adam is None:
            self._adam = torch.optim.Adam(self.network_.parameters(), fused=True)
        self._adam.param_groups[0]["lr"] = self.learning_rate
        loss, total = self._loss(), 0.0
        with seeded(self._random_state):
            for inputs, target in self._batches(X, torch.randperm(X.shape[0]).numpy()):
                energy = self.network_.free_energies(inputs, target, loss, self.beta).sum()
                self._adam.zero_grad()
                (energy / len(target)).backward()
                self._adam.step()
                total += energy.detach().double()
        return float(total) / X.shape[0]

    def _batches(self, X, order=None):
        """Yield what `_batch` makes of rows: shuffled ones for training, or all as they come."""
        device = next(self.network_.parameters()).device
        size = self._rows_at_once if order is None else self.batch_size
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            batch = X[rows if order is None else order[rows]]
            yield self._batch(batch, device)

    @torch.no_grad()
    def _free_energy(self, X):
        loss, total = self._loss(), 0.0
        with seeded(np.random.RandomState(self._score_seed)):
            for inputs, target in self._batches(X):
                energies = self.network_.free_energies(inputs, target, loss, self.beta)
                total += energies.sum(dtype=torch.float64).item()
        return total / X.shape[0]

    def _checked(self, X):
        """Return the estimator if its last step was not too far."""
        self._check_finite(self._free_energy(X[: self.batch_size]))
        return self

    def _check_finite(self, loss):
        """Raise where training diverged; then there is no network."""
        if not np.isfinite(loss):
            del self.network_
            raise ValueError(
                "Training diverged: the free energy is not finite any more. Choose a smaller "
                f"learning_rate (now {self.learning_rate})."
            )

    @torch.no_grad()
    def _decoded(self, latent):
        """Return what is observed on average at latent coordinates, as an array."""
        device = next(self.network_.parameters()).device
        parts = latent.to(device).split(self._rows_at_once)
        return torch.cat([self._observed(self.network_.decoder(part)) for part in parts]).numpy()

    @property
    def _rows_at_once(self):
        return max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // self.n_features_in_))

    @property
    def _n_features_out(self):
        return self.network_.n_components

    def __sklearn_is_fitted__(self):
        return hasattr(self, "network_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self):
        state = super().__getstate__() | {"_adam": None}
        if "network_" in state:
            state["network_"] = deepcopy(self.network_).cpu()
        return stamp(state)

    def __setstate__(self, state):
        super().__setstate__(unstamp(state, type(self).__name__))


def check_count(value, name):
    """Refuse what is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, not {value!r}.")


def _check_sizes(sizes):
    """Refuse hidden layers that are not positive numbers of units."""
    if not all(isinstance(size, Integral) and size > 0 for size in sizes):
        raise ValueError(f"hidden_layer_sizes must hold positive integers, not {sizes!r}.")


@contextmanager
def seeded(random_state):
    """Let torch draw from a seed of its own, and leave its global generator as it was.

    That generator is one for all threads: those that fit or score at the same time take turns.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with _GENERATOR, torch.random.fork_rng(devices):
        torch.manual_seed(int(random_state.randint(2**31)))
        yield
