"""scikit-learn's own checks over the autoencoders."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from scipy.special import expit
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvmf.neural import FenchelYoungDocumentModel, FenchelYoungVAE

SMALL = {"hidden_layer_sizes": (8,), "max_epochs": 2}


class SquashedVAE(FenchelYoungVAE):
    """A FenchelYoungVAE of any numbers.

    Most checks feed values outside [0, 1], which the autoencoder refuses: its own tests see to
    that. Here they are squashed in place of the refusal, so that the checks see all the rest.
    """

    def _in_range(self, X):
        return expit(X)


@parametrize_with_checks(
    [FenchelYoungDocumentModel(2, early_stopping=True, **SMALL), SquashedVAE(2, **SMALL)]
)
def test_estimator(estimator, check):
    check(estimator)
