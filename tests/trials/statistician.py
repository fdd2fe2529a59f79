"""A statistician with GaussianMixture's code: the same fits, criteria, missing values, tails."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score as ari
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skvmf import SparseGaussianMixture, StudentTMixture

X, y = make_blobs(600, 4, centers=5, random_state=0)

# Every name of scikit-learn is there, and a default fit is as good as the best of ten of theirs.
theirs = GaussianMixture(5, n_init=10, random_state=0).fit(X)
ours = SparseGaussianMixture(5, weight_concentration_prior=1, random_state=0).fit(X)
assert set(theirs.get_params()) <= set(ours.get_params())
assert [name for name in dir(theirs) if name[0] != "_" and not hasattr(ours, name)] == []
assert ours.score(X) > theirs.score(X) - 1e-3
np.testing.assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-3)

# BIC and a prior find the five clusters, as BayesianGaussianMixture does.
bics = [SparseGaussianMixture(K, random_state=0).fit(X).bic(X) for K in range(2, 9)]
assert np.argmin(bics) + 2 == 5
theirs = BayesianGaussianMixture(
    n_components=10, weight_concentration_prior=1e-2, max_iter=500, random_state=0
).fit(X)
ours = SparseGaussianMixture(10, weight_concentration_prior=-40, random_state=0).fit(X)
assert ours.n_active_components_ == np.sum(theirs.weights_ > 0.01) == 5
assert ari(theirs.predict(X), ours.labels_) > 0.95

# A tenth of the values are missing: the clusters stay, and imputed values beat the means.
holes = np.random.default_rng(0).random(X.shape) < 0.1
missing = np.where(holes, np.nan, X)
mixture = SparseGaussianMixture(5, missing_values="marginal", random_state=0).fit(missing)
assert ari(y, mixture.labels_) > 0.85
errors = (mixture.impute(missing) - X)[holes]
assert np.sqrt(np.mean(errors**2)) < 0.6 * X.std()

# One row in twenty is noise: a normal component is lost to it, and tails are not.
kept = np.arange(600) % 20 > 0
far = np.where(kept[:, None], X, np.random.default_rng(0).normal(scale=10, size=X.shape))
normal, tails = (
    ari(y[kept], mixture(5, random_state=0).fit(far).labels_[kept])
    for mixture in (SparseGaussianMixture, StudentTMixture)
)
assert tails > 0.95 > normal, (tails, normal)
