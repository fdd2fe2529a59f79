"""Gradients against finite differences, information against draws, blocks against formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skvmf import SparseGaussianMixture, VonMisesFisherMixture
from skvmf.distributions import vonmises_fisher as vmf

from .mixtures import KINDS, MIXTURES, frozen, plane, sphere

WORDS_PER_STEP = 1e-5


def fisher_vectors(mixture, bags, kind, **options):
    """One block of the Fisher vectors of bags, (n, K) or (n, K, d)."""
    K, d = mixture.means_.shape
    transformer = frozen(mixture, gradients=(kind,), **{"norm": None} | options)
    blocks = transformer.fit([np.ones((1, d))]).transform(bags)
    return blocks.reshape((len(bags), K, d) if kind in ("means", "variances") else (len(bags), K))


def difference(log_likelihood, shape):
    """Central differences of a function of an array of some shape, at 0."""
    gradient = np.empty(shape)
    for index in np.ndindex(shape):
        shift = np.zeros(shape)
        shift[index] = WORDS_PER_STEP
        gradient[index] = (log_likelihood(shift) - log_likelihood(-shift)) / (2 * WORDS_PER_STEP)
    return gradient


def shifted_weights(weights, shift):
    """Weights as a softmax whose arguments have moved."""
    powers = weights * np.exp(shift)
    return powers / powers.sum()


def vmf_likelihood(mixture, X, kind, shift):
    """Log-likelihood of X by the `score` of a mixture whose parameters have moved."""
    weights, m, kappa = mixture.weights_, mixture.mean_directions_, mixture.concentrations_
    constant = 0.0
    if kind == "weights":
        weights = shifted_weights(weights, shift)
    elif kind == "concentrations":
        kappa = kappa + shift
    elif kind == "tangent":
        m = m + shift
    else:  # a free vector: exp(kappa m.x - Phi(kappa)) is another vMF density but for a factor
        m = m + shift
        natural = np.linalg.norm(m, axis=1) * kappa
        phi = [vmf.log_partition(k, m.shape[1]) for k in (natural, kappa)]
        weights, kappa = weights * np.exp(phi[0] - phi[1]), natural
        constant = np.log(weights.sum())
        weights = weights / weights.sum()
    moved = VonMisesFisherMixture.from_parameters(weights, mean_directions=m, concentrations=kappa)
    return len(X) * (moved.score(X) + constant)


def gaussian_likelihood(mixture, X, kind, shift):
    """Log-likelihood of X by the `score` of a mixture whose parameters have moved."""
    weights, means, variances = mixture.weights_, mixture.means_, mixture.covariances_
    if kind == "weights":
        weights = shifted_weights(weights, shift)
    elif kind == "means":
        means = means + shift
    else:
        variances = variances + shift
    moved = SparseGaussianMixture.from_parameters(weights, means, variances, covariance_type="diag")
    return len(X) * moved.score(X)


@pytest.mark.parametrize(
    ("mixture", "likelihood", "kind"),
    [
        *[
            (sphere(kappa=kappa, random_state=0), vmf_likelihood, kind)
            for kappa in [(3.0, 8.0, 20.0), (0.5, 300.0, 40.0)]
            for kind in (*KINDS["vmf"], "tangent")
        ],
        *[(plane(random_state=0), gaussian_likelihood, kind) for kind in KINDS["gaussian"]],
    ],
)
def test_gradients_are_those_of_the_score(mixture, likelihood, kind):
    X = mixture.sample(7)[0]
    if likelihood is vmf_likelihood:
        X *= np.linspace(0.1, 10, 7)[:, None]
    shape = (3, 4) if kind in ("means", "tangent", "variances") else (3,)
    expected = difference(lambda shift: likelihood(mixture, X, kind, shift), shape)
    options = {"geometry": "tangent"} if kind == "tangent" else {}
    name = "means" if kind == "tangent" else kind
    result = fisher_vectors(mixture, [X], name, normalization=None, **options)[0]
    assert_allclose(result, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


# Monte-Carlo: under the mixture itself, blocks have the covariance that whitening promises.

DRAWS = 300_000


def apart(family):
    """A mixture whose components do not overlap."""
    weights = np.array([0.2, 0.3, 0.5])
    if family == "vmf":
        return VonMisesFisherMixture.from_parameters(
            weights,
            mean_directions=np.eye(4)[:3],
            concentrations=[80.0, 120.0, 200.0],
            random_state=0,
        )
    return SparseGaussianMixture.from_parameters(
        weights,
        20 * np.eye(4)[:3],
        np.random.default_rng(0).uniform(0.5, 2, size=(3, 4)),
        covariance_type="diag",
        random_state=0,
    )


def draws(mixture, size):
    X = np.random.default_rng(1).permutation(mixture.sample(DRAWS)[0])
    return X.reshape(-1, size, X.shape[1])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("kind", ["euclidean", "tangent", "concentrations"])
def test_vmf_information_is_that_of_draws(kind, size):
    mixture = apart("vmf")
    options = {"geometry": "tangent"} if kind == "tangent" else {}
    block = fisher_vectors(
        mixture, draws(mixture, size), "means" if kind != "concentrations" else kind, **options
    )
    if kind == "concentrations":
        assert_allclose((block**2).mean(axis=0), 1, atol=0.02)
    elif kind == "tangent":  # d - 1 directions across the mean
        assert_allclose((block**2).mean(axis=0).sum(axis=1), 3, rtol=0.02)
        across = np.einsum("nkd,kd->nk", block, mixture.mean_directions_)
        assert_allclose(across, 0, atol=1e-9)
        assert_allclose(block.mean(axis=0), 0, atol=0.02)
    else:  # not centred: the mean grows with the root of the size of a bag, its variance does not
        bias = (block.mean(axis=0) ** 2).mean(axis=1) / size
        assert_allclose((block**2).mean(axis=(0, 2)), 1 + (size - 1) * bias, rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("kind", ["means", "variances"])
def test_gaussian_information_is_that_of_draws(kind, size):
    mixture = apart("gaussian")
    block = fisher_vectors(mixture, draws(mixture, size), kind)
    assert_allclose((block**2).mean(axis=(0, 2)), 1, atol=0.02)
    assert_allclose(block.mean(axis=0), 0, atol=0.02)


@pytest.mark.parametrize("family", ["vmf", "gaussian"])
@pytest.mark.parametrize("size", [1, 10])
def test_weights_are_white_on_the_simplex(family, size):
    mixture = apart(family)
    block = fisher_vectors(mixture, draws(mixture, size), "weights")
    root = np.sqrt(mixture.weights_)
    assert_allclose(block.T @ block / len(block), np.eye(3) - np.outer(root, root), atol=0.02)


# Formulas, written out document by document.


def test_paper_normalization_is_equation_12_as_printed():
    mixture = sphere(random_state=0)
    X = mixture.sample(6)[0]
    result = fisher_vectors(mixture, [X], "means", normalization="paper")[0]
    factors = 4 / (mixture.weights_ * mixture.concentrations_)
    assert_allclose(result, mixture.predict_proba(X).T @ X * factors[:, None], rtol=1e-12)


def test_gaussian_blocks_are_those_of_the_literature():
    # Sanchez et al., eq. 16-18; they divide by T where the information of T vectors has T
    mixture = plane(random_state=0)
    X = mixture.sample(6)[0]
    gamma, w = mixture.predict_proba(X), mixture.weights_
    z = (X[:, None] - mixture.means_) / np.sqrt(mixture.covariances_)
    for kind, expected in [
        ("weights", (gamma - w).sum(axis=0) / np.sqrt(w)),
        ("means", np.einsum("tk,tkd->kd", gamma, z) / np.sqrt(w)[:, None]),
        ("variances", np.einsum("tk,tkd->kd", gamma, z**2 - 1) / np.sqrt(2 * w)[:, None]),
    ]:
        result = fisher_vectors(mixture, [X], kind)[0]
        assert_allclose(result, expected / np.sqrt(6), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("family", ["vmf", "gaussian"])
@pytest.mark.parametrize(
    "options", [{"temperature": 0.0}, {"temperature": 0.3}, {"entmax_alpha": 1.5}]
)
def test_other_posteriors_share_as_they_predict(family, options):
    mixture = MIXTURES[family](random_state=0, **options)
    X = mixture.sample(40)[0]
    bags = [X[:30], X[30:31], X[31:]]
    result = fisher_vectors(mixture, bags, "means", normalization=None)
    for bag, block in zip(bags, result, strict=True):
        gamma = mixture.predict_proba(bag)
        if family == "vmf":
            expected = gamma.T @ bag * mixture.concentrations_[:, None]
        else:
            gaps = (bag[:, None] - mixture.means_) / mixture.covariances_
            expected = np.einsum("tk,tkd->kd", gamma, gaps)
        assert_allclose(block, expected, rtol=1e-11, atol=1e-12)


# Degenerate mixtures


@pytest.mark.parametrize("family", ["vmf", "gaussian"])
@pytest.mark.parametrize("normalization", ["fisher", "paper", None])
def test_a_pruned_component_says_nothing(family, normalization):
    full, weights = MIXTURES[family](), [0.4, 0.6, 0.0]
    if family == "vmf":
        mixture = VonMisesFisherMixture.from_parameters(weights, full.means_)
    else:
        given = weights, full.means_, full.covariances_
        mixture = SparseGaussianMixture.from_parameters(*given, covariance_type="diag")
    X = [np.random.default_rng(0).normal(size=(5, 4))]
    for kind in KINDS[family]:
        block = fisher_vectors(mixture, X, kind, normalization=normalization)[0]
        assert np.isfinite(block).all()
        assert not block[2].any()
        assert block[:2].any()
