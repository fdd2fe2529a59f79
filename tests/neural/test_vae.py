"""FenchelYoungVAE: families of latent variables and observations, and values in [0, 1]."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

from skvmf.neural import FenchelYoungVAE

from .checks import assert_same

X = load_digits().data / 16
FEW = X[:100]
ALPHAS = {"gaussian": 1.0, "triweight": 4 / 3, "biweight": 1.5, "epanechnikov": 2.0}
SMALL = {"hidden_layer_sizes": (32,), "beta": 0.1, "random_state": 0}


@pytest.fixture(
    scope="module",
    params=zip(ALPHAS, 2 * ["bernoulli", "binary-entmax"], strict=True),
    ids=" ".join,
)
def fitted(request):
    latent, observation = request.param
    options = SMALL | {"max_epochs": 5, "learning_rate": 5e-3}
    return FenchelYoungVAE(8, latent=latent, observation=observation, **options).fit(X)


def test_every_family_learns_digits(fitted):
    assert np.all(np.diff(fitted.losses_) < 0)
    assert fitted.losses_[-1] < 0.7 * fitted.losses_[0]
    decoded = fitted.inverse_transform(fitted.transform(X))
    assert np.abs(decoded - X).mean() < 0.75 * np.abs(X.mean(axis=0) - X).mean()


def test_only_sparse_observations_are_exactly_zero(fitted):
    for images in (fitted.inverse_transform(fitted.transform(X)), fitted.sample(200)):
        zeros = (images == 0).mean()
        assert zeros == 0 if fitted.observation == "bernoulli" else zeros > 0.1
        assert ((images >= 0) & (images <= 1)).all()
    if fitted.observation == "binary-entmax":
        decoded = fitted.inverse_transform(fitted.transform(X))
        assert X[decoded == 0].mean() < 0.1 * X.mean()


def test_posteriors_and_priors_are_of_the_family(fitted):
    posterior = fitted.posterior(X)
    assert posterior.alpha == ALPHAS[fitted.latent]
    prior = fitted.network_.prior(3)
    assert prior.alpha == posterior.alpha
    assert (prior.fenchel_young_divergence() == 0).all()


def test_alpha_one_is_bernoulli():
    a = FenchelYoungVAE(3, max_epochs=2, **SMALL).fit(FEW)
    b = FenchelYoungVAE(3, observation="binary-entmax", entmax_alpha=1, max_epochs=2, **SMALL)
    assert_same(a, b.fit(FEW))
    assert a.score(FEW) == b.score(FEW)
    assert_array_equal(a.sample(5), b.sample(5))


def test_gaussian_latents_are_regularized_by_the_kullback_leibler_divergence():
    """The score of the classical autoencoder is the ELBO, but for what the data's entropy is."""
    vae = FenchelYoungVAE(3, max_epochs=2, **SMALL | {"beta": 1.0}).fit(FEW)
    with torch.no_grad():
        vae.network_.encoder[-1].bias[3:] -= 30  # draws are their centers
        posterior = vae.posterior(FEW)
        logits = vae.network_.decoder(posterior.loc)
    target = torch.from_numpy(FEW)
    log_likelihood = -torch.nn.functional.binary_cross_entropy_with_logits(
        logits.double(), target, reduction="none"
    ).sum(-1)
    mean, scale = posterior.mean.double(), posterior.stddev.double()
    divergence = 0.5 * (mean**2 + scale**2 - 1 - 2 * scale.log()).sum(-1)
    perfect = (torch.xlogy(target, target) + torch.xlogy(1 - target, 1 - target)).sum(-1)
    elbo = log_likelihood - divergence
    assert_allclose(vae.score(FEW), (elbo - perfect).mean(), rtol=1e-5)


@pytest.mark.parametrize("bad", [-0.01, 1.01, 16.0, -1e300, 1e300])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score"])
def test_values_out_of_range_are_refused(bad, method):
    rows = X[:20].copy()
    rows[3, 5] = bad
    vae = FenchelYoungVAE(2, max_epochs=1, **SMALL).fit(X[:20])
    with pytest.raises(ValueError, match=r"takes values from 0 to 1, and .* by 255.*MinMaxScaler"):
        getattr(vae, method)(rows)


def test_what_rounding_adds_is_cut_off():
    """MinMaxScaler in float32 may give 1.0000001."""
    rows = FEW.astype(np.float32)
    rounded = np.where(rows == 1, np.nextafter(np.float32(1), np.float32(2)), rows)
    rounded[rows == 0] = -1e-8
    vae = FenchelYoungVAE(2, max_epochs=1, **SMALL)
    assert_array_equal(vae.fit(rounded).transform(rounded), vae.fit(rows).transform(rows))
    assert rounded.max() > 1


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="dense"):
        FenchelYoungVAE(2, **SMALL).fit(sparse.csr_array(X))


@pytest.mark.parametrize(
    ("name", "value"), [("latent", "normal"), ("latent", 0.5), ("observation", "gaussian")]
)
def test_unknown_families_are_refused(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        FenchelYoungVAE(2, **{name: value}).fit(X)


def test_any_alpha_is_a_family_of_latent_variables():
    named, number, between = (
        FenchelYoungVAE(2, latent=latent, max_epochs=2, **SMALL).fit(FEW)
        for latent in ("biweight", 1.5, 1.2)
    )
    assert_array_equal(number.transform(X), named.transform(X))
    assert between.posterior(FEW).alpha == 1.2
    assert np.isfinite(between.score(FEW))
