"""Mistakes that a type checker should find, one in each line that says so.

tests/test_typing.py checks this file, and does not run it.
"""

import numpy as np

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath

X, y, centers = make_vonmises_fisher_blobs(600, 10)  # mistake
pair = make_vonmises_fisher_blobs(600, 10, return_centers=True)
rows, labels = pair  # mistake
print(load_docstrings(return_X_y=True).data)  # mistake
mixture = VonMisesFisherMixture(3, random_state=0).fit(rows)
VonMisesFisherMixture(n_component=3)  # mistake
VonMisesFisherMixture("3")  # mistake
VonMisesFisherMixture(3, "tied")  # mistake
VonMisesFisherMixture(3, concentration_type="foo")  # mistake
VonMisesFisherMixture(3, negentropy="fast")  # mistake
VonMisesFisherMixture(3, init_params="k-mean")  # mistake
VonMisesFisherMixture(3, random_state="zero")  # mistake
VonMisesFisherMixture(3, weight_concentration_prior="flat")  # mistake
VonMisesFisherMixture(3, background="yes")  # mistake
SparseGaussianMixture(3, covariance_type="diagonal")  # mistake
SparseGaussianMixture(3, concentration_type="tied")  # mistake
StudentTMixture(3, degrees_of_freedom="known")  # mistake
RelativeGMM(3, solver="newton")  # mistake
RelativeGMM(3, order="mean")  # mistake
RelativeGMM(3, fixed=("weight",))  # mistake
mixture.fti(rows)  # mistake
print(mixture.lables_)  # mistake
print(mixture.covariances_)  # mistake
print(mixture.weights_.shpae)  # mistake
mixture.predict()  # mistake
mixture.sample("5")  # mistake
text: str = mixture.score(rows)  # mistake
mixture.fit(rows).lower_bound_.mean()  # mistake
mixture.set_param(tol=1e-6)  # mistake
ComponentPath(mixture, 5)  # mistake
ComponentPath(mixture, criterion="aic")  # mistake
ComponentPath(np.ones(3))  # mistake
ComponentPath(mixture).fit(rows).cut("3")  # mistake
print(ComponentPath(mixture).best_estimator)  # mistake
