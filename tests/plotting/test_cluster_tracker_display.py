"""ClusterTrackerDisplay draws sizes as bands, and marks births and ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skvmf import ClusterTracker, VonMisesFisherMixture
from skvmf.plotting import ClusterTrackerDisplay

# Two clusters of the fit, of which one dies, one that is born and one that is born and merged.
SIZES = np.array([[90, 90, 0, 0], [9, 8, 0, 0], [9, 8, 0, 7], [9, 0, 6, 7], [9, 0, 6, 0]])
EVENTS = [
    {"kind": "birth", "id": 3, "batch": 2},
    {"kind": "birth", "id": 2, "batch": 3},
    {"kind": "death", "id": 1, "batch": 3},
    {"kind": "merge", "id": 3, "into": 2, "batch": 4},
]


def heights(band, batch):
    """Return the lower and upper edge of a band at a batch."""
    vertices = band.get_paths()[0].vertices
    own = vertices[vertices[:, 0] == batch, 1]
    return own.min(), own.max()


def test_bands_are_sizes_one_above_the_other():
    display = ClusterTrackerDisplay(SIZES, EVENTS).plot()
    assert sorted(display.bands_) == [0, 1, 2, 3]
    for batch in range(1, 5):
        tops = np.cumsum(SIZES[batch])
        for k, band in display.bands_.items():
            assert_allclose(heights(band, batch), (tops[k] - SIZES[batch, k], tops[k]))


def test_each_event_is_marked_in_the_band_of_its_cluster():
    display = ClusterTrackerDisplay(SIZES, EVENTS, names={2: "hockey"}).plot()
    assert [line.get_marker() for line in display.marks_] == ["^", "^", "X", "v"]
    for line, event in zip(display.marks_, EVENTS, strict=True):
        ((batch,), (height,)) = line.get_data()
        assert batch == event["batch"]
        low, high = heights(display.bands_[event["id"]], batch)
        assert low <= height <= high
    assert [text.get_text() for text in display.ax_.texts] == ["3", "hockey"]


def test_new_clusters_have_colours_and_those_of_the_fit_none(plt):
    axes = plt.subplots()[1]
    display = ClusterTrackerDisplay(SIZES, EVENTS).plot(ax=axes, alpha=0.5)
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    is_grey = {k: len(set(band.get_facecolor()[0, :3])) == 1 for k, band in display.bands_.items()}
    assert is_grey == {0: True, 1: True, 2: False, 3: False}
    assert display.bands_[0].get_alpha() == 0.5


def test_from_estimator_draws_a_tracker():
    rng = np.random.default_rng(0)
    X = np.repeat(10 * np.eye(3, 5), 30, axis=0) + rng.normal(size=(90, 5))
    tracker = ClusterTracker(VonMisesFisherMixture(3, random_state=0), random_state=0).fit(X)
    with pytest.raises(ValueError, match="partial_fit"):
        ClusterTrackerDisplay.from_estimator(tracker)
    tracker.partial_fit(X).partial_fit(X)
    display = ClusterTrackerDisplay.from_estimator(tracker)
    assert len(display.bands_) == 3
    assert heights(display.bands_[2], 2)[1] == 90
