"""Masked arrays: no entrance takes masked values as if nobody had masked them."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skvmf import (
    ClusterTracker,
    ComponentPath,
    FisherVectorTransformer,
    SparseGaussianMixture,
    VonMisesFisherMixture,
)
from skvmf.inspection import component_stability, component_summary, coverage_curve
from skvmf.plotting import DirectionsDisplay, MixtureDisplay, cluster_report
from skvmf.preprocessing import DirectionWhitener

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(30, 4)), 6 + RNG.normal(size=(30, 4))])
LABELS = np.repeat([0, 1], 30)
KINDS = [SparseGaussianMixture, VonMisesFisherMixture]


def masked(values):
    """Return the values with every seventh masked, and numbers below the masks."""
    mask = np.arange(values.size).reshape(values.shape) % 7 == 3
    return np.ma.masked_array(np.where(mask, values.max(), values), mask=mask)


def refused(name):
    return pytest.raises(ValueError, match=rf"{name} is a masked array, and \d+ of its values")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_mixtures(kind):
    mixture = kind(2, random_state=0).fit(X)
    calls = [kind(2).fit, kind(2).fit_predict, kind(2).partial_fit, mixture.predict, mixture.score]
    calls += [mixture.predict_proba, mixture.score_samples, mixture.transform, mixture.partial_fit]
    calls += [mixture.bic, ComponentPath(kind(), max_components=3).fit]
    for call in calls:
        with refused("X"):
            call(masked(X))
    for call in (component_summary, component_stability):
        with refused("X"):
            call(mixture, masked(X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_and_known_labels(kind, method):
    for name, values in {"sample_weight": np.ones(60), "known_labels": LABELS}.items():
        for estimator in (kind(2), ComponentPath(kind(), max_components=2)):
            if hasattr(estimator, method):
                with refused(name):
                    getattr(estimator, method)(X, **{name: masked(values)})


@pytest.mark.parametrize("kind", KINDS)
def test_first_values(kind):
    for name, values in {"means_init": X[::30], "init_params": LABELS}.items():
        with refused(name):
            kind(2, **{name: masked(values)}).fit(X)
    with refused("weights_init"):
        kind(2, weights_init=np.ma.masked_array([0.5, 0.5], mask=[True, False])).fit(X)


def test_labels_that_are_compared_or_drawn():
    mixture = VonMisesFisherMixture(2, random_state=0).fit(X)
    with refused("labels"):
        component_summary(mixture, X, labels=masked(LABELS))
    with refused("labels"):
        DirectionsDisplay.from_estimator(mixture, X, labels=masked(LABELS))
    with refused("y"):
        coverage_curve(mixture, X, masked(LABELS))
    for name, values in {"sample_weight": np.ones(60), "known_labels": LABELS}.items():
        with refused(name):
            component_stability(mixture, X, n_resamples=2, **{name: masked(values)})


def test_pictures_take_masked_values_as_missing():
    with refused("X"):
        MixtureDisplay.from_estimator(SparseGaussianMixture(2).fit(X), masked(X))
    mixture = SparseGaussianMixture(2, missing_values="marginal", random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(mixture, masked(X))
    assert_array_equal(display.labels, mixture.predict(masked(X).filled(np.nan)))
    assert_array_equal(display.X, masked(X).filled(np.nan)[:, :2])
    directions = VonMisesFisherMixture(2, random_state=0).fit(X[:, :3])
    with refused("X"):
        DirectionsDisplay.from_estimator(directions, masked(X[:, :3]), labels=LABELS)


@pytest.mark.parametrize("labels", [None, LABELS])
def test_tables_and_reports_take_masked_values_as_missing(labels, tmp_path):
    """What is below a mask does not change which rows are typical."""
    mixture = SparseGaussianMixture(2, missing_values="marginal", random_state=0).fit(X)
    told = {}
    for name, rows in {"masked": masked(X), "nan": masked(X).filled(np.nan)}.items():
        cluster_report(mixture, rows, labels=labels, file=tmp_path / name)
        summary = component_summary(mixture, rows, labels=labels)
        told[name] = str(summary), (tmp_path / name).read_text("utf-8")
    assert told["masked"] == told["nan"]


def test_whiteners():
    for call in (DirectionWhitener().fit, DirectionWhitener().partial_fit):
        with refused("X"):
            call(masked(X))
    with refused("X"):
        DirectionWhitener().fit(X).transform(masked(X))
    with refused("sample_weight"):
        DirectionWhitener().fit(X, sample_weight=masked(np.ones(60)))


def test_fisher_vectors():
    mixture = SparseGaussianMixture(2, covariance_type="diag")
    counts, bags = np.abs(X.round()), [X[:20], X[20:]]
    with refused("embeddings"):
        FisherVectorTransformer(embeddings=masked(X), mixture=mixture).fit(np.ones((3, 60)))
    of_counts = FisherVectorTransformer(embeddings=X[:4], mixture=mixture)
    with refused("X"):
        of_counts.fit(masked(counts))
    with refused("X"):
        of_counts.fit(counts).transform(masked(counts))
    of_bags = FisherVectorTransformer(mixture=mixture)
    for call in (of_bags.fit, of_bags.fit(bags).transform):
        with refused(r"X\[0\]"):
            call([masked(bag) for bag in bags])


def test_trackers():
    tracker = ClusterTracker(VonMisesFisherMixture(2, random_state=0))
    with refused("X"):
        tracker.fit(masked(X))
    for method in ("fit", "partial_fit"):  # the first, and one that goes on
        for name, values in {"sample_weight": np.ones(60), "known_labels": LABELS}.items():
            with refused(name):
                getattr(tracker, method)(X, **{name: masked(values)})
        tracker.fit(X)
    for call in (tracker.partial_fit, tracker.predict):
        with refused("X"):
            call(masked(X))


@pytest.mark.parametrize("missing_values", ["error", "marginal"])
def test_dask_arrays_of_masked_arrays(missing_values):
    rows = da.ma.masked_greater(da.from_array(X, chunks=(20, 4)), 7)
    with pytest.raises(ValueError, match=r"of masked arrays.*map_blocks"):
        SparseGaussianMixture(2, missing_values=missing_values).fit(rows)
