"""Sklaviadis et al., "Fenchel-Young variational learning", sections 4.2 and 4.3.

Short runs of the paper's tables, at a learning rate that suits short runs. What few epochs show
is the zeros: three in four pixels and words. Of the paper's order of errors they show that of
observations, not that of latent variables.
"""

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from reproduction import p2_documents, p2_images
from skvmf.neural import FenchelYoungDocumentModel, FenchelYoungVAE

from ..conftest import FULL_SIZE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.usefixtures("one_torch_thread"),
]


@pytest.fixture(scope="module")
def images(data_folder):
    return [p2_images.images(data_folder, "mnist", split) for split in ("train", "t10k")]


@pytest.mark.parametrize(
    ("observation", "latent"), [("bernoulli", "gaussian"), ("binary-entmax", "epanechnikov")]
)
def test_images_are_reconstructed_after_few_epochs(images, observation, latent):
    train, test = images
    epochs, bar = (3, 27) if FULL_SIZE else (1, 38)
    vae = FenchelYoungVAE(
        32, latent=latent, observation=observation, beta=0.01, max_epochs=epochs, random_state=0
    ).fit(train)
    l1, zeros = p2_images.errors(vae, test)
    assert l1 <= bar
    assert zeros == 0 if observation == "bernoulli" else zeros >= 0.6


@pytest.fixture(scope="module")
def documents(data_folder):
    return p2_documents.counts(data_folder)


def test_documents_are_those_of_the_paper(documents):
    train, test = documents
    assert train.shape == (11_284, 2000)
    assert abs(test.shape[0] - 6505) <= 5


@pytest.mark.parametrize(("alpha", "bar"), [(1, 1.5), (1.5, 1.52)])
def test_documents_are_reconstructed_after_twelve_epochs(documents, alpha, bar):
    train, test = documents
    model = FenchelYoungDocumentModel(
        50,
        entmax_alpha=alpha,
        target="proportions",
        beta=1e-4,
        max_epochs=12,
        random_state=0,
    ).fit(train)
    l1, zeros = p2_documents.errors(model, test)
    assert l1 <= bar
    assert zeros == 0 if alpha == 1 else zeros >= 0.6
