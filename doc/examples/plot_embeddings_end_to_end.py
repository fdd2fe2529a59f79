"""
====================================
Embeddings, from raw texts to a file
====================================

A tutorial from beginning to end: texts become embeddings, a mixture finds their clusters, words
name these clusters, and new texts are assigned to them. Use the same steps with your own texts and
with any other embedding model.

The model here is `wordllama <https://github.com/dleemiller/WordLlama>`__, whose weights come with
``pip install wordllama`` and need no network. The texts are the docstrings of NumPy, SciPy and
scikit-learn, which every installation has.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# Texts become rows
# -----------------
# An embedding model turns a text into a row of numbers, and texts that mean much the same into rows
# of much the same direction.

import inspect
import smtplib
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import matplotlib.pyplot as plt
import numpy as np
import wordllama
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings
from skvmf.inspection import component_summary
from skvmf.model_selection import ComponentPath
from skvmf.plotting import ComponentPathDisplay, DirectionsDisplay

corpus = load_docstrings()
texts = np.array(corpus.data, dtype=object)
folder = Path(wordllama.__file__).parent  # it holds weights and tokenizer: nothing is downloaded
encoder = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
embeddings = encoder.embed(corpus.data)
print(f"{embeddings.shape[0]} texts, {embeddings.shape[1]} features, {embeddings.dtype}")

# %%
# What all texts have in common does not distinguish them, so subtract it: texts gain from that even
# if their mean cosine is small (:ref:`whiten-directions`).


def mean_cosine(rows):
    """Return the mean cosine of two rows."""
    return float((Normalizer().transform(rows).mean(axis=0) ** 2).sum())


centre = make_pipeline(Normalizer(), StandardScaler(with_std=False))
X = centre.fit_transform(embeddings)
print(f"mean cosine before: {mean_cosine(embeddings):.2f}, after: {mean_cosine(X):.2f}")

# %%
# How many clusters?
# ------------------
# A path starts with more clusters than you would want to name, and repeatedly merges the two that
# lose the least likelihood. Its curve bends where merging begins to cost something, and the tree
# below shows which clusters are similar.

path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=60).fit(X)
mixture = path.best_estimator_
K = mixture.n_components
agreement = adjusted_rand_score(corpus.target, path.labels_)
print(f"{K} components, ARI {agreement:.2f} with the modules that the texts come from")
print("sizes:", *np.sort(np.bincount(path.labels_))[::-1])

# %%
# Name them
# ---------
# The features of an embedding have no names, but the texts have words. A summary names each
# component after those that its texts have more often than all texts.

summary = component_summary(mixture, X, texts=texts, n_rows=1)
names = summary.names()
figure, (curve, tree) = plt.subplots(
    2, 1, figsize=(10, 8), height_ratios=[2, 3], layout="constrained"
)
ComponentPathDisplay.from_estimator(path, ax=curve)
curve.set_title("The criterion by number of components")
ComponentPathDisplay.from_estimator(path, kind="dendrogram", names=names, ax=tree)
tree.set(xlabel="", title="Which components are akin")

# %%
# It also has their sizes, how tight they are, and the texts to read first: the most typical ones.

for k, size, cosine, (text,) in zip(
    summary.labels[:6], summary.sizes, summary.cosines, summary.texts, strict=False
):
    print(f"{size:4} texts, mean cosine {cosine:.2f}, {names[k]}:\n     {text!r}")

# %%
# Outliers
# --------
# With a background, rows that belong to no cluster get the label -1, as in HDBSCAN. The remaining
# clusters are clearer.

clear = VonMisesFisherMixture(K, background=True, random_state=0).fit(X)
kept = clear.labels_ >= 0
print(f"{np.mean(~kept):.0%} of the texts belong to no cluster")
agreement = adjusted_rand_score(corpus.target[kept], clear.labels_[kept])
print(f"ARI of the others with their modules: {agreement:.2f}")
for row in clear.score_samples(X).argsort()[:3]:
    print("unusual:", " ".join(texts[row].split())[:70])

# %%
# A map lays components out by their overlaps: neighbours on it are similar, and grey rows belong
# to the background.

clear_names = component_summary(clear, X, texts=texts).names(2, separator="\n")
figure, axis = plt.subplots(figsize=(9, 7.5), layout="constrained")
DirectionsDisplay.from_estimator(clear, X, names=clear_names, ax=axis)
axis.set_title("Docstrings in components, by their embeddings")

# %%
# New texts
# ---------
# Put all steps into one pipeline, and save the pipeline to a file.

with TemporaryDirectory() as folder:
    joblib.dump(make_pipeline(*centre, mixture), Path(folder, "topics.joblib"))
    topics = joblib.load(Path(folder, "topics.joblib"))

# %%
# A new text gets a cluster and its probability. These are functions of NumPy that the fit has not
# seen, and a mail client. The mixture finds a cluster even for that. The mixture with a background
# keeps only texts that are similar to those it has seen.

new = [np.linalg.solve, np.fft.fft, np.hamming, np.poly1d, smtplib.SMTP]
rows = encoder.embed([inspect.getdoc(thing) for thing in new])
shares = topics.predict_proba(rows).max(axis=1)
belongs = clear.predict(centre.transform(rows)) >= 0
for thing, k, share, inside in zip(new, topics.predict(rows), shares, belongs, strict=True):
    print(f"{thing.__name__:8} {names[k]:35} {share:.2f} {'' if inside else '(background: -1)'}")
