"""A user of embeddings: clusters, their names, outliers, new rows and their number."""

import joblib
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skvmf import VonMisesFisherMixture
from skvmf.inspection import component_summary
from skvmf.model_selection import ComponentPath
from skvmf.preprocessing import DirectionWhitener


@pytest.fixture(scope="module")
def mixture(documents):
    """Return the mixture of the guide."""
    return VonMisesFisherMixture(13, random_state=0).fit(documents.X)


def test_clusters_are_at_least_as_good_as_those_of_kmeans(mixture, documents):
    kmeans = KMeans(13, n_init=10, random_state=0).fit(normalize(documents.X))
    ours, theirs = (
        normalized_mutual_info_score(documents.target, labels)
        for labels in (mixture.labels_, kmeans.labels_)
    )
    assert ours > max(0.65, theirs - 0.01)


def test_rows_are_taken_as_they_are(mixture, documents):
    """Float32, of any length, as an array, a list of arrays or lists of numbers."""
    X = documents.X
    assert X.dtype == np.float32
    np.testing.assert_array_equal(mixture.predict(4 * X), mixture.labels_)
    for rows in (list(X[:20]), X[:20].tolist()):
        np.testing.assert_array_equal(mixture.predict(rows), mixture.labels_[:20])


def test_clusters_have_names_and_their_own_tightness(mixture, documents):
    summary = component_summary(mixture, documents.X, texts=documents.texts)
    assert len(set(summary.names(2))) == 13
    units = normalize(documents.X)
    for component, cosine in zip(summary.labels, summary.cosines, strict=True):
        rows = units[mixture.labels_ == component]
        expected = (rows @ mixture.mean_directions_[component]).mean()
        np.testing.assert_allclose(cosine, expected, rtol=1e-5)


def test_a_new_text_has_the_topic_of_its_words(mixture, documents):
    pipeline = make_pipeline(documents.encoder, mixture)
    spline, *_ = pipeline.predict(["Fit a smoothing spline to noisy points, with these knots."])
    names = component_summary(mixture, documents.X, texts=documents.texts).names(5)
    assert "spline" in names[spline]


def test_a_random_direction_is_an_outlier(mixture, documents):
    noise = np.random.default_rng(0).normal(size=(200, 50))
    threshold = np.quantile(mixture.score_samples(documents.X), 0.05)
    assert np.mean(mixture.score_samples(noise) < threshold) > 0.95


def test_a_saved_model_predicts_the_same(mixture, documents, tmp_path):
    joblib.dump(mixture, tmp_path / "mixture.joblib")
    loaded = joblib.load(tmp_path / "mixture.joblib")
    np.testing.assert_array_equal(loaded.predict(documents.X), mixture.labels_)


def test_rows_are_whitened_before_the_fit(documents):
    pipeline = make_pipeline(DirectionWhitener(), VonMisesFisherMixture(13, random_state=0))
    labels = pipeline.fit_predict(documents.X)
    assert normalized_mutual_info_score(documents.target, labels) > 0.63


def test_a_number_of_clusters_is_recommended_or_doubted(documents):
    """A path that begins with too few components says so, instead of finding one cluster."""
    with pytest.warns(UserWarning, match="Raise max_components"):
        ComponentPath(VonMisesFisherMixture(random_state=0), max_components=25).fit(documents.X)
    path = ComponentPath(VonMisesFisherMixture(random_state=0), max_components=80)
    assert 13 / 3 < path.fit(documents.X).best_n_components_ < 80


def test_mistakes_are_named_in_a_few_words(documents):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(documents.X[:50]).add_prefix("x").assign(title=documents.texts[:50])
    with pytest.raises(ValueError, match="Column 'title' of X does not hold numbers") as caught:
        VonMisesFisherMixture(3).fit(frame)
    assert len(str(caught.value)) < 300
    with pytest.raises(ValueError, match="sentence encoder"):
        VonMisesFisherMixture(3).fit(documents.texts)
    with pytest.raises(ValueError, match="Expected n_samples >= n_components"):
        VonMisesFisherMixture(8).fit(documents.X[:5])
    with pytest.raises(ValueError, match="Reshape your data"):
        VonMisesFisherMixture(3, random_state=0).fit(documents.X).predict(documents.X[0])
