"""Epochs of the autoencoders beside a plain one in torch, and sparse maps beside softmax."""

import itertools

import numpy as np

try:
    import torch

    from skvmf.neural import EntmaxLoss, FenchelYoungVAE, entmax
except ImportError:  # the benchmarks below are skipped
    torch = None

BATCHES, BATCH, PIXELS, LATENT, BETA = 100, 64, 784, 32, 0.01
SIZES = [PIXELS, 512, 256]


def need_torch():
    """Skip a benchmark where torch is not installed: asv takes this error for that."""
    if torch is None:
        raise NotImplementedError("needs torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)


def perceptron(sizes):
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class PlainVAE:
    """What one writes in torch for a Gaussian posterior and Bernoulli pixels."""

    def __init__(self):
        self.encoder = perceptron([*SIZES, 2 * LATENT])
        self.decoder = perceptron([LATENT, *SIZES[::-1]])
        parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.adam = torch.optim.Adam(parameters, lr=1e-3)

    def partial_fit(self, X):
        X = torch.from_numpy(X)
        for rows in torch.randperm(len(X)).split(BATCH):
            x = X[rows]
            mean, log_var = self.encoder(x).chunk(2, dim=-1)
            z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                self.decoder(z), x, reduction="sum"
            )
            divergence = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum()
            self.adam.zero_grad()
            ((loss + BETA * divergence) / len(x)).backward()
            self.adam.step()


class FenchelYoungVAEEpoch:
    """One epoch over 6400 images of 784 pixels, networks of 512 and 256 units."""

    params = (
        "plain",
        "gaussian, bernoulli",
        "triweight, bernoulli",
        "biweight, bernoulli",
        "epanechnikov, bernoulli",
        "gaussian, binary-entmax",
        "biweight, binary-entmax",
        "epanechnikov, binary-entmax",
    )
    param_names = ("autoencoder",)

    def setup(self, autoencoder):
        need_torch()
        self.X = np.random.default_rng(0).random((BATCHES * BATCH, PIXELS), dtype=np.float32)
        if autoencoder == "plain":
            self.model = PlainVAE()
        else:
            latent, observation = autoencoder.split(", ")
            self.model = FenchelYoungVAE(
                LATENT, latent=latent, observation=observation, beta=BETA, random_state=0
            )
        self.model.partial_fit(self.X[:BATCH])

    def time_epoch(self, autoencoder):
        self.model.partial_fit(self.X)


class TorchEntmax:
    """Maps and losses of a batch of 64 documents of 2000 words, forward and backward."""

    params = (1.0, 1.25, 1.5, 2.0, 3.0)
    param_names = ("alpha",)

    def setup(self, alpha):
        need_torch()
        self.scores = (3 * torch.randn(64, 2000)).requires_grad_()
        self.target = torch.softmax(3 * torch.randn(64, 2000), -1)
        self.loss = EntmaxLoss(alpha, reduction="sum")

    def time_entmax(self, alpha):
        entmax(self.scores, alpha).backward(self.target)

    def time_loss(self, alpha):
        self.loss(self.scores, self.target).backward()


class TorchSoftmax:
    """Softmax in torch of the same batch, and sorting, which other algorithms begin with."""

    def setup(self):
        need_torch()
        self.scores = (3 * torch.randn(64, 2000)).requires_grad_()
        self.target = torch.softmax(3 * torch.randn(64, 2000), -1)

    def time_softmax(self):
        torch.softmax(self.scores, -1).backward(self.target)

    def time_sort(self):
        torch.sort(self.scores.detach(), dim=-1)
