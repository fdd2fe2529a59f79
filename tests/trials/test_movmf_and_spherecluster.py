"""A user of R's movMF or of spherecluster, with the rows of the migration guide."""

import numpy as np
import pytest
from scipy.special import hyp0f1, logsumexp
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.distributions.vonmises_fisher import log_sphere_area

X, y = make_vonmises_fisher_blobs(
    900, 6, centers=3, concentration=[10.0, 40.0, 80.0], random_state=0
)


def test_hard_fits_with_equal_weights_are_spherical_kmeans():
    """Each row is in the cluster whose centre has the largest cosine, the direction of its sum."""
    mixture = VonMisesFisherMixture(
        3, concentration_type="tied", temperature=0, fixed=("weights",), tol=1e-9, random_state=0
    ).fit(X)
    centers, units = mixture.mean_directions_, normalize(X)
    np.testing.assert_array_equal((units @ centers.T).argmax(axis=1), mixture.labels_)
    sums = np.array([units[mixture.labels_ == k].sum(axis=0) for k in range(3)])
    np.testing.assert_allclose(normalize(sums), centers, atol=1e-6)
    kmeans = KMeans(3, n_init=10, random_state=0).fit(units)
    directions = normalize(kmeans.cluster_centers_)
    theirs = (units @ directions.T).max(axis=1).sum()
    assert (units @ centers.T).max(axis=1).sum() > 0.999 * theirs


def test_a_mixture_of_movmf_has_its_likelihood_and_bic():
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


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("n_clusters", "n_components"),
        ("posterior_type", "temperature=0 is hard"),
        ("init", "init_params"),
        ("force_weights", "fixed"),
        ("n_jobs", "threadpool_limits"),
        ("k", "n_components"),
        ("nruns", "n_init"),
        ("maxiter", "max_iter"),
        ("reltol", "tol"),
        ("kappa", r"fixed=\('concentrations'"),
        ("normalize", "direction"),
        ("copy_x", "never changed"),
    ],
)
def test_their_parameters_lead_to_ours(name, advice):
    with pytest.raises(TypeError, match=f"no parameter '{name}': .*{advice}"):
        VonMisesFisherMixture(3, **{name: 1})
