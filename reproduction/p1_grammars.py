"""P1, grammars: Figures 6 to 8, accuracy and sparsity of dependency grammars under priors."""

from functools import cache

import numpy as np

from skvmf.datasets import load_conllu
from skvmf.grammar import DependencyModelWithValence, attachment_score

from .items import item
from .results import Result, Table, Verdict, judge

FILE = "wsj_dependency_sample.conllu.gz"
TEMPERATURES = {"EM": 1.0, "softmax-EM": 0.5, "hard EM": 0.0}
ALPHAS = [1.0, 0.5, 0.1, 0.0, -1.0, -2.0, -5.0, -10.0, -20.0, -40.0]
POSITIVE = [1.0, 0.5, 0.1, 1e-5]
FLOORS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]


def treebanks(setting):
    """Return sentences to learn from and to test on, and what they are.

    Files train.conllu and test.conllu come first (sections 2 to 21 and 23 of the Wall Street
    Journal, or the files of a Universal Dependencies treebank); without them it is NLTK's sample.
    """
    folder = setting.data
    if folder is not None and (folder / "train.conllu").exists():
        train, test = (
            load_conllu(setting.file(f"{name}.conllu"), max_length=10) for name in ("train", "test")
        )
        return train, test, "train.conllu and test.conllu"
    sample = load_conllu(setting.file(FILE), max_length=10)
    return sample, sample, "the sample of the Wall Street Journal, to learn from and to test on"


@item("P1.fig6", "grammars under priors (Figures 6 to 8)", minutes=10, needs=(FILE,))
def figures_6_to_8(setting):
    """Learn from random subsamples by six methods, and parse."""
    train, test, what = treebanks(setting)
    tags = sorted({tag for bank in (train, test) for own in bank.tags for tag in own})
    rng = np.random.default_rng(0)
    n = len(train.tags)
    subsamples = [rng.choice(n, int(0.8 * n), replace=False) for _ in range(setting.size(10, 2))]
    alphas, positive = setting.size((ALPHAS, POSITIVE), ([1.0, 0.5, -20.0, -1.0], [0.5]))

    @cache
    def measure(**options):
        """Return accuracy and sparsity over subsamples."""
        model = DependencyModelWithValence(tags=tags, distance_power=2.0, **options)
        model.set_params(max_iter=setting.size(50, 5))
        rows = []
        for own in subsamples:
            model.fit([train.tags[i] for i in own])
            rows.append([attachment_score(test.heads, model.predict(test.tags)), sparsity(model)])
        return np.transpose(rows)

    accuracy = Table("Directed accuracy (Figure 6)", ["method", *map("{:g}".format, alphas)], 2)
    sparse = Table("Share of rules below 1e-3 (Figure 7)", accuracy.columns, 2)
    for name, temperature in TEMPERATURES.items():
        found = [measure(temperature=temperature, weight_concentration_prior=a) for a in alphas]
        accuracy.add(f"{name}, mDir", *(values[0] for values in found))
        sparse.add(f"{name}, mDir", *(values[1] for values in found))
    for name, temperature in TEMPERATURES.items():
        options = {"temperature": temperature, "inference": "mean-field"}
        cells = {a: measure(weight_concentration_prior=a, **options) for a in positive}
        accuracy.add(f"{name}, VB", *(cells[a][0] if a in cells else None for a in alphas))
        sparse.add(f"{name}, VB", *(cells[a][1] if a in cells else None for a in alphas))
        if 1e-5 in cells:
            accuracy.add(f"{name}, VB at 1e-5", cells[1e-5][0], *[None] * (len(alphas) - 1))
            sparse.add(f"{name}, VB at 1e-5", cells[1e-5][1], *[None] * (len(alphas) - 1))
    floors = Table(
        "Accuracy at alpha = -20, by the floor (Figure 8)",
        ["method", *map("{:g}".format, FLOORS)],
        2,
    )
    for name, temperature in TEMPERATURES.items():
        options = {"temperature": temperature, "weight_concentration_prior": -20.0}
        floors.add(name, *(measure(weight_floor=floor, **options)[0] for floor in FLOORS))
    supervised = DependencyModelWithValence(tags=tags).fit(train.tags, train.heads)
    best = attachment_score(test.heads, supervised.predict(test.tags))
    settings = (
        f"{n} sentences of up to ten words, {what}; {len(subsamples)} subsamples of 80 %, squared "
        f"distance at the start, 50 iterations. With the trees accuracy is {best:.2f}."
    )
    return Result(
        settings,
        [accuracy, sparse, floors],
        verdicts_on_grammars(accuracy, sparse, floors),
        lambda figure: show(figure, accuracy, sparse, floors),
    )


