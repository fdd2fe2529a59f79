"""Autoencoders of digits by the weight of the divergence."""

import numpy as np

from reproduction.items import item
from reproduction.p2_images import VARIANTS, errors, make_vae
from reproduction.results import Record, Table


@item(
    "guide.beta",
    "digits by beta",
    needs=("torch",),
    small={"betas": (0.3,), "epochs": 2, "seeds": 1},
)
def digits_by_beta(setting, betas=(0.001, 0.01, 0.03, 0.1, 0.3), epochs=40, seeds=3):
    """Train the six autoencoders on scikit-learn's digits at five weights of the divergence."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    torch.manual_seed(0)
    X = (load_digits().data / 16).astype(np.float32)
    train, test = train_test_split(X, test_size=0.25, random_state=0)
    table = Table(
        "l1 distance of test digits to reconstructions, by beta",
        ["observation", "latent", *map("{:g}".format, betas)],
        2,
    )
    noise = Table(
        "Standard deviation of a latent variable of a test digit, by beta", table.columns, 2
    )
    options = {"n_components": 8, "learning_rate": 1e-3, "hidden_layer_sizes": (128, 64)}
    options["max_epochs"] = epochs
    for observation, latent in VARIANTS:
        cells = []
        for beta in betas:
            vaes = [
                make_vae(observation, latent, seed, beta=beta, **options).fit(train)
                for seed in range(seeds)
            ]
            l1 = np.array([errors(vae, test)[0] for vae in vaes])
            spread = [float(vae.posterior(test).variance.sqrt().mean()) for vae in vaes]
            cells.append((l1, np.array(spread)))
        table.add(observation, latent, *(l1 for l1, _ in cells))
        noise.add(observation, latent, *(spread for _, spread in cells))

    return Record(
        "8 latent variables, hidden layers of 128 and 64, 40 epochs of Adam at 1e-3.",
        "0 to 2",
        [table, noise],
    )
