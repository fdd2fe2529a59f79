"""FenchelYoungDocumentModel: counts of words, sparse matrices, topics."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'skvmf[neural]'")

from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skvmf.neural import FenchelYoungDocumentModel

from ..csr_forms import FORMS, unsorted
from .checks import assert_same

SMALL = {"hidden_layer_sizes": (16,), "beta": 0.1, "random_state": 0}


def documents(n=120, words=12, seed=0):
    """Documents of two topics without a word in common, and which topic each is of."""
    shares = np.random.default_rng(99).dirichlet(np.ones(words), size=2)
    rng, topics = np.random.default_rng(seed), np.arange(n) % 2
    counts = np.zeros((n, 2, words), dtype=np.int64)
    for row, topic in zip(counts, topics, strict=True):
        row[topic] = rng.multinomial(rng.integers(5, 60), shares[topic])
    return counts.reshape(n, -1), topics


COUNTS, TOPICS = documents()


def fit(X=COUNTS, **options):
    return FenchelYoungDocumentModel(3, **(SMALL | {"max_epochs": 3} | options)).fit(X)


OTHERS = [
    lambda X: sparse.csr_array(X.astype(np.float32)),
    lambda X: sparse.csr_array(X.astype(np.float64)),
    lambda X: X.astype(np.float32),
    np.asfortranarray,
]


HELD_OUT = {"early_stopping": True, "entmax_alpha": 1.5, "max_epochs": 2}


@pytest.fixture(scope="module")
def dense():
    return fit(**HELD_OUT)


@pytest.fixture(scope="module")
def dense_and_further():
    return fit(**HELD_OUT).partial_fit(COUNTS)


@pytest.mark.parametrize("form", [*FORMS, *OTHERS])
def test_sparse_is_the_same_as_dense(form, dense, dense_and_further):
    X = form(COUNTS)
    other = fit(X, **HELD_OUT)
    assert_same(dense, other)
    assert_array_equal(other.transform(X), dense.transform(COUNTS))
    assert other.score(X) == dense.score(COUNTS)
    assert_same(dense_and_further, other.partial_fit(X))


def test_sparse_input_is_left_alone():
    X = unsorted(COUNTS)
    copies = X.data.copy(), X.indices.copy(), X.indptr.copy()
    fit(X).transform(X)
    for part, copy in zip((X.data, X.indices, X.indptr), copies, strict=True):
        assert_array_equal(part, copy)


@pytest.mark.parametrize(
    ("entmax_alpha", "target"), [(1.0, "counts"), (1.5, "proportions"), (2.0, "counts")]
)
def test_topics_without_common_words_are_apart(entmax_alpha, target):
    """And decoded documents are probabilities."""
    options = {"entmax_alpha": entmax_alpha, "target": target, "beta": 1e-3}
    model = fit(max_epochs=60, learning_rate=0.01, **options)
    assert model.losses_[-1] < 0.8 * model.losses_[0]
    coordinates = model.transform(COUNTS)
    line = LogisticRegression(C=1e3).fit(coordinates, TOPICS)
    assert line.score(coordinates, TOPICS) == 1
    others, topics = documents(seed=1)
    assert line.score(model.transform(others), topics) == 1
    for decoded in (model.inverse_transform(coordinates), model.sample(20)):
        assert_allclose(decoded.sum(axis=1), 1, rtol=1e-6)
        assert decoded.min() >= 0
    zeros = (model.inverse_transform(coordinates) == 0).mean()
    assert zeros == 0 if entmax_alpha == 1 else zeros > 0.4  # half of the words: other topic


def test_components_add_up_to_the_decoders_scores():
    model = fit()
    assert model.components_.shape == (3, 24)
    assert model.components_.dtype == np.float32
    z = np.random.default_rng(0).normal(size=(10, 3))
    scores = z @ model.components_ + model.network_.decoder[0].bias.detach().numpy()
    expected = torch.softmax(torch.from_numpy(scores), -1)
    assert_allclose(model.inverse_transform(z), expected, rtol=1e-5)


def test_counts_weigh_documents_and_proportions_do_not():
    counts, proportions = fit(beta=0.0), fit(beta=0.0, target="proportions")
    assert_allclose(counts.transform(3 * COUNTS), counts.transform(COUNTS), atol=1e-6)
    assert_allclose(counts.score(3 * COUNTS), 3 * counts.score(COUNTS), rtol=1e-5)
    assert_allclose(proportions.score(3 * COUNTS), proportions.score(COUNTS), rtol=1e-5)
    shares = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    inputs, target = counts._batch(COUNTS, "cpu")
    assert_allclose(inputs, np.sqrt(shares), rtol=1e-6)  # what the encoder sees
    assert_array_equal(target, COUNTS)
    proportions.network_ = counts.network_
    assert_allclose(proportions.score(COUNTS), counts.score(shares), rtol=1e-5)


def test_empty_documents():
    X = COUNTS.copy()
    X[::5] = 0
    for form in (np.array, sparse.csr_array):
        model = fit(form(X))
        coordinates = model.transform(form(X))
        assert np.isfinite(coordinates).all()
        assert_array_equal(coordinates[::5], np.tile(coordinates[0], (24, 1)))
        none = form(np.zeros((5, 24)))
        assert np.isfinite(model.score(none))
        nothing = fit(none, max_epochs=10)
        assert np.isfinite(nothing.losses_).all()
        assert_allclose(nothing.inverse_transform(nothing.transform(none)).sum(axis=1), 1, 1e-6)


def test_pipeline_of_texts():
    texts = ["moon orbit rocket", "orbit moon moon", "salt butter pan", "pan butter"] * 10
    model = FenchelYoungDocumentModel(2, max_epochs=3, **SMALL)
    pipeline = make_pipeline(CountVectorizer(), model).fit(texts)
    assert pipeline.transform([*texts, "words never seen"]).shape == (41, 2)
    assert np.isfinite(pipeline.score(texts))
    names = pipeline[0].get_feature_names_out()
    assert {word for words in model.top_words(names, 7) for word in words} <= set(names)
    grid = {"fenchelyoungdocumentmodel__entmax_alpha": [1.0, 1.5]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(texts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_top_words():
    model = fit()
    names = np.array([f"w{j}" for j in range(24)])
    result = model.top_words(names, n_words=4)
    order = np.argsort(-model.components_, axis=1)[:, :4]
    assert result == names[order].tolist()
    assert all(type(word) is str for topic in result for word in topic)
    assert [len(topic) for topic in model.top_words(list(names))] == [10, 10, 10]
    assert [len(topic) for topic in model.top_words(names, 99)] == [24, 24, 24]
    pandas = pytest.importorskip("pandas")
    assert fit(pandas.DataFrame(COUNTS, columns=names)).top_words() == model.top_words(names)
    for bad in (None, names[:5], [], "abcdefghijklmnopqrstuvwx", dict.fromkeys(names), names[None]):
        with pytest.raises(ValueError, match="a name for each of the 24 features"):
            model.top_words(bad)
    for bad in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="n_words must be a positive integer"):
            model.top_words(names, bad)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        *[(-1, "Negative values"), (-1e-30, "Negative values"), (np.nan, "NaN")],
        *[(np.inf, "infinity"), (1e31, "counts above 1e"), (1e300, "counts above 1e")],
    ],
)
def test_bad_counts_are_refused(form, method, bad, message):
    X = COUNTS.astype(float)
    X[3, 5] = bad
    model = fit(max_epochs=0)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(form(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [*[("alternating_epochs", n) for n in (0, -1, 1.5, "both")], ("target", "words")],
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        fit(**{name: value})


def test_nothing_is_known_before_fit():
    model = FenchelYoungDocumentModel()
    with pytest.raises(ValueError, match="not fitted"):
        model.top_words(["a"])
    with pytest.raises(ValueError, match="not fitted"):
        model.components_  # noqa: B018


# Encoder and decoder by turns


class Recorder(torch.optim.Adam):
    """Adam that writes down which modules of a network each of its steps has moved."""

    network, steps = None, []

    def step(self, *args, **kwargs):
        before = {name: p.detach().clone() for name, p in self.network.named_parameters()}
        super().step(*args, **kwargs)
        moved = {
            name.split(".")[0]
            for name, p in self.network.named_parameters()
            if not torch.equal(p, before[name])
        }
        self.steps.append("+".join(sorted(moved)))


@pytest.mark.parametrize("n", [None, 1, 3])
def test_encoder_and_decoder_take_turns(n, monkeypatch):
    steps = []
    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    monkeypatch.setattr(Recorder, "steps", steps)
    model = fit(max_epochs=0, batch_size=60, alternating_epochs=n)
    monkeypatch.setattr(Recorder, "network", model.network_)
    monkeypatch.setattr("skvmf.neural._autoencoder.deepcopy", lambda kept: kept)
    for _ in range(2):
        model.partial_fit(COUNTS)
    epoch = ["decoder+encoder"] * 2 if n is None else ["decoder"] * 2 * n + ["encoder"] * 2 * n
    assert steps == 2 * epoch
    assert len(model.losses_) == model.n_epochs_ == 2
    assert all(parameter.requires_grad for parameter in model.network_.parameters())


def test_turns_learn_the_topics():
    options = {"max_epochs": 40, "entmax_alpha": 1.5, "learning_rate": 0.01}
    model = fit(alternating_epochs=1, **options)
    assert model.losses_[-1] < model.losses_[0]
    both = fit(**options)  # as many steps of each
    assert model.score(COUNTS) > 1.1 * both.score(COUNTS)
    coordinates = model.transform(COUNTS)
    assert LogisticRegression().fit(coordinates, TOPICS).score(coordinates, TOPICS) > 0.95
