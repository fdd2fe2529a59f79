"""Known labels of a RelativeGMM: some classes, all of them, and such as contradict its order."""

from copy import deepcopy
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from skvmf import RelativeGMM

from ..hooks import few_rows_in_blocks

RNG = np.random.default_rng(1)
CLASSES = RNG.integers(4, size=400)
CENTRES = np.array([[0.0, 4], [6, 1], [12, 9], [18, 6]])
BLOBS = CENTRES[CLASSES] + RNG.normal(size=(400, 2))
WIDTHS = np.array([0.3, 0.6, 1.2, 2.4])
WIDE = 6.0 * CLASSES[:, None] + WIDTHS[CLASSES][:, None] * RNG.normal(size=(400, 2))
# What is in order along each feature: the classes by their means, or by their widths.
DATA = {
    "blobs": (BLOBS, CLASSES, "means"),
    "widths": (WIDE, CLASSES, "scales"),
    "wine": (*load_wine(return_X_y=True), "means"),
    "iris": (*load_iris(return_X_y=True), "means"),
}


def in_order(name, feature):
    """Return rows, their classes by number in the order along a feature, and what is in order."""
    rows, classes, order = DATA[name]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    of_classes = [rows[classes == k, feature] for k in range(classes.max() + 1)]
    values = [each.mean() if order == "means" else each.std() for each in of_classes]
    return rows, np.argsort(np.argsort(values))[classes], order


def some_known(labels, classes, n_each, seed=0):
    """Return the labels of a few rows of some classes, -1 for all others."""
    rng = np.random.default_rng(seed)
    known = np.full(len(labels), -1)
    for k in classes:
        rows = rng.choice(np.flatnonzero(labels == k), n_each, replace=False)
        known[rows] = k
    return known


def new(n_components, feature=0, order="means", **params):
    options = {"covariance_type": "diag", "random_state": 0} | params
    return RelativeGMM(n_components, ordering_feature=feature, order=order, **options)


@pytest.mark.parametrize("name", DATA)
def test_some_classes_are_known_and_others_are_found_between_them(name):
    """They get the numbers of their order, where rows tell it, and are found in any case."""
    features = range(2 if name in ("blobs", "widths") else 4)
    n_each = 10 if name == "widths" else 4
    for feature in features:
        rows, labels, order = in_order(name, feature)
        K = int(labels.max()) + 1
        for n_classes in range(1, K):
            for classes in combinations(range(K), n_classes):
                known = some_known(labels, classes, n_each)
                mixture = new(K, feature, order).fit(rows, known_labels=known)
                assert adjusted_rand_score(labels, mixture.labels_) > 0.6
                # Along feature 1 of wine two means are closer than their standard errors.
                if (name, feature) != ("wine", 1):
                    assert (mixture.labels_ == labels).mean() > 0.8


def entrances(rows, classes):
    """Return what takes known labels: fits, batches and warm starts, of rows in order."""
    n = int(classes.max()) + 1

    def warm(n_before, n_after):
        mixture = new(n_before, warm_start=True).fit(rows)
        return mixture.set_params(n_components=n_after).fit

    means = [rows[classes == k].mean(axis=0) for k in range(n)]
    return {
        "fit": new(n).fit,
        "random start": new(n, init_params="random").fit,
        "given means": new(n, means_init=means).fit,
        "given partition": new(n, init_params=classes).fit,
        "first batch": new(n).partial_fit,
        "batch": new(n).partial_fit(rows).partial_fit,
        "batch after fit": new(n).fit(rows).partial_fit,
        "warm start": warm(n, n),
        "more components": warm(n - 1, n),
    }


ENTRANCES = list(entrances(BLOBS[:40], CLASSES[:40]))


