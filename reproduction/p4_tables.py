"""P4: classification (Table 1), clustering (Table 2) and retrieval (Table 3) of documents."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import minmax_scale, normalize

from . import p4_representations as rep
from .items import item
from .results import Record, Table
from .texts import messages

ROWS = (
    "tf-idf, 5,000 words",
    *("LSI", "LDA", "cBow", "PV-DBOW", "PV-DM"),
    *("FV-GMM, LSI", "FV-GMM, word2vec", "FV-moVMF, LSI", "FV-moVMF, word2vec"),
)
PAPER = {
    "Subj": (89.5, 85.4, 72.7, 90.9, 90.1, 90.4, 87.8, 90.3, 88.6, 91.8),
    "MR": (74.3, 64.2, 58.2, 74.8, 73.9, 74.4, 68.5, 72.6, 71.5, 75.7),
    "ARI": (9.2, 33.2, 30.8, 38.6, 42.6, 42.9, 38.5, 42.3, 37.9, 44.1),
    "NMI": (29.7, 43.1, 47.2, 53.8, 56.6, 56.8, 46.7, 54.6, 51.9, 57.8),
}
PAPER = {name: dict(zip(ROWS, cells, strict=True)) for name, cells in PAPER.items()}
WEIGHTING = (
    "Words are lower-case runs of letters, without SMART stop words. All rows but tf-idf have raw "
    "counts, those named ours what they say. "
)


def folds(features, y):
    """Return the accuracy of logistic regression in each of ten folds, in %."""
    splits = StratifiedKFold(10, shuffle=True, random_state=0)
    return 100 * cross_val_score(LogisticRegression(C=10, max_iter=2000), features, y, cv=splits)


def represented(texts, dropped, cache, name, paragraphs, **options):
    """Yield the representations of documents, one at a time: the paper's ten, then ours."""
    counts, _ = rep.frequent(texts, dropped)
    seed, options = options["seed"], {"dropped": dropped, "cache": cache, **options}
    yield ROWS[0], rep.tf_idf(counts)
    yield "LSI", rep.lsi(counts, seed)
    yield "LDA", rep.lda(counts, seed)
    words, vectors = rep.word_vectors(texts, name=f"{name}-words", **options)
    bags = rep.counter(words).transform(texts)
    yield "cBow", normalize(rep.averaged(bags, vectors))
    for title, dm in (("PV-DBOW", False), ("PV-DM", True)):
        longer = options | {"epochs": paragraphs}
        yield title, normalize(rep.paragraph_vectors(texts, dm, name=f"{name}-{title}", **longer))
    for source, embeddings in (("LSI", None), ("word2vec", vectors)):
        yield f"FV-GMM, {source}", rep.fisher_gaussian(embeddings, seed).fit_transform(bags)
        equation_12 = rep.fisher(embeddings, seed, normalization="paper")
        yield f"FV-moVMF, {source}", equation_12.fit_transform(bags)
    yield "ours: LSI of tf-idf", rep.lsi(rep.tf_idf(counts), seed)
    weighted = rep.tf_idf(bags)
    yield "ours: cBow of tf-idf", normalize(rep.averaged(weighted, vectors))
    equation_12 = rep.fisher(vectors, seed, normalization="paper")
    yield "ours: FV-moVMF of tf-idf", equation_12.fit_transform(weighted)
    gaussian = rep.fisher_gaussian(vectors, seed, power=0.5)
    yield "ours: FV-GMM, power", gaussian.fit_transform(bags)
    tangent = rep.fisher(vectors, seed, geometry="tangent", power=0.5)
    yield "ours: FV-moVMF, tangent, power", tangent.fit_transform(bags)


def over(seeds, parts):
    """Say over what intervals are: word vectors, or the parts of one."""
    if seeds > 1:
        return f"{seeds} of word vectors and mixtures, from 1; a figure each, the mean of {parts}"
    return f"{parts} of one seed of word vectors and mixtures, 1"


def gathered(found, seeds):
    """Return repeats: over seeds, or over the parts of one."""
    return found[0] if seeds == 1 else [np.mean(own) for own in found]


