"""P2, autoencoders of images: Table 2 on MNIST and FashionMNIST, Figure 3, and beta on digits."""

import json
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from .instruments.idx import load_idx
from .items import item
from .results import Result, Table, commit, processor

LATENTS = ("gaussian", "biweight", "epanechnikov")
VARIANTS = [(o, latent) for o in ("bernoulli", "binary-entmax") for latent in LATENTS]
FINITE = ("biweight", "epanechnikov")
NAMES = ("mnist", "fashion")
TEST = {"mnist": "t10k", "fashion": "test"}
EPOCHS, SEEDS = 50, 5
PAPER = {
    "mnist": (13.272, 12.061, 12.111, 12.610, 10.326, 9.183),
    "fashion": (34.192, 32.690, 32.482, 32.986, 25.985, 26.186),
}
FILES = {
    name: tuple(f"{name}-{split}-images-idx3-ubyte.gz" for split in ("train", TEST[name]))
    for name in NAMES
}


def column(observation, latent):
    """Return the name of the row of a variant."""
    return f"{observation}, {latent}"


def images(folder, name, split):
    """Return the images of a split as rows in [0, 1]."""
    pixels = load_idx(folder / f"{name}-{split}-images-idx3-ubyte.gz")
    return pixels.reshape(len(pixels), -1).astype(np.float32) / 255


def errors(vae, X):
    """Return the mean l1 distance of rows to a drawn reconstruction, and its share of zeros."""
    drawn = vae.inverse_transform(vae.posterior(X).sample().cpu().numpy())
    return np.abs(drawn - X).sum(axis=1).mean(), (drawn == 0).mean()


def make_vae(observation, latent, seed, **options):
    """Return an autoencoder with the paper's settings."""
    from skvmf.neural import FenchelYoungVAE

    options = {"n_components": 32, "beta": 0.01, "learning_rate": 5e-5} | options
    return FenchelYoungVAE(latent=latent, observation=observation, random_state=seed, **options)


@item(
    "P2.tab2",
    "autoencoders of MNIST (also Figure 3)",
    needs=(*FILES["mnist"], "torch"),
)
def table_2(setting):
    """Train the six autoencoders on MNIST."""
    return autoencoders(setting, "mnist")


@item(
    "P2.tab2-fashion",
    "autoencoders of a subset of FashionMNIST",
    needs=(*FILES["fashion"], "torch"),
)
def table_2_of_fashion(setting):
    """Train them on the subset of FashionMNIST."""
    return autoencoders(setting, "fashion")


def autoencoders(setting, name):
    """Train the six autoencoders seed by seed; what is trained is kept and not redone."""
    for file in FILES[name]:
        setting.file(file)
    epochs = setting.size(setting.epochs or EPOCHS, 1)
    seeds = range(setting.size(setting.seeds or SEEDS, 1))
    few = slice(setting.size(None, 500))
    train, test = (images(setting.data, name, split)[few] for split in ("train", TEST[name]))
    found, drawn, networks = {variant: [] for variant in VARIANTS}, {}, []
    for seed in seeds:
        for variant in VARIANTS:
            key = f"P2.tab2-{name}-{'-'.join(variant)}-{epochs}-{seed}"
            networks.append(
                kept(setting, key, partial(trained, train, test, variant, seed, epochs))
            )
            own, shown = networks[-1].found
            found[variant].append(own)
            drawn.setdefault(variant, shown)
            print(f"  seed {seed}, {column(*variant)} done", flush=True)
    stops = checkpoints(epochs)
    table = Table(
        f"{name}: l1 distance of test images to reconstructions after {epochs} epochs",
        ["observation and latent", "ours", "paper, 50 epochs", "pixels exactly 0"],
        2,
    )
    course = Table(
        f"{name} by epoch: the same distance on the way",
        ["observation and latent", *map(str, stops)],
        2,
    )
    for variant, paper in zip(VARIANTS, PAPER[name], strict=True):
        l1, zeros = np.moveaxis(found[variant], -1, 0)  # of seeds and checkpoints
        table.add(column(*variant), l1[:, -1], paper, zeros[:, -1])
        course.add(column(*variant), *l1.T)
    return Result(
        f"{len(train):,} training and {len(test):,} test images. Networks of 512 and 256 units "
        "both ways, Adam at 5e-5, batches of 64, beta .01, 32 latent variables; "
        f"{epochs} epochs of the paper's {EPOCHS}. {made_at(networks)}",
        " ".join(map(str, seeds)),
        [table, course],
        lambda figure: show(figure, drawn),
        sum(network.earlier for network in networks),
    )


