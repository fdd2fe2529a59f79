"""What our user guide says beyond the papers, and how records are read for it."""

from .claims import claim, difference, exact, level

LOST = "not finite, %"


def ours(item, words):
    """Let a function be a claim of the user guide."""
    return claim(item, "User guide", words, ours=True)


@ours("guide.prior", "Tied concentrations cluster texts better than free ones.")
def tied_for_texts(record):
    """Expect a larger ARI of tied concentrations on every set of texts."""
    effects = []
    for start in ("merging", "random"):
        for name in ("classic3, tf-idf", "news20, tf-idf", "docstrings, tf-idf"):
            row = f"{start}, {name}"
            tied, free = (
                record.cell("ARI of each", row, way) for way in ("tied", "one pseudo-row")
            )
            effects.append(difference(f"ARI, tied less free, {row}:", tied, free, at_least=0))
    return effects


@ours("guide.which", "A negative parameter finds the number of components.")
def negative_finds_three(record):
    """Expect three components at -5 and -20, with a tolerance of 1e-5."""
    return [
        level(
            f"share of sets with three components at {alpha}:",
            record.cell("How often three remain", alpha, "tol=1e-05"),
            at_least=0.9,
            partly_at_least=0.5,
        )
        for alpha in ("-5", "-20")
    ]


@ours("guide.unequal", "Standard and hard steps find a small class; sparse ones make it larger.")
def small_classes(record):
    """Expect a weight of .05 of standard and hard steps, and more of sparse ones."""
    title = "Weight of the cluster"
    near = {"at_least": 0.04, "at_most": 0.06}
    return [
        *(
            level(f"weight, {name}:", record.cell(title, name, "weight"), **near)
            for name in ("standard", "hard")
        ),
        level(
            "weight, sparse, alpha 2:",
            record.cell(title, "sparse, alpha 2", "weight"),
            at_least=0.06,
        ),
    ]


@ours("guide.dimension", "Sparse posteriors become hard with the dimension, unless tempered.")
def sparse_is_hard_in_many(record):
    """Expect few rows with more than one share, and more at the root of d."""
    title = "Rows with more than one share"
    plain, warm = (
        record.cell(title, "32", name) for name in ("sparsemax", "sparsemax, T = root of d")
    )
    return [
        exact("% of rows with more than one share, 32 features:", plain, at_most=20),
        exact("the same at the root of d:", warm, at_least=50, partly_at_least=20),
    ]


@ours("guide.texts", "A temperature above one helps on texts.")
def warmth_helps(record):
    """Expect a larger NMI and ARI at temperature 20."""
    title = "Tied mixtures"
    effects = []
    for name in ("NMI", "ARI"):
        plain, warm = record.cells(title, "1", name)[:2]
        effects.append(difference(f"{name}, 20 less 1:", warm, plain, at_least=0))
    return effects


@ours("guide.beta", "Densities of finite support reconstruct better where beta is large.")
def finite_support_at_large_beta(record):
    """Expect smaller errors of the Epanechnikov density at .1 and .3."""
    effects = []
    for observation in ("bernoulli", "binary-entmax"):
        for beta in ("0.1", "0.3"):
            gaussian, _, finite = record.cells("l1 distance", observation, beta)
            what = f"l1, Epanechnikov less Gaussian, {observation}, beta {beta}:"
            effects.append(difference(what, finite, gaussian, at_most=0))
    return effects


@ours("guide.background", "The weight of the background is the share of uniform rows.")
def background_is_the_share(record):
    """Expect a weight within .01 of the share."""
    title = "The background's weight"
    return [
        difference(
            f"weight less share, {share}, {where}:",
            record.cell(title, share, f"weight, {where}"),
            float(share),
            at_least=-0.01,
            at_most=0.01,
        )
        for share in ("0.05", "0.2", "0.5")
        for where in ("sphere", "plane")
    ]


@ours("guide.streams", "Rows that come class by class ruin a pass.")
def order_matters(record):
    """Expect a smaller NMI of rows that come class by class."""
    title = "NMI with the classes"
    return [
        difference(
            f"NMI of {name}, class by class less shuffled:",
            record.cell(title, name, "class by class"),
            record.cell(title, name, "shuffled"),
            at_most=-0.1,
            partly_at_most=0,
        )
        for name in ("partial_fit", "MiniBatchKMeans")
    ]


@ours("guide.passes", "One pass is as good as five steps of a fit.")
def one_pass_is_enough(record):
    """Expect no smaller likelihood, nor NMI, with a large first batch."""
    title = record.tables[0].title
    first = record.names(title)[1]  # after that with batches of one size
    return [
        difference(
            f"{column}, one pass less five steps:",
            record.cell(title, first, column),
            record.cell(title, "fit, max_iter=5", column),
            at_least=0,
        )
        for column in ("log-likelihood held out", "NMI held out")
    ]


