"""Fisher vectors beside the arithmetic they cannot do without, and beside scikit-image."""

import time

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

from skvmf import FisherVectorTransformer, SparseGaussianMixture, VonMisesFisherMixture

try:
    from skimage.feature import fisher_vector
except ImportError:
    fisher_vector = None

N_DOCUMENTS, N_WORDS, N_DIMS, N_COMPONENTS = 18_846, 28_000, 50, 15  # as the 20 newsgroups
BAG_SIZE, N_BAGS = 200, 2000


def documents(rng):
    """Counts with as many entries as the 20 newsgroups have, words as frequent as words are."""
    sizes = np.maximum(1, rng.lognormal(4.15, 0.9, N_DOCUMENTS)).astype(int)
    words = (N_WORDS ** rng.random(sizes.sum())).astype(int) - 1
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    counts = sparse.csr_array((np.ones(len(words)), words, indptr), (N_DOCUMENTS, N_WORDS))
    counts.sum_duplicates()
    return counts


def directions(rng):
    """A mixture with as clear components as those of word vectors."""
    return VonMisesFisherMixture.from_parameters(
        np.full(N_COMPONENTS, 1 / N_COMPONENTS),
        mean_directions=rng.normal(size=(N_COMPONENTS, N_DIMS)),
        concentrations=np.linspace(40, 120, N_COMPONENTS),
    )


def ratio(numerator, denominator, n=5):
    """Median processor time of one function over another's, taken in turn."""
    times = [[], []]
    for _ in range(n + 1):
        for function, own in zip((numerator, denominator), times, strict=True):
            start = time.process_time()
            function()
            own.append(time.process_time() - start)
    return float(np.median(times[0][1:]) / np.median(times[1][1:]))


class FisherVectorTransformerCounts:
    """A corpus as counts over a table of vectors."""

    params = (["float64", "float32"], ["means", "tangent, power", "hard"])
    param_names = ("dtype", "what")

    def setup(self, dtype, what):
        rng = np.random.default_rng(0)
        self.counts = documents(rng).astype(dtype)
        self.table = rng.normal(size=(N_WORDS, N_DIMS)).astype(dtype)
        mixture = directions(rng).set_params(temperature=0 if what == "hard" else 1)
        options = {"geometry": "tangent", "power": 0.5} if what == "tangent, power" else {}
        self.transformer = FisherVectorTransformer(
            FrozenEstimator(mixture), embeddings=self.table, **options
        ).fit(self.counts)
        self.resp = mixture.predict_proba(self.table)
        self.transformer.transform(self.counts[:10])

    def products(self):
        """The products alone, a component at a time."""
        for k in range(N_COMPONENTS):
            self.counts @ (self.resp[:, k, None] * self.table)

    def time_transform(self, dtype, what):
        self.transformer.transform(self.counts)

    def time_scipy_products(self, dtype, what):
        self.products()

    def track_ratio_to_scipy_products(self, dtype, what):
        return ratio(lambda: self.transformer.transform(self.counts), self.products)

    def peakmem_transform(self, dtype, what):
        self.transformer.transform(self.counts)


class FisherVectorTransformerBags:
    """Images as bags of descriptors, all gradients of a Gaussian mixture or the default."""

    params = (["float64", "float32"], ["von Mises-Fisher", "Gaussian"])
    param_names = ("dtype", "mixture")

    def setup(self, dtype, mixture):
        if fisher_vector is None:
            raise NotImplementedError("scikit-image is not installed")
        rng = np.random.default_rng(0)
        shape = (N_BAGS, BAG_SIZE, N_DIMS)
        self.bags = list(rng.normal(size=shape).astype(dtype))
        vectors = np.concatenate(self.bags)[::10]
        self.rival = GaussianMixture(
            N_COMPONENTS, covariance_type="diag", max_iter=5, tol=1.0, random_state=0
        ).fit(vectors)
        options = {}
        if mixture == "Gaussian":
            fitted = SparseGaussianMixture.from_parameters(
                self.rival.weights_.astype(float) / self.rival.weights_.sum(dtype=float),
                self.rival.means_,
                self.rival.covariances_,
                covariance_type="diag",
            )
            options = {"gradients": ("weights", "means", "variances"), "power": 0.5}
        else:
            fitted = directions(rng)
        self.transformer = FisherVectorTransformer(FrozenEstimator(fitted), **options)
        self.transformer.fit(self.bags[:2]).transform(self.bags[:10])

    def scikit_image(self):
        for bag in self.bags:
            fisher_vector(bag, self.rival, improved=True)

    def time_transform(self, dtype, mixture):
        self.transformer.transform(self.bags)

    def time_scikit_image(self, dtype, mixture):
        self.scikit_image()

    def track_times_faster_than_scikit_image(self, dtype, mixture):
        return 1 / ratio(lambda: self.transformer.transform(self.bags), self.scikit_image)