@item(
    "P4.tab1",
    "classification of sentences (Table 1)",
    needs=("subj.jsonl.gz", "mr.jsonl.gz", "stoplist_smart.txt", "gensim"),
    small={"seeds": 1, "epochs": 2, "paragraphs": 2},
)
def table_1(setting, seeds=5, epochs=30, paragraphs=200):
    """Classify the sentences of two sets by every representation, in ten folds."""
    dropped = rep.stop_words(setting.data)
    tables = []
    for name in ("Subj", "MR"):
        texts, y = rep.sentences(setting.file(f"{name.lower()}.jsonl.gz"))
        title = f"{name}: accuracy, %, over ten folds"
        table, found = Table(title, ["representation", "ours", "paper"], 2), {}
        options = {"epochs": epochs, "window": 10, "min_count": 1, "paragraphs": paragraphs}
        for seed in range(1, seeds + 1):
            own = represented(texts, dropped, setting.cache, name, seed=seed, **options)
            for row, features in own:
                found.setdefault(row, []).append(folds(features, y))
        for row, cells in found.items():
            table.add(row, gathered(cells, seeds), PAPER[name].get(row))
        tables.append(table)
    return Record(
        f"{WEIGHTING}word2vec is skip-gram on the sentences, 50 dimensions, {epochs} passes, "
        f"window 10; paragraph vectors are gensim's, of {paragraphs} passes; 15 components; "
        "documents are scaled to unit length; logistic regression with C = 10.",
        over(seeds, "ten folds"),
        tables,
    )


@item(
    "P4.ablation",
    "which gradients, components and dimensions",
    needs=("subj.jsonl.gz", "stoplist_smart.txt", "gensim"),
    small={"epochs": 2, "numbers": (2,), "dims": (20,)},
)
def ablation(setting, epochs=30, numbers=(5, 30, 60), dims=(100, 200, 300)):
    """Vary what the Fisher vector is made of, on Subj."""
    texts, y = rep.sentences(setting.file("subj.jsonl.gz"))
    options = {"cache": setting.cache, "seed": 1, "window": 10, "min_count": 1, "epochs": epochs}
    options["dropped"] = rep.stop_words(setting.data)
    words, vectors = rep.word_vectors(texts, name="Subj-words", **options)
    bags = rep.counter(words).transform(texts)

    def measure(title, transformer, counts=bags):
        features = transformer.fit_transform(counts)
        table.add(title, str(features.shape[1]), folds(features, y))

    title = "Subj: accuracy of FV-moVMF, %, over ten folds"
    table = Table(title, ["what", "features", "accuracy"], 2)
    for names in (
        ("means",),
        ("concentrations",),
        ("weights",),
        ("means", "concentrations"),
        ("means", "concentrations", "weights"),
    ):
        measure("gradients: " + ", ".join(names), rep.fisher(vectors, 1, gradients=names))
    measure('equation 12 (normalization="paper")', rep.fisher(vectors, 1, normalization="paper"))
    measure("power=0.5", rep.fisher(vectors, 1, power=0.5))
    for number in numbers:
        measure(f"{number} components", rep.fisher(vectors, 1, number))
    for n_dims in dims:
        more, wider = rep.word_vectors(texts, name="Subj-words", vector_size=n_dims, **options)
        measure(f"{n_dims} dimensions", rep.fisher(wider, 1), rep.counter(more).transform(texts))
    return Record(
        "Subj without SMART stop words: 15 components, 50 dimensions and gradients in the means "
        "unless said otherwise; one seed of word2vec.",
        "ten folds of one seed of word2vec, 1",
        [table],
    )


@item(
    "P4.tab2",
    "clustering of the 20 newsgroups (Table 2)",
    needs=("20news-bydate.jsonl.gz", "stoplist_smart.txt", "gensim"),
    small={"seeds": 1, "epochs": 2, "paragraphs": 2, "starts": 2, "min_count": 1},
)
def table_2(setting, seeds=5, epochs=20, paragraphs=60, starts=5, min_count=5):
    """Cluster messages by k-means on every representation."""
    dropped = rep.stop_words(setting.data)
    texts, y, _ = messages(setting.data)
    number, found = len(np.unique(y)), {}
    options = {"window": 5, "min_count": min_count, "epochs": epochs, "paragraphs": paragraphs}
    for seed in range(1, seeds + 1):
        own = represented(texts, dropped, setting.cache, "news", seed=seed, **options)
        for row, features in own:
            scores = []
            for start in range(starts):
                k_means = KMeans(number, n_init=1, random_state=start)
                labels = k_means.fit_predict(features)
                pair = adjusted_rand_score(y, labels), normalized_mutual_info_score(y, labels)
                scores.append(100 * np.array(pair))
            found.setdefault(row, []).append(np.transpose(scores))
    table = Table(
        "k-means with the true number of clusters, in %",
        ["representation", "ARI", "paper, ARI", "NMI", "paper, NMI"],
        1,
    )
    for row, own in found.items():
        ari, nmi = (gathered([scores[place] for scores in own], seeds) for place in (0, 1))
        table.add(row, ari, PAPER["ARI"].get(row), nmi, PAPER["NMI"].get(row))
    return Record(
        f"{WEIGHTING}Without headers; word2vec is skip-gram on the messages, 50 dimensions, "
        f"{epochs} passes, window 5, words of five messages or more; paragraph vectors are "
        f"gensim's, of {paragraphs} passes; 15 components; documents are scaled to unit length.",
        over(seeds, "five starts of k-means"),
        [table],
    )


