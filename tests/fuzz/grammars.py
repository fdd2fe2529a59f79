"""Cases of the grammar, and what it promises whatever it is given."""

from dataclasses import dataclass, field

import numpy as np

from skvmf.grammar import DependencyModelWithValence

from ..grammar.enumeration import is_projective_tree
from .common import Case, Subject
from .runs import refusing
from .subjects import assert_finite, assert_refused_or_fitted

TAGS = {
    "letters": list("abcdefgh"),
    "numbers": [3, -1, 0, 7, 2**40, 5, 4, 6],
    "long words": ["ä" * 40, "", " ", "NN", "nn", "\n", "0", "-1"],
}


@dataclass(frozen=True)
class Sentences:
    """Sentences of tags; `longest` may be one."""

    n: int = 6
    n_tags: int = 3
    longest: int = 6
    seed: int = 0
    tags: str = "letters"

    def make(self):
        rng = np.random.default_rng(self.seed)
        tags = TAGS[self.tags][: self.n_tags]
        lengths = rng.integers(1, self.longest + 1, size=self.n)
        return [[tags[i] for i in rng.integers(len(tags), size=length)] for length in lengths]

    def trees(self):
        """Return trees for the sentences, each head to the left or right, the root anywhere."""
        rng, trees = np.random.default_rng(self.seed + 1), []
        for sentence in self.make():
            order = rng.permutation(len(sentence))
            heads = np.zeros(len(sentence), dtype=int)
            for i in range(1, len(order)):
                heads[order[i]] = 1 + order[rng.integers(i)]
            trees.append(heads)
        return trees


@dataclass(frozen=True)
class Rules:
    """Rules to start from, `low` being the least of their probabilities before scaling."""

    seed: int = 0
    low: float = 1.0

    def make(self, n_tags):
        rng = np.random.default_rng(self.seed)
        shapes = (n_tags,), (n_tags, 2, 2, 2), (n_tags, 2, n_tags)
        rules = [rng.uniform(self.low, 1, size=shape) ** 8 for shape in shapes]
        return tuple(rule / rule.sum(axis=-1, keepdims=True) for rule in rules)


@dataclass(frozen=True)
class GrammarCase(Case):
    """A grammar learnt from sentences, and others that are parsed with it."""

    params: dict = field(default_factory=dict)
    sentences: Sentences = Sentences()
    supervised: bool = False
    other_seed: int = 1

    def subject(self):
        return GrammarSubject(self)


class GrammarSubject(Subject):
    """A fitted grammar with its sentences."""

    def __init__(self, case):
        self.case, self.X = case, case.sentences.make()
        self.y = case.sentences.trees() if case.supervised else None
        self.params = {"random_state": 0} | case.params
        if hasattr(self.params.get("init"), "make"):
            n_tags = len({tag for sentence in self.X for tag in sentence})
            self.params["init"] = self.params["init"].make(n_tags)
        if self.params.pop("all_tags", False):
            self.params["tags"] = TAGS[case.sentences.tags]
        self.model = self.estimator = self.fit(self.new())

    def new(self):
        return DependencyModelWithValence(**self.params)

    def fit(self, model):
        return refusing(model.fit, self.X, self.y)

    def state(self, model):
        names = ("lower_bounds_", "lower_bound_", "n_iter_", "converged_", "tags_")
        fit = rules(model) | {name: getattr(model, name) for name in names}
        return fit | {"scores": model.score_samples(self.X)}

    @property
    def all_sentences(self):
        known = set(self.model.tags_.tolist())
        others = Sentences(9, 8, 7, self.case.other_seed, self.case.sentences.tags).make()
        if self.params.get("unknown_tags") != "average":
            others = [s for s in others if set(s) <= known]
        return self.X + others


def rules(model):
    names = ("root_log_prob_", "stop_log_prob_", "choose_log_prob_")
    return {name: getattr(model, name) for name in names}


def finite_in_finite_out(subject):
    model = subject.model
    assert_finite({"lower_bounds_": model.lower_bounds_})
    for name, log_prob in rules(model).items():
        assert not np.isnan(log_prob).any(), name
        assert (log_prob <= 1e-12).all(), name
        np.testing.assert_allclose(np.exp(log_prob).sum(axis=-1), 1, rtol=1e-12, err_msg=name)


def no_rule_of_several_is_below_the_floor(subject):
    model = subject.model
    if model.inference == "map" and model.n_iter_ > 0 and subject.y is None:
        with np.errstate(divide="ignore"):
            least = np.log(np.array(model.weight_floor)) - 1e-12
        for name, log_prob in rules(model).items():
            assert log_prob.shape[-1] == 1 or (log_prob >= least).all(), name


def sentences_have_probabilities(subject):
    scores = subject.model.score_samples(subject.all_sentences)
    assert not np.isnan(scores).any()
    assert (scores <= 1e-9).all(), scores.max()
    model = subject.model
    is_em = model.inference == "map" and model.temperature == 1 and subject.y is None
    if is_em and model.n_iter_ > 0 and model.weight_concentration_prior == 1:
        log_likelihood = model.score_samples(subject.X).mean()
        np.testing.assert_allclose(model.lower_bound_, log_likelihood, atol=1e-9)


def trees_are_trees(subject):
    sentences = subject.all_sentences
    for sentence, heads in zip(sentences, subject.model.predict(sentences), strict=True):
        assert len(heads) == len(sentence)
        assert is_projective_tree(tuple(heads.tolist())), heads


def the_bound_never_falls(subject):
    bounds = np.array(subject.model.lower_bounds_)
    falls = -np.diff(bounds)
    assert (falls <= 1e-12 * np.maximum(1, np.abs(bounds[1:]))).all(), f"falls by {falls.max()}"


def samples_are_sentences(subject):
    X, y = refusing(subject.model.sample, 3)
    assert len(X) == len(y) == 3
    scores = subject.model.score_samples(X)
    assert np.isfinite(scores).all(), scores


def a_refused_fit_changes_nothing(subject):  # the last, for it fits again
    X = subject.X
    mistakes = [
        ([[*X, []]], {}),
        ([[*X, [1.5]]], {}),
        ([[["x", 1]]], {}),
        ([[]], {}),
        ([X, [[0]] * len(X) + [[1]]], {}),
        ([X, [[1] * len(sentence) for sentence in X]], {}),
        ([X], {"weight_floor": 0.9}),
        ([X], {"init": ([1.0], [1.0], [1.0])}),
        ([X], {"temperature": -1.0}),
        ([X], {"tags": ["no", "such"]}),
    ]
    assert_refused_or_fitted(subject, mistakes)
