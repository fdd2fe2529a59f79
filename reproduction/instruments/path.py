"""The way of a fit."""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning


def path_of(mixture, X):
    """Return the means at the start and after each step of a fit, (n_iter + 1, K, d).

    The fit is done again, a step at a time: it should begin with `means_init` or a seed.
    """
    steps = clone(mixture).set_params(warm_start=True, max_iter=0).fit(X)
    path = [steps.means_]
    steps.set_params(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path += [steps.fit(X).means_ for _ in range(mixture.n_iter_)]
    return np.array(path)
