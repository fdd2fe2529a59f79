"""
=====================================
Find topics with a sparse autoencoder
=====================================

A neural document model gives each text a few coordinates, one for each topic, and a decoder turns
these into probabilities of words. With softmax every word has some probability in every text; with
alpha-entmax most have none, and topics become short lists of words. Both learn the docstrings of
NumPy, SciPy and scikit-learn here, which takes half a minute.

The model is that of Sklaviadis et al., "Fenchel-Young variational learning", section 4.3; the same
for the 20 newsgroups, with the errors of the paper's Table 3, is :ref:`item-p2-tab3`.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from skvmf.datasets import load_docstrings
from skvmf.neural import FenchelYoungDocumentModel

EPOCHS = 30
torch.manual_seed(0)

# %%
# Three decoders
# --------------
# Proportions of the 2000 most frequent words are reconstructed, of texts that the models have not
# seen. The error is the l1 distance between proportions and their reconstruction through a drawn
# topic vector, from 0 to 2, as in the paper's table. How well coordinates tell modules apart is
# the accuracy of a logistic regression on them.

corpus = load_docstrings()
vectorizer = CountVectorizer(
    stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, max_features=2000
)
train, test, _, modules = train_test_split(
    corpus.data, corpus.target, test_size=0.3, random_state=0, stratify=corpus.target
)
models = {}
print("decoder       l1 error   words of probability 0   accuracy")
for name, alpha in {"softmax": 1, "1.5-entmax": 1.5, "sparsemax": 2}.items():
    models[name] = make_pipeline(
        vectorizer,
        FenchelYoungDocumentModel(
            20,
            entmax_alpha=alpha,
            target="proportions",
            beta=1e-4,
            learning_rate=5e-3,
            max_epochs=EPOCHS,
            random_state=0,
        ),
    ).fit(train)
    counts, model = models[name][0].transform(test), models[name][1]
    drawn = model.inverse_transform(model.posterior(counts).sample().cpu().numpy())
    counts = counts.toarray()
    proportions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    l1 = np.abs(drawn - proportions).sum(axis=1).mean()
    classifier = LogisticRegression(C=10, max_iter=1000)
    accuracy = cross_val_score(classifier, models[name].transform(test), modules).mean()
    print(f"{name:12} {l1:9.3f} {(drawn == 0).mean():15.2f} {accuracy:19.3f}")

# %%
# Topics
# ------
# The words that a topic raises most. Coordinates have both signs, so each topic also has an
# opposite end, which is not printed.

words = vectorizer.get_feature_names_out()
for name in ["softmax", "1.5-entmax"]:
    print(f"\n{name}")
    for topic in models[name][1].top_words(words, n_words=8)[:8]:
        print("  " + " ".join(topic))

# %%
# One text, reconstructed
# -----------------------
# The probabilities of words in one docstring, sorted. Softmax gives every word a probability;
# 1.5-entmax gives most of them zero.

chosen = int(np.argmax([text.startswith("scipy.signal.") for text in test]))
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for name, pipeline in models.items():
    p = pipeline[1].inverse_transform(pipeline.transform([test[chosen]]))[0]
    ax.plot(np.arange(1, 1 + (p > 0).sum()), np.sort(p[p > 0])[::-1], label=name)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_ylim(1e-6, 1)
ax.set_xlabel("words, the most probable first")
ax.set_ylabel("probability")
ax.set_title("Probabilities of words in one reconstructed text")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
