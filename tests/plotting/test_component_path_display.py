"""ComponentPathDisplay draws the results and the tree of a path."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from sklearn.exceptions import NotFittedError

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.model_selection import ComponentPath
from skvmf.plotting import ComponentPathDisplay

to_rgba = pytest.importorskip("matplotlib.colors").to_rgba


N_SAMPLES = 400


def blobs():
    return make_vonmises_fisher_blobs(N_SAMPLES, 8, centers=4, concentration=60.0, random_state=0)


@pytest.fixture(scope="module")
def path():
    X, _ = blobs()
    return ComponentPath(VonMisesFisherMixture(random_state=0), max_components=9).fit(X)


def test_the_criterion_and_the_number_chosen(path):
    display = ComponentPathDisplay.from_estimator(path)
    assert_array_equal(display.line_.get_xdata(), np.arange(1, 10))
    slope = path.results_["slope"]
    assert_allclose(display.line_.get_ydata(), (slope - slope.min()) / (2 * N_SAMPLES))
    chosen = display.ax_.lines[-1]
    assert_array_equal(chosen.get_xydata(), [[4, 0]])
    assert display.ax_.get_legend().get_texts()[0].get_text() == "4 components"
    assert display.ax_.get_ylabel() == "slope: nats per row above the best"
    assert display.figure_ is display.ax_.figure
    assert display.branches_ is None
    assert display.leaves_ is None


def test_units_do_not_depend_on_the_number_of_rows_and_their_weights(path):
    X, _ = blobs()
    tripled = ComponentPath(path.estimator, max_components=9, criterion="held_out", random_state=0)
    tripled.fit(X, sample_weight=np.full(len(X), 3.0))
    display = ComponentPathDisplay.from_estimator(tripled)
    assert_allclose(display.n_samples, 0.8 * 3 * N_SAMPLES)
    held_out = tripled.results_["held_out"]
    assert_allclose(display.line_.get_ydata(), held_out - held_out.min())
    parameters = ComponentPathDisplay.from_estimator(tripled, criterion="n_parameters")
    assert_array_equal(parameters.line_.get_ydata(), tripled.results_["n_parameters"])


def test_the_tree_is_that_of_scipy(path):
    display = ComponentPathDisplay.from_estimator(path, kind="dendrogram")
    theirs = hierarchy.dendrogram(path.linkage_, no_plot=True)
    segments = np.array(display.branches_.get_segments())
    assert segments.shape == (8, 4, 2)
    tops = np.sort(segments[:, 1, 1])
    assert_allclose(tops, np.maximum(path.linkage_[:, 2], 1) / N_SAMPLES)
    # SciPy's leaves are ten apart and begin at five
    middles = np.sort(segments[:, 1:3, 0].mean(axis=1))
    assert_allclose(middles, np.sort([(np.mean(x[1:3]) - 5) / 10 for x in theirs["icoord"]]))
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_ylabel() == "log-likelihood lost, nats per row"
    assert display.line_ is None


def test_leaves_have_weights_and_the_colours_of_the_chosen(path):
    display = ComponentPathDisplay.from_estimator(path, kind="dendrogram")
    sizes = display.leaves_.get_sizes()
    assert_allclose(sizes / sizes.max(), path.leaf_weights_ / path.leaf_weights_.max())
    colours = [tuple(colour) for colour in display.leaves_.get_facecolors()]
    parts = path.cut(4)  # the same parts as the components chosen, on clusters so far apart
    for part in range(4):
        leaf_colours = {colours[leaf] for leaf in np.unique(path.leaf_labels_[parts == part])}
        assert leaf_colours == {to_rgba(f"C{part}")}
    grey = [tuple(colour) == to_rgba("0.6") for colour in display.branches_.get_colors()]
    assert sum(grey) == 3


def test_names_stand_below_their_components(path):
    names = ["north", "east", "south", "west"]
    ax = ComponentPathDisplay.from_estimator(path, kind="dendrogram", names=names).ax_
    assert [label.get_text() for label in ax.get_xticklabels()] == names
    numbers = ComponentPathDisplay.from_estimator(path, kind="dendrogram").ax_
    assert [label.get_text() for label in numbers.get_xticklabels()] == list("0123")
    leaves = hierarchy.dendrogram(path.linkage_, no_plot=True)["leaves"]
    component = path.labels_[[np.flatnonzero(path.leaf_labels_ == leaf)[0] for leaf in leaves]]
    expected = [np.flatnonzero(component == k).mean() for k in range(4)]
    assert_allclose(numbers.get_xticks(), expected)


def test_long_names_are_not_cut_or_over_each_other(path):
    names = [f"{name}, frequency, distribution, polynomial" for name in "abcd"]
    display = ComponentPathDisplay.from_estimator(path, kind="dendrogram", names=names)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_xticklabels()]
    assert min(box.y0 for box in boxes) >= 0
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert display.ax_.bbox.height > 0.5 * display.figure_.bbox.height
    heights = [label.get_text() for label in display.ax_.get_yticklabels(which="both")]
    shown = [text for text in heights if text]
    assert shown == [f"{float(text):g}" for text in shown] != []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "kind should be 'criterion' or 'dendrogram', got 'pie'"),
        ({"criterion": "aic"}, "criterion should be one of .*'bic'.* got 'aic'"),
        ({"kind": "dendrogram", "names": ["a"]}, "one for each of the 4 components chosen, got 1"),
    ],
)
def test_clear_errors(path, arguments, message):
    with pytest.raises(ValueError, match=message):
        ComponentPathDisplay.from_estimator(path, **arguments)


def test_one_component_has_no_tree_and_no_fit_no_display(path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    single = ComponentPath(path.estimator, max_components=1).fit(X)
    assert len(ComponentPathDisplay.from_estimator(single).line_.get_xdata()) == 1
    with pytest.raises(ValueError, match="one component has no dendrogram"):
        ComponentPathDisplay.from_estimator(single, kind="dendrogram")
    with pytest.raises(NotFittedError):
        ComponentPathDisplay.from_estimator(ComponentPath(VonMisesFisherMixture()))
