"""The dependency model with valence: a fit of the size of a treebank sample, and long sentences."""

import math
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skvmf.grammar import DependencyModelWithValence

N_TAGS = 32
LEFT, RIGHT, STOP, CONTINUE = 0, 1, 0, 1


def sentences(lengths):
    rng = np.random.default_rng(0)
    return [rng.integers(N_TAGS, size=length) for length in lengths]


def uniform():
    shapes = (N_TAGS,), (N_TAGS, 2, 2, 2), (N_TAGS, 2, N_TAGS)
    return [np.full(shape, 1 / shape[-1]) for shape in shapes]


def numpy_log_likelihoods(tags, root, stop, choose):
    """Fill the charts of many sentences of one length at once: tags (m, n), log-rules.

    The left side is the right side of the sentence read backwards.
    """
    m, n = tags.shape
    read = {RIGHT: tags, LEFT: tags[:, ::-1]}
    span, opened, closed, arc = (
        {way: np.full((m, n, n), -np.inf) for way in read} for _ in range(4)
    )
    for length in range(n):
        for way, words in read.items():
            back = closed[LEFT if way == RIGHT else RIGHT]
            for h in range(n - length):
                j, head = h + length, words[:, h]
                if length == 0:
                    span[way][:, h, h] = 0
                else:
                    splits = np.arange(h, j)
                    others = back[:, n - 1 - j, n - 2 - splits]
                    total = np.logaddexp.reduce(opened[way][:, h, splits] + others, axis=1)
                    arc[way][:, h, j] = choose[head, way, words[:, j]] + total
                    parts = arc[way][:, h, h + 1 : j + 1] + closed[way][:, h + 1 : j + 1, j]
                    span[way][:, h, j] = np.logaddexp.reduce(parts, axis=1)
                rule = stop[head, way, int(length > 0)]
                opened[way][:, h, j] = span[way][:, h, j] + rule[:, CONTINUE]
                closed[way][:, h, j] = span[way][:, h, j] + rule[:, STOP]
    both = closed[LEFT][:, ::-1, n - 1] + closed[RIGHT][:, :, n - 1]
    return np.logaddexp.reduce(root[tags] + both, axis=1)


class DependencyModelBesideNumPy:
    """Log-likelihoods of sentences, beside charts of NumPy: of one, or of many of a length."""

    params = ([10, 40], ["one by one", "together"])
    param_names = ("length", "rival")

    def setup(self, length, rival):
        self.X = sentences([length] * (70_000 // length**2))
        self.model = DependencyModelWithValence.from_parameters(range(N_TAGS), *uniform())
        self.model.score(self.X[:1])

    def track_times_faster_than_numpy(self, length, rival):
        tags, rules = np.array(self.X), [np.log(rule) for rule in uniform()]
        batches = [tags] if rival == "together" else tags[:30, np.newaxis]
        part = len(tags) / sum(map(len, batches))

        def ours():
            return self.model.score_samples(self.X)

        def theirs():
            return np.concatenate([numpy_log_likelihoods(batch, *rules) for batch in batches])

        np.testing.assert_allclose(ours()[: len(theirs())], theirs())
        times = [[seconds(call) for call in (theirs, ours)] for _ in range(5)]
        return part * float(np.median([rival / own for rival, own in times]))


def seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


class DependencyModelFit:
    """50 iterations on 555 sentences of at most 10 of 32 tags."""

    params = ("EM", "softmax-EM", "hard EM", "mean-field")
    param_names = ("method",)

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


class DependencyModelLength:
    """Sentences of one length: cubic time, quadratic memory."""

    params = (10, 20, 40, 80, 160)
    param_names = ("length",)

    def setup(self, length):
        self.X = sentences([length] * (3200 // length))
        self.model = DependencyModelWithValence.from_parameters(range(N_TAGS), *uniform())
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