def checkpoints(epochs):
    """Return the epochs after which errors are measured: five at most, the last among them."""
    return sorted({max(1, epochs * part // 5) for part in range(1, 6)})


def trained(train, test, variant, seed, epochs):
    """Return the errors of one autoencoder on the way; of the first seed also images it draws."""
    import torch

    vae, found = make_vae(*variant, seed), []
    torch.manual_seed(seed)  # for the reconstructions; fits have seeds of their own
    for epoch in range(1, epochs + 1):
        vae.partial_fit(train)
        if epoch in checkpoints(epochs):
            found.append([float(value) for value in errors(vae, test)])
    shown = vae.sample(8) * 255 if seed == 0 else np.empty(0)
    return found, shown.round().astype(int).tolist()


@dataclass(frozen=True)
class Network:
    """What was found with a trained network."""

    found: list
    commit: str  # that it was trained at
    earlier: float  # CPU time of an earlier run that has left it cached


def kept(setting, key, function):
    """Return what a function finds, or has found in an earlier run that has left it cached."""
    path = None if setting.cache is None else setting.cache / f"{key}.json"
    if path is not None and path.exists():
        cached = json.loads(path.read_text(encoding="utf-8"))
        return Network(cached["found"], cached["commit"], cached["seconds"])
    start = time.process_time()
    network = Network(function(), commit(), 0.0)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        source = {"commit": network.commit, "machine": processor()}
        trained = {"seconds": time.process_time() - start, "found": network.found}
        path.write_text(json.dumps(source | trained) + "\n", encoding="utf-8")
    return network


def made_at(networks):
    """Say at which commits networks were trained."""
    commits = sorted({network.commit for network in networks})
    return f"Networks were trained at {', '.join(commits)}."


def show(figure, drawn):
    """Draw samples of each variant as a grid, as Figure 3 has them."""
    axes = figure.subplots(len(drawn), 8)
    for row, (variant, rows) in zip(axes, drawn.items(), strict=True):
        for axis, image in zip(row, np.asarray(rows), strict=True):
            side = round(len(image) ** 0.5)
            axis.imshow(image.reshape(side, side), cmap="gray_r", vmin=0, vmax=255)
            axis.set_axis_off()
        row[0].set_title(", ".join(variant), fontsize=6, loc="left")


@item("guide.beta", "digits by beta", needs=("torch",))
def digits_by_beta(setting):
    """Train the six autoencoders on scikit-learn's digits at five weights of the divergence."""
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    torch.manual_seed(0)
    X = (load_digits().data / 16).astype(np.float32)
    train, test = train_test_split(X, test_size=0.25, random_state=0)
    betas = setting.size((0.001, 0.01, 0.03, 0.1, 0.3), (0.3,))
    table = Table(
        "l1 distance of test digits to reconstructions, by beta",
        ["observation", "latent", *map("{:g}".format, betas)],
        2,
    )
    noise = Table(
        "Standard deviation of a latent variable of a test digit, by beta", table.columns, 2
    )
    options = {"n_components": 8, "learning_rate": 1e-3, "hidden_layer_sizes": (128, 64)}
    options["max_epochs"] = setting.size(40, 2)
    for observation, latent in VARIANTS:
        cells = []
        for beta in betas:
            vaes = [
                make_vae(observation, latent, seed, beta=beta, **options).fit(train)
                for seed in range(setting.size(3, 1))
            ]
            l1 = np.array([errors(vae, test)[0] for vae in vaes])
            spread = [float(vae.posterior(test).variance.sqrt().mean()) for vae in vaes]
            cells.append((l1, np.array(spread)))
        table.add(observation, latent, *(l1 for l1, _ in cells))
        noise.add(observation, latent, *(spread for _, spread in cells))

    return Result(
        "8 latent variables, hidden layers of 128 and 64, 40 epochs of Adam at 1e-3.",
        "0 to 2",
        [table, noise],
    )