@pytest.mark.parametrize("n_each", [1, 4, 50])
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_labels_in_the_wrong_order_are_refused_in_every_entrance(entrance, n_each):
    fit = entrances(BLOBS, CLASSES)[entrance]
    known = some_known(CLASSES, [0, 2], n_each)
    fit(BLOBS, known_labels=known)
    swapped = np.where(known >= 0, 2 - known, -1)
    fit = entrances(BLOBS, CLASSES)[entrance]
    with pytest.raises(ValueError, match="contradict the order of the components"):
        fit(BLOBS, known_labels=swapped)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_chance_is_no_contradiction(entrance):
    """Of classes that overlap, a few known rows may be in the other order."""
    rows = RNG.normal(size=(400, 2)) + 0.2 * CLASSES[:, None]
    low, high = rows[:, 0].argsort()[[190, 210]]
    known = np.full(400, -1)
    known[[low, high]] = 1, 0
    entrances(rows, CLASSES)[entrance](rows, known_labels=known)


def test_widths_in_the_wrong_order_are_refused():
    known = some_known(CLASSES, [0, 3], 20)
    new(4, order="scales").fit(WIDE, known_labels=known)
    with pytest.raises(ValueError, match=r"the standard deviation of the rows of class 3 is below"):
        new(4, order="scales").fit(WIDE, known_labels=np.where(known >= 0, 3 - known, -1))


def test_a_free_component_without_a_cluster_between_two_classes_stays_between():
    """Of three components the second is free, and there is no third cluster but above both."""
    rows = np.vstack([centre + RNG.normal(size=(100, 1)) for centre in (0.0, 10.0, 30.0)])
    known = np.full(300, -1)
    known[:5], known[100:105] = 0, 2
    mixture = new(3, max_iter=0).fit(rows, known_labels=known)
    low, middle, high = mixture.means_[:, 0]
    assert low <= middle <= high
    assert_allclose([low, high], [0, 10], atol=1)


def test_rows_of_a_class_that_has_left_contradict_nothing():
    mixture = RelativeGMM.from_parameters(
        [0.5, 0.5, 0.0], [[0.0], [10.0], [20.0]], np.ones((3, 1, 1)), max_iter=1, warm_start=True
    )
    rows = np.vstack([RNG.normal(size=(50, 1)), 10 + RNG.normal(size=(50, 1))])
    known = np.full(100, -1)
    known[0] = 2
    expected = deepcopy(mixture).fit(rows).means_
    assert_array_equal(mixture.fit(rows, known_labels=known).means_, expected)


def test_blocks_without_a_row_of_a_known_class_add_nothing():
    known = np.full(400, -1)
    known[-10:] = CLASSES[-10:]
    expected = new(4).fit(BLOBS, known_labels=known).means_
    with few_rows_in_blocks():
        assert_allclose(new(4).fit(BLOBS, known_labels=known).means_, expected)


@pytest.mark.parametrize("entrance", ["fit", "warm start"])
def test_covariances_that_are_fixed_say_what_chance_is(entrance):
    """They are far smaller than those of the rows, of which the means are in the other order."""
    rows = BLOBS[:40] * [0.1, 1.0]
    known = np.where(CLASSES[:40] == 0, 1, np.where(CLASSES[:40] == 1, 0, -1))
    options = {"fixed": ("covariances",), "precisions_init": np.full((4, 2), 1e4)}
    mixture = new(4, **options)
    if entrance == "warm start":
        mixture.set_params(warm_start=True).fit(rows)
    with pytest.raises(ValueError, match="contradict the order of the components"):
        mixture.fit(rows, known_labels=known)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(12))
def test_rows_on_a_line_are_put_in_order_or_refused(seed):
    """Covariances that are singular but for rounding may be so once their widths are in order."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(40, 1)) * 1e30
    X = (places * rng.normal(size=2)).astype(np.float32)
    known = np.where(rng.random(40) < 0.4, rng.integers(4, size=40), -1)
    mixture = RelativeGMM(4, order="scales", random_state=0)
    refusal = None
    try:
        mixture.fit(X, known_labels=known)
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        assert np.isfinite(mixture.lower_bound_)
    else:
        assert "the rows" in refusal
        assert "Increase reg_covar" in refusal
