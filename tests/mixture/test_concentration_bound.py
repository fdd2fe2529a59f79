"""Components about equal rows: as tight as a component may be given, in every dimension."""

import numpy as np
import pytest

from skvmf import VonMisesFisherMixture


@pytest.mark.parametrize("dim", [2, 3, 40, 1000, 20_000])
def test_equal_rows_have_the_largest_concentration(dim):
    X = np.repeat(np.eye(2, dim), 3, axis=0)
    mixture = VonMisesFisherMixture(2, concentration_prior=0, random_state=0).fit(X)
    assert np.all(mixture.concentrations_ > 4e11)
    assert np.all(mixture.concentrations_ <= 1e12 * (1 + 1e-15))
    given = VonMisesFisherMixture.from_parameters(
        mixture.weights_,
        mean_directions=mixture.mean_directions_,
        concentrations=np.minimum(mixture.concentrations_, 1e12),
    )
    np.testing.assert_allclose(given.score_samples(X), mixture.score_samples(X), rtol=1e-9)
