"""A contributor: an estimator of a family from the pages."""

import pickle
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score as ari

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
