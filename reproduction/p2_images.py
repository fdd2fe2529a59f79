"""P2, autoencoders of images: Table 2 on MNIST and FashionMNIST, Figure 3, and beta on digits."""

import json
from functools import partial

import numpy as np

from skvmf.datasets import load_idx

from .items import item
from .results import Result, Table

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
FILES = tuple(
    f"{name}-{split}-images-idx3-ubyte.gz" for name in NAMES for split in ("train", TEST[name])
)


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


@item("P2.tab2", "autoencoders of images (also Figure 3)", minutes=1050, needs=(*FILES, "torch"))
def table_2(setting):
    """Train the six autoencoders on both sets of images; what is trained is kept and not redone."""
    epochs, seeds = (
        setting.size(setting.epochs or EPOCHS, 1),
        range(setting.size(setting.seeds or SEEDS, 1)),
    )
    for file in FILES:
        setting.file(file)
    tables, drawn = [], {}
    for name in NAMES:
        train, test = (images(setting.data, name, split) for split in ("train", TEST[name]))
        table = Table(
            f"{name}: l1 distance of test images to reconstructions after {epochs} epochs",
            ["observation and latent", "ours", "paper, 50 epochs", "pixels exactly 0"],
            2,
        )
        for variant, paper in zip(VARIANTS, PAPER[name], strict=True):
            own = []
            for seed in seeds:
                key = f"P2.tab2-{name}-{'-'.join(variant)}-{epochs}-{seed}"
                found, shown = kept(
                    setting, key, partial(trained, train, test, variant, seed, epochs)
                )
                own.append(found)
                drawn[variant] = shown
            table.add(column(*variant), *np.transpose(own)[:1], paper, np.transpose(own)[1])
            print(f"  {name}, {column(*variant)} done", flush=True)
        tables.append(table)
    return Result(
        "Networks of 512 and 256 units both ways, Adam at 5e-5, batches of 64, beta .01, 32 latent "
        f"variables; {epochs} epochs of the paper's 50.",
        " ".join(map(str, seeds)),
        tables,
        lambda figure: show(figure, drawn),
    )


def trained(train, test, variant, seed, epochs):
    """Return the errors of one autoencoder, and images that it draws."""
    import torch

    vae = make_vae(*variant, seed)
    for _ in range(epochs):
        vae.partial_fit(train)
    torch.manual_seed(seed)  # for the reconstructions; fits have seeds of their own
    return [float(value) for value in errors(vae, test)], vae.sample(8).tolist()


def kept(setting, key, function):
    """Return what a function gives, from the cache where an earlier run has left it there."""
    path = None if setting.cache is None else setting.cache / f"{key}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    found = function()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")
    return found


def show(figure, drawn):
    """Draw samples of each variant as a grid, as Figure 3 has them."""
    axes = figure.subplots(len(drawn), 8)
    for row, (variant, rows) in zip(axes, drawn.items(), strict=True):
        for axis, image in zip(row, np.asarray(rows), strict=True):
            side = round(len(image) ** 0.5)
            axis.imshow(image.reshape(side, side), cmap="gray_r", vmin=0, vmax=1)
            axis.set_axis_off()
        row[0].set_title(", ".join(variant), fontsize=6, loc="left")


@item("guide.beta", "digits by beta", minutes=12, needs=("torch",))
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
