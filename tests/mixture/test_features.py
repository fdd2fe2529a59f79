"""Features are given by number, name or mask, and rows as arrays or frames, or advice is given."""

from types import SimpleNamespace

import numpy as np
import pytest

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

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


@pytest.mark.parametrize("estimator", [SparseGaussianMixture, VonMisesFisherMixture])
def test_annotated_data_and_its_files_are_refused_with_advice(estimator):
    annotated = SimpleNamespace(X=np.eye(4), obs=None, var=None, shape=(4, 4))
    with pytest.raises(TypeError, match=r"give its matrix X\.X"):
        estimator(1).fit(annotated)
    in_file = SimpleNamespace(to_memory=lambda: np.eye(4), shape=(4, 4))
    with pytest.raises(TypeError, match=r"give X\.to_memory\(\)"):
        estimator(1).fit(in_file)
