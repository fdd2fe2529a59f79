"""P2, autoencoders of documents: Table 3, and the coherence of topics (Figure 2).

The paper models "counts (or proportions)" and builds on NVDM, whose code has counts and whose
7,505 test documents less 1,000 for validation are the paper's 6,505. Errors are those of
proportions.
"""

from functools import partial
from itertools import product

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from .items import item
from .p2_images import earlier, made_at, once
from .results import Record, Table, mean
from .texts import messages, stop_words

FILES = ("20news-bydate.jsonl.gz", "stoplist_smart.txt")
NVDM = ("20news-bydate.jsonl.gz", "nvdm-test.feat", "nvdm-vocab.new")
DECODERS = {"softmax": 1, "1.5-entmax": 1.5, "sparsemax": 2}
APPENDIX = {  # A.2
    "softmax": {"batch_size": 64, "alternating_epochs": 1},
    "1.5-entmax": {"batch_size": 1024, "alternating_epochs": 3},
}
FASTER = 20  # our learning rate over the paper's, and its epochs over ours
QUICK = [{"beta": 1e-2}, {"beta": 1e-4}, {"beta": 1e-2, "target": "counts"}]  # A.2 has the first
PAPER = {  # five seeds
    "softmax": {"mean": 1.4984, "sd": 0.0009, "n": 5},
    "1.5-entmax": {"mean": 1.3384, "sd": 0.0008, "n": 5},
}
WORDS = (5, 10, 15, 20)  # of a topic


def counts(folder, validation=1000):
    """Return counts of the 2000 most frequent words, of training and of test documents; words."""
    texts, _, splits = messages(folder)
    vectorizer = CountVectorizer(max_features=2000, stop_words=stop_words(folder), dtype=np.float32)
    train = vectorizer.fit_transform(texts[splits == "train"])
    test = vectorizer.transform(
        texts[splits == "test"][validation:]
    )  # the first chose the paper's settings
    kept = (X[np.diff(X.indptr) > 0] for X in (train, test))
    return *kept, vectorizer.get_feature_names_out().tolist()


def nvdm(folder):
    """Return NVDM's words, counts of them in the training messages, and its test documents.

    Its training documents are those of the messages: of the test messages without headers, the
    counts of its words in lower-case runs of letters are NVDM's but for one in a thousand.
    """
    lines = (folder / "nvdm-vocab.new").read_text(encoding="utf-8").splitlines()
    words = [line.split()[0] for line in lines]
    reader = CountVectorizer(vocabulary=words, token_pattern="[a-z]+", dtype=np.float32)
    texts, _, splits = messages(folder)
    train = reader.fit_transform(texts[splits == "train"])
    lines = (folder / "nvdm-test.feat").read_text(encoding="utf-8").splitlines()
    pairs = [[pair.split(":") for pair in line.split()[1:]] for line in lines]
    rows = np.repeat(np.arange(len(pairs)), [len(own) for own in pairs])
    columns, values = np.array([own for some in pairs for own in some], dtype=int).T
    shape = len(pairs), len(words)
    test = csr_matrix((values.astype(np.float32), (rows, columns - 1)), shape=shape)
    return words, train[np.diff(train.indptr) > 0], test


def errors(model, X):
    """Return the mean l1 distance of proportions to a drawn reconstruction, and its zeros."""
    proportions = X.toarray() / X.sum(axis=1).reshape(-1, 1)
    drawn = model.inverse_transform(model.posterior(X).sample().cpu().numpy())
    return np.abs(drawn - np.asarray(proportions)).sum(axis=1).mean(), (drawn == 0).mean()


def top_words(model, number):
    """Return the columns of the words that each topic raises most."""
    return np.argsort(-model.components_, axis=1)[:, :number].tolist()


def fitted(train, settings):
    """Return a trained model of 50 topics."""
    import torch

    from skvmf.neural import FenchelYoungDocumentModel

    torch.manual_seed(settings["random_state"])  # for the reconstructions
    return FenchelYoungDocumentModel(50, **{"target": "proportions"} | settings).fit(train)


def keyed(item, settings):
    """Return the name of a network."""
    parts = (v if isinstance(v, str) else f"{v:g}" for v in settings.values())
    return "-".join([item, *parts])


