"""P1, grammars: Figures 6 to 8, accuracy and sparsity of dependency grammars under priors."""

from functools import cache
from itertools import product

import numpy as np

from skvmf.datasets import load_conllu
from skvmf.grammar import DependencyModelWithValence, attachment_score

from .items import item
from .results import Record, Table, mean

FILES = ("en_ewt-ud-train.conllu.gz", "en_ewt-ud-test.conllu.gz")
SAMPLE = "wsj_dependency_sample.conllu.gz"
METHODS = {"EM": 1.0, "softmax-EM": 0.5, "hard EM": 0.0}
ALPHAS = [1.0, 0.5, 0.0, -1.0, -5.0, -10.0, -20.0, -40.0, -80.0]
POSITIVE = [1.0, 0.5, 1e-5]
FLOORS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
WAYS = [("upos", 1.0), ("upos", 2.0), ("xpos", 1.0), ("xpos", 2.0)]


def described(tags, power):
    """Return the name of a way to learn, as the tables have it."""
    return f"{tags}, 1/distance" + ("" if power == 1 else "^2")


def treebanks(setting, tags):
    """Return sentences to learn from and to test on.

    Files train.conllu and test.conllu come first (sections 2 to 21 and 23 of the Wall Street
    Journal); without them they are those of the English Web Treebank.
    """
    names = FILES
    if setting.data is not None and (setting.data / "train.conllu").exists():
        names = ("train.conllu", "test.conllu")
    return [load_conllu(setting.file(name), tags=tags, max_length=10) for name in names]


class Learner:
    """Learns from one treebank in one way, and remembers what it has measured."""

    def __init__(self, treebanks, power, max_iter, n_groups):
        self.train, self.test = treebanks
        known = {tag for bank in (self.train, self.test) for own in bank.tags for tag in own}
        self.options = {"tags": sorted(known), "distance_power": power, "max_iter": max_iter}
        order = np.random.default_rng(0).permutation(len(self.test.tags))
        self.groups = np.array_split(order, n_groups)
        self.measured = cache(self._measured)

    def measure(self, **options):
        """Return accuracy in groups of test sentences, and the share of rules below 1e-3."""
        return self.measured(tuple(sorted(options.items())))

    def _measured(self, options):
        model = DependencyModelWithValence(**self.options, **dict(options)).fit(self.train.tags)
        return self.accuracy(model), sparsity(model)

    def accuracy(self, model):
        """Return the directed accuracy in each group of test sentences."""
        found = model.predict(self.test.tags)
        return [
            attachment_score([self.test.heads[i] for i in own], [found[i] for i in own])
            for own in self.groups
        ]

    def supervised(self):
        """Return the accuracy of a model that is given the trees."""
        options = {"tags": self.options["tags"]}
        model = DependencyModelWithValence(**options).fit(self.train.tags, self.train.heads)
        return np.mean(self.accuracy(model))


def draw_grammars(figure, record):
    """Draw the three figures for the first way."""
    for axis, figures in zip(figure.subplots(1, 3), ("6", "7", "8"), strict=True):
        table = next(own for own in record.tables if f"Figure {figures})" in own.title)
        for name, *cells in table.rows:
            columns = zip(table.columns[1:], cells, strict=True)
            points = [(float(column), mean(own)) for column, own in columns if own is not None]
            style = ".--" if name.endswith(", Dir") else ".-"
            axis.plot(*zip(*points, strict=True), style, label=name)
        axis.set_title(table.title.partition(" (")[0], fontsize="small")
        if figures == "8":
            axis.set(xscale="log", xlabel="floor")
        else:
            axis.set_xscale("symlog", linthresh=1)
            axis.set_xlabel("alpha")
            axis.invert_xaxis()
    figure.axes[1].legend(frameon=False, fontsize="x-small")


