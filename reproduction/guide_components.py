"""The number of components that each criterion chooses, for the user guide."""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath

from . import texts
from .guide_figures import latent_docstrings
from .instruments.idx import load_idx
from .items import item
from .results import Result, Table

CRITERIA = ("bic", "icl", "held_out", "slope")
MNIST = ("mnist-train-images-idx3-ubyte.gz", "mnist-train-labels-idx1-ubyte.gz")
FILES = ("20news-bydate.jsonl.gz", "classic3.jsonl.gz", "stoplist_smart.txt", *MNIST)


def sphere(K, setting, *, d=64, concentration=60.0):
    """Return rows of clusters of directions, 100 each and 2,000 at least, and labels."""
    n = max(2000, 100 * K) // setting.size(1, 10)
    return make_vonmises_fisher_blobs(n, d, centers=K, concentration=concentration, random_state=0)


def blobs(K, d, spreads, setting, **options):
    """Return rows of round Gaussian clusters of different spreads, and labels."""
    spreads = np.random.default_rng(0).uniform(*spreads, size=K)
    n = 5000 // setting.size(1, 10)
    return make_blobs(n, d, centers=K, cluster_std=spreads, random_state=0, **options)


def synthetic(setting):
    """Yield sets whose clusters are known: name, rows, labels, mixture and two largest numbers."""
    for K, most in ((5, (15, 40)), (20, (40, 80)), (50, (100, 150)), (100, (150, 250))):
        if not (setting.small and K > 5):
            X, y = sphere(K, setting)
            yield f"{K} clusters on the sphere, 64 features", X, y, VonMisesFisherMixture(), most
    X, y = sphere(8, setting, d=3, concentration=30.0)
    yield "8 that overlap on the sphere, 3 features", X, y, VonMisesFisherMixture(), (20, 40)
    plain = {"weight_concentration_prior": 1.0}
    for name, K, d, spreads, kind, most in (
        ("10 that overlap in the plane, full covariances", 10, 2, (0.5, 1.5), "full", (25, 50)),
        ("15 of 8 features, diagonal", 15, 8, (1.0, 4.0), "diag", (40, 80)),
        ("20 of 16 features, spherical", 20, 16, (2.0, 5.0), "spherical", (40, 80)),
    ):
        X, y = blobs(K, d, spreads, setting)
        yield name, X, y, SparseGaussianMixture(covariance_type=kind, **plain), most


def collections(setting):
    """Yield sets that people have labelled, the same."""
    folder = setting.data
    X, y = texts.classic3(folder)
    yield "classic3, tf-idf", X, y, VonMisesFisherMixture(), (15, 30)
    X, y = texts.news20(folder)
    yield "20 newsgroups, tf-idf", X, y, VonMisesFisherMixture(), (40, 80)
    d = setting.size(384, 8)
    X = normalize(TruncatedSVD(d, random_state=0).fit_transform(X).astype(np.float32))
    name = f"20 newsgroups, {d} dimensions of an SVD"
    yield name, X, y, VonMisesFisherMixture(), (40, 80)
    X, y = latent_docstrings(), load_docstrings().target
    yield "docstrings, 50 dimensions of an SVD", X, y, VonMisesFisherMixture(), (25, 40, 80)
    images = load_idx(folder / MNIST[0])[: setting.size(10_000, 300)]
    y = load_idx(folder / MNIST[1])[: len(images)]
    X = PCA(setting.size(32, 5), random_state=0).fit_transform(images.reshape(len(images), -1))
    yield "MNIST, 32 principal components, directions", X, y, VonMisesFisherMixture(), (30, 60)
    full = SparseGaussianMixture(weight_concentration_prior=1.0)
    yield "the same, Gaussian, full covariances", X, y, full, (30, 60)


def walked(X, y, mixture, largest):
    """Return the number that each criterion chooses, and how well labels agree with what is found.

    That is with the mixture that 'slope' chose, with a cut of the tree into as many clusters as
    there are labels, and with the best cut.
    """
    path = ComponentPath(
        clone(mixture).set_params(random_state=0),
        max_components=largest,
        validation_fraction=0.2,
        random_state=0,
    ).fit(X)
    found = path.results_
    chosen = [int(found["n_components"][np.argmin(found[name])]) for name in CRITERIA]
    cuts = [adjusted_rand_score(y, path.cut(k)) for k in range(1, largest + 1)]
    own = cuts[min(len(np.unique(y)), largest) - 1]
    return chosen, [adjusted_rand_score(y, path.labels_), own, max(cuts)]


@item("guide.components", "the number of components", needs=FILES)
def components(setting):
    """Let every criterion choose the number of components, of clusters known and of labels."""
    for need in FILES:
        setting.file(need)
    agreement = ["ARI of slope", "of a cut at the labels' number", "of the best cut"]
    columns = ["rows", "labels", "at most", *CRITERIA, *agreement]
    tables = [Table("Clusters that are known", columns, 2), Table("Labels of people", columns, 2)]
    for table, make in zip(tables, (synthetic, collections), strict=True):
        for name, X, y, mixture, most in make(setting):
            K = len(np.unique(y))
            for largest in most:
                chosen, aris = walked(X, y, mixture, setting.size(largest, 8))
                table.add(name, str(K), str(largest), *map(str, chosen), *aris)
    return Result(
        "One path a row of the tables; a fifth of the rows is held out. Of MNIST the first 10,000 "
        "images.",
        "0",
        tables,
    )
