"""P4: classification (Table 1), clustering (Table 2) and retrieval (Table 3) of documents."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import minmax_scale, normalize

from . import p4_representations as representations
from .items import item
from .results import Result, Table

SUBJ = {
    "tf-idf, 5,000 words": 89.5,
    "LSI": 85.4,
    "LDA": 72.7,
    "cBow": 90.9,
    "PV-DBOW": 90.1,
    "PV-DM": 90.4,
    "FV-GMM, LSI": 87.8,
    "FV-GMM, word2vec": 90.3,
    "FV-moVMF, LSI": 88.6,
    "FV-moVMF, word2vec": 91.8,
}
MR = dict(zip(SUBJ, (74.3, 64.2, 58.2, 74.8, 73.9, 74.4, 68.5, 72.6, 71.5, 75.7), strict=True))
NEWS = {
    "tf-idf, 5,000 words": (9.2, 29.7),
    "LSI": (33.2, 43.1),
    "LDA": (30.8, 47.2),
    "cBow": (38.6, 53.8),
    "PV-DBOW": (42.6, 56.6),
    "PV-DM": (42.9, 56.8),
    "FV-GMM, LSI": (38.5, 46.7),
    "FV-GMM, word2vec": (42.3, 54.6),
    "FV-moVMF, LSI": (37.9, 51.9),
    "FV-moVMF, word2vec": (44.1, 57.8),
}


def folds(features, y):
    """Return the accuracy of logistic regression in each of ten folds, in %."""
    splits = StratifiedKFold(10, shuffle=True, random_state=0)
    return 100 * cross_val_score(LogisticRegression(C=10, max_iter=2000), features, y, cv=splits)


@item(
    "P4.tab1",
    "classification of sentences",
    needs=("subj.jsonl.gz", "mr.jsonl.gz", "stoplist_smart.txt", "gensim"),
)
def table_1(setting):
    """Classify the sentences of two sets by every representation, in ten folds."""
    dropped = representations.stop_words(setting.file("stoplist_smart.txt").parent)
    tables = []
    for name, paper in (("Subj", SUBJ), ("MR", MR)):
        texts, y = representations.sentences(setting.file(f"{name.lower()}.jsonl.gz"))
        table = Table(
            f"{name}: accuracy, %, over ten folds", ["representation", "ours", "paper"], 2
        )
        for title, features in classified(setting, name, texts, dropped):
            table.add(title, folds(features, y), paper.get(title))
            print(f"  {name}, {title} done", flush=True)
        tables.append(table)
    return Result(
        "Words are lower-case runs of letters, without SMART stop words; word2vec is skip-gram on "
        "the sentences, 50 dimensions, 30 epochs, window 10; 15 components; documents are scaled "
        "to unit length; logistic regression with C = 10; paragraph vectors are gensim's, of the "
        "same settings.",
        "ten folds of one seed of word2vec, 1",
        tables,
    )


def classified(setting, name, texts, dropped):
    """Yield the representations of sentences, one at a time."""
    rep = representations
    counts, _ = rep.frequent(texts, dropped)
    rows = rep.tf_idf(counts)
    yield "tf-idf, 5,000 words", rows
    yield "LSI", rep.lsi(rows)
    yield "LDA", rep.lda(counts)
    options = {"epochs": setting.size(30, 2), "window": 10, "min_count": 1, "seed": 1}
    options |= {"dropped": dropped, "cache": setting.cache}
    words, vectors = rep.word_vectors(texts, name=f"{name}-words", **options)
    bags = rep.counter(words).transform(texts)
    yield "cBow", normalize(rep.averaged(bags, vectors))
    for title, dm in (("PV-DBOW", False), ("PV-DM", True)):
        found = rep.paragraph_vectors(texts, dm, name=f"{name}-{title}", **options)
        yield title, normalize(found)
    yield from fisher_vectors(bags, vectors)


def fisher_vectors(bags, vectors):
    """Yield the Fisher vectors of both tables: the paper's four, and two of ours."""
    rep = representations
    for words, embeddings in (("LSI", None), ("word2vec", vectors)):
        yield f"FV-GMM, {words}", rep.fisher_gaussian(embeddings, 1).fit_transform(bags)
        paper = rep.fisher(embeddings, 1, normalization="paper")  # equation 12
        yield f"FV-moVMF, {words}", paper.fit_transform(bags)
    ours = {"power": 0.5}
    yield "ours: FV-GMM, power", rep.fisher_gaussian(vectors, 1, **ours).fit_transform(bags)
    tangent = rep.fisher(vectors, 1, geometry="tangent", **ours)
    yield "ours: FV-moVMF, tangent, power", tangent.fit_transform(bags)


