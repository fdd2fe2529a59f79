"""The dependency model with valence: a fit of the size of a treebank sample, and long sentences."""

import math
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skvmf.grammar import DependencyModelWithValence

N_TAGS = 32


def sentences(lengths):
    rng = np.random.default_rng(0)
    return [rng.integers(N_TAGS, size=length) for length in lengths]


class Fit:
    """50 iterations on 555 sentences of at most 10 of 32 tags."""

    params = ["EM", "softmax-EM", "hard EM", "mean-field"]
    param_names = ["method"]

    def setup(self, method):
        warnings.simplefilter("ignore", ConvergenceWarning)
        lengths = np.random.default_rng(1).integers(3, 11, size=555)
        self.X = sentences(lengths)
        self.model = DependencyModelWithValence(
            tags=range(N_TAGS),
            temperature={"softmax-EM": 0.5, "hard EM": 0.0}.get(method, 1.0),
            inference="mean-field" if method == "mean-field" else "map",
            tol=0.0,
        )
        self.model.fit(self.X[:1])  # compile

    def time_fit(self, method):
        self.model.fit(self.X)


class Length:
    """Sentences of one length: cubic time, quadratic memory."""

    params = [10, 20, 40, 80, 160]
    param_names = ["length"]

    def setup(self, length):
        self.X = sentences([length] * (3200 // length))
        rules = [
            np.full(shape, 1 / shape[-1])
            for shape in ((N_TAGS,), (N_TAGS, 2, 2, 2), (N_TAGS, 2, N_TAGS))
        ]
        self.model = DependencyModelWithValence.from_parameters(range(N_TAGS), *rules)
        self.model.predict(self.X[:1])
        self.model.score(self.X[:1])
        self.step = DependencyModelWithValence(tags=range(N_TAGS), max_iter=0)
        self.step.fit(self.X[:1])

    def time_expected_counts(self, length):
        self.step.fit(self.X)

    def time_predict(self, length):
        self.model.predict(self.X)

    def time_score(self, length):
        self.model.score(self.X)

    def peakmem_score(self, length):
        self.model.score(self.X)

    def track_digits(self, length):
        """Return the digits of a uniform grammar's log-likelihood, known in closed form."""
        n_trees = math.comb(3 * length - 2, length - 1) // length
        rules = length * math.log(N_TAGS) + (3 * length - 1) * math.log(2)
        exact = math.log(n_trees) - rules
        return -math.log10(abs(self.model.score(self.X) / exact - 1) + 1e-16)
