"""What tests of networks share: one thread, as everywhere in the tests, and small autoencoders."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.torch)


@pytest.fixture(scope="package", autouse=True)
def train_on_one_thread(one_torch_thread):
    return one_torch_thread


SPARSE_VAE = {"latent": "epanechnikov", "observation": "binary-entmax"}
KINDS = {
    "vae": ("FenchelYoungVAE", {}),
    "sparse vae": ("FenchelYoungVAE", SPARSE_VAE),
    "documents": ("FenchelYoungDocumentModel", {}),
    "sparse documents": ("FenchelYoungDocumentModel", {"entmax_alpha": 1.5}),
}


# For what the classes have in common, and what their options of sparsity have no part in.
of_each_class = pytest.mark.parametrize("new", ["sparse vae", "documents"], indirect=True)


@pytest.fixture(params=KINDS)
def new(request):
    """Make an autoencoder of each kind, small, with options."""
    from skvmf import neural

    name, special = KINDS[request.param]

    def make(**options):
        small = {"hidden_layer_sizes": (12,), "max_epochs": 3, "beta": 0.1, "random_state": 0}
        return getattr(neural, name)(**({"n_components": 3} | special | small | options))

    return make
