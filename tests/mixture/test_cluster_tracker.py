"""ClusterTracker: births, deaths, merges, ids that last, and a state that is saved."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skvmf import (
    ClusterTracker,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
    component_summary,
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


@pytest.mark.parametrize("kind", ["directions", "diagonal"])
def test_finds_a_new_cluster_next_to_one_that_is_young(kind):
    rng = np.random.default_rng(3)
    centres = centres_of(K + 2, rng)
    # The last one is nearer to the one that was new some days before than to old ones.
    centres[K + 1] = (centres[K] + centres[K + 1]) / np.sqrt(2)
    tracker = ClusterTracker(KINDS[kind], random_state=0).fit(first_rows(centres, rng)[0])
    for number in range(7):
        X, y = day(centres, rng, range(K + 1 if number < 4 else K + 2))
        tracker.partial_fit(X)
        if number == 3:
            (first,) = births(tracker)
    _, second = births(tracker)
    assert (tracker.labels_[y == K] == first["id"]).all()
    assert (tracker.labels_[y == K + 1] == second["id"]).all()


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


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_gives_the_labels_and_densities_of_two(kind):
    X, _ = first_rows(centres_of(K, np.random.default_rng(0)), np.random.default_rng(1))
    X[:3] = 0
    mixture = clone(KINDS[kind]).fit(X)
    labels, scores = mixture._labels_and_log_densities(X)
    np.testing.assert_array_equal(labels, mixture.predict(X))
    np.testing.assert_array_equal(scores, mixture.score_samples(X))


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


def test_the_largest_cluster_dies_when_none_of_its_rows_is_kept():
    rng = np.random.default_rng(0)
    centres = centres_of(2, rng)
    X = centres[np.repeat([0, 1], [100, 50])] + rng.normal(size=(150, DIM))
    mixture = VonMisesFisherMixture(2, init_params=np.repeat([0, 1], [100, 50]), random_state=0)
    tracker = ClusterTracker(mixture, window=1, reservoir_size=1, random_state=0).fit(X)
    assert tracker._reservoir.ids.tolist() == [1]
    tracker.partial_fit(centres[1] + rng.normal(size=(20, DIM)))
    assert [(event["kind"], event["id"]) for event in tracker.events_] == [("death", 0)]
    assert tracker.ids_.tolist() == [1]


def test_a_small_cluster_lives_on_where_the_first_batches_have_none_of_its_rows():
    rng = np.random.default_rng(0)
    centres = centres_of(2, rng)
    y = np.repeat([0, 1], [5, 100])
    X = centres[y] + rng.normal(size=(len(y), DIM))
    mixture = VonMisesFisherMixture(2, init_params=y, random_state=0)
    tracker = ClusterTracker(mixture, window=4, random_state=0).fit(X)
    for n_batches in range(1, 5):
        tracker.partial_fit(centres[1] + rng.normal(size=(20, DIM)))
        assert tracker.ids_.tolist() == ([0, 1] if n_batches < 4 else [1])


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
    assert event["evidence"] < 0
    assert len(tracker.ids_) == K - 1


@pytest.mark.filterwarnings("error")
def test_names_of_features_go_with_births_and_deaths():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    centres = centres_of(K + 1, rng)
    names = [f"feature {i}" for i in range(DIM)]
    X, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), half_life=5, random_state=0)
    tracker.fit(pandas.DataFrame(X, columns=names))
    for _ in range(12):
        X = pandas.DataFrame(day(centres, rng, range(1, K + 1))[0], columns=names)
        tracker.partial_fit(X)
    assert [event["kind"] for event in tracker.events_] == ["birth", "death"]
    np.testing.assert_array_equal(tracker.mixture_.feature_names_in_, names)
    np.testing.assert_array_equal(tracker.predict(X), tracker.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        tracker.partial_fit(X[names[::-1]])


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_a_cluster_that_shrinks_and_quiet_days_end_nothing(share):
    rng = np.random.default_rng(8)
    centres = centres_of(K, rng)
    X, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), half_life=5, random_state=0).fit(X)
    for number in range(24):
        X, y = day(centres, rng)
        # First all clusters have fewer rows, as on holidays, then one of them alone.
        few = rng.random(len(y)) > share
        X = X[~few] if number < 12 else X[~(few & (y == 0))]
        tracker.partial_fit(X)
    assert tracker.events_ == []


@pytest.mark.slow
def test_events_do_not_depend_on_how_a_day_is_cut_into_batches():
    first, days = stream(12)
    events = []
    for n_parts in (1, 3):
        options = {"window": 10 * n_parts, "half_life": 20 * n_parts, "random_state": 0}
        tracker = ClusterTracker(directions(), **options).fit(first)
        for X in days:
            for part in np.array_split(X, n_parts):
                tracker.partial_fit(part)
        events.append([(event["kind"], event["id"]) for event in tracker.events_])
        (birth,) = births(tracker)
        assert birth["batch"] <= 3 * n_parts
    assert events[0] == events[1]


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
    assert len(tracker._reservoir.rows) == 100
    assert [len(batch.rows) for batch in tracker._window] == [len(X) for X in days[-3:]]


@pytest.mark.parametrize("n_more", [0, 1])
def test_max_clusters_ends_births(n_more):
    rng = np.random.default_rng(5)
    centres = centres_of(K + 3, rng)  # three are new on one day
    first, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), max_clusters=K + n_more, random_state=0).fit(first)
    for _ in range(5):
        tracker.partial_fit(day(centres, rng)[0])
    assert [event["id"] for event in births(tracker)] == [K, K + 1][:n_more]


def test_refuses_another_embedding_model():
    first, days = stream(1)
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    before = pickle.dumps(tracker)
    with pytest.raises(ValueError, match="another embedding model"):
        tracker.partial_fit(days[0][:, :-1])
    with pytest.raises(ValueError, match="far from all clusters"):
        tracker.partial_fit(-days[0])
    assert pickle.dumps(tracker) == before


@pytest.mark.parametrize("mixture", [K, "directions", VonMisesFisherMixture])
def test_says_what_a_mixture_is(mixture):
    first, days = stream(1)
    with pytest.raises(TypeError, match=r"such as VonMisesFisherMixture\(20\), got"):
        ClusterTracker(mixture).fit(first)
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    with pytest.raises(TypeError, match=r"such as VonMisesFisherMixture\(20\), got"):
        tracker.set_params(mixture=mixture).partial_fit(days[0])


def test_refuses_a_mixture_that_sorts_its_components():
    first, _ = stream(1)
    with pytest.raises(ValueError, match="sorts its components"):
        ClusterTracker(RelativeGMM(2)).fit(first)


@pytest.mark.slow
def test_skops_keeps_a_tracker():
    sio = pytest.importorskip("skops.io")
    first, days = stream(2)
    tracker = ClusterTracker(directions(), random_state=0).fit(first).partial_fit(days[0])
    data = sio.dumps(tracker)
    loaded = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    np.testing.assert_array_equal(
        tracker.partial_fit(days[1]).labels_, loaded.partial_fit(days[1]).labels_
    )


def test_state_of_each_batch_is_what_labels_and_events_tell():
    first, days = stream()
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    ids, batches = [tracker.labels_], [np.zeros(len(first), int)]
    for number, X in enumerate(days, 1):
        ids.append(tracker.partial_fit(X).labels_)
        batches.append(np.full(len(X), number))
    ids, batches = np.concatenate(ids), np.concatenate(batches)
    for event in births(tracker):
        ids[event["rows"]] = event["id"]
    expected = np.zeros((len(days) + 1, K + 1))
    np.add.at(expected, (batches, ids), 1.0)
    np.testing.assert_array_equal(tracker.sizes_, expected)
    clusters = tracker.clusters_
    assert clusters["parent"][:K].tolist() == [-1] * K
    assert clusters["parent"][K] in range(K)
    np.testing.assert_array_equal(clusters["mean"], tracker.mixture_.mean_directions_)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["directions", "gaussian", "diagonal", "student_t", "missing"])
def test_drift_is_one_standard_error_at_most_without_drift_and_as_many_as_it_is(kind):
    rng = np.random.default_rng(6)
    centres = centres_of(K, rng)
    X, _ = first_rows(centres, rng)
    # So that rows of the fit are forgotten, and a mean is that of other rows than at birth.
    tracker = ClusterTracker(KINDS[kind], window=5, half_life=1, random_state=0).fit(X)
    shift = np.zeros_like(centres)
    drifts = []
    for number in range(32):
        if number == 12:
            drifts.append(tracker.clusters_["drift"])
            moved = tracker.predict(centres)
        if 12 <= number < 22:  # slowly: rows that are far away at once are a new cluster
            shift[0, np.argmin(np.abs(centres[0]))] += 0.2
        tracker.partial_fit(day(centres + shift, rng)[0])
    drifts.append(tracker.clusters_["drift"][:K])
    assert 0.6 < np.sqrt(np.mean(drifts[0] ** 2)) < 1.4
    # Fading rows of weights 1, 1/2 and so on, 20 of each, are worth about 60; the fit had 100.
    n_free = DIM - 1 if kind == "directions" else DIM
    expected = np.hypot(1, 2.0 / np.sqrt((1 / 60 + 1 / 100) * n_free))
    np.testing.assert_allclose(drifts[1][moved[0]], expected, rtol=0.25)
    assert (np.delete(drifts[1], moved[0]) < 2).all()
    # Where it has moved is news once, and may be found to be the old cluster; a second birth of it
    # would be none.
    assert [event["kind"] for event in tracker.events_] in ([], ["birth"], ["birth", "merge"])


def test_parameters_of_the_first_components_are_not_those_of_later_ones():
    first, days = stream()
    mixture = directions(weight_concentration_prior=np.full(K, 2.0))
    tracker = ClusterTracker(mixture, random_state=0).fit(first)
    for X in days:
        tracker.partial_fit(X)
    assert [event["id"] for event in births(tracker)] == [K]


def test_summary_tells_today_beside_yesterday_and_what_is_new_first():
    first, days = stream(4)
    tracker = ClusterTracker(directions(), random_state=0).fit(first)
    assert component_summary(tracker).before is None
    for X in days:
        tracker.partial_fit(X)
    summary = component_summary(tracker, days[-1], texts=[f"row {i}" for i in range(len(days[-1]))])
    assert summary.labels[0] == K
    assert summary.born.tolist() == [tracker.clusters_["born"][K]] + [0] * K
    np.testing.assert_array_equal(summary.sizes, tracker.sizes_[-1, summary.labels])
    np.testing.assert_array_equal(summary.before, tracker.sizes_[-2, summary.labels])
    assert list(summary.columns)[:4] == ["component", "rows", "before", "born"]
    of_events = component_summary(tracker)  # needs no rows
    np.testing.assert_array_equal(of_events.sizes, summary.sizes)
    assert len(of_events.names()) == K + 1
    with pytest.raises(ValueError, match="ClusterTracker"):
        component_summary(tracker, X, labels=tracker.labels_)


def test_summary_and_report_have_ids_where_a_cluster_has_died(tmp_path):
    rng = np.random.default_rng(3)
    centres = centres_of(K + 1, rng)
    X, _ = first_rows(centres, rng)
    tracker = ClusterTracker(directions(), half_life=5, random_state=0).fit(X)
    for _ in range(15):
        X, _ = day(centres, rng, range(1, K + 1))
        tracker.partial_fit(X)
    gone = [event["id"] for event in tracker.events_ if event["kind"] == "death"]
    assert len(gone) == 1
    summary = component_summary(tracker, X)
    assert sorted(summary.labels) == tracker.ids_.tolist()
    nearest = dict(zip(summary.labels.tolist(), summary.nearest.tolist(), strict=True))
    assert set(nearest.values()) <= set(tracker.ids_.tolist())
    for k, rows in zip(summary.labels, summary.typical, strict=True):
        assert (tracker.predict(X[rows]) == k).all()
    pytest.importorskip("matplotlib")
    from skvmf.plotting import cluster_report

    file = tmp_path / "report.html"
    cluster_report(tracker, X, file=file, names={K: "new"})
    text = file.read_text(encoding="utf-8")
    data = json.loads(text.partition('type="application/json">')[2].partition("</script>")[0])
    assert [cluster["k"] for cluster in data["clusters"]] == summary.labels.tolist()
    assert data["clusters"][0]["name"] == "new"
    assert data["clusters"][0]["born"] == tracker.clusters_["born"][-1]
    assert [cluster["before"] for cluster in data["clusters"]] == summary.before.tolist()
