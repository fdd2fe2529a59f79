"""
=====================================
Clusterings of texts by an embedding
=====================================

Clusters the word embeddings of labelled texts with mixtures of von Mises-Fisher distributions and
with scikit-learn's :class:`~sklearn.cluster.KMeans`, from several seeds, and prints how well the
clusters agree with the labels; then says which number of components
:class:`~skvmf.model_selection.ComponentPath` chooses. It needs ``wordllama``, the data, and some
minutes; :ref:`the user guide <embeddings-of-newsgroups>` has what came out.

``python table_embeddings.py --data 20news.jsonl.gz --skip-headers`` reads one JSON object a line
with ``text`` and ``label``.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import wordllama
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_jsonl
from skvmf.model_selection import ComponentPath


def embedded(options):
    """Return a unit row for each text that is not empty, and its label."""
    folder = Path(wordllama.__file__).parent  # the weights and the tokenizer are in the package
    encoder = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    texts, labels = load_jsonl(options.data, return_X_y=True)
    if options.skip_headers:
        texts = [text.partition("\n\n")[2] for text in texts]
    by_length = np.argsort([len(text) for text in texts], kind="stable")  # a batch has one length
    rows = np.empty((len(texts), 256), np.float32)
    rows[by_length] = normalize(encoder.embed([texts[i] for i in by_length], batch_size=8))
    kept = rows.any(axis=1)
    rows, labels = rows[kept], labels[kept]
    return (normalize(rows - rows.mean(axis=0)) if options.centre else rows), labels


def agreement(labels, clusters):
    """Return the normalized mutual information and the adjusted Rand index."""
    return normalized_mutual_info_score(labels, clusters), adjusted_rand_score(labels, clusters)


def compare(X, labels, K, seeds):
    """Print the mean over seeds of each method's agreement, bound and seconds."""
    methods = {
        "default": {},
        'init_params="kmeans"': {"init_params": "kmeans"},
        "tied": {"concentration_type": "tied"},
        'tied, init_params="kmeans"': {"concentration_type": "tied", "init_params": "kmeans"},
        "concentration_prior=1": {"concentration_prior": 1},
    }
    estimators = {name: VonMisesFisherMixture(K, **given) for name, given in methods.items()}
    estimators["KMeans(n_init=1)"] = KMeans(K, n_init=1)
    estimators["KMeans(n_init=10)"] = KMeans(K, n_init=10)
    found = {name: [] for name in estimators}
    for seed in range(seeds):
        for name, estimator in estimators.items():
            begin = perf_counter()
            estimator.set_params(random_state=seed).fit(X)
            seconds = perf_counter() - begin
            bound = getattr(estimator, "lower_bound_", np.nan)
            found[name].append([*agreement(labels, estimator.labels_), bound, seconds])
    print(f"{'mean over ' + str(seeds) + ' seeds':28}   NMI    ARI     bound   seconds")
    for name, rows in found.items():
        nmi, ari, bound, seconds = np.mean(rows, axis=0)
        low = np.ptp(rows, axis=0)[:2] / 2
        print(
            f"{name:28}  {nmi:.3f}  {ari:.3f}  {bound:8.3f}  {seconds:6.2f}   "
            f"(half ranges {low[0]:.3f}, {low[1]:.3f})"
        )


def choose(X, labels, sizes, seeds):
    """Print the numbers of components that paths choose."""
    for size in sizes:
        for seed in range(seeds):
            path = ComponentPath(VonMisesFisherMixture(random_state=seed), max_components=size)
            path.fit(X)
            chosen = {
                name: path.results_["n_components"][path.results_[name].argmin()]
                for name in ["slope", "bic", "icl"]
            }
            nmi, ari = agreement(labels, path.labels_)
            print(
                f"path from {size}, seed {seed}:",
                *(f"{name} {number}" for name, number in chosen.items()),
                f"NMI {nmi:.3f} ARI {ari:.3f}",
                flush=True,
            )


def main(options):
    X, labels = embedded(options)
    print(
        f"{X.shape[0]} rows, {X.shape[1]} features, mean cosine {(X.mean(axis=0) ** 2).sum():.2f}"
    )
    compare(X, labels, options.n_components, options.seeds)
    choose(X, labels, options.max_components, options.path_seeds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Compare clusterings of labelled texts by their embeddings.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--data", metavar="JSONL", required=True, help="labelled texts, plain or gzip")
    add("--skip-headers", action="store_true", help="drop all up to a text's first empty line")
    add("--centre", action="store_true", help="subtract the mean row first")
    add("--n-components", type=int, default=20, help="clusters")
    add("--seeds", type=int, default=10, help="seeds of each method")
    add("--max-components", type=int, nargs="+", default=[40, 80], help="where paths begin")
    add("--path-seeds", type=int, default=2, help="seeds of each path")
    main(parser.parse_args())
