"""Clusters of a stream, for the user guide: what is born, what ends, which rows keep their id."""

import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, MiniBatchKMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

from reproduction import texts
from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import ClusterTracker, VonMisesFisherMixture

from .embeddings import MESSAGES, embedded

# Days of the first fit; on which of 60 days groups come and end; the last days that are scored.
FIRST = 5
LATE = (10, 18, 26, 34, 42)
ENDS = (22, 32, 44)
WINDOW = 10
# A new cluster is that of a late group where more than this share of its rows are the group's.
PURE = 0.4
# Days after which a row counts half, the default of ClusterTracker, and radii of micro-clusters
# beside the median distance of rows.
HALF_LIFE = 20
RADII = (0.1, 0.15, 0.2, 0.3, 0.5)


HEADS = (
    "late groups found in ten days",
    "births",
    "births of late groups",
    "late groups with ids",
    "deaths",
    "ended groups dead in 30 days",
    "rows that keep their id",
    "NMI of the last ten days",
    "CPU seconds a day",
)


@item(
    "guide.tracker",
    "clusters of a stream that come and go",
    needs=(MESSAGES, "stoplist_smart.txt", "wordllama"),
    small={"seeds": 1, "components": (4,), "days": 14, "a_day": 3, "few": 1},
)
def tracker(setting, seeds=10, components=(15, 40), days=60, a_day=14, few=2):
    """Send messages day by day, some groups late and some not to the end, and see who notices."""
    X, y = centred_messages(setting)
    come_and_go = Figures("Streams of messages in which groups come and end")
    stationary = Figures("Streams of messages in which nothing changes")
    for seed in range(seeds):
        own = stream(y, seed, days, a_day)
        of_others = others(seed, components[0]) if seed < few else ()
        for name, follower in (*trackers(seed, components), *of_others):
            come_and_go.add(name, followed(follower, X, y, *own))
        name = f"a mixture of {components[0]} fitted to the last ten days"
        nmi = fitted_to_the_last_days(components[0], X, y, own[0], seed)
        come_and_go.add(name, [None] * 7 + [nmi, None])
        own = stream(y, seed, days, min(a_day, 10), stationary=True)
        for name, follower in trackers(seed, components[:1]):
            stationary.add(name, followed(follower, X, y, *own))
    other_rows = Figures("Streams of the same messages as other rows")
    words, y = texts.news20(setting.data)
    y = np.unique(y, return_inverse=True)[1]
    latent = TruncatedSVD(64, random_state=0).fit_transform(words)
    for rows, X in (("LSA, 64 features", latent), ("tf-idf in CSR", words)):
        for seed in range(few):
            own = stream(y, seed, days, a_day)
            for name, follower in trackers(seed, components[:1]):
                other_rows.add(f"{rows}: {name}", followed(follower, X, y, *own))
            nmi = fitted_to_the_last_days(components[0], X, y, own[0], seed)
            other_rows.add(f"{rows}: fitted to the last ten days", [None] * 7 + [nmi, None])
    return Record(
        f"Messages of the 20 newsgroups, 256 features by wordllama, centred; {days} days of about "
        f"{a_day} rows of each group, the first {FIRST} of which are fitted at once; five groups "
        "come late and three end, unless nothing changes. A birth counts for a group that has "
        "most of its rows, and as found if that is more than two fifths. HDBSCAN is fitted every "
        "night to the window in ten principal components, and its clusters take the ids of those "
        "of the night before by the Hungarian method; its outliers count as a cluster for the NMI.",
        f"orders of the rows 0 to {seeds - 1}; of other methods and other rows 0 to {few - 1}",
        [figures.table() for figures in (come_and_go, stationary, other_rows)],
    )


