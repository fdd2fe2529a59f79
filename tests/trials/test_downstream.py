"""A maintainer of a package that builds on skvmf: scikit-learn's conventions hold."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skvmf import (
    FisherVectorTransformer,
    RelativeGMM,
    SparseGaussianMixture,
    StudentTMixture,
    VonMisesFisherMixture,
)
from skvmf.preprocessing import DirectionWhitener

X = load_iris().data
MIXTURES = [VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture, RelativeGMM]
SPARSE_CHECKS = ["check_estimator_sparse_array", "check_estimator_sparse_matrix"]


class Labelled(VonMisesFisherMixture):
    """A subclass with a parameter and an attribute of its own."""

    def __init__(self, n_components=2, *, prefix="cluster", random_state=None):
        super().__init__(n_components, random_state=random_state)
        self.prefix = prefix

    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture and name its components."""
        super().fit(X, y, sample_weight=sample_weight)
        self.names_ = [f"{self.prefix} {k}" for k in range(self.n_components)]
        return self


def test_a_subclass_is_cloned_pickled_and_piped():
    mixture = clone(Labelled(3, prefix="topic", random_state=0)).fit(X)
    assert mixture.names_ == ["topic 0", "topic 1", "topic 2"]
    assert mixture.get_params() == {"n_components": 3, "prefix": "topic", "random_state": 0}
    loaded = pickle.loads(pickle.dumps(mixture))
    assert loaded.names_ == mixture.names_
    np.testing.assert_array_equal(loaded.predict(X), mixture.labels_)
    labels = make_pipeline(DirectionWhitener(), Labelled(3, random_state=0)).fit_predict(X)
    assert set(labels) == {0, 1, 2}


@pytest.mark.parametrize("mixture", MIXTURES)
def test_skops_trusts_one_class(mixture, tmp_path):
    io = pytest.importorskip("skops.io")
    fitted = mixture(3, random_state=0).fit(X)
    io.dump(fitted, tmp_path / "mixture.skops")
    name = f"{mixture.__module__}.{mixture.__name__}"
    assert io.get_untrusted_types(file=tmp_path / "mixture.skops") == [name]
    loaded = io.load(tmp_path / "mixture.skops", trusted=[name])
    np.testing.assert_array_equal(loaded.predict(X), fitted.labels_)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_output_is_set_and_named(mixture):
    pytest.importorskip("pandas")
    frame = load_iris(as_frame=True).data
    fitted = mixture(3, random_state=0).set_output(transform="pandas").fit(frame)
    features = fitted.transform(frame)
    assert list(features.columns) == list(fitted.get_feature_names_out())
    assert list(features.columns) == [f"{mixture.__name__.lower()}{k}" for k in range(3)]
    np.testing.assert_allclose(features.sum(axis=1), 1)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_errors_are_those_of_scikit_learn(mixture):
    with pytest.raises(NotFittedError):
        mixture(3).predict(X)
    with pytest.raises(ValueError, match="'n_components' parameter of"):
        mixture("3").fit(X)
    fitted = mixture(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        fitted.predict(X[:, :2])
    assert get_tags(fitted).estimator_type == "density_estimator"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "failures"),
    [
        (VonMisesFisherMixture(), SPARSE_CHECKS),  # which read tags that classifiers alone have
        (SparseGaussianMixture(), []),
        (StudentTMixture(), []),
        (RelativeGMM(), []),
        (FisherVectorTransformer(), []),
        (DirectionWhitener(), []),
    ],
)
@pytest.mark.slow
def test_the_checks_that_fail_are_known(estimator, failures):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert [each["check_name"] for each in results if each["status"] == "failed"] == failures


def test_importing_loads_no_optional_package():
    code = "import sys, skvmf; print(*{'torch', 'dask', 'matplotlib'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == ""
