"""
======================================================
Table 2 of Fenchel-Young variational learning: images
======================================================

Trains the six autoencoders of Table 2 of Sklaviadis et al., "Fenchel-Young variational learning",
on MNIST or another data set of its format, and prints their l1 reconstruction errors on the test
images beside the paper's. It needs the data, and an hour or more; :ref:`the user guide <neural>`
has what came out.

``python table_images.py --data FOLDER`` reads ``*train-images-idx3-ubyte*`` and
``*t10k-images-idx3-ubyte*`` there, compressed or not.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from skvmf.datasets import load_idx
from skvmf.neural import FenchelYoungVAE

PAPER = {
    ("bernoulli", "gaussian"): 13.272,
    ("bernoulli", "biweight"): 12.061,
    ("bernoulli", "epanechnikov"): 12.111,
    ("binary-entmax", "gaussian"): 12.610,
    ("binary-entmax", "biweight"): 10.326,
    ("binary-entmax", "epanechnikov"): 9.183,
}


def images(folder, split):
    """Return the images of a split as rows in [0, 1]."""
    (path,) = Path(folder).glob(f"*{split}-images-idx3-ubyte*")
    pixels = load_idx(path)
    return pixels.reshape(len(pixels), -1).astype(np.float32) / 255


def errors(vae, X):
    """Return the mean l1 distance of rows to a drawn reconstruction, and its share of zeros."""
    drawn = vae.inverse_transform(vae.posterior(X).sample().cpu().numpy())
    return np.abs(drawn - X).sum(axis=1).mean(), (drawn == 0).mean()


def main(options):
    torch.manual_seed(0)  # for the reconstructions; fits have seeds of their own
    train, test = images(options.data, "train"), images(options.data, "t10k")
    found = {variant: [] for variant in PAPER}
    for seed in options.seeds:
        for observation, latent in PAPER:
            vae = FenchelYoungVAE(
                options.n_components,
                latent=latent,
                observation=observation,
                beta=options.beta,
                learning_rate=options.learning_rate,
                random_state=seed,
            )
            for epoch in range(1, options.epochs + 1):
                vae.partial_fit(train)
                l1, zeros = errors(vae, test)
                print(
                    f"{observation:13s} {latent:12s} seed {seed} epoch {epoch:3d}: "
                    f"l1 {l1:.3f}, zeros {zeros:.3f}, free energy {-vae.score(test):.3f}",
                    flush=True,
                )
            found[observation, latent].append((l1, zeros))
    print("\nobservation   latent        l1 (mean +- sd)   zeros    paper")
    for (observation, latent), results in found.items():
        l1, zeros = np.transpose(results)
        print(
            f"{observation:13s} {latent:12s} {l1.mean():7.3f} +- {l1.std():.3f} "
            f"{zeros.mean():8.3f} {PAPER[observation, latent]:8.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Reproduce a table of Fenchel-Young autoencoders of images.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--data", metavar="FOLDER", required=True, help="folder with the idx files")
    add("--epochs", type=int, default=50, help="passes over the training images")
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random states")
    add("--learning-rate", type=float, default=5e-5, help="of Adam")
    add("--beta", type=float, default=0.01, help="weight of the divergence")
    add("--n-components", type=int, default=32, help="latent variables; the paper does not say")
    main(parser.parse_args())