@item(
    "P4.ablation",
    "which gradients, components and dimensions",
    needs=("subj.jsonl.gz", "stoplist_smart.txt", "gensim"),
)
def ablation(setting):
    """Vary what the Fisher vector is made of, on Subj."""
    texts, y = representations.sentences(setting.file("subj.jsonl.gz"))
    rep, options = representations, {"cache": setting.cache, "seed": 1, "window": 10}
    options["dropped"] = rep.stop_words(setting.file("stoplist_smart.txt").parent)
    options |= {"min_count": 1, "epochs": setting.size(30, 2)}
    words, vectors = rep.word_vectors(texts, name="Subj-words", **options)
    bags = rep.counter(words).transform(texts)

    def measure(title, transformer, counts=bags):
        features = transformer.fit_transform(counts)
        table.add(title, str(features.shape[1]), folds(features, y))

    table = Table(
        "Subj: accuracy of FV-moVMF, %, over ten folds", ["what", "features", "accuracy"], 2
    )
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
    for number in setting.size((5, 30, 60), (2,)):
        measure(f"{number} components", rep.fisher(vectors, 1, number))
    for n_dims in setting.size((100, 200, 300), (20,)):
        more, wider = rep.word_vectors(texts, name="Subj-words", vector_size=n_dims, **options)
        measure(f"{n_dims} dimensions", rep.fisher(wider, 1), rep.counter(more).transform(texts))
    return Result(
        "Subj without SMART stop words: 15 components, 50 dimensions and gradients in the means "
        "unless said otherwise; one seed of word2vec.",
        "ten folds of one seed of word2vec, 1",
        [table],
    )


@item(
    "P4.tab2",
    "clustering of the 20 newsgroups",
    needs=("20news-bydate.jsonl.gz", "stoplist_smart.txt", "gensim"),
)
def table_2(setting):
    """Cluster messages by k-means on every representation."""
    setting.file("20news-bydate.jsonl.gz")
    dropped = representations.stop_words(setting.file("stoplist_smart.txt").parent)
    texts, y = representations.newsgroups(setting.data)
    number, starts = len(np.unique(y)), range(setting.size(5, 2))
    table = Table(
        "k-means with the true number of clusters, in %",
        ["representation", "ARI", "paper, ARI", "NMI", "paper, NMI"],
        1,
    )
    for title, features in clustered(setting, texts, dropped):
        own = []
        for seed in starts:
            labels = KMeans(number, n_init=1, random_state=seed).fit_predict(features)
            own.append([adjusted_rand_score(y, labels), normalized_mutual_info_score(y, labels)])
        ari, nmi = 100 * np.transpose(own)
        paper = NEWS.get(title, (None, None))
        table.add(title, ari, paper[0], nmi, paper[1])
        print(f"  {title} done", flush=True)
    return Result(
        "Without headers and stop words; word2vec is skip-gram on the messages, 50 dimensions, 5 "
        "epochs, window 5, words of five messages or more; 15 components; documents are scaled "
        "to unit length.",
        "five starts of k-means, 0 to 4; one seed of word2vec, 1",
        [table],
    )


def clustered(setting, texts, dropped):
    """Yield the representations of messages, one at a time."""
    rep = representations
    counts, _ = rep.frequent(texts, dropped)
    rows = rep.tf_idf(counts)
    yield "tf-idf, 5,000 words", rows
    yield "LSI", rep.lsi(rows)
    yield "LDA", rep.lda(counts)
    options = {"dropped": dropped, "cache": setting.cache, "seed": 1, "window": 5}
    options |= {"epochs": setting.size(5, 2), "min_count": setting.size(5, 1)}
    words, vectors = rep.word_vectors(texts, name="news-words", **options)
    bags = rep.counter(words).transform(texts)
    yield "cBow", normalize(rep.averaged(bags, vectors))
    yield "PV-DBOW", normalize(rep.paragraph_vectors(texts, False, name="news-dbow", **options))
    yield "PV-DM", normalize(rep.paragraph_vectors(texts, True, name="news-dm", **options))
    yield from fisher_vectors(bags, vectors)


