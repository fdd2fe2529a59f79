"""Frozen: the public names for torch, constructor signatures, methods and fitted attributes.

Changing one of these takes a release of deprecation and a note in doc/whats_new/upcoming.
"""

import importlib
import inspect
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from skvmf import neural

TRAINING = (
    "early_stopping=False, validation_fraction=0.1, n_epochs_no_change=5, random_state=None, "
    "verbose=0, verbose_interval=1)"
)
ATTRIBUTES = {
    *["feature_names_in_", "losses_", "n_epochs_", "n_features_in_", "network_"],
    "validation_losses_",
}
SIGNATURES = {
    neural.FenchelYoungVAE: (
        "(n_components=32, *, latent='gaussian', observation='bernoulli', entmax_alpha=2.0, "
        "beta=1.0, hidden_layer_sizes=(512, 256), batch_size=64, learning_rate=0.001, "
        "max_epochs=50, " + TRAINING
    ),
    neural.FenchelYoungDocumentModel: (
        "(n_components=50, *, entmax_alpha=1.0, target='counts', beta=1.0, "
        "hidden_layer_sizes=(500,), batch_size=64, learning_rate=0.001, max_epochs=50, "
        "alternating_epochs=None, " + TRAINING
    ),
    neural.entmax: "(scores, alpha, dim=-1)",
    neural.binary_entmax: "(scores, alpha)",
    neural.EntmaxLoss: "(alpha=1.5, *, reduction='mean')",
    neural.BinaryEntmaxLoss: "(alpha=1.5, *, reduction='mean')",
    neural.BetaGaussian: "(loc, scale, alpha=2.0, *, event_dim=0, validate_args=None)",
    neural.BetaGaussian.fenchel_young_divergence: "(self, loc=0.0, scale=1.0)",
    neural.BetaGaussian.tsallis_negentropy: "(self)",
    neural.FenchelYoungDocumentModel.top_words: "(self, feature_names=None, n_words=10)",
}
METHODS = {"fit": "(self, X, y=None)", "sample": "(self, n_samples=1)"}
METHODS |= dict.fromkeys(["partial_fit", "score"], "(self, X, y=None)")
METHODS |= dict.fromkeys(["posterior", "transform", "inverse_transform"], "(self, X)")
ESTIMATORS = [neural.FenchelYoungVAE, neural.FenchelYoungDocumentModel]


class Broken:
    """Finds a torch that cannot be loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ImportError("libtorch.so: cannot open")


def test_why_torch_cannot_be_imported_is_said(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "meta_path", [Broken, *sys.meta_path])
    with pytest.raises(ImportError, match=r"needs PyTorch \(libtorch.so: .*pip install"):
        importlib.reload(neural)


def signature(item):
    """Return the signature as a string, without annotations."""
    result = inspect.signature(item)
    bare = [parameter.replace(annotation=result.empty) for parameter in result.parameters.values()]
    return str(result.replace(parameters=bare, return_annotation=result.empty))


def test_names():
    public = {item.__name__ for item in SIGNATURES if "." not in item.__qualname__}
    assert set(neural.__all__) == public


@pytest.mark.parametrize("item", SIGNATURES, ids=lambda item: item.__qualname__)
def test_signatures(item):
    assert signature(item) == SIGNATURES[item]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_methods(estimator, method):
    assert signature(getattr(estimator, method)) == METHODS[method]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes_are_documented_and_no_others(estimator):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.eye(5), columns=list("abcde"))
    model = estimator(2, hidden_layer_sizes=(3,), max_epochs=1).fit(frame)
    result = {name for name in vars(model) if name[-1] == "_" and name[0] != "_"}
    assert result == ATTRIBUTES
    section = inspect.getdoc(estimator).split("Attributes\n")[1].split("\n\n")[0]
    documented = {line.split(" : ")[0] for line in section.splitlines() if " : " in line}
    properties = {name for name in dir(estimator) if name[-1] == "_" and name[0] != "_"}
    assert documented == result | properties
