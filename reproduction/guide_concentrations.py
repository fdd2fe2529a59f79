"""Concentrations tied, free or with a common prior."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs

from .items import item
from .p0_texts import FILES, rows
from .results import Result, Table

WAYS = {
    "one pseudo-row": {"concentration_prior": 1.0},
    "a tenth a feature": {},
    "tied": {"concentration_type": "tied"},
}


def sets(setting):
    """Yield names, rows and labels."""
    for name in ("classic3", "news20"):
        X, y = rows(setting, name)
        yield f"{name}, tf-idf", X, y
        if name == "news20":
            latent = TruncatedSVD(min(64, X.shape[1] - 1), random_state=0).fit_transform(X)
            yield "news20 in 64 latent dimensions", normalize(latent), y
    texts, y = load_docstrings(return_X_y=True)
    words = TfidfVectorizer(
        stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
    )
    yield "docstrings, tf-idf", words.fit_transform(texts), y
    for what, n, d, K, narrow, wide in (
        ("40 clusters of unequal concentrations in 64 dimensions", 8000, 64, 40, 30, 300),
        ("12 overlapping ones in three dimensions", 6000, 3, 12, 5, 40),
    ):
        spread = np.geomspace(narrow, wide, K)
        yield (
            what,
            *make_vonmises_fisher_blobs(
                n // setting.size(1, 10), d, centers=K, concentration=spread, random_state=0
            ),
        )


@item("guide.prior", "tied or free concentrations", needs=FILES)
def concentrations(setting):
    """Fit with free concentrations, with those of the default prior and with one for all."""
    default = Table("The default start: NMI / ARI", ["rows", *WAYS, "KMeans"])
    chance = Table("A random partition as start: NMI / ARI", ["rows", *WAYS])
    each = Table("ARI of each start", ["start and rows", *WAYS])
    seeds = range(setting.size(5, 1))
    for name, X, y in sets(setting):
        K = len(np.unique(y))
        for start, table in (("merging", default), ("random", chance)):
            if start == "random" and "tf-idf" not in name:
                continue
            fits = {
                way: [agreement(X, y, K, seed, init_params=start, **own) for seed in seeds]
                for way, own in WAYS.items()
            }
            kmeans = [KMeans(K, random_state=seed).fit_predict(X) for seed in seeds]
            rival = [scores(y, labels) for labels in kmeans] if start == "merging" else []
            table.add(name, *map(shown, [*fits.values(), *([rival] if rival else [])]))
            each.add(f"{start}, {name}", *(np.array(pairs)[:, 1] for pairs in fits.values()))
        print(f"  {name} done", flush=True)
    return Result(
        f"Means over {len(seeds)} starts, at most 100 iterations; the true number of components.",
        f"0 to {len(seeds) - 1}",
        [default, chance, each],
    )


def agreement(X, y, n_components, seed, **options):
    """Return NMI and ARI of one fit with the labels."""
    return scores(
        y, VonMisesFisherMixture(n_components, random_state=seed, **options).fit(X).labels_
    )


def scores(y, labels):
    """Return NMI and ARI."""
    return normalized_mutual_info_score(y, labels), adjusted_rand_score(y, labels)


def shown(pairs):
    """Return means as text."""
    return " / ".join(f"{value:.3f}".lstrip("0") or "0" for value in np.mean(pairs, axis=0))
