"""P2, autoencoders of documents: Table 3, and the coherence of topics (Figure 2).

The paper models "counts (or proportions)". Errors are those of proportions: so are our targets,
but for rows that say counts.
"""

from functools import partial
from itertools import combinations, product

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from .items import item
from .p2_images import kept, made_at
from .results import Result, Table
from .texts import read, stop_words

FILES = ("20news-bydate.jsonl.gz", "stoplist_smart.txt")
DECODERS = {"softmax": 1, "1.5-entmax": 1.5, "sparsemax": 2}
EPOCHS, SEEDS = 500, 5
APPENDIX = {  # A.2
    "softmax": {"batch_size": 64, "alternating_epochs": 1},
    "1.5-entmax": {"batch_size": 1024, "alternating_epochs": 3},
}
FASTER = 20  # our learning rate over the paper's, and its epochs over ours
QUICK = [{"beta": 1e-2}, {"beta": 1e-4}, {"beta": 1e-2, "target": "counts"}]  # A.2 has the first
PAPER = {"softmax": 1.4984, "1.5-entmax": 1.3384}


def counts(folder, validation=1000):
    """Return counts of the 2000 most frequent words, of training and of test documents."""
    bodies = {"train": [], "test": []}
    for message in read(folder / FILES[0]):
        bodies[message["split"]].append(message["text"].partition("\n\n")[2])
    vectorizer = CountVectorizer(max_features=2000, stop_words=stop_words(folder), dtype=np.float32)
    train = vectorizer.fit_transform(bodies["train"])
    test = vectorizer.transform(bodies["test"][validation:])  # the first chose the paper's settings
    return [X[np.diff(X.indptr) > 0] for X in (train, test)]


def errors(model, X):
    """Return the mean l1 distance of proportions to a drawn reconstruction, and its zeros."""
    proportions = X.toarray() / X.sum(axis=1).reshape(-1, 1)
    drawn = model.inverse_transform(model.posterior(X).sample().cpu().numpy())
    return np.abs(drawn - np.asarray(proportions)).sum(axis=1).mean(), (drawn == 0).mean()


def coherence(topics, present):
    """Return the mean normalized pointwise mutual information of the pairs of words of topics.

    Parameters
    ----------
    topics : list of lists of int
        The columns of the words of each topic.
    present : sparse matrix of bool
        Which document has which word.
    """
    columns = present.tocsc().astype(np.float64)
    n_documents = columns.shape[0]
    frequency = np.asarray(columns.sum(axis=0)).ravel() / n_documents
    values = []
    for words in topics:
        chosen = columns[:, words]
        together = (chosen.T @ chosen).toarray() / n_documents
        for i, j in combinations(range(len(words)), 2):
            p = together[i, j]
            if p == 0:
                values.append(-1.0)
            elif p < 1:
                mutual = np.log(p / (frequency[words[i]] * frequency[words[j]]))
                values.append(mutual / -np.log(p))
    return float(np.mean(values))


def top_words(model, number):
    """Return the columns of the words that each topic raises most."""
    return np.argsort(-model.components_, axis=1)[:, :number].tolist()


@item("P2.tab3", "autoencoders of documents (also Figure 2)", needs=(*FILES, "torch"))
def table_3(setting):
    """Train document models with three decoders; what is trained is kept and not redone."""
    for file in FILES:
        setting.file(file)
    train, test = counts(setting.data, setting.size(1000, 10))
    epochs = setting.size(setting.epochs or EPOCHS, FASTER)
    seeds = range(setting.size(setting.seeds or SEEDS, 1))
    table = Table(
        f"l1 distance of proportions to reconstructions, {epochs} epochs as in appendix A.2",
        ["decoder", "ours", "paper, 500 epochs", "words exactly 0"],
    )
    quick = Table(
        f"Ours: the same by Adam at 1e-3 with batches of 64, {epochs // FASTER} epochs",
        ["decoder, beta and targets", "ours", "words exactly 0"],
    )
    topics = Table(
        "Coherence of topics: NPMI of their first words, by their number",
        ["decoder", "5", "10", "15", "20"],
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
        for seed in seeds:
            settings = options | {"entmax_alpha": DECODERS[name], "random_state": seed}
            key = "-".join(v if isinstance(v, str) else f"{v:g}" for v in settings.values())
            train_one = partial(trained, train, test, settings)
            own.append(kept(setting, f"P2.tab3-{key}", train_one))
        networks += own
        l1, zeros, *scores = np.transpose([network.found for network in own])
        if "alternating_epochs" in options:
            table.add(name, l1, PAPER[name], zeros)
            topics.add(name, *scores)
        else:
            described = f"{name}, beta {options['beta']:g}" + ", counts" * ("target" in options)
            quick.add(described, l1, zeros)
            topics.add(f"ours, {described}", *scores)
    return Result(
        f"{train.shape[0]:,} training and {test.shape[0]:,} test documents (the paper: 6,505), "
        f"2000 words, 50 topics; {epochs} epochs of the paper's {EPOCHS}. {made_at(networks)}",
        " ".join(map(str, seeds)),
        [table, quick, topics],
        earlier=sum(network.earlier for network in networks),
    )


def trained(train, test, settings):
    """Return the error of one model, its share of zeros, and the coherence of its topics."""
    import torch

    from skvmf.neural import FenchelYoungDocumentModel

    torch.manual_seed(settings["random_state"])  # for the reconstructions
    settings = {"target": "proportions"} | settings
    model = FenchelYoungDocumentModel(50, **settings).fit(train)
    present = train > 0
    scores = [coherence(top_words(model, k), present) for k in (5, 10, 15, 20)]
    return [*map(float, errors(model, test)), *scores]