def draw_coherence(figure, record):
    """Draw coherence over the number of words."""
    table, axis = record.table("Coherence"), figure.subplots()
    for name, *cells in table.rows:
        axis.plot(WORDS, list(map(mean, cells)), ".-", label=name)
    axis.set(xlabel="first words of a topic", ylabel=table.title.partition(":")[0])
    axis.legend(frameon=False, fontsize="small")


@item(
    "P2.tab3",
    "autoencoders of documents, of proportions",
    needs=(*FILES, "torch"),
    small={"epochs": FASTER, "seeds": 1, "validation": 10},
)
def table_3(setting, epochs=500, seeds=5, validation=1000):
    """Train document models with three decoders; what is trained is kept and not redone."""
    train, test, _ = counts(setting.data, validation)
    title = "l1 distance of proportions to reconstructions"
    table = Table(
        f"{title}, {epochs} epochs as in appendix A.2",
        ["decoder", "ours", "paper, 500 epochs", "words exactly 0"],
    )
    quick = Table(
        f"Ours: the same by Adam at 1e-3 with batches of 64, {epochs // FASTER} epochs",
        ["decoder, beta and targets", "ours", "words exactly 0"],
    )
    rows = [
        (name, {"beta": 1e-2, "learning_rate": 5e-5, "max_epochs": epochs, **own})
        for name, own in APPENDIX.items()
    ]
    faster = {"learning_rate": FASTER * 5e-5, "max_epochs": epochs // FASTER}
    rows += [(name, own | faster) for own, name in product(QUICK, DECODERS)]
    networks = []
    for name, options in rows:
        own = []
        for seed in range(seeds):
            settings = options | {"entmax_alpha": DECODERS[name], "random_state": seed}
            train_one = partial(trained, train, test, settings)
            own.append(once(setting, keyed("P2.tab3", settings), train_one))
        networks += own
        l1, zeros = np.transpose([network.found for network in own])
        if "alternating_epochs" in options:
            table.add(name, l1, PAPER[name], zeros)
        else:
            what = ", counts" * ("target" in options)
            quick.add(f"{name}, beta {options['beta']:g}{what}", l1, zeros)
    return Record(
        f"{train.shape[0]:,} training and {test.shape[0]:,} test documents (the paper: 6,505), "
        f"2000 words, 50 topics; {epochs} epochs of the paper's 500. {made_at(networks)}",
        " ".join(map(str, range(seeds))),
        [table, quick],
        **earlier(networks),
    )


def trained(train, test, settings):
    """Return the error of one model and its share of zeros."""
    return list(errors(fitted(train, settings), test))


@item(
    "P2.tab3-counts",
    "autoencoders of documents, of NVDM's counts (also Figure 2)",
    needs=(*NVDM, "torch", "wordllama"),
    small={"epochs": 2, "seeds": 1, "alphas": (1.5,), "validation": 2},
    draw=draw_coherence,
)
def table_3_of_counts(
    setting, epochs=500, seeds=5, tried=2, alphas=(1.1, 1.2, 1.5, 2.0), validation=1000
):
    """Train softmax and entmax decoders of counts, alpha being chosen on validation documents.

    All alphas have the first seeds, as many as are ``tried``; softmax and the chosen one have all.
    """
    words, train, test = nvdm(setting.data)
    options = {"beta": 1e-2, "target": "counts", "max_epochs": epochs, "learning_rate": 5e-5}
    networks = {}

    def found(alpha, number):
        settings = options | APPENDIX["softmax" if alpha == 1 else "1.5-entmax"]
        for seed in range(number):
            own = settings | {"entmax_alpha": alpha, "random_state": seed}
            data = words, train, test, validation
            train_one = partial(of_counts, *data, own, seed == seeds - 1)
            if (alpha, seed) not in networks:
                networks[alpha, seed] = once(setting, keyed("P2.tab3-counts", own), train_one)
        return [networks[alpha, seed].found for seed in range(number)]

    figures = {alpha: found(alpha, min(tried, seeds)) for alpha in alphas}
    chosen = min(alphas, key=lambda alpha: np.mean([own[1] for own in figures[alpha]]))
    figures = {1: found(1, seeds)} | figures | {chosen: found(chosen, seeds)}
    table = Table(
        f"l1 distance of proportions to reconstructions, {epochs} epochs as in appendix A.2",
        ["decoder", "ours", "paper", "of validation documents", "words exactly 0"],
    )
    title = "Coherence of topics: cosine of static embeddings of their first words, by their number"
    topics = Table(title, ["decoder", *map(str, WORDS)])
    paper = {"softmax": PAPER["softmax"], "entmax, chosen": PAPER["1.5-entmax"]}
    rows = {"softmax" if alpha == 1 else f"{alpha:g}-entmax": alpha for alpha in figures}
    for name, alpha in (rows | {"entmax, chosen": chosen}).items():
        l1, validated, zeros, *scores = zip(*(own[:-1] for own in figures[alpha]), strict=True)
        table.add(name, l1, paper.get(name), validated, zeros)
        topics.add(name, *scores)
    alike = similarities(words)[np.triu_indices(len(words), 1)].mean()
    topics.add("any two words", *[alike] * len(WORDS))
    title = f"The {max(WORDS)} words that each topic raises most, the last seed"
    listed = Table(title, ["topic", "softmax", "entmax, chosen"])
    for topic, both in enumerate(zip(*(figures[a][-1][-1] for a in (1, chosen)), strict=True), 1):
        listed.add(str(topic), *both)
    return Record(
        f"NVDM's vocabulary of 2000 words; {train.shape[0]:,} training messages and "
        f"{test.shape[0] - validation:,} of NVDM's test documents; 50 topics, beta .01, "
        f"{epochs} epochs, the paper 500; the first {validation:,} test documents choose alpha. "
        f"Static embeddings are wordllama's, the paper's those of a sentence transformer. "
        f"{made_at(networks.values())}",
        f"{' '.join(map(str, range(seeds)))}, of alphas not chosen the first {min(tried, seeds)}",
        [table, topics, listed],
        **earlier(networks.values()),
    )


@item(
    "P2.topics",
    "coherence of topics where errors are lowest (Figure 2)",
    needs=(*FILES, "torch", "wordllama"),
    small={"epochs": 1, "seeds": 1, "validation": 10},
)
def topics_of_proportions(setting, epochs=500 // FASTER, seeds=5, validation=1000):
    """Train on proportions with a small beta, and measure the coherence of topics."""
    train, test, words = counts(setting.data, validation)
    options = {"beta": 1e-4, "learning_rate": FASTER * 5e-5, "max_epochs": epochs}
    alike, networks = similarities(words), []
    table = Table("Coherence of topics of proportions", ["decoder", "l1", *map(str, WORDS)])
    for name in ("softmax", "1.5-entmax"):
        own = []
        for seed in range(seeds):
            settings = options | {"entmax_alpha": DECODERS[name], "random_state": seed}
            train_one = partial(with_topics, train, test, settings, alike)
            own.append(once(setting, keyed("P2.topics", settings), train_one))
        networks += own
        table.add(name, *np.transpose([network.found for network in own]))
    table.add("any two words", None, *[alike[np.triu_indices(len(words), 1)].mean()] * len(WORDS))
    return Record(
        f"The words and documents of P2.tab3, beta 1e-4, {epochs} epochs of Adam at 1e-3. "
        f"{made_at(networks)}",
        " ".join(map(str, range(seeds))),
        [table],
        **earlier(networks),
    )


def with_topics(train, test, settings, alike):
    """Return the error of one model and the coherence of its topics."""
    model = fitted(train, settings)
    return [errors(model, test)[0], *coherence(model, alike)]


def of_counts(words, train, test, validation, settings, listed):
    """Return errors on test and validation documents, zeros, coherence and topics to be listed."""
    model = fitted(train, settings)
    l1, zeros = errors(model, test[validation:])
    scores = coherence(model, similarities(words))
    topics = [" ".join(words[own] for own in topic) for topic in top_words(model, max(WORDS))]
    return [l1, errors(model, test[:validation])[0], zeros, *scores, topics if listed else []]


def coherence(model, alike):
    """Return the mean similarity of the first words of the topics, by their number."""
    return [
        np.mean([alike[np.ix_(own, own)][np.triu_indices(k, 1)].mean() for own in topics])
        for k, topics in ((k, top_words(model, k)) for k in WORDS)
    ]


def similarities(words):
    """Return the cosines of the static embeddings of words."""
    from pathlib import Path

    import wordllama

    folder = Path(wordllama.__file__).parent  # the weights and the tokenizer are in the package
    encoder = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    rows = encoder.embed(words, norm=True)
    return rows @ rows.T