@item(
    "guide.tracker_rivals",
    "stream clusterers, and UMAP and HDBSCAN every night, beside a tracker",
    needs=(MESSAGES, "wordllama", "river", "umap"),
    small={"seeds": 1, "nights": 1, "days": 14, "a_day": 3, "radii": (0.3,)},
)
def tracker_rivals(setting, seeds=3, nights=1, days=60, a_day=14, radii=RADII):
    """Send the same messages to clusterers of streams, and to UMAP and HDBSCAN every night."""
    X, y = centred_messages(setting)
    figures = Figures("The same streams")
    for seed in range(seeds):
        own = stream(y, seed, days, a_day)
        for name, follower in trackers(seed, (15,)):
            figures.add(name, followed(follower, X, y, *own))
        for name, model_of in density_clusterers().items():
            tried = [of_last_days(model_of, radius, X, y, own[0]) for radius in radii]
            figures.add(f"{name}, the best of {len(radii)} radii", [None] * 7 + max(tried))
        if seed < nights:
            name = "UMAP and HDBSCAN anew every night, matched"
            figures.add(name, followed(Nightly(dense_after_umap), X, y, *own))
    return Record(
        f"As in guide.tracker. DBSTREAM and DenStream (pip install river) get ten principal "
        "components of the first days' rows. Their radii are shares of the median distance of "
        f"rows, {', '.join(map(str, radii))}, of which the one with the best NMI counts in each "
        f"order; a row counts half after {HALF_LIFE} days. Their clusters have no numbers that "
        "last. UMAP reduces the window to five features.",
        f"orders of the rows 0 to {seeds - 1}; of UMAP and HDBSCAN 0 to {nights - 1}",
        [figures.table()],
    )


def centred_messages(setting):
    """Return the unit rows of messages, centred, and the numbers of their groups."""
    messages = texts.read(setting.file(MESSAGES))
    X = embedded([message["text"].partition("\n\n")[2] for message in messages])
    y = np.unique([message["label"] for message in messages], return_inverse=True)[1]
    kept = X.any(axis=1)
    return normalize(X[kept] - X[kept].mean(axis=0)), y[kept]


class Figures:
    """The figures of methods in streams, one list for each stream."""

    def __init__(self, title):
        self.title, self.of_methods = title, {}

    def add(self, method, figures):
        """Add the figures of a stream."""
        self.of_methods.setdefault(method, []).append(figures)

    def table(self):
        """Return a table with a row for each method."""
        table = Table(self.title, ["method", *HEADS], digits=2)
        for method, streams in self.of_methods.items():
            columns = zip(*streams, strict=True)
            table.add(method, *(None if None in own else np.array(own) for own in columns))
        return table


