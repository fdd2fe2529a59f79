"""P2, autoencoders of images: Table 2 on MNIST and FashionMNIST."""

import json
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from .instruments.idx import load_idx
from .items import item
from .results import Record, Table, commit, mean, processor, rounded

LATENTS = ("gaussian", "biweight", "epanechnikov")
VARIANTS = [(o, latent) for o in ("bernoulli", "binary-entmax") for latent in LATENTS]
TEST = {"mnist": "t10k", "fashion": "test"}
PAPER = {
    "mnist": (13.272, 12.061, 12.111, 12.610, 10.326, 9.183),
    "fashion": (34.192, 32.690, 32.482, 32.986, 25.985, 26.186),
}
FILES = {
    name: tuple(f"{name}-{split}-images-idx3-ubyte.gz" for split in ("train", test))
    for name, test in TEST.items()
}


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


def draw_course(figure, record):
    """Draw errors over epochs."""
    table, axis = record.table("By epoch"), figure.subplots()
    for row in table.rows:
        style = "C0" if row[0].startswith("bernoulli") else "C1"
        style += {"gaussian": "-", "biweight": "--", "epanechnikov": ":"}[row[0].split(", ")[1]]
        axis.plot(list(map(int, table.columns[1:])), list(map(mean, row[1:])), style, label=row[0])
    axis.set(xlabel="epochs", ylabel="l1 distance of test images")
    axis.legend(frameon=False, fontsize="small")


def register(name, data, title, rate=5e-5, epochs=50):
    """Let the six autoencoders on a set of images, at a learning rate, be an item."""

    def autoencoders(setting, epochs=epochs, seeds=5, limit=None):
        train, test = (images(setting.data, data, part)[:limit] for part in ("train", TEST[data]))
        found = {}
        for seed, variant in ((s, v) for s in range(seeds) for v in VARIANTS):
            key = f"{name}-{'-'.join(variant)}-{epochs}-{seed}"
            train_one = partial(trained, train, test, variant, seed, epochs, rate)
            found.setdefault(variant, []).append(once(setting, key, train_one))
        table = Table(
            f"l1 distance of test images to reconstructions after {epochs} epochs",
            ["observation and latent", "ours", "paper, 50 epochs", "pixels exactly 0"],
            2,
        )
        stops = list(map(str, checkpoints(epochs)))
        course = Table("By epoch: the same distance on the way", [table.columns[0], *stops], 2)
        for variant, paper in zip(VARIANTS, PAPER[data], strict=True):
            l1, zeros = np.moveaxis([own.found for own in found[variant]], -1, 0)
            table.add(", ".join(variant), l1[:, -1], paper, zeros[:, -1])
            course.add(", ".join(variant), *l1.T)
        alike = np.abs(test - np.median(train, axis=0)).sum(axis=1).mean()
        table.add("the median image for all", alike, None, None)
        networks = [own for some in found.values() for own in some]
        return Record(
            f"{len(train):,} training and {len(test):,} test images. Networks of 512 and 256 "
            f"units both ways, Adam at {rate:g}, batches of 64, beta .01, 32 latent variables; "
            f"{epochs} epochs, the paper 50 at 5e-05. {made_at(networks)}",
            " ".join(map(str, range(seeds))),
            [table, course],
            **earlier(networks),
        )

    options = {"needs": (*FILES[data], "torch"), "small": {"epochs": 1, "seeds": 1, "limit": 500}}
    item(name, title, draw=draw_course, **options)(autoencoders)


register("P2.tab2", "mnist", "autoencoders of MNIST (Table 2)")
register("P2.tab2-faster", "mnist", "the same at a learning rate of 1e-3, 100 epochs", 1e-3, 100)
register("P2.tab2-fashion", "fashion", "autoencoders of a subset of FashionMNIST (Table 2)")


def checkpoints(epochs):
    """Return the epochs after which errors are measured: five at most, the last among them."""
    return sorted({max(1, epochs * part // 5) for part in range(1, 6)})


def trained(train, test, variant, seed, epochs, rate):
    """Return the errors of one autoencoder on the way."""
    import torch

    vae, found = make_vae(*variant, seed, learning_rate=rate), []
    torch.manual_seed(seed)  # for the reconstructions; fits have seeds of their own
    for epoch in range(1, epochs + 1):
        vae.partial_fit(train)
        if epoch in checkpoints(epochs):
            found.append([float(value) for value in errors(vae, test)])
    return found


# Networks, of both tables


@dataclass(frozen=True)
class Network:
    """What was found with a trained network."""

    commit: str  # that it was trained at
    machine: str
    seconds: float  # of a core or a GPU
    found: list
    before: bool = False  # whether an earlier run has left it

    @property
    def on_gpu(self):
        """Whether a GPU trained it."""
        return "NVIDIA" in self.machine


def once(setting, key, function):
    """Return what a function finds, or what an earlier run has left in the file of networks."""
    path = setting.trained
    known = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
    kind, _, seed = key.rpartition("-")
    if seed in known.setdefault(kind, {}):
        return Network(**known[kind][seed], before=True)
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""  # as skvmf chooses
    clock = time.perf_counter if gpu else time.process_time
    start = clock()
    found = rounded(function())
    network = Network(commit(), gpu or processor(), round(clock() - start), found)
    print(f"  {key}: {network.seconds} s", flush=True)
    if path:
        known[kind][seed] = {n: own for n, own in vars(network).items() if n != "before"}
        lines = [f" {json.dumps(name)}: {json.dumps(own)}" for name, own in sorted(known.items())]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return network


def earlier(networks):
    """Return the minutes of cores that earlier runs took, and those of GPUs of all runs."""
    core = sum(own.seconds for own in networks if own.before and not own.on_gpu) / 60
    gpu = sum(own.seconds for own in networks if own.on_gpu) / 60
    return {"minutes": core, "gpu_minutes": float(f"{gpu:.2g}")}


def made_at(networks):
    """Say at which commits networks were trained, and by which processors."""
    made = sorted({f"{network.commit} ({network.machine})" for network in networks})
    return f"Networks were trained at {', '.join(made)}."