@item(
    "P4.tab3",
    "retrieval, on MEDLINE and Cranfield in place of Robust04",
    needs=(
        "classic3.jsonl.gz",
        "med_queries_qrels.json.gz",
        "cran_queries_qrels.json.gz",
        "stoplist_smart.txt",
        "gensim",
        "bm25s",
    ),
)
def table_3(setting):
    """Rank abstracts for queries, alone and with BM25."""
    tables, found = [], {}
    for name in ("med", "cran"):
        found[name] = retrieval(setting, name)
        table = Table(
            f"{name.upper()}: mean average precision and precision at 20, %, over queries",
            ["model", "MAP", "P@20", "MAP with BM25", "P@20 with BM25"],
            1,
        )
        for title in ["BM25", *MODELS]:
            both = found[name].get(f"BM25 + {title}", (None, None))
            table.add(title, *found[name][title], *both)
        tables.append(table)
    return Result(
        "SMART stop words; word2vec on the collection, 50 dimensions, 40 epochs, window 10; BM25 "
        "with k1 = 1.2, b = .75, .8 of it and .2 of the model's cosine, each scaled to [0, 1] per "
        "query; FV-moVMF by equation 12. The paper's MAP and P@20 on Robust04: BM25 24.1 and 33.7, "
        "LSI 3.4 and 3.9, LDA 4.7 and 5.6, cBow 7.2 and 11.1, FV-GMM 9.8 and 12.4, FV-moVMF 11.2 "
        "and 13.9; with BM25 25.3, 25.4, 25.3, 25.4 and 25.6 (MAP).",
        "the queries, 30 and 225; one seed of word2vec, 1",
        tables,
    )


MODELS = ["LSI", "LDA", "cBow", "FV-GMM", "FV-moVMF", "ours: FV-moVMF, tangent"]


def average_precision(scores, relevant):
    """Return, for each query, 100 times the average precision and the precision at 20."""
    found = []
    for own, judgement in zip(scores, relevant, strict=True):
        hits = judgement[np.argsort(-own, kind="stable")]
        mean = (np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean() if hits.any() else 0.0
        found.append([100 * mean, 100 * hits[:20].mean()])
    return np.transpose(found)


def retrieval(setting, name, seed=1):
    """Return precision over queries of BM25, and of each model alone and with BM25."""
    import bm25s

    rep = representations
    for file in ("classic3.jsonl.gz", f"{name}_queries_qrels.json.gz"):
        setting.file(file)
    dropped = rep.stop_words(setting.file("stoplist_smart.txt").parent)
    texts, queries, relevant = rep.judged(setting.data, name)

    def cut(text):
        return [word for word in rep.tokens(text) if word not in dropped]

    ranker = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    ranker.index([cut(text) for text in texts], show_progress=False)
    lexical = np.array([ranker.get_scores(cut(query)) for query in queries])
    found = {"BM25": average_precision(lexical, relevant)}

    def add(title, rows, columns):
        semantic = normalize(rows) @ normalize(columns).T
        both = 0.8 * minmax_scale(lexical, axis=1) + 0.2 * minmax_scale(semantic, axis=1)
        found[title] = average_precision(semantic, relevant)
        found[f"BM25 + {title}"] = average_precision(both, relevant)

    counts, _vectorizer = rep.frequent([*texts, *queries], dropped)
    rows = rep.tf_idf(counts)
    for title, features in (("LSI", rep.lsi(rows)), ("LDA", rep.lda(counts))):
        add(title, features[len(texts) :], features[: len(texts)])
    training = {"seed": seed, "epochs": setting.size(40, 2), "window": 10}
    words, vectors = rep.word_vectors(texts, dropped, setting.cache, name, min_count=2, **training)
    documents, asked = (rep.counter(words).transform(part) for part in (texts, queries))
    add("cBow", rep.averaged(asked, vectors), rep.averaged(documents, vectors))
    for title, transformer in [
        ("FV-GMM", rep.fisher_gaussian(vectors, seed)),
        ("FV-moVMF", rep.fisher(vectors, seed, normalization="paper")),
        ("ours: FV-moVMF, tangent", rep.fisher(vectors, seed, geometry="tangent")),
    ]:
        transformer.fit(documents)
        add(title, transformer.transform(asked), transformer.transform(documents))
    return found
