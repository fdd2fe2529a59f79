"""Features are given by number, name or mask, and rows as arrays or frames, or advice is given."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from skvmf import (
    ClusterTracker,
    ComponentPath,
    FisherVectorTransformer,
    SparseGaussianMixture,
    VonMisesFisherMixture,
)
from skvmf.inspection import component_stability, component_summary
from skvmf.plotting import DirectionsDisplay, MixtureDisplay, cluster_report
from skvmf.preprocessing import DirectionWhitener

pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(
        np.random.default_rng(0).normal(size=(60, 3)), columns=NAMES, index=np.arange(100, 160)
    )


@pytest.fixture(scope="module")
def mixture(rows):
    return SparseGaussianMixture(2, missing_values="marginal", random_state=0).fit(rows)


@pytest.mark.parametrize("features", ["b", ["b"], [1], np.array([False, True, False])])
def test_one_feature_is_given_by_name_number_or_mask(mixture, features):
    np.testing.assert_array_equal(mixture.marginal(features).means_, mixture.means_[:, [1]])
    expected = mixture.condition([1], [0.5])
    np.testing.assert_array_equal(mixture.condition(features, 0.5).means_, expected.means_)
    np.testing.assert_array_equal(mixture.condition(features, [0.5]).weights_, expected.weights_)


def test_a_mask_gives_features_in_their_order(mixture):
    marginal = mixture.marginal([True, False, True])
    np.testing.assert_array_equal(marginal.means_, mixture.means_[:, [0, 2]])
    assert marginal.feature_names_in_.tolist() == ["a", "c"]


@pytest.mark.parametrize("mask", [[True, False], [False] * 3, [True] * 4])
def test_masks_that_do_not_fit_are_refused(mixture, mask):
    with pytest.raises(ValueError, match="mask of 3 booleans"):
        mixture.marginal(mask)


def test_imputed_rows_are_frames_where_these_are_asked_for(mixture, rows):
    gone = rows.copy()
    gone.iloc[0, 1] = np.nan
    expected = mixture.impute(gone)
    assert isinstance(expected, np.ndarray)
    fitted = SparseGaussianMixture(2, missing_values="marginal", random_state=0).fit(rows)
    frame = fitted.set_output(transform="pandas").impute(gone)
    np.testing.assert_array_equal(frame.to_numpy(), expected)
    assert frame.columns.tolist() == NAMES
    assert frame.index.equals(rows.index)


ANNOTATED = SimpleNamespace(X=np.eye(4), obs=None, var=None, shape=(4, 4))
IN_FILE = SimpleNamespace(to_memory=lambda: np.eye(4), shape=(4, 4))
ADVICE = [(ANNOTATED, r"give its matrix X\.X"), (IN_FILE, r"give X\.to_memory\(\)")]


@pytest.mark.parametrize("kind", [SparseGaussianMixture, VonMisesFisherMixture])
@pytest.mark.parametrize(("given", "advice"), ADVICE)
def test_annotated_data_and_its_files_are_refused_with_advice(kind, given, advice, tmp_path):
    mixture = kind(1).fit(np.eye(4))
    display = MixtureDisplay if kind is SparseGaussianMixture else DirectionsDisplay
    calls = [
        kind(1).fit,
        kind(1).partial_fit,
        mixture.predict,
        mixture.score_samples,
        ComponentPath(kind(), max_components=2).fit,
        ClusterTracker(kind(1)).partial_fit,
        DirectionWhitener().fit,
        FisherVectorTransformer(embeddings=np.eye(4)).fit,
        partial(component_summary, mixture),
        partial(component_stability, mixture),
        partial(cluster_report, mixture, file=tmp_path / "report.html"),
        partial(display.from_estimator, mixture),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=advice):
            call(given)