def stream(y, seed, days, a_day, stationary=False):
    """Return the rows of each day, and the days on which groups come and end."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(y.max() + 1).tolist()
    # Of 20 groups five and three; of the few groups of a test there are always some that stay.
    n_late, n_ends = len(groups) // 4, len(groups) // 6
    come, go = ([each * days // 60 for each in times] for times in (LATE, ENDS))
    late = dict(zip(groups[:n_late], come, strict=False))
    ends = dict(zip(groups[n_late : n_late + n_ends], go, strict=False))
    if stationary:
        late, ends = {}, {}
    left = [rng.permutation(np.flatnonzero(y == group)).tolist() for group in range(len(groups))]
    batches = []
    for day in range(days):
        rows = []
        for group, own in enumerate(left):
            if late.get(group, 0) <= day < ends.get(group, days):
                rows += [own.pop() for _ in range(min(rng.poisson(a_day), len(own)))]
        batches.append(rng.permutation(rows))
    return batches, late, ends


def others(seed, K):
    """Yield names and what else follows a stream, with K clusters or as many as it finds."""
    kmeans = MiniBatchKMeans(K, n_init=3, random_state=seed)
    yield f"MiniBatchKMeans.partial_fit, {K}", KMeansFollower(kmeans)
    mixture = VonMisesFisherMixture(K, concentration_type="tied", random_state=seed)
    yield f"a mixture of {K} anew every night, matched", Nightly(mixture.fit_predict)
    yield "HDBSCAN anew every night, matched", Nightly(dense)


def trackers(seed, components):
    """Yield names and trackers of so many clusters at first."""
    for K in components:
        mixture = VonMisesFisherMixture(K, concentration_type="tied", random_state=seed)
        yield f"ClusterTracker, {K} at first", Tracked(ClusterTracker(mixture, random_state=seed))


def dense(X):
    """Return the labels of HDBSCAN in principal components."""
    n_components = min(10, len(X) - 1)
    return labels_of_hdbscan(PCA(n_components, random_state=0).fit_transform(X))


def dense_after_umap(X):
    """Return the labels of HDBSCAN after UMAP."""
    from umap import UMAP

    options = {"n_neighbors": 15, "min_dist": 0.0, "metric": "cosine", "random_state": 0}
    return labels_of_hdbscan(UMAP(n_components=5, **options).fit_transform(X))


def labels_of_hdbscan(reduced):
    return HDBSCAN(min_cluster_size=15, copy=True).fit_predict(reduced.astype(np.float64))


def density_clusterers():
    """Return functions of a radius, a fading rate and the number of first rows, by name."""
    from river.cluster import DBSTREAM, DenStream

    return {
        "DBSTREAM of river": lambda radius, fading, n_first: DBSTREAM(
            clustering_threshold=radius,
            fading_factor=fading,
            cleanup_interval=250,
            minimum_weight=3.0,
        ),
        "DenStream of river": lambda radius, fading, n_first: DenStream(
            epsilon=radius, decaying_factor=fading, beta=0.5, mu=3, n_samples_init=n_first
        ),
    }


def of_last_days(model_of, radius, X, y, batches):
    """Return the NMI of the last ten days, and CPU seconds a day of them.

    Each day's rows are learned one by one, and those of the last days are then labelled.
    """
    first = np.concatenate(batches[:FIRST])
    Z = PCA(min(10, len(first)), random_state=0).fit(X[first]).transform(X)
    some = Z[first[:300]]
    radius *= np.median(np.linalg.norm(some[:, np.newaxis] - some, axis=2))
    fading = 1 / (HALF_LIFE * len(first) / FIRST)
    model = model_of(radius, fading, len(first))
    for i in np.concatenate(batches[:-10]):
        model.learn_one(dict(enumerate(Z[i].tolist())))
    begun = time.process_time()
    labels = []
    for rows in batches[-10:]:
        points = [dict(enumerate(row)) for row in Z[rows].tolist()]
        for point in points:
            model.learn_one(point)
        labels += [model.predict_one(point) for point in points]
    seconds = (time.process_time() - begun) / 10
    return [normalized_mutual_info_score(y[np.concatenate(batches[-10:])], labels), seconds]


class Tracked:
    """A tracker: `births` and `deaths` are pairs of day and id, `same` shares of rows."""

    def __init__(self, estimator):
        self.estimator, self.births, self.deaths, self.same = estimator, [], [], []
        self.sizes = []

    def begin(self, X):
        """Return ids of the rows of the first days."""
        return self.estimator.fit(X).labels_

    def follow(self, X, day):
        """Return ids of the rows of a day."""
        n_events = len(self.estimator.events_)
        ids = self.estimator.partial_fit(X).labels_
        self.sizes = [*self.sizes, len(ids)][-WINDOW:]
        moved = 0
        for event in self.estimator.events_[n_events:]:
            if event["kind"] == "birth":
                self.births.append((day, event["id"]))
                moved += len(event["rows"])
            else:
                self.deaths.append((day, event["id"]))
        self.same.append(1 - moved / sum(self.sizes))
        return ids


class KMeansFollower:
    """k-means in batches: no clusters are born and none die."""

    def __init__(self, estimator):
        self.estimator, self.births, self.deaths, self.same = estimator, [], [], []
        self.window = []

    def begin(self, X):
        """Return numbers of the rows of the first days."""
        self.window = [X]
        return self.estimator.fit(X).labels_

    def follow(self, X, day):
        """Return numbers of the rows of a day."""
        self.window = [*self.window, X][-WINDOW:]
        rows = np.concatenate(self.window)
        before = self.estimator.predict(rows)
        after = self.estimator.partial_fit(X).predict(rows)
        self.same.append(np.mean(before == after))
        return after[-len(X) :]


class Nightly:
    """A clusterer that is fitted to the window every night, and matched with the night before."""

    def __init__(self, labels_of):
        self.labels_of, self.births, self.deaths, self.same = labels_of, [], [], []
        self.window, self.ids, self.next_id = [], [], 0

    def begin(self, X):
        """Return ids of the rows of the first days."""
        labels = self.labels_of(X)
        self.window, self.ids, self.next_id = [X], [labels], int(labels.max()) + 1
        return labels

    def follow(self, X, day):
        """Return ids of the rows of a day."""
        self.window = [*self.window, X][-WINDOW:]
        labels = self.labels_of(np.concatenate(self.window))
        before = np.concatenate(self.ids[-WINDOW + 1 :])
        old = np.unique(before[before >= 0])
        counts = np.zeros((labels.max() + 1, len(old)))
        both = (labels[: len(before)] >= 0) & (before >= 0)
        np.add.at(counts, (labels[: len(before)][both], np.searchsorted(old, before[both])), 1)
        new = np.full(labels.max() + 2, -1)  # the last is that of outliers, -1
        for k, i in zip(*linear_sum_assignment(-counts), strict=True):
            if counts[k, i] > 0:
                new[k] = old[i]
        for k in np.flatnonzero(new[:-1] < 0).tolist():
            new[k] = self.next_id
            self.births.append((day, self.next_id))
            self.next_id += 1
        self.deaths += [(day, int(k)) for k in np.setdiff1d(old, new)]
        ids = new[labels]
        self.same.append(np.mean(ids[: len(before)] == before))
        ends = np.cumsum([len(each) for each in self.window])[:-1]
        self.ids = np.split(ids, ends)
        return self.ids[-1]


def fitted_to_the_last_days(K, X, y, batches, seed):
    """Return the NMI of a mixture that has not seen the days before."""
    rows = np.concatenate(batches[-10:])
    mixture = VonMisesFisherMixture(K, concentration_type="tied", random_state=seed)
    return normalized_mutual_info_score(y[rows], mixture.fit_predict(X[rows]))


def followed(follower, X, y, batches, late, ends):
    """Return the figures of one stream."""
    first = np.concatenate(batches[:FIRST])
    ids, groups = [follower.begin(X[first])], [y[first]]
    begun = time.process_time()
    for day, rows in enumerate(batches[FIRST:], FIRST):
        ids.append(follower.follow(X[rows], day))
        groups.append(y[rows])
    seconds = (time.process_time() - begun) / (len(batches) - FIRST)
    all_ids, all_groups = np.concatenate(ids), np.concatenate(groups)
    n_right, found, own_ids = 0, set(), set()
    for day, k in follower.births:
        own = all_groups[all_ids == k]
        if len(own) == 0:
            continue
        group = int(np.bincount(own).argmax())
        if group in late:
            n_right += 1
            own_ids.add(group)
            if np.mean(own == group) > PURE and day - late[group] <= 10:
                found.add(group)
    n_dead = 0
    for group, end in ends.items():
        before = slice(max(end - FIRST - 10 + 1, 0), end - FIRST + 1)
        own = np.concatenate(
            [i[g == group] for i, g in zip(ids[before], groups[before], strict=True)]
        )
        if len(own):
            k = np.bincount(own[own >= 0], minlength=1).argmax()
            n_dead += any(each == k and end <= day <= end + 30 for day, each in follower.deaths)
    last = np.concatenate(groups[-10:]), np.concatenate(ids[-10:])
    return (
        len(found),
        len(follower.births),
        n_right,
        len(own_ids),
        len(follower.deaths),
        n_dead,
        np.mean(follower.same),
        normalized_mutual_info_score(*last),
        seconds,
    )
