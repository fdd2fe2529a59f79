"""P0, clusters of texts: Table 1 and Figure 3."""

from functools import cache
from itertools import chain, product

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from skvmf import VonMisesFisherMixture

from . import texts
from .items import item
from .results import Result, Table

SHAPES = {
    "classic3": (3891, 4674),
    "classic300": (300, 2551),
    "news20": (18803, 28571),
    "news20-small": (2000, 16218),
}
FILES = ("classic3.jsonl.gz", "20news-bydate.jsonl.gz", "stoplist_smart.txt")
VARIANTS = {
    "soft tied": {"concentration_type": "tied"},
    "soft free": {"concentration_type": "free"},
    "hard tied": {"concentration_type": "tied", "temperature": 0.0},
    "hard free": {"concentration_type": "free", "temperature": 0.0},
}
# The arrays that the authors publish with their code, and that the figure draws: means over ten
# starts.
PAPER = {
    "classic3": {
        2: (0.685, 0.609, 0.682, 0.618),
        3: (0.914, 0.758, 0.909, 0.718),
        4: (0.848, 0.792, 0.839, 0.772),
        5: (0.776, 0.774, 0.783, 0.735),
        8: (0.658, 0.633, 0.654, 0.628),
        11: (0.605, 0.582, 0.602, 0.569),
    },
    "classic300": {3: (0.609, 0.545, 0.487, 0.470), 8: (0.12, 0.16, 0.03, 0.05)},
    "news20": {
        4: (0.413, 0.255, 0.411, 0.256),
        12: (0.552, 0.421, 0.542, 0.420),
        20: (0.545, 0.442, 0.544, 0.445),
        40: (0.510, 0.456, 0.507, 0.453),
    },
    "news20-small": {
        4: (0.302, 0.293, 0.281, 0.290),
        12: (0.293, 0.316, 0.281, 0.296),
        20: (0.264, 0.278, 0.241, 0.269),
        40: (0.185, 0.202, 0.168, 0.188),
    },
}
TRUTH = {"classic3": 3, "classic300": 3, "news20": 20, "news20-small": 20}
SEEDS = {"classic3": 10, "classic300": 30, "news20": 10, "news20-small": 10}


def rows(setting, name):
    """Return tf-idf rows and labels of a collection."""
    for file in FILES:
        setting.file(file)
    return getattr(texts, name.replace("-", "_"))(setting.data)


@item("P0.tab1", "data sets: rows and vocabularies", needs=FILES)
def table_1(setting):
    """Count the rows and words that the preprocessing leaves."""
    table = Table("Rows x words", ["set", "paper", "ours", "rows off", "words off"], 0)
    for name, shape in SHAPES.items():
        found = rows(setting, name)[0].shape
        sizes = ("{:,} x {:,}".format(*own) for own in (shape, found))
        table.add(name, *sizes, found[0] - shape[0], found[1] - shape[1])
    return Result(
        "Tokens, smoothed idf and unit rows of scikit-learn's TfidfVectorizer, SMART stop words "
        "cut into the same tokens, no word in more than 15 % of the texts nor in fewer than 7 "
        "(classic3), 6 (news20) or 2; texts without a word are left out: 2 of classic3, and 43 of "
        "the 18,846 messages of news20. The small sets are drawn with seed 0, from the messages "
        "in the order of scikit-learn's loader.",
        "0, for the small sets",
        [table],
    )


@item("P0.fig3", "NMI over the number of clusters, four sets", needs=FILES)
def figure_3(setting):
    """Cluster by the four variants, and by mean and natural parameters from the same starts."""
    tables, found = [], {}
    comparison = Table(
        "NMI by mean and by natural parameters from the same starts, at the true K",
        ["set and variant", "mean", "natural", "largest gap of a pair"],
    )
    for name, by_number in PAPER.items():
        if setting.small and name.startswith("news20"):
            continue
        X, y = rows(setting, name)
        seeds = range(setting.size(SEEDS[name], 2))
        columns = [[variant, f"authors, {variant}"] for variant in VARIANTS]
        table = Table(f"{name}: NMI", ["K", *chain.from_iterable(columns)])
        fit = cache(
            lambda K, seed, variant, negentropy, X=X, y=y: nmi(
                X, y, K, seed, negentropy=negentropy, **VARIANTS[variant]
            )
        )
        for K, papers in by_number.items():
            if setting.small and K != TRUTH[name]:
                continue
            cells = []
            for variant, paper in zip(VARIANTS, papers, strict=True):
                own = np.array([fit(K, seed, variant, "rational") for seed in seeds])
                found[name, K, variant] = own
                cells += [own, paper]
            table.add(str(K), *cells)
        truth = TRUTH[name]
        for variant in VARIANTS:
            pairs = np.array(
                [
                    [fit(truth, seed, variant, route) for route in ("rational", "newton")]
                    for seed in seeds
                ]
            )
            gap = np.abs(pairs[:, 0] - pairs[:, 1]).max()
            comparison.add(f"{name}, {variant}", *pairs.T, gap)
        tables.append(table)
        print(f"  {name} done", flush=True)
    return Result(
        "Random partitions, no prior, at most 100 iterations. Mean parameters by the closed form, "
        "natural ones by Newton's method. The authors' columns are the arrays published with their "
        "code.",
        "starts from 0: " + ", ".join(f"{name} {number}" for name, number in SEEDS.items()),
        [*tables, comparison],
        lambda figure: draw_numbers(figure, found),
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


def draw_numbers(figure, found):
    """Draw NMI over the number of clusters, a panel for each set."""
    axes = figure.subplots(1, 4, sharey=True)
    styles = {"soft tied": "C0--", "soft free": "C0-", "hard tied": "C1--", "hard free": "C1-"}
    for axis, (name, variant) in product(axes, product(PAPER, VARIANTS)):
        if axis is not axes[list(PAPER).index(name)]:
            continue
        own = {K: v for (set_, K, kind), v in found.items() if (set_, kind) == (name, variant)}
        means = [values.mean() for values in own.values()]
        axis.errorbar(
            list(own),
            means,
            [v.std() for v in own.values()],
            fmt=styles[variant],
            capsize=2,
            label=variant,
        )
        axis.set(title=name, xlabel="number of clusters", ylim=(0, 1))
    axes[0].set_ylabel("NMI")
    axes[0].legend(frameon=False, fontsize="small")
