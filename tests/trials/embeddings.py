"""Somebody with many embeddings in a file: clusters, a stream, outliers, new rows, a report."""

from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.metrics import roc_auc_score

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.plotting import cluster_report

N, D, K = 20_000, 128, 50
rows, y, centers = make_vonmises_fisher_blobs(
    N + 1000, D, centers=K, concentration=60.0, random_state=0, return_centers=True
)
best = nmi(y, (rows @ centers.T).argmax(axis=1))  # of somebody who knows the centres
new, y_new = rows[N:], y[N:]
np.save("rows.npy", (3 * rows[:N]).astype(np.float32))  # of any length and precision
X, y = np.load("rows.npy", mmap_mode="r"), y[:N]

# Clusters, and the same ones for rows that come later.
mixture = VonMisesFisherMixture(K, random_state=0).fit(X)
assert nmi(y, mixture.labels_) > best - 0.02
labels = mixture.predict(new)
assert nmi(y_new, labels) > best - 0.02

# One pass over batches is nearly as good.
stream = VonMisesFisherMixture(K, random_state=0).partial_fit(X[:4000])
for start in range(4000, N, 4000):
    stream.partial_fit(X[start : start + 4000])
assert nmi(y, stream.predict(X)) > best - 0.03

# Rows of no cluster.
noise = np.random.default_rng(0).normal(size=(1000, D))
scores = np.concatenate([mixture.score_samples(new), mixture.score_samples(noise)])
assert roc_auc_score(np.arange(2000) < 1000, scores) > 0.9

# Tomorrow's fit keeps the numbers.
mixture.set_params(warm_start=True).fit(np.vstack([X[::10], new]))
assert np.mean(mixture.predict(new) == labels) > 0.9

cluster_report(mixture, X, file="clusters.html")
assert Path("clusters.html").stat().st_size < 5e6
