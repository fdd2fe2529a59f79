"""
==============================
Search by words and by meaning
==============================

A search engine finds texts that share words with a query; vectors of words find what is about the
same. Here the first line of a docstring asks for other docstrings of its module, and the scores of
BM25, from the library bm25s, are combined with cosines of Fisher vectors.
"""

import re

import bm25s
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer
from sklearn.preprocessing import minmax_scale, normalize

from skvmf import FisherVectorTransformer
from skvmf.datasets import load_docstrings

# %%
# Queries and documents
# ---------------------

texts, modules = load_docstrings(return_X_y=True)
split = [text.partition("\n")[::2] for text in texts]
usable = [len(first.split()) >= 3 and len(rest.split()) >= 20 for first, rest in split]
queries = [first for (first, _), use in zip(split, usable, strict=True) if use]
documents = [rest for (_, rest), use in zip(split, usable, strict=True) if use]
modules = modules[usable]
relevant = modules[:, None] == modules
print(f"{len(documents)} documents; a query: {queries[2]!r}")


def tokens(text):
    """Return the words of a text without stop words."""
    return [w for w in re.findall("[a-z]+", text.lower()) if w not in ENGLISH_STOP_WORDS]


def mean_average_precision(scores):
    """Return 100 times the mean average precision; a query's own docstring does not count."""
    found = []
    for query in range(len(scores)):
        order = np.argsort(-scores[query], kind="stable")
        hits = relevant[query, order[order != query]]
        found.append((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())
    return 100 * np.mean(found)


# %%
# Scores
# ------
# The same transformer turns documents and queries into Fisher vectors, with vectors of words
# learned from the documents by latent semantic indexing.

ranker = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
ranker.index([tokens(document) for document in documents], show_progress=False)
lexical = np.array([ranker.get_scores(tokens(query)) for query in queries])

vectorizer = CountVectorizer(tokenizer=tokens, token_pattern=None, min_df=2)
weigh = TfidfTransformer(sublinear_tf=True)
X = weigh.fit_transform(vectorizer.fit_transform(documents))
asked = weigh.transform(vectorizer.transform(queries))

fisher = FisherVectorTransformer(random_state=0).fit(X)
tangent = FisherVectorTransformer(
    fisher.mixture, embeddings=fisher.embeddings_, geometry="tangent", random_state=0
).fit(X)
directions = normalize(fisher.embeddings_)
semantic = {
    "averaged vectors": normalize(asked @ directions) @ normalize(X @ directions).T,
    "Fisher vectors": fisher.transform(asked) @ fisher.transform(X).T,
    "Fisher vectors, tangent": tangent.transform(asked) @ tangent.transform(X).T,
}

# %%
# Together
# --------
# Both scores are brought to the range from 0 to 1 for each query and added. The paper gives BM25 a
# weight of 0.8. Fisher vectors then improve it as much as averages do, although averages alone are
# better.

shares = np.linspace(0, 1, 6)
results = {
    name: [
        mean_average_precision(
            share * minmax_scale(lexical, axis=1) + (1 - share) * minmax_scale(scores, axis=1)
        )
        for share in shares
    ]
    for name, scores in semantic.items()
}
print(f"\n{'share of BM25':26}" + "".join(f"{share:6.1f}" for share in shares))
for name, values in results.items():
    print(f"{name:26}" + "".join(f"{value:6.1f}" for value in values))

figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for (name, values), color in zip(results.items(), ["0.5", "C0", "C1"], strict=True):
    axes.plot(shares, values, color=color, marker="o", ms=4, label=name)
axes.axvline(0.8, color="0.8", lw=1, zorder=0)
axes.annotate(
    "the paper's", (0.8, axes.get_ylim()[0]), (-4, 4), textcoords="offset points", ha="right"
)
axes.set_xlabel("share of BM25")
axes.set_ylabel("mean average precision, %")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
axes.set_title("Precision of search, by the share of BM25")
plt.show()