MODELS = ["LSI", "LDA", "cBow", "FV-GMM", "FV-moVMF"]
MODELS += ["ours: LSI of tf-idf", "ours: FV-moVMF, tangent"]


@item(
    "P4.tab3",
    "retrieval, on small collections in place of Robust04 (Table 3)",
    needs=(
        "classic3.jsonl.gz",
        "med_queries_qrels.json.gz",
        "cran_queries_qrels.json.gz",
        "stoplist_smart.txt",
        "gensim",
        "bm25s",
    ),
    small={"epochs": 2, "sets": ("med", "cran")},
)
def table_3(setting, epochs=40, sets=("med", "cran", "cisi", "npl", "lisa")):
    """Rank documents for queries, alone and with BM25, in the sets whose files are there."""
    tables, sizes = [], []
    for name in sets:
        if not (setting.data / f"{name}_queries_qrels.json.gz").exists():
            continue
        found = retrieval(setting, name, epochs)
        table = Table(
            f"{name.upper()}: mean average precision and precision at 20, %, over queries",
            ["model", "MAP", "P@20", "MAP with BM25", "P@20 with BM25"],
            1,
        )
        for title in ["BM25", *MODELS]:
            both = found.get(f"BM25 + {title}", (None, None))
            table.add(title, *found[title], *both)
        tables.append(table)
        sizes.append(str(len(found["BM25"][0])))
    return Record(
        f"SMART stop words; word2vec on the collection, 50 dimensions, {epochs} passes, window 10; "
        "BM25 with k1 = 1.2, b = .75, .8 of it and .2 of the model's cosine, each scaled to [0, 1] "
        "per query; FV-moVMF by equation 12. The paper's MAP and P@20 on Robust04: BM25 24.1 and "
        "33.7, LSI 3.4 and 3.9, LDA 4.7 and 5.6, cBow 7.2 and 11.1, FV-GMM 9.8 and 12.4, FV-moVMF "
        "11.2 and 13.9; with BM25 25.3, 25.4, 25.3, 25.4 and 25.6 (MAP).",
        f"the queries, {', '.join(sizes)}; one seed of word2vec, 1",
        tables,
    )


def average_precision(scores, relevant):
    """Return, for each query, 100 times the average precision and the precision at 20."""
    found = []
    for own, judgement in zip(scores, relevant, strict=True):
        hits = judgement[np.argsort(-own, kind="stable")]
        mean = (np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean() if hits.any() else 0.0
        found.append([100 * mean, 100 * hits[:20].mean()])
    return np.transpose(found)


def retrieval(setting, name, epochs=40, seed=1, models=None):
    """Return precision over queries of BM25, and of each model, or some, alone and with BM25."""
    import bm25s

    dropped = rep.stop_words(setting.data)
    texts, queries, relevant = rep.judged(setting.data, name)

    ranker = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    ranker.index(rep.cut(texts, dropped), show_progress=False)
    lexical = np.array([ranker.get_scores(own) for own in rep.cut(queries, dropped)])
    found = {"BM25": average_precision(lexical, relevant)}

    def add(title, rows, columns):
        semantic = normalize(rows) @ normalize(columns).T
        both = 0.8 * minmax_scale(lexical, axis=1) + 0.2 * minmax_scale(semantic, axis=1)
        found[title] = average_precision(semantic, relevant)
        found[f"BM25 + {title}"] = average_precision(both, relevant)

    counts, _ = rep.frequent([*texts, *queries], dropped)
    for title, model in (
        ("LSI", rep.lsi),
        ("LDA", rep.lda),
        ("ours: LSI of tf-idf", lambda counts: rep.lsi(rep.tf_idf(counts))),
    ):
        if models is None or title in models:
            features = model(counts)
            add(title, features[len(texts) :], features[: len(texts)])
    training = {"seed": seed, "epochs": epochs, "window": 10}
    words, vectors = rep.word_vectors(texts, dropped, setting.cache, name, min_count=2, **training)
    documents, asked = (rep.counter(words).transform(part) for part in (texts, queries))
    add("cBow", rep.averaged(asked, vectors), rep.averaged(documents, vectors))
    for title, transformer in [
        ("FV-GMM", rep.fisher_gaussian(vectors, seed)),
        ("FV-moVMF", rep.fisher(vectors, seed, normalization="paper")),
        ("ours: FV-moVMF, tangent", rep.fisher(vectors, seed, geometry="tangent")),
    ]:
        if models is None or title in models:
            transformer.fit(documents)
            add(title, transformer.transform(asked), transformer.transform(documents))
    return found
