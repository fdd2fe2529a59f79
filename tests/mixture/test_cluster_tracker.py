"""ClusterTracker: births, deaths, merges, ids that last, and a state that is saved."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from skvmf import (
    ClusterTracker,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)

K = 6
DIM = 12
ROWS_A_DAY = 20  # of each cluster


def centres_of(n, rng):
    """Return means that are orthogonal, or far apart for more clusters than features."""
    return 10 * np.eye(DIM)[rng.permutation(DIM)[:n]]


def day(centres, rng, present=None):
    """Return a day's rows in random order, and the number of the cluster of each."""
    present = range(len(centres)) if present is None else present
    y = rng.permutation(np.repeat(list(present), ROWS_A_DAY))
    return centres[y] + rng.normal(size=(len(y), DIM)), y


def directions(**params):
    return VonMisesFisherMixture(K, random_state=0, **params)


KINDS = {
    "directions": directions(),
    "background": directions(background=True),
    "gaussian": SparseGaussianMixture(K, weight_concentration_prior=1.0, random_state=0),
    "diagonal": SparseGaussianMixture(K, covariance_type="diag", random_state=0),
    "student_t": StudentTMixture(K, random_state=0),
    "missing": SparseGaussianMixture(
        K, covariance_type="diag", missing_values="marginal", random_state=0
    ),
}


def first_rows(centres, rng, n_days=5):
    X, y = zip(*(day(centres, rng, range(K)) for _ in range(n_days)), strict=True)
    return np.concatenate(X), np.concatenate(y)


def births(tracker):
    return [event for event in tracker.events_ if event["kind"] == "birth"]


@pytest.mark.parametrize("kind", KINDS)
def test_finds_new_clusters_in_three_days(kind):
    rng = np.random.default_rng(0)
    centres = centres_of(K + 2, rng)
    X, _ = first_rows(centres, rng)
    if kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    tracker = ClusterTracker(KINDS[kind], random_state=0).fit(X)
    # An old cluster is absent on the day two new ones begin.
    for number in range(3):
        X, y = day(centres, rng, range(1 if number == 0 else 0, K + 2))
        tracker.partial_fit(X)
    found = births(tracker)
    assert [event["id"] for event in found] == [K, K + 1]
    assert tracker.events_ == found
    for k in (K, K + 1):  # each is one new cluster, and has its rows of today
        (own,) = np.unique(tracker.labels_[y == k])
        assert own in (K, K + 1)
        assert (tracker.labels_[y != k] != own).all()
    np.testing.assert_array_equal(tracker.predict(X), tracker.labels_)


def test_rows_that_change_their_ids_are_those_that_the_log_tells():
    rng = np.random.default_rng(1)
    centres = centres_of(K + 1, rng)
    X, y = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), random_state=0).fit(X)
    ids = [tracker.labels_]
    of_rows = [y]
    for _ in range(4):
        X, y = day(centres, rng)
        ids.append(tracker.partial_fit(X).labels_)
        of_rows.append(y)
    (birth,) = births(tracker)
    ids, of_rows = np.concatenate(ids), np.concatenate(of_rows)
    ids[birth["rows"]] = birth["id"]
    np.testing.assert_array_equal(ids == birth["id"], of_rows == K)


@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_stream_has_no_events(seed):
    rng = np.random.default_rng(seed)
    # Clusters that overlap, so that a cut of one gains something.
    centres = 0.2 * centres_of(K, rng)
    X, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), random_state=seed).fit(X)
    for _ in range(20):
        tracker.partial_fit(day(centres, rng)[0])
    assert tracker.events_ == []


def test_a_cluster_that_is_only_larger_than_before_is_not_new():
    rng = np.random.default_rng(2)
    centres = centres_of(K, rng)
    X, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), random_state=0).fit(X)
    tracker.partial_fit(day(centres, rng, [0, *range(K)])[0])
    assert tracker.events_ == []


def test_a_cluster_without_rows_dies_and_its_id_is_not_used_again():
    rng = np.random.default_rng(3)
    centres = centres_of(K + 1, rng)
    X, y = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), half_life=5, random_state=0).fit(X)
    gone = tracker.labels_[y == 0][0]
    for _ in range(15):
        tracker.partial_fit(day(centres, rng, range(1, K))[0])
    assert [(event["kind"], event["id"]) for event in tracker.events_] == [("death", gone)]
    assert gone not in tracker.ids_
    for _ in range(3):
        tracker.partial_fit(day(centres, rng, range(1, K + 1))[0])
    assert births(tracker)[0]["id"] == K
    assert gone not in tracker.labels_