def off(record, title):
    """Return how far the number that the slope chooses is off, as factors by name."""
    factors = {}
    for name in dict.fromkeys(record.names(title)):
        labels, chosen = (
            [float(cell) for cell in record.cells(title, name, column)]
            for column in ("labels", "slope")
        )
        factors[name] = max(max(a / b, b / a) for a, b in zip(labels, chosen, strict=True))
    return factors


@ours("guide.components", "The slope of the path finds the number of clusters that are known.")
def slope_finds_clusters(record):
    """Expect the number that was drawn, within 5 %."""
    return [
        exact(f"factor off, {name}:", factor, at_most=1.05, partly_at_most=1.2)
        for name, factor in off(record, "Clusters that are known").items()
    ]


@ours("guide.components", "It does not find the number of labels that people gave.")
def slope_misses_labels(record):
    """Expect another number than that of the labels."""
    return [
        exact(f"factor off, {name}:", factor, at_least=1.05)
        for name, factor in off(record, "Labels of people").items()
    ]


@ours("guide.whitening", "Half whitening helps digits; full whitening is worse than half.")
def whitening_helps_some(record):
    """Expect a larger NMI of half whitened digits than as they are, and a smaller one of full."""
    title = record.tables[0].title
    digits = [record.cell(title, "digits", column) for column in ("0.5", "as they are")]
    return [
        difference("NMI of digits, half whitened less as they are:", *digits, at_least=0),
        *(
            difference(
                f"NMI of {name}, fully less half whitened:",
                record.cell(title, name, "1"),
                record.cell(title, name, "0.5"),
                at_most=0,
            )
            for name in record.names(title)
        ),
    ]


@ours("guide.embeddings", "On word embeddings, mixtures and k-means agree with labels alike.")
def embeddings_are_the_limit(record):
    """Expect an NMI and ARI of default fits within .03 of those of k-means."""
    title = "Agreement with the newsgroups"
    return [
        difference(
            f"{column}, mixture less {name}:",
            record.cell(title, "VonMisesFisherMixture", column),
            record.cell(title, name, column),
            at_least=-0.03,
            at_most=0.03,
        )
        for column in ("NMI", "ARI")
        for name in ("KMeans, n_init=1", "KMeans, n_init=10")
    ]


@ours("guide.umap", "Mixtures of embeddings agree with modules like HDBSCAN after UMAP.")
def mixtures_are_like_hdbscan(record):
    """Expect an ARI within .1 of that of HDBSCAN after UMAP."""
    rival = record.cell("Agreement", "UMAP to 5 dimensions, HDBSCAN", "ARI")
    return [
        exact(
            f"ARI of {name} less that of UMAP and HDBSCAN:",
            record.cell("Agreement", name, "ARI") - rival,
            at_least=-0.1,
        )
        for name in ("von Mises-Fisher mixture of the embeddings", "the same, with a background")
    ]


@ours("guide.mode", "Finding modes takes little of a step, so that NumPy is fast enough for it.")
def modes_take_little(record):
    """Expect a small share of a step of a grammar, and of a mixture of few rows."""
    title = "Microseconds of CPU time"
    return [
        exact(
            f"share of the step, {name}:",
            record.cell(title, name, "share of the step"),
            at_most=0.05,
            partly_at_most=0.2,
        )
        for name in record.names(title)
    ]


@ours("guide.densities", "The log-density is right to ten units in the last place, SciPy's is not.")
def density_is_exact(record):
    """Expect errors below ten units, and every value finite."""
    title, own = "Errors in units", "log-density, skvmf"
    largest, scipys = (
        str(record.cell(title, name, "largest error")).replace(",", "")
        for name in (own, "log-density, SciPy")
    )
    return [
        exact("largest error of skvmf, ulp:", largest, at_most=10),
        exact("% of skvmf's values not finite:", record.cell(title, own, LOST), at_most=0),
        exact("largest error of SciPy, ulp:", scipys, at_least=1000),
    ]


@ours("guide.cluster", "A fit of a billion rows on a hundred machines takes minutes.")
def cluster_takes_minutes(record):
    """Expect ten minutes at most for 50 iterations, and little of that for the scheduler."""
    title = "A step of a billion rows"
    minutes, scheduler, whole = (
        record.cell(title, name, "amount")
        for name in (
            "minutes of 50 iterations",
            "seconds of the scheduler, a task a machine",
            "seconds of an iteration",
        )
    )
    share = scheduler / whole
    return [
        exact("minutes of 50 iterations:", minutes, at_most=10),
        exact("share of the scheduler:", share, at_most=0.2, partly_at_most=0.5),
    ]
