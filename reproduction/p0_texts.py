"""P0, clusters of texts: Table 1 and Figure 3."""

from functools import cache
from itertools import product

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from skvmf import VonMisesFisherMixture

from . import texts
from .items import item
from .results import Record, Table, mean, summary

SHAPES = {
    "classic3": (3891, 4674),
    "classic300": (300, 2551),
    "news20": (18803, 28571),
    "news20-small": (2000, 16218),
}
FILES = ("classic3.jsonl.gz", "20news-bydate.jsonl.gz", "stoplist_smart.txt")
VARIANTS = {
    f"{steps} {kind}": {"concentration_type": kind, "temperature": temperature}
    for steps, temperature in (("soft", 1.0), ("hard", 0.0))
    for kind in ("tied", "free")
}
# Mean and standard deviation of ten starts, of the arrays that the authors publish with their
# code (github.com/mnonnenm/vonMisesFisher_negativeEntropy), by set, K and variant.
PAPER = {
    "classic3": {
        2: ((0.685, 0.002), (0.609, 0.040), (0.682, 0.008), (0.618, 0.037)),
        3: ((0.914, 0.104), (0.758, 0.118), (0.909, 0.103), (0.718, 0.129)),
        4: ((0.848, 0.029), (0.792, 0.068), (0.839, 0.029), (0.772, 0.061)),
        5: ((0.776, 0.034), (0.774, 0.031), (0.783, 0.025), (0.735, 0.090)),
        8: ((0.658, 0.015), (0.633, 0.037), (0.654, 0.018), (0.628, 0.040)),
        11: ((0.605, 0.006), (0.582, 0.037), (0.602, 0.005), (0.569, 0.038)),
    },
    "classic300": {
        3: ((0.609, 0.180), (0.545, 0.100), (0.487, 0.225), (0.470, 0.201)),
        8: ((0.122, 0.064), (0.162, 0.078), (0.033, 0.031), (0.048, 0.065)),
    },
    "news20": {
        4: ((0.413, 0.010), (0.255, 0.015), (0.411, 0.015), (0.256, 0.017)),
        12: ((0.552, 0.020), (0.421, 0.019), (0.542, 0.017), (0.420, 0.013)),
        20: ((0.545, 0.022), (0.442, 0.016), (0.544, 0.023), (0.445, 0.017)),
        40: ((0.510, 0.014), (0.456, 0.013), (0.507, 0.012), (0.453, 0.016)),
    },
    "news20-small": {
        4: ((0.302, 0.026), (0.293, 0.015), (0.281, 0.029), (0.290, 0.018)),
        12: ((0.293, 0.033), (0.316, 0.028), (0.281, 0.028), (0.296, 0.036)),
        20: ((0.264, 0.016), (0.278, 0.028), (0.241, 0.023), (0.269, 0.029)),
        40: ((0.185, 0.021), (0.202, 0.014), (0.168, 0.021), (0.188, 0.018)),
    },
}
TRUTH = {"classic3": 3, "classic300": 3, "news20": 20, "news20-small": 20}
STARTS = {"classic3": 10, "classic300": 30, "news20": 10, "news20-small": 10}


def rows(setting, name):
    """Return tf-idf rows and labels of a collection."""
    return getattr(texts, name.replace("-", "_"))(setting.data)


@item("P0.tab1", "data sets: rows and vocabularies", needs=FILES)
def table_1(setting):
    """Count the rows and words that the preprocessing leaves."""
    table = Table("Rows x words", ["set", "paper", "ours", "rows off", "words off"], 0)
    for name, shape in SHAPES.items():
        found = rows(setting, name)[0].shape
        sizes = ("{:,} x {:,}".format(*own) for own in (shape, found))
        table.add(name, *sizes, found[0] - shape[0], found[1] - shape[1])
    return Record(
        "Tokens, smoothed idf and unit rows of scikit-learn's TfidfVectorizer, SMART stop words "
        "cut into the same tokens, no word in more than 15 % of the texts nor in fewer than 7 "
        "(classic3), 6 (news20) or 2; texts without a word are left out: 2 of classic3, and 43 of "
        "the 18,846 messages of news20. The small sets are drawn with seed 0, from the messages "
        "in the order of scikit-learn's loader.",
        "0, for the small sets",
        [table],
    )


def draw_numbers(figure, record):
    """Draw NMI over the number of clusters, a panel for each set; crosses are the authors'."""
    styles = dict(zip(VARIANTS, ("C0--", "C0-", "C1--", "C1-"), strict=True))
    for axis, (name, by_number) in zip(
        figure.subplots(1, 4, sharey=True), PAPER.items(), strict=True
    ):
        for place, (variant, style) in enumerate(styles.items()):
            cells = [record.cell(f"{name}: NMI", f"{K}, {variant}", "ours") for K in by_number]
            bars = [summary(own)["sd"] for own in cells]
            line = {"fmt": style, "capsize": 2, "label": variant}
            axis.errorbar(list(by_number), list(map(mean, cells)), bars, **line)
            theirs = [cells[place][0] for cells in by_number.values()]
            axis.plot(list(by_number), theirs, style[:2] + "x")
        axis.set(title=name, xlabel="number of clusters", ylim=(0, 1))
    figure.axes[0].legend(frameon=False, fontsize="small")


@item(
    "P0.fig3",
    "NMI over the number of clusters, four sets",
    needs=FILES,
    small={"sets": ("classic3", "classic300"), "starts": 2},
    draw=draw_numbers,
)
def figure_3(setting, sets=tuple(PAPER), starts=None):
    """Cluster by the four variants, and by mean and natural parameters from the same starts."""
    tables = []
    comparison = Table(
        "NMI by mean and by natural parameters from the same starts, at the true K",
        ["set and variant", "mean", "natural", "largest gap of a pair"],
    )
    for name in sets:
        X, y = rows(setting, name)
        seeds = range(starts or STARTS[name])
        numbers = {TRUTH[name]: PAPER[name][TRUTH[name]]} if setting.small else PAPER[name]
        table = Table(f"{name}: NMI", ["K and variant", "ours", "paper"])
        fit = cache(
            lambda K, seed, variant, negentropy, X=X, y=y: nmi(
                X, y, K, seed, negentropy=negentropy, **VARIANTS[variant]
            )
        )
        for K, (variant, place) in product(numbers, zip(VARIANTS, range(4), strict=True)):
            authors = dict(zip(("mean", "sd"), numbers[K][place], strict=True), n=10)
            own = [fit(K, seed, variant, "rational") for seed in seeds]
            table.add(f"{K}, {variant}", own, authors)
        for variant in VARIANTS:
            routes = ("rational", "newton")
            pairs = [[fit(TRUTH[name], s, variant, route) for s in seeds] for route in routes]
            gap = np.abs(np.subtract(*pairs)).max()
            comparison.add(f"{name}, {variant}", *pairs, gap)
        tables.append(table)
    return Record(
        "Random partitions, no prior, at most 100 iterations. Mean parameters by the closed form, "
        "natural ones by Newton's method. The authors' figures are ten starts of each of the "
        "arrays published with their code.",
        "starts from 0: " + ", ".join(f"{name} {number}" for name, number in STARTS.items()),
        [*tables, comparison],
    )


def nmi(X, y, n_components, seed, **options):
    """Return the normalized mutual information of one fit."""
    mixture = VonMisesFisherMixture(
        n_components,
        concentration_prior=0,
        max_iter=100,
        tol=1e-7,
        init_params="random",
        random_state=seed,
        **options,
    ).fit(X)
    return normalized_mutual_info_score(y, mixture.labels_)
