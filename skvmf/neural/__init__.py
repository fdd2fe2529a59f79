"""Autoencoders with sparse losses; needs PyTorch."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'skvmf.neural needs PyTorch ({error}). Install it with pip install "skvmf[neural]".',
        name="torch",
    ) from error

from ._beta_gaussian import BetaGaussian
from ._entmax import BinaryEntmaxLoss, EntmaxLoss, binary_entmax, entmax
from ._models import FenchelYoungDocumentModel, FenchelYoungVAE

__all__ = [
    "BetaGaussian",
    "BinaryEntmaxLoss",
    "EntmaxLoss",
    "FenchelYoungDocumentModel",
    "FenchelYoungVAE",
    "binary_entmax",
    "entmax",
]