def test_two_parts_of_one_cluster_merge_once():
    rng = np.random.default_rng(4)
    centres = centres_of(K - 1, rng)
    X, y = zip(*(day(centres, rng) for _ in range(5)), strict=True)
    X, y = np.concatenate(X), np.concatenate(y)
    halves = np.where(y == 0, np.where(rng.random(len(y)) < 0.5, 0, K - 1), y)
    mixture = directions(init_params=halves, max_iter=0)
    tracker = ClusterTracker(mixture, random_state=0).fit(X)
    for _ in range(12):
        tracker.partial_fit(day(centres, rng)[0])
    (event,) = tracker.events_
    assert (event["kind"], event["id"], event["into"]) == ("merge", K - 1, 0)
    assert len(tracker.ids_) == K - 1


def stream(n_days=5, seed=5):
    rng = np.random.default_rng(seed)
    centres = centres_of(K + 1, rng)
    return first_rows(centres, rng)[0], [day(centres, rng)[0] for _ in range(n_days)]


def test_a_saved_tracker_goes_on_as_one_that_was_not():
    first, days = stream()
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    for X in days[:2]:
        tracker.partial_fit(X)
    loaded = pickle.loads(pickle.dumps(tracker))
    for X in days[2:]:
        np.testing.assert_array_equal(tracker.partial_fit(X).labels_, loaded.partial_fit(X).labels_)
    assert tracker.mixture_.means_.tobytes() == loaded.mixture_.means_.tobytes()


def test_bits_do_not_depend_on_threads():
    first, days = stream()
    means = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads):
            tracker = ClusterTracker(directions(), random_state=0).fit(first)
            for X in days:
                tracker.partial_fit(X)
        means.append(tracker.mixture_.means_.tobytes())
    assert means[0] == means[1]


@pytest.mark.parametrize("seed", range(3))
def test_order_within_a_batch_leaves_births_alike(seed):
    rng = np.random.default_rng(seed)
    first, days = stream(3)
    shuffled = [X[rng.permutation(len(X))] for X in days]
    for batches in (days, shuffled):
        tracker = ClusterTracker(directions(), random_state=0).fit(first)
        for X in batches:
            tracker.partial_fit(X)
        assert [event["id"] for event in tracker.events_] == [K]


def test_sparse_rows_give_the_ids_of_dense_ones():
    first, days = stream()
    dense = ClusterTracker(directions(), random_state=0).fit(first)
    csr = ClusterTracker(directions(), random_state=0).fit(sparse.csr_array(first))
    for X in days:
        dense.partial_fit(X)
        csr.partial_fit(sparse.csr_array(X))
    np.testing.assert_array_equal(dense.labels_, csr.labels_)
    assert len(births(csr)) == 1


def test_rows_without_weight_change_nothing():
    first, days = stream(1)
    plain = ClusterTracker(directions(), random_state=0).fit(first)
    plain.partial_fit(days[0])
    weighted = ClusterTracker(directions(), random_state=0).fit(first)
    more = np.concatenate([days[0], first[:50]])
    weights = np.repeat([1.0, 0.0], [len(days[0]), 50])
    weighted.partial_fit(more, sample_weight=weights)
    np.testing.assert_allclose(weighted.clusters_["size"], plain.clusters_["size"])


def test_known_labels_are_ids():
    first, days = stream(1)
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    known = np.full(len(days[0]), -1)
    known[:3] = 2
    tracker.partial_fit(days[0], known_labels=known)
    assert (tracker.labels_[:3] == 2).all()
    known[0] = 99
    with pytest.raises(ValueError, match="id of a live cluster"):
        tracker.partial_fit(days[0], known_labels=known)


def test_memory_is_that_of_the_window_and_the_reservoir():
    first, days = stream(8)
    tracker = ClusterTracker(directions(), window=3, reservoir_size=100, random_state=0).fit(first)
    for X in days:
        tracker.partial_fit(X)
    rows, *_ = tracker._kept()
    assert len(rows) == 100 + sum(len(X) for X in days[-3:])


def test_max_clusters_ends_births():
    first, days = stream()
    tracker = ClusterTracker(directions(), max_clusters=K, random_state=0).fit(first)
    for X in days:
        tracker.partial_fit(X)
    assert tracker.events_ == []


def test_refuses_another_embedding_model():
    first, days = stream(1)
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    before = pickle.dumps(tracker)
    with pytest.raises(ValueError, match="another embedding model"):
        tracker.partial_fit(days[0][:, :-1])
    with pytest.raises(ValueError, match="far from all clusters"):
        tracker.partial_fit(-days[0])
    assert pickle.dumps(tracker) == before


def test_refuses_a_mixture_that_sorts_its_components():
    first, _ = stream(1)
    with pytest.raises(ValueError, match="sorts its components"):
        ClusterTracker(RelativeGMM(2)).fit(first)


def test_skops_keeps_a_tracker():
    sio = pytest.importorskip("skops.io")
    first, days = stream(2)
    tracker = ClusterTracker(directions(), random_state=0).fit(first).partial_fit(days[0])
    data = sio.dumps(tracker)
    loaded = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    np.testing.assert_array_equal(
        tracker.partial_fit(days[1]).labels_, loaded.partial_fit(days[1]).labels_
    )
