"""
============================
Cluster texts by their words
============================

Texts become rows of word weights, and a mixture of von Mises-Fisher distributions sorts them into
topics. Here they are the docstrings of NumPy, SciPy and scikit-learn, which every installation
has; the modules that they come from show how good the topics are, compared with those of
scikit-learn's :class:`~sklearn.cluster.KMeans` on the same rows.

The same script clusters your own texts, given as JSON Lines with the fields ``text`` and
``label``; ``--help`` has its other options::

    python doc/examples/plot_cluster_docstrings.py --data classic3.jsonl.gz
    python doc/examples/plot_cluster_docstrings.py --data 20news-bydate.jsonl.gz --skip-headers
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, confusion_matrix, normalized_mutual_info_score

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings

options = SimpleNamespace(
    data=None,  # a file of texts; None are the docstrings
    skip_headers=False,
    n_components=None,  # as many as there are labels
    concentration_type="tied",
    n_init=10,
    seed=0,
    output="cluster_docstrings.png",
)
# sphinx_gallery_start_ignore
import argparse  # noqa: E402

parser = argparse.ArgumentParser(
    description="Cluster labelled texts with a mixture of von Mises-Fisher distributions."
)
add = parser.add_argument
add("--data", metavar="PATH", help="JSON Lines file, plain or gzip; default: docstrings")
add("--skip-headers", action="store_true", help="drop all up to a text's first empty line")
add("--n-components", metavar="K", type=int, help="default: the number of labels")
add("--concentration-type", choices=["tied", "free"], help="default: tied")
add("--n-init", metavar="N", type=int, help="starts of each method; default: 10")
add("--seed", type=int, help="default: 0")
add("--output", metavar="PNG", help=f"default: {options.output}")
options = parser.parse_args(namespace=options)


def read_json(path):
    """Read the texts and labels of a JSON Lines file."""
    import pandas as pd

    table = pd.read_json(path, lines=True)
    names, target = np.unique(table.label, return_inverse=True)
    description = f"{len(table)} texts in {len(names)} classes"
    return SimpleNamespace(
        data=table.text.tolist(), target=target, target_names=names.tolist(), DESCR=description
    )


# sphinx_gallery_end_ignore

# %%
# Texts become rows
# -----------------
# Each text becomes a row of word weights of length one: a point on a sphere, where the cosine
# measures how much two texts have in common, and the length of a text has no effect.

corpus = load_docstrings() if options.data is None else read_json(options.data)
texts = corpus.data
if options.skip_headers:
    texts = [text.partition("\n\n")[2] for text in texts]
vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
)
X = vectorizer.fit_transform(texts)
n_components = options.n_components or len(corpus.target_names)
print(corpus.DESCR)
print(f"{X.shape[0]} rows, {X.shape[1]} words, {n_components} components\n")

# %%
# Two methods, the same rows
# --------------------------
# One concentration for all components suits sparse rows in thousands of dimensions: with
# ``concentration_type="free"`` a broad component takes all texts without a clear topic.

mixture = VonMisesFisherMixture(
    n_components,
    concentration_type=options.concentration_type,
    n_init=options.n_init,
    random_state=options.seed,
).fit(X)
kmeans = KMeans(n_components, n_init=options.n_init, random_state=options.seed).fit(X)

print(f"{'against the labels':30}  NMI    ARI")
for name, labels in [
    (f"von Mises-Fisher mixture, {options.concentration_type}", mixture.labels_),
    ("scikit-learn's KMeans", kmeans.labels_),
]:
    nmi = normalized_mutual_info_score(corpus.target, labels)
    ari = adjusted_rand_score(corpus.target, labels)
    print(f"{name:30}  {nmi:.3f}  {ari:.3f}")

# %%
# What the components are
# -----------------------
# A component is a direction, read as its heaviest words, and a concentration, read as the
# angle between that direction and a typical text of the component. Components are listed by
# the label that most of their texts have.

names, n_labels = corpus.target_names, len(corpus.target_names)
size = max(n_labels, n_components)
table = confusion_matrix(mixture.labels_, corpus.target, labels=range(size))
table = table[:n_components, :n_labels]  # texts by component and label
order = np.lexsort((-table.max(axis=1), table.argmax(axis=1)))

resp = mixture.predict_proba(X)
cosines = (resp * (X @ mixture.mean_directions_.T)).sum(axis=0) / resp.sum(axis=0)
angles = np.degrees(np.arccos(cosines))
words = vectorizer.get_feature_names_out()
top_words = [words[np.argsort(-direction)] for direction in mixture.mean_directions_]

print("\ntexts  angle  words")
for k in order:
    print(f"{table[k].sum():5}   {angles[k]:3.0f}\N{DEGREE SIGN}  {' '.join(top_words[k][:8])}")

# %%
# A picture of it
# ---------------
# A row is a component, a column is a module, and a cell shows how much of the module is in the
# component. A module that has its own component is one dark cell; what two modules share, such as
# the interpolation in ``ndimage`` and in ``signal``, shows next to the diagonal.

share = table[order] / table.sum(axis=0)
figure, axes = plt.subplots(
    figsize=(4.6 + 0.46 * n_labels, 1.7 + 0.36 * n_components), layout="constrained"
)
axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for (row, column), part in np.ndenumerate(share):
    if part >= 0.02:
        color = "white" if part > 0.55 else "0.25"
        axes.text(column, row, f"{100 * part:.0f}", ha="center", va="center", size=8, color=color)
axes.set_xticks(range(n_labels), names, rotation=45, ha="left", rotation_mode="anchor")
axes.set_yticks(range(n_components), [", ".join(top_words[k][:4]) for k in order])
axes.xaxis.tick_top()
axes.set_xlabel("% of a label's texts in each component", labelpad=8)
axes.xaxis.set_label_position("bottom")
head = {"transform": axes.transAxes, "va": "bottom", "style": "italic", "color": "0.4"}
axes.text(-0.01, 1.01, "heaviest words", ha="right", **head)
axes.text(1.01, 1.01, "texts, angle", ha="left", **head)
axes.tick_params(length=0)
axes.spines[:].set_visible(False)
axes.set_xticks(np.arange(n_labels - 1) + 0.5, minor=True)
axes.set_yticks(np.arange(n_components - 1) + 0.5, minor=True)
axes.grid(which="minor", color="0.92")
axes.tick_params(which="minor", length=0)
right = axes.secondary_yaxis("right")
right.set_yticks(
    range(n_components), [f"{table[k].sum()}, {angles[k]:.0f}\N{DEGREE SIGN}" for k in order]
)
right.tick_params(length=0)
right.spines[:].set_visible(False)
figure.suptitle("Topics found in the texts, and the labels that they have", size=11)
figure.savefig(options.output, dpi=120)
print(f"\nFigure: {options.output}")
