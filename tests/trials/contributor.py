"""A contributor: an estimator of a family from the pages, and a moment that is wrong."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score as ari

from skvmf import ComponentPath
from skvmf.testing import check_family

sys.path.insert(0, str(Path(__file__).parents[2] / "doc" / "contributing"))
from spherical_cauchy import CauchyComponents, SphericalCauchy
from watson_mixture import WatsonMixture


class CauchyMixture(WatsonMixture):
    """Directions with heavy tails, by the page "Add an estimator"."""

    _family_class = SphericalCauchy

    def _family(self, n_features):
        return SphericalCauchy(n_features)

    def _attributes(self, fitted, result=None):
        own = super(WatsonMixture, self)._attributes(fitted, result)
        return own | {"centres_": fitted.params.components.centres}


class Careless(SphericalCauchy):
    """Counts a row too many in every block."""

    def moments(self, block, responsibilities, components, cache=None):
        sums, weights = super().moments(block, responsibilities, components, cache)
        return sums, weights + 1


check_family(SphericalCauchy(3))
true = CauchyComponents(np.array([[0.9, 0, 0], [0, 0.8, 0], [0, 0, -0.7]]))
rng = np.random.RandomState(0)
X = SphericalCauchy(3).sample(true, np.array([400, 300, 300]), rng)
X *= rng.uniform(0.1, 9, size=(1000, 1))
mixture = CauchyMixture(3, init_params="k-means++", tol=1e-6, random_state=0).fit(X)
centres = mixture.centres_[np.abs(mixture.centres_).argmax(axis=0)]
np.testing.assert_allclose(centres, true.centres, atol=0.1)
assert ari(np.repeat([0, 1, 2], [400, 300, 300]), mixture.labels_) > 0.6
again = pickle.loads(pickle.dumps(mixture))
np.testing.assert_array_equal(again.predict(X / 7), mixture.labels_)

for mistake, advice in [
    (lambda: check_family(Careless(3)), "is the sum over the rows"),
    (lambda: CauchyMixture(3).fit(X), "SphericalCauchy"),
    (
        lambda: ComponentPath(CauchyMixture(init_params="k-means++"), max_components=5).fit(X),
        "SphericalCauchy",
    ),
]:
    with pytest.raises((AssertionError, ValueError), match=advice):
        mistake()
