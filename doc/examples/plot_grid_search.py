"""
================================
Tune a pipeline from raw texts
================================

A mixture is the last step of a pipeline that starts with raw texts, and a grid search tunes all
steps. Some labelled texts say which settings find the topics that people have in mind.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings

# %%
# From texts to clusters
# ----------------------
# Texts become tf-idf weights, these are reduced to a few numbers, and a mixture clusters them.
# Every fold of the search learns all three steps from its own texts.

corpus = load_docstrings()
texts, modules = corpus.data[::3], corpus.target[::3]  # a third of them, to be quick
pipeline = Pipeline(
    [
        ("tfidf", TfidfVectorizer(stop_words="english", min_df=3, max_df=0.3)),
        ("svd", TruncatedSVD(random_state=0)),
        ("mixture", VonMisesFisherMixture(13, random_state=0)),
    ]
)
grid = {"tfidf__sublinear_tf": [False, True], "svd__n_components": [5, 20, 80]}

# %%
# The search
# ----------
# If there are labels, use any clustering metric by its name. Otherwise leave ``scoring`` out: the
# search then compares log-densities of held-out texts. It may then vary only the mixture, because
# densities in different spaces are not comparable.

folds = StratifiedKFold(2, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring="adjusted_rand_score", cv=folds)
search.fit(texts, modules)
for name, value in search.best_params_.items():
    print(f"{name}: {value}")
print(f"ARI of held-out texts: {search.best_score_:.2f}")
print("a new text:", search.predict(["Fit a smoothing spline to noisy points."]))

# %%
# What matters
# ------------
# Each point is a setting, and its bar the standard error over the folds: differences smaller than
# the bars may be chance.

found = search.cv_results_
sizes = grid["svd__n_components"]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for sublinear, marker, label in [(False, "o", "counts"), (True, "s", "logarithms of counts")]:
    chosen = found["param_tfidf__sublinear_tf"] == sublinear
    axis.errorbar(
        np.arange(len(sizes)) + (0.05 if sublinear else -0.05),
        found["mean_test_score"][chosen],
        found["std_test_score"][chosen] / np.sqrt(2),
        fmt=marker,
        capsize=2,
        label=label,
    )
axis.set_xticks(range(len(sizes)), sizes)
axis.set(xlabel="dimensions", ylabel="ARI of held-out texts", title="Settings of the pipeline")
axis.legend()
plt.show()
