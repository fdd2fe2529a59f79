"""Speakers of recordings: how many a path finds, and how many a prior leaves."""

import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import ComponentPath, VonMisesFisherMixture

SHARES = 0.4, 0.3, 0.2, 0.1
MOST = 20  # components at first
COLUMNS = ["method", "voices", "recordings with four", "ARI", "CPU seconds"]


def recording(rng, turns, d=192):
    """Return embeddings of segments, and the voice of each; two of one voice have a cosine of .5.

    A turn has 5 to 35 segments.
    """
    voices = rng.choice(len(SHARES), size=turns, p=SHARES)
    of_segments = np.repeat(voices, rng.integers(5, 36, size=turns))
    means = rng.normal(size=(len(SHARES), d)) / np.sqrt(d)
    noise = rng.normal(size=(len(of_segments), d)) / np.sqrt(d)
    return 0.7 * means[of_segments] + 0.7 * noise, of_segments


def by_path(X):
    """Return the labels of the number of voices that a path's criterion chooses."""
    tied = VonMisesFisherMixture(concentration_type="tied", random_state=0)
    return ComponentPath(tied, max_components=MOST).fit(X).labels_


def by_prior(X, alpha):
    """Return the labels of the components that a prior leaves."""
    mixture = VonMisesFisherMixture(
        MOST,
        concentration_type="tied",
        weight_concentration_prior=alpha,
        max_iter=500,
        tol=1e-6,
        random_state=0,
    )
    return mixture.fit(X).labels_


@item("guide.speakers", "speakers of recordings", small={"recordings": 1, "turns": 20})
def speakers(setting, recordings=20, turns=60):
    """Compare a path with priors that remove components."""
    table = Table("Four voices", COLUMNS, digits=2)
    own = [recording(np.random.default_rng(seed), turns) for seed in range(recordings)]
    by_path(own[0][0])  # compiles
    for name, find in (
        ("path", by_path),
        ("prior at -20", lambda X: by_prior(X, -20)),
        ("prior at -38", lambda X: by_prior(X, -38)),
    ):
        found = []
        for X, voices in own:
            begun = time.process_time()
            labels = find(X)
            seconds = time.process_time() - begun
            found.append((len(np.unique(labels)), adjusted_rand_score(voices, labels), seconds))
        n_voices, agreement, seconds = np.transpose(found)
        n_right = int((n_voices == len(SHARES)).sum())
        table.add(name, n_voices, n_right, agreement, seconds)
    return Record(
        "Random numbers: 192 features, 60 turns of 5 to 35 segments of four voices with shares of "
        f".4, .3, .2 and .1. Tied concentrations, {MOST} components at first.",
        f"0 to {recordings - 1}: recordings",
        [table],
    )