@item(
    "P1.fig6",
    "grammars under priors (Figures 6 to 8)",
    needs=FILES,
    small={"alphas": (1.0, 0.5, -10.0, -20.0, -40.0), "ways": WAYS[:1], "max_iter": 5, "groups": 4},
    draw=draw_grammars,
)
def figures_6_to_8(setting, alphas=ALPHAS, ways=WAYS, max_iter=100, groups=30):
    """Learn by six methods, with two sets of tags and two starts, and parse other sentences."""
    tables, best = [], []
    columns = ["method", *map("{:g}".format, sorted({*alphas, 1e-5}, reverse=True))]
    for tags, power in ways:
        learner = Learner(treebanks(setting, tags), power, max_iter, groups)
        way = described(tags, power)
        accuracy = Table(f"Directed accuracy (Figure 6), {way}", columns)
        sparse = Table(f"Share of rules below 1e-3 (Figure 7), {way}", columns)
        kinds = {"mDir": ("map", alphas)}
        kinds |= {"Dir": ("mean-field", POSITIVE)} if power == 1 else {}
        for (name, temperature), kind in product(METHODS.items(), kinds):
            inference, at = kinds[kind]
            options = {"temperature": temperature, "inference": inference}
            found = {f"{a:g}": learner.measure(weight_concentration_prior=a, **options) for a in at}
            for table, part in ((accuracy, 0), (sparse, 1)):
                cells = [found[c][part] if c in found else None for c in columns[1:]]
                table.add(f"{name}, {kind}", *cells)
        tables += [accuracy, sparse]
        if power == 1:
            tables.append(by_floor(learner, way))
            best.append(f"{learner.supervised():.2f} ({tags})")
    return Record(
        f"{len(learner.train.tags):,} sentences of up to ten words to learn from and "
        f"{len(learner.test.tags):,} others to test on; at most 100 iterations; Dir is mean-field "
        f"variational inference; with the trees accuracy is {', '.join(best)}.",
        f"one fit each, as the start is not random; accuracy in {groups} random groups of test "
        "sentences",
        tables,
    )


@item(
    "P1.sample",
    "grammars of a tenth of the paper's corpus (Figure 6)",
    needs=(SAMPLE,),
    small={"alphas": (1.0, -10.0, -40.0), "max_iter": 5, "groups": 4},
)
def sample_of_the_journal(setting, alphas=ALPHAS[:-1], max_iter=100, groups=30):
    """Learn from the public sample of the Wall Street Journal, and parse the same sentences."""
    bank, tables = load_conllu(setting.file(SAMPLE), tags="xpos", max_length=10), []
    for power in (1.0, 2.0):
        learner = Learner((bank, bank), power, max_iter, groups)
        title = f"Directed accuracy in sample, {described('xpos', power)}"
        table = Table(title, ["method", *map("{:g}".format, alphas)])
        for name, temperature in METHODS.items():
            options = {"temperature": temperature}
            fits = (learner.measure(weight_concentration_prior=a, **options) for a in alphas)
            table.add(f"{name}, mDir", *(accuracy for accuracy, _ in fits))
        tables.append(table)
    return Record(
        f"{len(bank.tags):,} sentences of up to ten words, to learn from and to test on: of the "
        "sections of the paper they are about a tenth. At most 100 iterations; with the trees "
        f"accuracy is {learner.supervised():.2f}.",
        f"one fit each, as the start is not random; accuracy in {groups} random groups of "
        "sentences",
        tables,
    )


def by_floor(learner, way):
    """Return the table of accuracy by the floor."""
    title = f"Accuracy at alpha = -20, by the floor (Figure 8), {way}"
    table = Table(title, ["method", *map("{:g}".format, FLOORS)])
    for name, temperature in METHODS.items():
        options = {"temperature": temperature, "weight_concentration_prior": -20.0}
        table.add(name, *(learner.measure(weight_floor=f, **options)[0] for f in FLOORS))
    return table


def sparsity(model):
    """Return the share of rules with a probability below 1e-3."""
    rules = model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_
    return float(np.mean(np.concatenate([rule.ravel() for rule in rules]) < np.log(1e-3)))
