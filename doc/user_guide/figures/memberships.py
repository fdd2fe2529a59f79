"""Memberships that hold, for the user guide: what calibration finds, and the surest rows alone."""

import time
from copy import deepcopy

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from reproduction import texts
from reproduction.instruments.idx import load_idx
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.inspection import coverage_curve, match_components

from .embeddings import FASHION, MESSAGES, embedded, windows_of_messages
from .mixtures import scores

TIED = VonMisesFisherMixture(concentration_type="tied")
FREE = VonMisesFisherMixture()
DIAG = SparseGaussianMixture(covariance_type="diag")
FEW = SparseGaussianMixture(covariance_type="diag", reg_covar=0.1)
SHARES = (0.25, 0.5, 0.75, 1.0)


@item(
    "guide.memberships",
    "memberships that hold",
    needs=(MESSAGES, "wordllama"),
    small={"windows": 1500, "seeds": 1, "true": 1000, "most": 5},
)
def memberships(setting, windows=60_000, seeds=5, true=40_000, most=60):
    """Compare memberships with those of fits of other rows, as fitted and calibrated."""
    table = Table(
        "Memberships of rows that no fit has seen", ["rows, components", *HEADS], digits=2
    )
    refits = Table(
        "Temperatures by what judges",
        ["rows, components", "fits of other rows", "calibrate", "warm starts"],
        digits=2,
    )
    for name, X, estimator, K in collections(setting, windows, true):
        found = [of_seed(X, clone(estimator), min(K, most), seed) for seed in range(seeds)]
        table.add(name, *np.transpose([each[0] for each in found]))
        refits.add(name, *np.transpose([each[1] for each in found]))
    return Record(
        "Windows of 28 words of the 20 newsgroups' messages, 256 features by wordllama or 64 "
        "latent dimensions of tf-idf; digits; rows of true components. A fifth of the rows for "
        "each fit; two fits of other rows judge the last fifth.",
        f"0 to {seeds - 1}",
        [table, refits],
    )


HEADS = [
    *("said", "held", "error", "log loss", "temperature"),
    *("said, calibrated", "error, calibrated", "log loss, calibrated"),
    *("error, a temperature for each component", "fits that calibrate takes"),
]


def collections(setting, windows, true):
    """Yield names, rows, mixtures and numbers of components."""
    parts = windows_of_messages(setting, windows)
    sentences = embedded(parts)
    yield "sentences, tied, 50", sentences[sentences.any(axis=1)], TIED, 50
    tfidf = TfidfVectorizer(stop_words="english", min_df=3).fit_transform(parts)
    latent = TruncatedSVD(64, random_state=0).fit_transform(tfidf)
    latent = normalize(latent[latent.any(axis=1)]).astype(np.float32)
    yield "windows, tied, 20", latent, TIED, 20
    yield "windows, tied, 60", latent, TIED, 60
    yield "windows, free, 20", latent, FREE, 20
    yield "windows, diagonal Gaussians, 20", latent, DIAG, 20
    yield "digits, diagonal Gaussians, 10", load_digits().data, FEW, 10
    rng = np.random.default_rng(0)
    for gap in (3, 1.5):
        yield f"true Gaussians {gap} apart, 5", gaussians(rng, true, gap), DIAG, 5
    for d, kappa in ((3, 5.0), (100, 40.0)):
        yield f"true directions, d = {d}, 5", directions(true, d, kappa), FREE, 5


def gaussians(rng, n, gap):
    """Return rows of five Gaussians on eight axes."""
    return gap * np.eye(5, 8)[rng.integers(5, size=n)] + rng.normal(size=(n, 8))


def directions(n, d, kappa):
    """Return rows of five von Mises-Fisher distributions on axes, of which no two coincide."""
    axes = np.vstack([np.eye(d), -np.eye(d)])[:5]
    return make_vonmises_fisher_blobs(n, centers=axes, concentration=kappa, random_state=0)[0]


@item("guide.true_memberships", "memberships of true components", small={"seeds": 1, "true": 1000})
def true_memberships(setting, seeds=5, true=40_000):
    """Compare memberships of true components after short fits and after longer ones."""
    table = Table(
        "Memberships of true components",
        ["rows, fit", "said", "held", "error", "temperature", "error, calibrated"],
        digits=3,
    )
    near = gaussians(np.random.default_rng(0), true, 1.5)
    sphere = directions(true, 3, 5.0)
    for name, X, estimator, options in (
        ("Gaussians 1.5 apart, tol=1e-3", near, DIAG, {}),
        ("Gaussians 1.5 apart, tol=1e-7", near, DIAG, {"tol": 1e-7, "max_iter": 2000}),
        ("directions, d = 3", sphere, FREE, {}),
    ):
        longer = clone(estimator).set_params(**options)
        table.add(name, *np.transpose([of_true(X, longer, seed) for seed in range(seeds)]))
    return Record(
        "Five components, a fifth of 40,000 rows for each fit; two fits of other rows judge the "
        "last fifth. EM stops after one step on most of these rows if tol=1e-3, the default.",
        f"0 to {seeds - 1}",
        [table],
    )


