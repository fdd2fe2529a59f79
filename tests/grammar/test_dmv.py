"""The grammar as an estimator: what it learns, what it says, and scikit-learn's manners."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks, get_tags
from threadpoolctl import threadpool_limits

from skvmf.grammar import DependencyModelWithValence

from .enumeration import enumerate_sentence, is_projective_tree, probabilities, random_rules

TAGS = ["A", "B", "C"]


def make_grammar(seed=0):
    """Return a grammar whose heads rarely have more than one dependent on a side."""
    root, stop, choose = map(np.exp, random_rules(np.random.default_rng(seed), 3, 0.5))
    stop = (stop + [1.0, 0.0]) / 2
    return DependencyModelWithValence.from_parameters(TAGS, root, stop, choose, random_state=seed)


@pytest.fixture(scope="module")
def corpus():
    return make_grammar().sample(150, max_length=8)


def fit(X, y=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DependencyModelWithValence(**options).fit(X, y)


def number(sentence):
    return [TAGS.index(tag) for tag in sentence]


# What it learns


@pytest.mark.bits
@pytest.mark.parametrize("init", ["harmonic", "random"])
def test_the_bound_of_em_is_the_score_and_hard_em_ends(corpus, init):
    """That it never falls, `test_model` sees for every prior."""
    options = {"init": init, "random_state": 0}
    model, again = (fit(corpus[0], tol=0.0, **options) for _ in range(2))
    assert len(model.lower_bounds_) == model.n_iter_ + 1
    assert model.lower_bounds_[-1] == model.lower_bound_
    assert model.lower_bound_ == pytest.approx(model.score(corpus[0]), rel=1e-12)
    for rule, other in zip(probabilities(model), probabilities(again), strict=True):
        np.testing.assert_allclose(rule.sum(axis=-1), 1, rtol=1e-12)
        np.testing.assert_array_equal(rule, other)
    hard = fit(corpus[0], temperature=0.0, max_iter=40, tol=1e-12, **options)
    assert hard.converged_
    assert hard.n_iter_ < 40


def test_a_negative_prior_makes_sparser_rules_than_any_dirichlet_and_keeps_the_floor(corpus):
    share = {}
    for concentration in (1.0, 0.01, -20.0):
        model = fit(corpus[0], weight_concentration_prior=concentration, weight_floor=1e-3)
        rules = np.concatenate([rule.ravel() for rule in probabilities(model)])
        assert rules.min() >= 1e-3 * (1 - 1e-9)
        share[concentration] = np.mean(rules < 2e-3)
    assert share[1.0] <= share[0.01] < share[-20.0]


@pytest.mark.parametrize("p", [1e-9, 1e-17, 1e-300])
def test_rules_of_any_size_are_a_start(p):
    _root, stop, choose = probabilities(make_grammar())
    model = fit([["A"], ["B"]], init=([p, 1.0, 0.0], stop, choose), tags=TAGS, max_iter=0)
    floor = 1e-4  # is where rules are lifted to by default
    np.testing.assert_allclose(np.exp(model.root_log_prob_), [floor, 1 - 2 * floor, floor])
    model.set_params(weight_floor=0.0).fit([["A"], ["B"]])
    np.testing.assert_allclose(np.exp(model.root_log_prob_), [p, 1.0, 0.0], rtol=1e-8)


@pytest.mark.bits
def test_the_bits_do_not_depend_on_the_number_of_threads():
    X, _ = make_grammar().sample(400, max_length=12)
    fits = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            model = fit(X, temperature=0.5, max_iter=5)
            trees = np.concatenate(model.predict(X))
            fits.append([*probabilities(model), model.lower_bounds_, model.score_samples(X), trees])
    for ours, theirs in zip(*fits, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# What it says


def test_scores_and_trees_are_those_of_all_trees(corpus):
    model = make_grammar()
    rules = model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_
    X = [sentence for sentence in corpus[0] if len(sentence) <= 5][:30]
    log_likelihoods, predicted = model.score_samples(X), model.predict(X)
    assert log_likelihoods.shape == (30,)
    assert model.score(X) == log_likelihoods.mean()
    for sentence, log_likelihood, heads in zip(X, log_likelihoods, predicted, strict=True):
        trees, _, scores = enumerate_sentence(number(sentence), rules)
        assert np.exp(log_likelihood) == pytest.approx(np.exp(scores).sum(), rel=1e-12)
        assert heads.dtype == np.int64
        assert scores[trees.index(tuple(heads.tolist()))] == pytest.approx(scores.max())


def test_the_probabilities_of_all_sentences_sum_to_one():
    stop = np.full((2, 2, 2, 2), [0.97, 0.03])  # sentences of more than six tags are rare
    rules = [0.3, 0.7], stop, np.full((2, 2, 2), [0.2, 0.8])
    model = DependencyModelWithValence.from_parameters(["A", "B"], *rules)
    sentences = [s for n in range(1, 7) for s in itertools.product("AB", repeat=n)]
    assert 0.99999 < np.exp(model.score_samples(sentences)).sum() < 1


def test_a_sample_follows_the_grammar():
    model = make_grammar()
    X, y = model.sample(2000)
    assert {type(sentence) for sentence in X} == {np.ndarray}
    assert len(X) == len(y) == 2000
    assert all(is_projective_tree(tuple(heads.tolist())) for heads in y)
    assert all(len(sentence) == len(heads) for sentence, heads in zip(X, y, strict=True))
    short = [("A",), ("B",), ("C",), ("A", "B"), ("C", "C")]
    drawn = [tuple(sentence.tolist()) for sentence in X]
    for sentence, log_probability in zip(short, model.score_samples(short), strict=True):
        p = np.exp(log_probability)
        assert abs(drawn.count(sentence) / 2000 - p) < 4 * np.sqrt(p * (1 - p) / 2000) + 1e-9
    again, _ = model.sample(2000)
    assert all(np.array_equal(a, b) for a, b in zip(X, again, strict=True))
    short, _ = model.sample(100, max_length=2)
    assert {len(sentence) for sentence in short} == {1, 2}


def test_what_the_grammar_cannot_generate_has_probability_zero_and_some_tree():
    model = DependencyModelWithValence(weight_floor=0.0).fit([["A", "B"]], [[2, 0]])
    assert model.score([["B", "A"]]) == -np.inf
    assert is_projective_tree(tuple(model.predict([["B", "A", "B"]])[0].tolist()))
    X, start = [["A", "B"], ["B", "A"]], tuple(probabilities(model))
    with pytest.raises(ValueError, match="sentence 1 of X cannot be generated"):
        fit(X, init=start, weight_floor=0.0)
    assert np.isfinite(fit(X, init=start).lower_bound_)


# Tags


def test_tags_may_be_integers_in_any_kind_of_sequence():
    X = [np.array([7, 3], dtype=np.int32), [3], (3, 7, 3), np.array([7])]
    model = fit(X)
    assert model.tags_.tolist() == [3, 7]
    assert model.tags_.dtype.kind == "i"
    strings = fit([[{3: "c", 7: "g"}[tag] for tag in np.asarray(s).tolist()] for s in X])
    np.testing.assert_array_equal(model.choose_log_prob_, strings.choose_log_prob_)
    assert model.sample(1)[0][0].dtype.kind == "i"


@pytest.mark.parametrize(
    "tags", [["a", "a\0", "a\0\0"], [2**63, -1, 2**63 + 1], [10**30, 1], ["", " "], ["\ud800", "b"]]
)
def test_tags_keep_what_an_array_would_lose(tags):
    X = [[tag] for tag in tags]
    for model in (fit(X), fit(X, tags=tags)):
        assert set(model.tags_.tolist()) == set(tags)
        assert [heads.tolist() for heads in model.predict(X)] == [[0]] * len(X)
        np.testing.assert_allclose(np.exp(model.root_log_prob_), 1 / len(tags), rtol=1e-2)


def test_the_order_of_given_tags_is_that_of_the_rules(corpus):
    plain, given = fit(corpus[0]), fit(corpus[0], tags=["C", "Z", "A", "B"], max_iter=5)
    assert given.tags_.tolist() == ["C", "Z", "A", "B"]
    assert np.isfinite(given.score([["Z", "A"]]))
    permuted = fit(corpus[0], tags=["C", "A", "B"])
    np.testing.assert_allclose(permuted.root_log_prob_, plain.root_log_prob_[[2, 0, 1]], rtol=1e-6)


def test_unknown_tags_are_an_error_or_the_average(corpus):
    strict = fit(corpus[0])
    with pytest.raises(ValueError, match=r"Unknown tags: 'X', 'Y'.*unknown_tags='average'"):
        strict.predict([["A", "Y", "X"]])
    with pytest.raises(ValueError, match=r"Unknown tags: '1', '2', '3', '4', '5'[.]"):
        strict.predict([list("54321")])
    with pytest.raises(ValueError, match=r"Unknown tags: '1', '2', '3', '4', '5', [.]{3}[.]"):
        strict.predict([list("654321")])
    lenient = fit(corpus[0], unknown_tags="average")
    np.testing.assert_array_equal(lenient.score_samples(corpus[0]), strict.score_samples(corpus[0]))
    root, stop, _ = probabilities(strict)
    alone = root.mean() * stop.mean(axis=0)[0, 0, 0] * stop.mean(axis=0)[1, 0, 0]
    assert lenient.score([["X"]]) == pytest.approx(np.log(alone))
    assert lenient.score([["X", "A"]]) == lenient.score([["Y", "A"]])
    assert len(lenient.predict([["A", "X", "B"]])[0]) == 3


# Bad input


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty"),
        ("A B", "X should be a list of sentences"),
        (3, "X should be a list of sentences"),
        (np.array(3), "X should be a list of sentences, got ndarray"),
        (sparse.csr_array(np.eye(2)), "X should be a list of sentences, got csr_array"),
        ((["A"] for _ in range(2)), "X should be a list of sentences, got generator"),
        ([["A"], []], "Sentence 1 of X is empty"),
        (["A B"], "Sentence 0 of X is the string 'A B': split it"),
        ([["A"], 3], "Sentence 1 of X should be a list or a one-dimensional array, got int"),
        ([{"A", "B"}], "Sentence 0 of X should be a list"),
        ([np.array([[1, 2]])], "Sentence 0 of X should be a list or a one-dimensional"),
        ([np.array(3)], "Sentence 0 of X should be a list or a one-dimensional"),
        ([["A"], ["B", ["C"]]], r"all strings or all integers: sentence 1 of X has \['C'\]"),
        ([["A", 1]], "all strings or all integers: sentence 0 of X has 1"),
        ([[1], ["A"]], "all strings or all integers: sentence 1 of X has 'A'"),
        ([["A", None]], "sentence 0 of X has None"),
        ([[1.0, 2.0]], "sentence 0 of X has 1.0"),
        ([[True]], "sentence 0 of X has True"),
    ],
)
def test_what_is_no_list_of_sentences_is_refused(corpus, X, message):
    with pytest.raises(ValueError, match=message):
        DependencyModelWithValence().fit(X)
    with pytest.raises(ValueError, match=message):
        fit(corpus[0]).predict(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[2, 0]], "X has 2 sentences, y has 1"),
        ([[2, 0, 1], [0]], "Sentence 0 has 2 tags but 3 heads"),
        ([[2, 0], []], "Sentence 1 of y is empty"),
        ([[2, 0], [2]], "Sentence 1 of y has a head outside"),
        ([[-1, 0], [0]], "Sentence 0 of y has a head outside"),
        ([[2, 0], [10**30]], "Sentence 1 of y has a head outside"),
        ([[True, 0], [0]], "y should hold integers"),
        ([[0, 0], [0]], "Sentence 0 of y has more than one root"),
        ([[2, 1], [0]], "Sentence 0 of y has heads that form a cycle"),
        ([[2, 0], [1]], "Sentence 1 of y has heads that form a cycle"),
        ([[2.0, 0.0], [0.0]], "y should hold integers"),
        ([["2", "0"], ["0"]], "y should hold integers"),
    ],
)
def test_heads_that_are_no_tree_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        DependencyModelWithValence().fit([["A", "B"], ["A"]], y)


def test_given_rules_are_checked(corpus):
    root, stop, choose = probabilities(make_grammar())
    for rules, message in (
        ((root[:2], stop, choose), r"root should have the shape \(3,\), got \(2,\)"),
        ((root, stop[..., 0], choose), "stop should have the shape"),
        ((root, stop, 2 * choose), "choose should be non-negative and sum to 1"),
        ((root - 1, stop, choose), "root should be non-negative"),
        ((root * np.nan, stop, choose), "root should be non-negative"),
        *(((bad, stop, choose), "root") for bad in (None, "half", [["a"]], [np.inf, 0.5, 0.5])),
    ):
        with pytest.raises(ValueError, match=message):
            fit(corpus[0], init=rules)
        with pytest.raises(ValueError, match=message):
            DependencyModelWithValence.from_parameters(TAGS, *rules)
    for tags in ("ABC", 3, [1, "A", 2], [], ["A", "A", "B"], [1.5, 2.5, 0.5]):
        with pytest.raises(ValueError, match=r"tags|Tags"):
            DependencyModelWithValence.from_parameters(tags, root, stop, choose)


@pytest.mark.parametrize("method", ["predict", "score", "score_samples", "sample"])
def test_an_unfitted_grammar_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(DependencyModelWithValence(), method)(*([["A"]] if method != "sample" else []))


# scikit-learn's manners


def test_arguments_are_left_alone(corpus):
    X = [sentence.tolist() for sentence in corpus[0]]
    options = {"tags": ["A", "B", "C"], "init": tuple(probabilities(make_grammar()))}
    model = fit(X, max_iter=3, **options)
    assert X == [sentence.tolist() for sentence in corpus[0]]
    assert all(getattr(model, name) is value for name, value in options.items())


@pytest.mark.parametrize(
    "check",
    [
        *["estimator_cloneable", "estimator_repr", "get_params_invariance", "mixin_order"],
        *["no_attributes_set_in_init", "parameters_default_constructible", "set_params"],
        "valid_tag_types",
    ],
)
def test_scikit_learns_checks_that_need_no_matrix(check):
    grammar = DependencyModelWithValence()
    getattr(estimator_checks, f"check_{check}")("DependencyModelWithValence", grammar)
    tags = get_tags(grammar)
    assert not tags.input_tags.two_d_array
    assert tags.input_tags.string
    assert tags.estimator_type == "density_estimator"


def test_a_grid_search_chooses_the_prior_by_score(corpus):
    X = [sentence.tolist() for sentence in corpus[0]]
    grid = {"weight_concentration_prior": [1.0, 0.0, -1000.0]}
    model = DependencyModelWithValence(tags=TAGS, temperature=0.0)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X)
    scores = dict(zip([1.0, 0.0, -1000.0], search.cv_results_["mean_test_score"], strict=True))
    assert np.isfinite(list(scores.values())).all()
    assert scores[-1000.0] < max(scores[1.0], scores[0.0])
    assert search.best_params_["weight_concentration_prior"] != -1000.0
    assert len(search.predict(X)) == len(X)
