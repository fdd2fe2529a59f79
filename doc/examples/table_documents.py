"""
=========================================================
Table 3 of Fenchel-Young variational learning: documents
=========================================================

Trains document models with a softmax decoder (the neural variational document model) and with
alpha-entmax decoders on the 20 newsgroups, as in Table 3 of Sklaviadis et al., "Fenchel-Young
variational learning", and prints the mean l1 distance between a test document's proportions of
words and their reconstruction. It needs the data, and minutes to hours; :ref:`the user guide
<neural>` has what came out.

``python table_documents.py --data 20news.jsonl.gz`` reads one JSON object a line with ``text``
(headers included), ``label`` and ``split``, "train" or "test".
"""

import argparse
import gzip
import json
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from skvmf.neural import FenchelYoungDocumentModel


def words(path):
    """Return the words of a text file, cut as those of documents are."""
    tokenize = CountVectorizer().build_tokenizer()
    return sorted(set(tokenize(Path(path).read_text(encoding="utf-8").lower())))


def counts(path, stop_words):
    """Return counts of the 2000 most frequent words, of training and of test documents."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    bodies = {"train": [], "test": []}
    for message in messages:
        bodies[message["split"]].append(message["text"].partition("\n\n")[2])
    vectorizer = CountVectorizer(max_features=2000, stop_words=stop_words, dtype=np.float32)
    train = vectorizer.fit_transform(bodies["train"])
    test = vectorizer.transform(bodies["test"][1000:])  # the first 1000 chose the paper's settings
    return [X[np.diff(X.indptr) > 0] for X in (train, test)]


def errors(model, X):
    """Return the mean l1 distance of proportions to a drawn reconstruction, and its zeros."""
    proportions = X.toarray() / X.sum(axis=1).reshape(-1, 1)
    drawn = model.inverse_transform(model.posterior(X).sample().cpu().numpy())
    return np.abs(drawn - np.asarray(proportions)).sum(axis=1).mean(), (drawn == 0).mean()


def main(options):
    torch.manual_seed(0)  # for the reconstructions; fits have seeds of their own
    stop_words = words(options.stop_words) if options.stop_words else list(ENGLISH_STOP_WORDS)
    train, test = counts(options.data, stop_words)
    print(f"{train.shape[0]} training and {test.shape[0]} test documents")
    found = {}
    for seed, alpha, beta in product(options.seeds, options.alphas, options.betas):
        model = FenchelYoungDocumentModel(
            options.n_components,
            entmax_alpha=alpha,
            target=options.target,
            beta=beta,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            random_state=seed,
        )
        for epoch in range(1, options.epochs + 1):
            model.partial_fit(train)
            if epoch % options.every == 0 or epoch == options.epochs:
                l1, zeros = errors(model, test)
                print(
                    f"alpha {alpha:g} beta {beta:g} seed {seed} epoch {epoch:3d}: l1 {l1:.4f}, "
                    f"zeros {zeros:.3f}, free energy {-model.score(test):.5g}",
                    flush=True,
                )
        found.setdefault((alpha, beta), []).append((l1, zeros))
    print("\nalpha    beta     l1 (mean +- sd)   zeros   (paper: NVDM 1.4984, entmax 1.3384)")
    for (alpha, beta), results in found.items():
        l1, zeros = np.transpose(results)
        print(f"{alpha:5g} {beta:7g}   {l1.mean():.4f} +- {l1.std():.4f}   {zeros.mean():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Reproduce a table of Fenchel-Young autoencoders of documents.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--data", metavar="JSONL", required=True, help="file of messages, compressed by gzip")
    add("--stop-words", metavar="TXT", help="file of stop words; default: scikit-learn's")
    add("--epochs", type=int, default=500, help="passes over the training documents")
    add("--every", type=int, default=10, help="print errors after so many epochs")
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random states")
    add("--alphas", type=float, nargs="+", default=[1, 1.5, 2], help="of the decoder")
    add("--betas", type=float, nargs="+", default=[1e-4], help="weights of the divergence")
    add("--target", choices=["counts", "proportions"], default="proportions", help="of the loss")
    add("--batch-size", type=int, default=64, help="documents a step")
    add("--learning-rate", type=float, default=1e-3, help="of Adam; the paper's is 5e-5")
    add("--n-components", type=int, default=50, help="topic coordinates")
    main(parser.parse_args())
