"""
====================================
Classify texts when few are labelled
====================================

Which module is a docstring about, when only a few are labelled? Word vectors are learned from all
texts, without labels, and a text becomes the average of its word vectors, or their Fisher vector.
Both are compared with tf-idf, which learns about words only from labelled texts. Vectors come from
latent semantic indexing, and from word2vec if gensim is installed.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from skvmf import FisherVectorTransformer, VonMisesFisherMixture
from skvmf.datasets import load_docstrings
from skvmf.feature_extraction import embedding_table

SEED = 0

# %%
# Words and their vectors
# -----------------------
# A row counts the words of a text, weighted by tf-idf. Without ``embeddings`` the transformer
# learns a vector for each column from the rows themselves; :func:`.embedding_table` brings
# those of a model into the order of the columns.

corpus = load_docstrings()
texts, y = corpus.data, corpus.target
vectorizer = CountVectorizer(token_pattern="[a-z]+", min_df=2)
X = TfidfTransformer(sublinear_tf=True).fit_transform(vectorizer.fit_transform(texts))
mixture = VonMisesFisherMixture(15)
lsi = FisherVectorTransformer(mixture, random_state=SEED).fit(X)
vectors = {"LSI": lsi.embeddings_}
try:
    from gensim.models import Word2Vec
except ImportError:
    print("gensim is not installed: no word2vec")
else:
    sentences = [re.findall("[a-z]+", text.lower()) for text in texts]
    model = Word2Vec(
        sentences, vector_size=50, sg=1, window=5, min_count=2, epochs=5, workers=1, seed=SEED
    )
    _, vectors["word2vec"] = embedding_table(model.wv, vectorizer.vocabulary_)
print(corpus.DESCR)
print(f"{X.shape[0]} rows, {X.shape[1]} words, vectors: {', '.join(vectors)}\n")

# %%
# Representations
# ---------------
# The default is the paper's: gradients in the means, not centred, in rows of unit length.

representations = {"tf-idf": X}
for name, table in vectors.items():
    directions = normalize(np.nan_to_num(table))
    representations[f"{name}, averaged"] = normalize(X @ directions)
    transformer = FisherVectorTransformer(mixture, embeddings=table, random_state=SEED)
    representations[f"{name}, Fisher vectors"] = transformer.fit_transform(X)

# %%
# Accuracy by number of labels
# ----------------------------
# The meaning of words is learned from all texts, so few labels are enough: with five texts per
# class or fewer, vectors from LSI are better than tf-idf. With many labels, tf-idf needs no
# vectors: fifty numbers per word contain less than the words. Fisher vectors describe a text
# better than the average of word2vec vectors; with LSI, whose dimensions are topics already,
# averages are better.

n_labels = [2, 5, 10, 20, 40]
accuracies = {name: [] for name in representations}
for per_class in n_labels:
    found = {name: [] for name in representations}
    for repeat in range(3):
        rng = np.random.default_rng(SEED + repeat)
        groups = [rng.permutation(np.flatnonzero(y == k)) for k in np.unique(y)]
        train = np.concatenate([group[:per_class] for group in groups])
        test = np.concatenate([group[per_class:] for group in groups])
        for name, rows in representations.items():
            classifier = LogisticRegression(C=10, max_iter=1000).fit(rows[train], y[train])
            found[name].append(classifier.score(rows[test], y[test]))
    for name, scores in found.items():
        accuracies[name].append(100 * np.mean(scores))

print(f"{'labels a class':26}" + "".join(f"{n:7}" for n in n_labels))
for name, values in accuracies.items():
    print(f"{name:26}" + "".join(f"{value:7.1f}" for value in values))

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
colors = {"tf-idf": "0.3", "LSI": "C0", "word2vec": "C1"}
for name, values in accuracies.items():
    style = "--" if name.endswith("averaged") else "-"
    color = colors[name.partition(",")[0]]
    axes.plot(n_labels, values, style, color=color, marker="o", ms=4, label=name)
axes.set_xscale("log")
axes.set_xticks(n_labels, n_labels)
axes.minorticks_off()
axes.set_xlabel("labelled texts a class")
axes.set_ylabel("accuracy on the others, %")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
axes.set_title("Accuracy by number of labelled texts")
plt.show()