def of_true(X, estimator, seed):
    """Return the cells of true components."""
    mixture, fitted, unseen, held, _ = judged_by_others(X, estimator, 5, seed)
    before = np.tile(mixture.predict_proba(unseen), (2, 1))
    mixture.calibrate(fitted, random_state=seed)
    after = np.tile(mixture.predict_proba(unseen), (2, 1))
    said, holds, error, _ = measures(before, held)
    return said, holds, error, mixture.membership_temperature_, measures(after, held)[2]


def judged_by_others(X, estimator, K, seed):
    """Return a mixture, its rows, others, what two fits say of these, and CPU seconds of a fit."""
    order = np.random.default_rng(seed).permutation(len(X))
    fitted, first, second, _, unseen = np.array_split(X[order], 5)
    unseen = unseen[:4000].astype(np.float64)
    estimator.set_params(n_components=K, random_state=seed)
    estimator.fit(fitted)  # compiles
    begun = time.process_time()
    mixture = clone(estimator).fit(fitted)
    of_fit = time.process_time() - begun
    others = [
        clone(estimator).set_params(random_state=seed + 100).fit(own) for own in (first, second)
    ]
    held = np.concatenate([matched(mixture, other, unseen) for other in others])
    return mixture, fitted, unseen, held, of_fit


def of_seed(X, estimator, K, seed):
    """Return the cells of both tables."""
    mixture, fitted, unseen, held, of_fit = judged_by_others(X, estimator, K, seed)
    before = np.tile(mixture.predict_proba(unseen), (2, 1))
    calibrated = deepcopy(mixture)
    begun = time.process_time()
    calibrated.calibrate(fitted, random_state=seed)
    cost = (time.process_time() - begun) / of_fit
    after = np.tile(calibrated.predict_proba(unseen), (2, 1))
    T = calibrated.membership_temperature_
    judged = refitted(mixture, fitted, seed, warm=False)
    own = temperatures_of_components(*judged, T, K)
    odds = np.tile(log_odds(mixture, unseen), (2, 1))
    softened = softmax(odds / own[odds.argmax(axis=1)][:, np.newaxis], axis=1)
    warm = temperature(*refitted(mixture, fitted, seed, warm=True))
    said, holds, error, loss = measures(before, held)
    said_after, _, error_after, loss_after = measures(after, held)
    cells = said, holds, error, loss, T, said_after, error_after, loss_after
    by_component = measures(softened, held)[2]
    return (*cells, by_component, cost), (temperature(odds, held), T, warm)


def log_odds(mixture, rows):
    """Return log-densities and log-weights up to a constant of each row.

    Memberships below exp(-60) are cut to 0, so these are those at a temperature that has none.
    """
    soft = deepcopy(mixture)
    soft.membership_temperature_ = 1e6
    return 1e6 * np.log(soft.predict_proba(rows))


def matched(mixture, other, rows):
    """Return the memberships of another fit in the columns of the components that they match."""
    indices = match_components(mixture, other).indices
    return np.where(indices >= 0, other.predict_proba(rows)[:, indices], 0.0)


def measures(proba, held):
    """Return what the largest memberships say and what holds, their error, and the log loss."""
    labels = proba.argmax(axis=1)
    said = proba[np.arange(len(labels)), labels]
    holds = held[np.arange(len(labels)), labels]
    bins = np.searchsorted(np.unique(np.quantile(said, np.arange(1, 15) / 15)), said)
    gaps = np.bincount(bins, said) - np.bincount(bins, holds)
    loss = -(held * np.log(np.maximum(proba, 1e-12))).sum(axis=1).mean()
    return said.mean(), holds.mean(), np.abs(gaps).sum() / len(said), loss


def refitted(mixture, rows, seed, warm):
    """Return what a mixture and three fits to drawn rows say of the others."""
    rng = np.random.default_rng(seed)
    odds, held = [], []
    for i in range(3):
        times = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
        again = deepcopy(mixture).set_params(random_state=seed + i + 1, warm_start=warm)
        again.fit(rows[times > 0], sample_weight=times[times > 0])
        others = rows[times == 0][:2000].astype(np.float64)
        odds.append(log_odds(mixture, others))
        held.append(again.predict_proba(others) if warm else matched(mixture, again, others))
    return np.concatenate(odds), np.concatenate(held)


def temperature(odds, held):
    """Return the temperature, 1 to exp(10), at which as much is said as holds on average."""
    labels = odds.argmax(axis=1)
    holds = held[np.arange(len(labels)), labels].mean()

    def excess(log_temperature):
        return softmax(odds / np.exp(log_temperature), axis=1).max(axis=1).mean() - holds

    if excess(0) <= 0:
        return 1.0
    return np.exp(10 if excess(10) >= 0 else brentq(excess, 0, 10))


