"""A path of a mixture whose rows have known labels: classes stay apart and keep their numbers."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster import hierarchy
from sklearn.base import clone

from skvmf import RelativeGMM, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.model_selection import ComponentPath

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(5), 60)
CENTRES = 8 * np.eye(5)
# Two classes that no rows tell apart, but the known labels.
CENTRES[1] = CENTRES[0] + [0, 0, 0, 0, 1.5]
X = CENTRES[LABELS] + RNG.normal(size=(300, 5))
ESTIMATORS = {
    "directions": VonMisesFisherMixture(random_state=0),
    "full": SparseGaussianMixture(weight_concentration_prior=1.0, random_state=0),
    "tied": SparseGaussianMixture(
        covariance_type="tied", weight_concentration_prior=1.0, random_state=0
    ),
    "tails": StudentTMixture(covariance_type="diag", random_state=0),
    "background": SparseGaussianMixture(background=True, covariance_type="diag", random_state=0),
}


def some_known(classes, n_each=20):
    known = np.full(len(X), -1)
    for k in classes:
        known[np.flatnonzero(LABELS == k)[:n_each]] = k
    return known


def path_of(name, **options):
    return ComponentPath(ESTIMATORS[name], max_components=12, **options)


@pytest.mark.parametrize("classes", [[0, 1], [1, 2], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_component_k_is_class_k_down_to_the_number_of_classes(name, classes):
    known = some_known(classes)
    path = path_of(name).fit(X, known_labels=known)
    assert path.results_["n_components"].min() == max(classes) + 1
    assert hierarchy.is_valid_linkage(path.linkage_)
    assert set(path.cut(1)) - {-1} == {0}
    best = path.best_estimator_
    for k in classes:
        gaps = np.linalg.norm(CENTRES - best.means_[k], axis=1)
        if name == "directions":
            gaps = -CENTRES @ best.mean_directions_[k] / np.linalg.norm(CENTRES, axis=1)
        assert gaps.argmin() == k
    labels = path.fit_predict(X, known_labels=known)
    assert_array_equal(labels, path.labels_)
    of_two = np.intersect1d(classes, [0, 1])  # the classes that only labels tell apart
    assert np.isin(labels[LABELS > 1], of_two).mean() < 0.05


def test_unknown_labels_are_a_path_without_any():
    plain = path_of("full").fit(X)
    path = path_of("full").fit(X, known_labels=np.full(300, -1))
    assert_array_equal(path.linkage_, plain.linkage_)
    assert_array_equal(path.best_estimator_.means_, plain.best_estimator_.means_)
    assert path_of("full").fit(X).results_["n_components"].min() == 1


def test_rows_known_as_outliers_stay_outliers():
    rows = np.vstack([X, RNG.uniform(-20, 20, size=(60, 5))])
    known = np.append(some_known([0, 2]), np.full(60, -2))
    path = path_of("background").fit(rows, known_labels=known)
    assert path.best_estimator_.background_weight_ >= 60 / 360 - 1e-9


@pytest.mark.parametrize("options", [{"criterion": "held_out"}, {"validation_fraction": 0.3}])
def test_held_out_rows_keep_their_labels_for_the_last_fit(options):
    known = some_known([0, 1, 2])
    path = path_of("full", random_state=0, **options).fit(X, known_labels=known)
    for k in range(3):
        assert np.linalg.norm(CENTRES - path.best_estimator_.means_[k], axis=1).argmin() == k
    lazy = path_of("full", random_state=0, **options)
    lazy.fit(da.from_array(X, chunks=(100, -1)), known_labels=da.from_array(known, chunks=100))
    assert_array_equal(lazy.best_n_components_, path.best_n_components_)


def test_a_row_of_each_class_is_not_held_out():
    """Else nothing would tell a path which of its components is the class."""
    known = some_known([2, 3, 4], n_each=1)
    for seed in range(3):
        options = {"validation_fraction": 0.7, "criterion": "held_out", "random_state": seed}
        path = ComponentPath(ESTIMATORS["tied"], max_components=8, **options)
        best = path.fit(X, known_labels=known).best_estimator_
        for k in (2, 3, 4):
            assert np.linalg.norm(CENTRES - best.means_[k], axis=1).argmin() == k
    weights = np.ones(300)
    weights[LABELS == 2] = known[LABELS == 2] >= 0  # the only row of the class that weighs
    assert path.fit(X, sample_weight=weights, known_labels=known).best_n_components_ >= 5
    with pytest.raises(ValueError, match="are the only ones of known classes"):
        clone(path).set_params(max_components=5).fit(X[::60], known_labels=np.arange(5))


def test_more_classes_than_min_components_and_weights():
    known = some_known([0, 1, 2, 3])
    path = path_of("full", min_components=2).fit(
        X, known_labels=known, sample_weight=np.arange(300) % 3
    )
    assert path.results_["n_components"].min() == 4


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (np.full(299, -1), "inconsistent numbers of samples"),
        (np.full(300, 12), "from -1, or -2 with a background, to max_components - 1 = 11"),
        (np.full(300, -2), "needs background=True"),
        (np.full(300, 0.5), "known_labels should be integers"),
    ],
)
def test_other_labels_are_refused(known, message):
    path = path_of("full")
    with pytest.raises(ValueError, match=message):
        path.fit(X, known_labels=known)
    assert not hasattr(path, "results_")


def test_a_mixture_in_order_takes_none():
    path = ComponentPath(RelativeGMM(), max_components=5)
    with pytest.raises(ValueError, match=r"in their order.*take a SparseGaussianMixture"):
        path.fit(X, known_labels=some_known([0]))
