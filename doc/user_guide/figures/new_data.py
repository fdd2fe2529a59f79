"""New rows for a fitted mixture: which numbers they keep, and whether new topics are seen."""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.preprocessing import normalize

from reproduction import texts
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import VonMisesFisherMixture
from skvmf.inspection import renumber_components
from skvmf.model_selection import ComponentPath

from .streams import NEWS, in_batches


@item(
    "guide.new_data",
    "new rows for a fitted mixture",
    needs=NEWS,
    small={"d": 10, "K": 4, "batch": 60, "sets": 1},
)
def new_data(setting, every=1, d=100, K=20, batch=4000, sets=3):
    """Take in later rows in several ways; see which rows keep their label, and who is new."""
    rows, groups = texts.news20(setting.data)
    svd = TruncatedSVD(d, random_state=0)
    X, y = normalize(svd.fit_transform(rows[::every])), np.unique(groups, return_inverse=True)[1]
    y, found = y[::every], {}
    for seed in range(sets):
        order = np.random.default_rng(seed).permutation(len(X))
        for table, own in (
            ("kept", kept_numbers(X[order], y[order], K, batch, seed)),
            ("novel", novelty(X[order], y[order], K, seed)),
        ):
            for name, figures in own.items():
                found.setdefault(table, {}).setdefault(name, []).append(figures)
    tables = {
        "kept": Table(
            "Half of the rows, then all of them: shares of the first half that keep their label",
            ["method", "same label", "NMI with the groups"],
        ),
        "novel": Table("Rows of five groups that the fit has not seen", ["measure", "value"]),
    }
    for name, table in tables.items():
        for method, figures in found[name].items():
            table.add(method, *zip(*figures, strict=True))
    return Record(
        f"20 newsgroups, tf-idf reduced to {d} dimensions, {K} components, batches of {batch:,}.",
        f"orders of the rows 0 to {sets - 1}",
        list(tables.values()),
    )


def kept_numbers(X, y, K, batch, seed):
    """Return the share of old rows with their label, and the NMI, for ways to take in new rows."""

    def mixture(**options):
        return VonMisesFisherMixture(K, **{"random_state": seed} | options)

    n = len(X) // 2
    first = mixture().fit(X[:n])
    again = mixture(random_state=seed + 100).fit(X)
    path = ComponentPath(mixture(), max_components=2 * K).fit(X[: n // 2])
    best = path.best_estimator_
    from_best = VonMisesFisherMixture(best.n_components, random_state=seed)
    continued = mixture(warm_start=True).fit(X[:n])
    labels = best.predict(X[:n])
    ways = {
        "fit from scratch": (first.labels_, again),
        "the same, with renumber_components": (first.labels_, renumber_components(first, again)),
        "partial_fit with the new half": (
            first.labels_,
            in_batches(mixture().fit(X[:n]), X[n:], batch),
        ),
        "warm_start=True, fit to all": (first.labels_, continued.fit(X)),
        "a path on a quarter, then a new fit": (labels, from_best.fit(X)),
        "a path on a quarter, then warm_start=True": (
            labels,
            best.set_params(warm_start=True).fit(X),
        ),
    }
    return {
        name: (
            np.mean(own.predict(X[:n]) == before),
            normalized_mutual_info_score(y, own.predict(X)),
        )
        for name, (before, own) in ways.items()
    }


def novelty(X, y, K, seed):
    """Return what a fit to most groups says of rows of the others."""
    groups, rng = np.unique(y), np.random.default_rng(seed)
    n_unseen = min(5, len(groups) // 2)  # in a reduced run there are few
    unseen = np.isin(y, rng.choice(groups, n_unseen, replace=False))
    n = len(X) // 2
    old, new = X[:n][~unseen[:n]], X[n:][unseen[n:]]
    held_out = X[n:][~unseen[n:]]
    found = {}
    outliers = VonMisesFisherMixture(K, background=True, random_state=seed).fit(old)
    for name, rows in (("of the fit", old), ("held out", held_out), ("of unseen groups", new)):
        found[f"label -1 with background=True, rows {name}"] = (
            np.mean(outliers.predict(rows) < 0),
        )
    mixture = VonMisesFisherMixture(K, random_state=seed).fit(old)
    threshold = np.quantile(mixture.score_samples(held_out), 0.05)
    scores = mixture.score_samples(new)
    found["below the 5 % quantile of held-out rows, rows of unseen groups"] = (
        np.mean(scores < threshold),
    )
    both = np.concatenate([mixture.score_samples(held_out), scores])
    found["AUC of score_samples, held-out rows and unseen groups"] = (
        roc_auc_score(np.arange(len(both)) < len(held_out), both),
    )
    return found
