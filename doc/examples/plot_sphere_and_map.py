"""
=======================================
Clusters on a sphere, clusters on a map
=======================================

If the length of rows does not matter, they are points on a sphere, and a cluster is a cap with a
direction and a concentration. :class:`~skvmf.VonMisesFisherMixture` finds these caps, here in
three dimensions, which can be drawn, and in fifty, shown on a map.
"""

# %%
# A sphere that can be seen
# -------------------------
# Five clusters of directions in three dimensions, of different breadth. The fit knows neither
# which row belongs to which cluster nor how broad the clusters are.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE

from skvmf import VonMisesFisherMixture
from skvmf.datasets import load_docstrings, make_vonmises_fisher_blobs

directions = np.array([[1, -3, 4], [5, 2, 4], [-5, 2, 4], [2, 5, 3], [-3, -4, -2]])
X, _ = make_vonmises_fisher_blobs(
    900, 3, centers=directions, concentration=[12, 30, 60, 120, 200], random_state=0
)
sphere = VonMisesFisherMixture(5, random_state=0).fit(X)
print("concentrations:", np.sort(sphere.concentrations_).round(0))

# %%
# Texts, in fifty dimensions
# --------------------------
# The docstrings of NumPy, SciPy and scikit-learn become rows of fifty numbers (latent semantic
# analysis), as they could come from any embedding model. A component is named after the words that
# its texts have more often than others.

corpus = load_docstrings()
vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{3,}", min_df=5, max_df=0.3, sublinear_tf=True
)
tfidf = vectorizer.fit_transform(corpus.data)
embeddings = TruncatedSVD(50, random_state=0).fit_transform(tfidf)
topics = VonMisesFisherMixture(13, n_init=5, random_state=0).fit(embeddings)
words = vectorizer.get_feature_names_out()
excess = [tfidf[topics.labels_ == k].mean(axis=0) - tfidf.mean(axis=0) for k in range(13)]
names = [words[np.asarray(row).ravel().argsort()[::-1][:2]] for row in excess]

# %%
# Both pictures
# -------------
# On the left the sphere is seen from outside: rows on its back are pale, and the ring around a
# component is the typical angle of its rows to its direction. On the right t-SNE lays the texts out
# on a plane; the colours come from the mixture, which has not seen this plane.

COLORS = np.array([f"C{k % 10}" for k in range(13)])
TILT = np.radians(20)


def seen(points):
    """Tilt points towards the viewer, who looks along the last axis."""
    x, y, z = points.T
    return np.column_stack(
        [x, np.cos(TILT) * y - np.sin(TILT) * z, np.sin(TILT) * y + np.cos(TILT) * z]
    )


def ring(direction, angle):
    """Return the points of the sphere at an angle to a direction."""
    _, _, axes = np.linalg.svd(direction[np.newaxis])
    turn = np.linspace(0, 2 * np.pi, 200)
    across = np.cos(turn)[:, np.newaxis] * axes[1] + np.sin(turn)[:, np.newaxis] * axes[2]
    return np.cos(angle) * direction + np.sin(angle) * across


def draw_line(axis, points, **style):
    """Draw the part in front, and the part behind more faintly."""
    x, y, depth = seen(points).T
    axis.plot(np.where(depth >= 0, x, np.nan), y, **style)
    axis.plot(np.where(depth < 0, x, np.nan), y, **style | {"alpha": 0.2, "linestyle": ":"})


figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained")
for latitude in np.radians([-60, -30, 0, 30, 60]):
    draw_line(left, ring(np.array([0.0, 1.0, 0.0]), np.pi / 2 - latitude), color="0.85", lw=0.8)
for longitude in np.radians(np.arange(0, 180, 30)):
    pole = np.array([np.cos(longitude), 0.0, np.sin(longitude)])
    draw_line(left, ring(pole, np.pi / 2), color="0.85", lw=0.8)
left.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.6"))
x, y, depth = seen(X).T
alpha = np.where(depth >= 0, 0.8, 0.15)
left.scatter(x, y, s=9, c=COLORS[sphere.labels_], alpha=alpha, linewidths=0)
for k, direction in enumerate(sphere.mean_directions_):
    angle = np.arccos(np.linalg.norm(sphere.means_[k]))  # the length of a mean is the mean cosine
    draw_line(left, ring(direction, angle), color=COLORS[k], lw=2.2)
left.set(aspect="equal", title="Five clusters of directions")

placed = TSNE(metric="cosine", init="random", random_state=0).fit_transform(embeddings)
right.scatter(*placed.T, s=7, c=COLORS[topics.labels_], alpha=0.7, linewidths=0)
halo = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
for k, name in enumerate(names):
    middle = np.median(placed[topics.labels_ == k], axis=0)
    right.text(*middle, " ".join(name), ha="center", va="center", size=9, bbox=halo)
right.set_title("1,772 docstrings in thirteen components")
for axis in (left, right):
    axis.set_axis_off()
plt.show()
