"""
===============================
Clusters that come, move and go
===============================

Texts come every day, and people want to know what is new. A :class:`~skvmf.ClusterTracker` takes
one batch a day: each row gets an id that is never used again, and a log tells births and ends.

The texts are the docstrings of NumPy, SciPy and scikit-learn in random order, as if they came in 40
days. Three modules come late, and one ends. Other texts are JSON Lines with the fields ``text`` and
``label``, the newsgroups for example, as in :doc:`/user_guide/new_data`::

    python doc/examples/plot_cluster_tracker.py --data 20news-bydate.jsonl.gz --skip-headers
"""

from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import wordllama
from sklearn.preprocessing import normalize

from skvmf import ClusterTracker, VonMisesFisherMixture, component_summary
from skvmf.datasets import load_docstrings
from skvmf.plotting import ClusterTrackerDisplay

options = SimpleNamespace(data=None, skip_headers=False, days=40)
# sphinx_gallery_start_ignore
import argparse  # noqa: E402

parser = argparse.ArgumentParser(description="Track clusters of texts that come day by day.")
parser.add_argument("--data", metavar="PATH", help="JSON Lines file; default: docstrings")
parser.add_argument("--skip-headers", action="store_true", help="drop a text's first paragraph")
parser.add_argument("--days", metavar="N", type=int, help="days of the stream; default: 40")
options = parser.parse_args(namespace=options)


def read_json(path):
    """Read the texts and labels of a JSON Lines file."""
    import pandas as pd

    table = pd.read_json(path, lines=True)
    names, target = np.unique(table.label, return_inverse=True)
    return SimpleNamespace(data=table.text.tolist(), target=target, target_names=names.tolist())


# sphinx_gallery_end_ignore

corpus = load_docstrings() if options.data is None else read_json(options.data)
texts, y = list(corpus.data), np.asarray(corpus.target)
if options.skip_headers:
    texts = [text.partition("\n\n")[2] for text in texts]
folder = Path(wordllama.__file__).parent  # it holds weights and tokenizer: nothing is downloaded
X = wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed(texts)
X = normalize(X - X.mean(axis=0))

# %%
# A stream
# --------
# Each text gets a day. The late modules are those with the most texts, which would be missed most.

rng = np.random.default_rng(0)
by_size = np.argsort(-np.bincount(y), kind="stable")
begin, end = np.zeros(len(by_size)), np.full(len(by_size), options.days)
begin[by_size[:3]] = options.days * np.array([0.3, 0.5, 0.7])
end[by_size[3]] = 0.4 * options.days
days = rng.uniform(begin[y], end[y]).astype(int)
for k in by_size[:3]:
    print(f"{corpus.target_names[k]} comes on day {days[y == k].min()}")
print(f"{corpus.target_names[by_size[3]]} ends after day {days[y == by_size[3]].max()}")

# %%
# The first week is fitted; each later day is a batch.

first = days < 7
mixture = VonMisesFisherMixture(10, concentration_type="tied", random_state=0)
tracker = ClusterTracker(mixture, random_state=0).fit(X[first])
for day in range(7, options.days):
    tracker.partial_fit(X[days == day])
    for event in tracker.events_:
        if event["batch"] == tracker.n_batches_:
            print(f"day {day}: {event['kind']} of {event['id']}")

# %%
# What is new
# -----------
# The summary has the last day beside the day before, the newest clusters first. Only the rows of
# these days are needed for it, not the stream.

today = np.flatnonzero(days == options.days - 1)
print(component_summary(tracker, X[today], texts=[texts[i] for i in today], n_rows=1))

# %%
# Over time
# ---------
# Grey bands are clusters of the first week. A triangle marks a birth. The names of births are those
# of the modules that most of their rows come from.

in_order = [np.flatnonzero(first)]
in_order += [np.flatnonzero(days == day) for day in range(7, options.days)]
sent = np.concatenate(in_order)
names = {}
for event in tracker.events_:
    if event["kind"] == "birth":
        module = np.bincount(y[sent[event["rows"]]]).argmax()
        names[event["id"]] = f"{event['id']}: {corpus.target_names[module]}"

figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
ClusterTrackerDisplay.from_estimator(tracker, names=names, ax=axis)
axis.set(title="Rows of each cluster, day by day", xlabel="day after the first week")
plt.show()
