"""Somebody with texts: topics by words, their names, a tree of them, outliers, a report."""

from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import normalized_mutual_info_score as nmi

from skvmf import ComponentPath, VonMisesFisherMixture, component_summary
from skvmf.datasets import load_docstrings
from skvmf.plotting import cluster_report

corpus = load_docstrings()
texts, modules = corpus.data, corpus.target
vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{2,}", min_df=5, max_df=0.3, sublinear_tf=True
)
X = vectorizer.fit_transform(texts)

# Topics agree better with the modules than those of k-means.
mixture = VonMisesFisherMixture(13, random_state=0).fit(X)
ours = nmi(modules, mixture.labels_)
theirs = nmi(modules, KMeans(13, n_init=10, random_state=0).fit(X).labels_)
assert ours > max(0.63, theirs + 0.03), (ours, theirs)

# Their words name them, and a new text has the topic of its words.
summary = component_summary(mixture, X, texts=texts)
names = summary.names(5)
assert len(set(names)) == 13
[topic] = mixture.predict(vectorizer.transform(["Fit a smoothing spline with these knots."]))
assert "spline" in names[topic]

# A tree: coarse topics are made of fine ones.
path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=40).fit(X)
assert 13 / 3 < path.best_n_components_ < 40
coarse, fine = path.cut(5), path.cut(20)
assert all(len(set(coarse[fine == k])) == 1 for k in range(20))
assert (path.cut(5, X) == coarse).all()

# Texts of no topic have the label -1, as after HDBSCAN, and the others agree better.
doubtful = VonMisesFisherMixture(13, background=True, random_state=0).fit(X).labels_
assert 0.02 < np.mean(doubtful < 0) < 0.6
assert nmi(modules[doubtful >= 0], doubtful[doubtful >= 0]) > ours - 0.02

cluster_report(path, X, texts, file="topics.html")
assert 1e5 < Path("topics.html").stat().st_size < 5e6
