"""A directional statistician with movMF's and spherecluster's code, and angles."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import hyp0f1, logsumexp
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.distributions.vonmises_fisher import log_sphere_area

# Angles are vectors on the circle, and the density is von Mises'.
angles = np.random.default_rng(0).vonmises(np.pi, 9.0, size=500)  # across 180 degrees
X = np.column_stack([np.cos(angles), np.sin(angles)])
one = VonMisesFisherMixture(1, concentration_prior=1).fit(X)
kappa, loc, _ = stats.vonmises.fit(angles, fscale=1)
np.testing.assert_allclose(one.concentrations_, kappa, rtol=1e-6)
expected = [[np.cos(loc), np.sin(loc)]]
np.testing.assert_allclose(one.mean_directions_, expected, atol=1e-9)
np.testing.assert_allclose(one.score_samples(X), stats.vonmises.logpdf(angles, kappa, loc))

# movMF's likelihood and BIC.
X, y = make_vonmises_fisher_blobs(
    900, 6, centers=3, concentration=[10.0, 40.0, 80.0], random_state=0
)
mixture = VonMisesFisherMixture(
    3, concentration_prior=0, init_params="random_from_data", n_init=5, random_state=0
).fit(X)
np.testing.assert_allclose(np.sort(mixture.concentrations_), [10, 40, 80], rtol=0.15)
n, d = X.shape
theta = mixture.mean_directions_ * mixture.concentrations_[:, None]
densities = normalize(X) @ theta.T - np.log(hyp0f1(d / 2, mixture.concentrations_**2 / 4))
theirs = logsumexp(densities, b=mixture.weights_, axis=1).sum()
np.testing.assert_allclose((mixture.score(X) + log_sphere_area(d)) * n, theirs)
bic = (3 * (d - 1) + 3 + 2) * np.log(n) - 2 * theirs
np.testing.assert_allclose(mixture.bic(X) - 2 * n * log_sphere_area(d), bic)

# Hard fits with equal weights are spherical k-means.
hard = VonMisesFisherMixture(
    3, concentration_type="tied", temperature=0, fixed=("weights",), tol=1e-9, random_state=0
).fit(X)
centers, units = hard.mean_directions_, normalize(X)
np.testing.assert_array_equal((units @ centers.T).argmax(axis=1), hard.labels_)
sums = np.array([units[hard.labels_ == k].sum(axis=0) for k in range(3)])
np.testing.assert_allclose(normalize(sums), centers, atol=1e-6)
kmeans = KMeans(3, n_init=10, random_state=0).fit(units)
directions = normalize(kmeans.cluster_centers_)
assert (units @ centers.T).max(axis=1).sum() > 0.999 * (units @ directions.T).max(axis=1).sum()

for mistake, advice in [
    ({"posterior_type": "hard"}, "temperature=0 is hard"),
    ({"force_weights": [1]}, "fixed"),
    ({"maxiter": 10}, "max_iter"),
    ({"reltol": 1}, "tol"),
    ({"normalize": True}, "direction"),
    ({"copy_x": True}, "never changed"),
]:
    with pytest.raises(TypeError, match=advice):
        VonMisesFisherMixture(3, **mistake)