def sparsity(model):
    """Return the share of rules with a probability below 1e-3."""
    rules = model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_
    return float(np.mean(np.concatenate([rule.ravel() for rule in rules]) < np.log(1e-3)))


def cells(table, name):
    """Return the means of a row by the parameter."""
    (row,) = (own for own in table.rows if own[0] == name)
    return {float(c): v["mean"] for c, v in zip(table.columns[1:], row[1:], strict=True) if v}


def verdicts_on_grammars(accuracy, sparse, floors):
    """Judge section 4 by the tables."""
    own = {name: cells(accuracy, f"{name}, mDir") for name in TEMPERATURES}
    best = {name: max((a for a in v if a < 0), key=v.get) for name, v in own.items()}
    gains = {name: own[name][best[name]] - own[name][1.0] for name in own}
    mdir, vb = (cells(sparse, f"EM, {kind}")[0.5] for kind in ("mDir", "VB"))
    hard = [v for a, v in own["hard EM"].items() if a <= -10]
    ends = {name: cells(floors, name) for name in TEMPERATURES}
    spread = max(max(v.values()) - min(v.values()) for v in ends.values())

    def gain(name):
        return f"{name} {gains[name]:+.2f} at {best[name]:g}"

    return [
        judge(
            "The modified Dirichlet is sparser than the Dirichlet already at positive alpha.",
            mdir > vb,
            f"At 0.5 {mdir:.2f} of the rules are below 1e-3 under mDir, {vb:.2f} "
            "under the Dirichlet (EM).",
        ),
        judge(
            "Negative parameters make EM worse.",
            gains["EM"] < 0,
            f"The best negative one changes accuracy by: {gain('EM')}; strongly negative ones do "
            f"make it worse, {min(own['EM'].values()):.2f}.",
            else_="holds in part",
        ),
        judge(
            "Moderately negative parameters improve softmax-EM and hard EM.",
            min(gains["softmax-EM"], gains["hard EM"]) > 0.02,
            f"The best negative one against maximum likelihood: {gain('softmax-EM')}, "
            f"{gain('hard EM')}.",
        ),
        Verdict(
            "Hard EM stays at .63 from -10 to -40.",
            "cannot be judged",
            f"It stays between {min(hard):.2f} and {max(hard):.2f} on this sample; the paper's "
            "corpus, ten times as large, is not public.",
        ),
        judge(
            "The best floor is neither too large nor too small.",
            spread > 0.05,
            f"Accuracy changes by at most {spread:.2f} between 1e-6 and 1e-2.",
        ),
    ]


def show(figure, accuracy, sparse, floors):
    """Draw the three figures."""
    axes = figure.subplots(1, 3)
    for axis, table in zip(axes, (accuracy, sparse, floors), strict=True):
        for row in table.rows:
            if "1e-5" not in row[0]:
                own = cells(table, row[0])
                style = "--" if "VB" in row[0] else "-"
                axis.plot(list(own), list(own.values()), "." + style, label=row[0])
        axis.set_title(table.title, fontsize="small")
        if table is floors:
            axis.set_xscale("log")
        else:
            axis.set_xscale("symlog", linthresh=1)
            axis.invert_xaxis()
    axes[1].legend(frameon=False, fontsize="x-small")
