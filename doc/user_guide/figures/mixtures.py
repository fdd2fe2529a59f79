"""Concentrations, priors and sparse posteriors."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from reproduction import texts
from reproduction.items import item
from reproduction.p0_texts import FILES
from reproduction.results import Record, Table
from skvmf import RelativeGMM, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs

from .kmeans import FaissKMeans, SuperKMeans

WAYS = {
    "one pseudo-row": {"concentration_prior": 1.0},
    "a tenth a feature": {},
    "tied": {"concentration_type": "tied"},
}


def scores(y, labels):
    """Return NMI and ARI."""
    return normalized_mutual_info_score(y, labels), adjusted_rand_score(y, labels)


def sets(setting, divisor):
    """Yield names, rows and labels."""
    for name in ("classic3", "news20"):
        X, y = getattr(texts, name)(setting.data)
        yield f"{name}, tf-idf", X, y
        if name == "news20":
            latent = TruncatedSVD(min(64, X.shape[1] - 1), random_state=0).fit_transform(X)
            yield "news20 in 64 latent dimensions", normalize(latent), y
    documents, y = load_docstrings(return_X_y=True)
    words = TfidfVectorizer(
        stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
    )
    yield "docstrings, tf-idf", words.fit_transform(documents), y
    for what, n, d, K, narrow, wide in (
        ("40 clusters of unequal concentrations in 64 dimensions", 8000, 64, 40, 30, 300),
        ("12 overlapping ones in three dimensions", 6000, 3, 12, 5, 40),
    ):
        own = {"centers": K, "concentration": np.geomspace(narrow, wide, K), "random_state": 0}
        yield what, *make_vonmises_fisher_blobs(n // divisor, d, **own)


@item(
    "guide.prior",
    "tied or free concentrations",
    needs=(*FILES, "faiss", "superkmeans"),
    small={"starts": 1, "divisor": 10},
)
def concentrations(setting, starts=5, divisor=1):
    """Fit with free concentrations, with those of the default prior and with one for all."""

    def shown(pairs):
        means = np.mean(pairs, axis=0) if pairs else []  # too many columns for a rival
        return " / ".join(f"{v:.3f}".lstrip("0") or "0" for v in means) or "-"

    rivals = {"KMeans": KMeans, "FAISS": FaissKMeans, "SuperKMeans": SuperKMeans}
    default = Table("The default start: NMI / ARI", ["rows", *WAYS, *rivals])
    chance = Table("A random partition as start: NMI / ARI", ["rows", *WAYS])
    each = Table("ARI of each start", ["start and rows", *WAYS])
    for name, X, y in sets(setting, divisor):
        K = len(np.unique(y))
        for start, table in (("merging", default), ("random", chance)):
            if start == "random" and "tf-idf" not in name:
                continue
            found = []
            for way in WAYS.values():
                options = {"init_params": start, **way}
                kinds = [VonMisesFisherMixture(K, random_state=s, **options) for s in range(starts)]
                found.append([scores(y, kind.fit(X).labels_) for kind in kinds])
            each.add(f"{start}, {name}", *(np.array(pairs)[:, 1] for pairs in found))
            if start == "merging":
                for rival in rivals.values():
                    wide = X.shape[1] > getattr(rival, "max_features", np.inf)
                    kinds = [] if wide else [rival(K, random_state=s) for s in range(starts)]
                    found.append([scores(y, kind.fit(X).labels_) for kind in kinds])
            table.add(name, *map(shown, found))
    return Record(
        f"Means over {starts} starts, at most 100 iterations; the true number of components.",
        f"0 to {starts - 1}",
        [default, chance, each],
    )


@item("guide.which", "which negative parameter", small={"sets": 1, "limit": 10})
def which_parameter(setting, sets=20, limit=2000):
    """Fit ten components to data sets of three clusters, under four priors and tolerances."""
    tolerances = (1e-3, 1e-5, 1e-7)
    columns = ["weight_concentration_prior", *(f"tol={tol:g}" for tol in tolerances)]
    table = Table("Components that remain of ten, and how often three", columns)
    share = Table("How often three remain", columns, 2)
    data = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        data.append([rng.normal(c, 1, (100, 2)) for c in ([0, 0], [6, 0], [3, 6])])
    for alpha in (1, 0, -5, -10, -20):
        cells, found = [], []
        for tol in tolerances:
            options = {"weight_concentration_prior": alpha, "tol": tol, "max_iter": limit}
            fits = [
                SparseGaussianMixture(10, random_state=0, **options).fit(np.vstack(X)) for X in data
            ]
            numbers = np.array([fit.n_active_components_ for fit in fits])
            found.append(numbers == 3)
            cells.append(f"{numbers.mean():.1f} ({np.mean(numbers == 3):.0%})")
        table.add(str(alpha), *cells)
        share.add(str(alpha), *found)
    settings = "300 rows of three Gaussians six apart, the default start."
    return Record(settings, "20 data sets, 0 to 19", [table, share])


@item("guide.unequal", "sparse steps and classes of unequal size", small={"sets": 2})
def unequal_classes(setting, sets=20):
    """Fit a cluster of one point in twenty, four standard deviations from the rest."""
    centres, sizes = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([1900, 100])
    table = Table("Weight of the cluster that has .05 of the rows", ["method", "weight"])
    start = {"means_init": centres, "weights_init": sizes / sizes.sum()}
    start |= {"precisions_init": np.tile(np.eye(2), (2, 1, 1)), "max_iter": 300, "tol": 1e-8}
    for name, options in (
        ("standard", {"weight_concentration_prior": 1}),
        ("hard", {"weight_concentration_prior": 1, "temperature": 0}),
        ("sparse, alpha 1.5", {"entmax_alpha": 1.5}),
        ("sparse, alpha 2", {"entmax_alpha": 2}),
    ):
        weights = []
        for seed in range(sets):
            rng = np.random.default_rng(seed)
            X = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
            mixture = SparseGaussianMixture(2, random_state=seed, **start, **options).fit(X)
            near = np.linalg.norm(mixture.means_ - centres[1], axis=1).argmin()
            weights.append(mixture.weights_[near])
        table.add(name, weights)
    settings = "2,000 points of two Gaussians in the plane, from the true parameters."
    return Record(settings, "20 data sets, 0 to 19", [table])


@item("guide.dimension", "temperature by dimension", small={"n": 200})
def temperature_by_dimension(setting, n=4000):
    """Count rows that have more than one share, under the true parameters."""
    table = Table(
        "Rows with more than one share above .001, %",
        ["features", "softmax", "sparsemax", "sparsemax, T = root of d"],
        0,
    )
    for d in (2, 8, 32, 128):
        rng = np.random.default_rng(0)
        means = rng.normal(size=(4, d))
        X = means[rng.integers(4, size=n)] + 2 * rng.normal(size=(n, d))
        cells = []
        for options in ({}, {"entmax_alpha": 2}, {"entmax_alpha": 2, "temperature": np.sqrt(d)}):
            mixture = SparseGaussianMixture.from_parameters(
                np.full(4, 0.25), means, np.full(4, 4.0), covariance_type="spherical", **options
            )
            shares = mixture.predict_proba(X) > 1e-3
            cells.append(100 * np.mean(shares.sum(axis=1) > 1))
        table.add(str(d), *cells)
    return Record(
        f"{n} rows of four spherical Gaussians of standard deviation two, means standard normal.",
        "one data set a line, 0",
        [table],
    )


TEXT_VARIANTS = ((1, 1), (1, 20), (1, 80), (1, 169), (2, 80), (2, 169), (2, 300), (2, 28_571))


@item(
    "guide.texts",
    "temperatures on texts",
    needs=("20news-bydate.jsonl.gz", "stoplist_smart.txt"),
    small={"variants": TEXT_VARIANTS[:2], "starts": 1},
)
def temperatures_on_texts(setting, variants=TEXT_VARIANTS, starts=5):
    """Cluster the 20 newsgroups at several temperatures."""
    X, y = texts.news20(setting.data)
    columns = ["entmax_alpha", "temperature", "NMI", "ARI", "shares a row"]
    table = Table("Tied mixtures of the 20 newsgroups", columns)
    options = {"concentration_type": "tied", "concentration_prior": 0, "init_params": "random"}
    options |= {"max_iter": 100, "tol": 1e-7}
    for alpha, temperature in variants:
        rows = []
        for seed in range(starts):
            posterior = {"entmax_alpha": alpha, "temperature": temperature}
            mixture = VonMisesFisherMixture(20, random_state=seed, **options, **posterior).fit(X)
            shares = (mixture.predict_proba(X) > 1e-3).sum(axis=1).mean()
            rows.append([*scores(y, mixture.labels_), shares])
        table.add(f"{alpha}", f"{temperature:,}", *np.transpose(rows))
    settings = "18,803 x 28,571, random partitions, at most 100 iterations."
    return Record(settings, "0 to 4", [table])


@item("guide.scales", "standard deviations in relative coordinates", small={"sets": 2})
def scales(setting, sets=20):
    """Learn mixtures of a narrow and a wide Gaussian, all parameters free, in four ways."""
    table = Table(
        "Means 0 and a gap, standard deviations 1 and sigma_2: median steps until the "
        "log-likelihood changes by less than 1e-6, and its loss against EM, nats",
        [
            "gap and sigma_2",
            "EM",
            "ECM",
            "EM, both",
            "ECM, both",
            "ratio of steps, ECM to EM",
            "ECM, lost",
            "ECM, both, lost",
        ],
        2,
    )
    ways = [("scales", "em"), ("scales", "ecm"), ("both", "em"), ("both", "ecm")]
    for gap, wide in ((2.0, 2.0), (4.0, 1.5), (4.0, 3.0), (4.0, 0.5)):
        fits = [[learn_scales(seed, gap, wide, *way) for seed in range(sets)] for way in ways]
        ends = [200 * np.array([fit.lower_bound_ for fit in some]) for some in fits]
        steps = [np.array([fit.n_iter_ for fit in some]) for some in fits]
        lost = [ends[0] - own for own in (ends[1], ends[3])]
        medians = map(np.median, steps)
        table.add(f"{gap:g} and {wide:g}", *medians, steps[1] / steps[0], *lost)
    return Record(
        "200 rows of two Gaussians of equal weight, the second at the gap; weights, means and "
        "variances are learned, from the true parameters made alike by half. EM of ordered "
        "standard deviations is EM wherever they differ.",
        "20 samples, 0 to 19",
        [table],
    )


def learn_scales(seed, gap, wide, order, solver):
    """Learn all parameters of a mixture of two widths."""
    rng = np.random.default_rng(seed)
    second = rng.integers(2, size=200)
    X = rng.normal(gap * second, np.where(second, wide, 1.0))[:, np.newaxis]
    means, variances = gap * np.array([[0.25], [0.75]]), ((np.array([1, wide]) + 1) / 2) ** 2
    start = {"means_init": means, "precisions_init": 1 / variances, "tol": 1e-6 / 200}
    options = {"order": order, "solver": solver, "covariance_type": "spherical"}
    return RelativeGMM(2, max_iter=20_000, **start, **options).fit(X)