def temperatures_of_components(odds, held, common, K, n_rows=200):
    """Return a temperature for the rows of each component, shrunk to the common one."""
    labels = odds.argmax(axis=1)
    found = np.full(K, common)
    for k in np.unique(labels):
        own = labels == k
        share = own.sum() / (own.sum() + n_rows)
        found[k] = temperature(odds[own], held[own]) ** share * common ** (1 - share)
    return found


def draw_coverage(figure, record):
    """Draw the curves of mixtures and k-means, and the points of methods that leave rows out."""
    axes = figure.subplots(1, len(record.tables), sharey=True)
    for axis, table in zip(axes, record.tables, strict=True):
        curves = {"mixture, surest first": "mixture", "k-means, nearest first": "k-means"}
        for label, name in curves.items():
            own = [row for row in table.rows if row[0].startswith(name)]
            axis.plot([row[2] for row in own], [row[4] for row in own], "o-", label=label, ms=3)
        single = {row[0]: (row[2], row[4]) for row in table.rows[2 * len(SHARES) :]}
        chosen = single["EVoC, the layer it chooses"]
        layers = [single.pop(name) for name in list(single) if name.startswith("EVoC, layer")]
        for label, (share, ari) in single.items():
            axis.plot(share, ari, "o", label=label, ms=8)
        other_layers = np.reshape([each for each in layers if each != chosen], (-1, 2)).T
        axis.plot(*other_layers, "o", color="C3", mfc="none", ms=6, label="EVoC, its other layers")
        axis.set(title=table.title.partition(":")[0], xlabel="share of rows kept")
    axes[0].set_ylabel("adjusted Rand index of the rows kept")
    axes[0].legend(frameon=False)


@item(
    "guide.coverage",
    "the surest rows alone",
    needs=(MESSAGES, *FASHION, "wordllama", "umap", "hdbscan", "evoc"),
    small={"most": 400},
    draw=draw_coverage,
)
def coverage(setting, most=10**6):
    """Compare the surest rows of a mixture with those that other clusterers keep."""
    tables = []
    for name, X, y, K in labelled(setting, most):
        table = Table(
            f"{name}: scores of the rows kept",
            [
                "method",
                "clusters",
                "share kept",
                "NMI",
                "ARI",
                "NMI of the mixture",
                "ARI of the mixture",
            ],
            digits=2,
        )
        mixture = VonMisesFisherMixture(K, random_state=0).fit(X).calibrate(X, random_state=0)
        curve = coverage_curve(mixture, X, y, n_points=100)
        for share in SHARES:
            i = np.searchsorted(curve.shares, share)
            pair = curve.nmi[i], curve.ari[i]
            table.add(f"mixture, {share:.0%} surest", str(K), curve.shares[i], *pair, *pair)
        for method, labels in others(X, K):
            kept = labels >= 0
            i = min(np.searchsorted(curve.shares, kept.mean()), len(curve.shares) - 1)
            beside = curve.nmi[i], curve.ari[i]
            n_clusters = str(len(np.unique(labels[kept])))
            table.add(method, n_clusters, kept.mean(), *scores(y[kept], labels[kept]), *beside)
        tables.append(table)
    return Record(
        "Messages of the 20 newsgroups, 256 features by wordllama, centred; digits; the first "
        "10,000 images of Fashion-MNIST; unit rows. Mixtures and k-means with as many clusters as "
        "classes. Scores are those of the rows kept, of every method; beside them those of as many "
        "rows of the mixture, the surest.",
        "0",
        tables,
    )


def labelled(setting, most):
    """Yield names, unit rows, classes and their number."""
    messages = texts.read(setting.file(MESSAGES))
    messages = messages[:: max(1, len(messages) // most)]
    X = embedded([message["text"].partition("\n\n")[2] for message in messages])
    y = np.unique([message["label"] for message in messages], return_inverse=True)[1]
    kept = X.any(axis=1)
    yield "20 newsgroups", normalize(X[kept] - X[kept].mean(axis=0)), y[kept], 20
    pixels, digits = load_digits(return_X_y=True)
    yield "digits", normalize(pixels[:most]), digits[:most], 10
    images, kinds = (load_idx(setting.data / file)[:most] for file in FASHION)
    yield "Fashion-MNIST", normalize(images.reshape(len(images), -1).astype(np.float32)), kinds, 10


def others(X, K):
    """Yield the methods and the labels that they give, -1 where they leave rows out."""
    from evoc import EVoC
    from hdbscan import HDBSCAN
    from umap import UMAP

    kmeans = KMeans(K, n_init=4, random_state=0).fit(X)
    distances = kmeans.transform(X).min(axis=1)
    for share in SHARES:
        near = distances <= np.quantile(distances, share)
        yield f"k-means, {share:.0%} nearest", np.where(near, kmeans.labels_, -1)
    five = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    yield (
        "HDBSCAN after UMAP",
        HDBSCAN(min_cluster_size=15).fit(five.fit_transform(X).astype(float)).labels_,
    )
    evoc = EVoC(random_state=0).fit(X.astype(np.float32))
    yield "EVoC, the layer it chooses", evoc.labels_
    for i, labels in enumerate(evoc.cluster_layers_):
        yield f"EVoC, layer {i}", labels
