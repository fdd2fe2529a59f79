"""The dependency model with valence as a scikit-learn estimator."""

import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._engine.dependency import (
    DependencyModel,
    MaximumPosterior,
    MeanField,
    RuleCounts,
    Sentences,
    as_rules,
    log_weight,
)
from .._engine.em import EMResult, run_em
from .._engine.threads import workers
from .._sklearn import Interval, StrOptions, fit_context
from .._version import stamp, unstamp
from ._rules import check_rules, draw_trees, with_average_tag
from ._sentences import check_tags, check_trees, flatten, number_tags

_LARGEST_PRIOR = 1e15  # beside which one observation is lost to rounding
_SMOOTHING = 0.1  # added to the harmonic counts: no rule starts at zero


class DependencyModelWithValence(DensityMixin, BaseEstimator):
    """Dependency model with valence: a grammar learnt from tagged sentences without trees.

    The model generates a projective dependency tree from the top (Klein and Manning, 2004).
    ROOT draws the tag of the root; then every head, on its left and on its right, decides to
    STOP or to go on, where it matters whether it has a child on that side yet (the valence),
    and for each time that it goes on, CHOOSE draws the tag of a dependent, given the head's tag
    and the side. A tree is never seen: `fit` maximizes the probability of the tags by
    expectation maximization over all projective trees, in O(n^3) time and O(n^2) memory for
    a sentence of n tags.

    The grammar has few parameters for the many sentences that it is learnt from, so a prior
    that should matter must be strong: with the modified Dirichlet prior
    `weight_concentration_prior` may be negative (Tu, 2016).

    Parameters
    ----------
    inference : {"map", "mean-field"}, default="map"
        How rules are estimated. "map" finds one value for each probability, under a modified
        Dirichlet prior on every multinomial (Tu, 2016, section 2). "mean-field" finds a
        Dirichlet posterior for every multinomial, by variational Bayes (Kurihara and Sato,
        2004); the fitted probabilities are its means.
    init : {"harmonic", "random"} or (root, stop, choose), default="harmonic"
        Where to start: with rules counted in attachments that prefer near heads, with random
        rules, or with given probabilities in the shapes of the exponentials of
        `root_log_prob_`, `stop_log_prob_` and `choose_log_prob_`. Mean-field inference starts
        from the counts expected under random and given rules.
    distance_power : float, default=1.0
        With the harmonic start, a word attaches to another in proportion to
        ``distance ** -distance_power``. 1 is Klein and Manning's choice.
    tags : array-like of str or int, default=None
        All tags, in the order that the rules shall have; None takes the sorted tags of the
        training sentences. Tags that do not occur there can be parsed afterwards.
    unknown_tags : {"error", "average"}, default="error"
        What to do with a tag that is new after `fit`. With "average" its rules are the
        average of the known tags' rules, as root, as head and as dependent; log-likelihoods
        of such sentences are not those of a normalised distribution.
    weight_concentration_prior : float, default=1.0
        Parameter alpha of the symmetric prior on every multinomial; any real number with
        "map", where 1 is maximum likelihood, positive with "mean-field". It counts like
        alpha - 1 observations of every rule, whatever the number of sentences.
    weight_floor : float, default=1e-4
        Smallest probability of any rule with "map". Zero is allowed where
        `weight_concentration_prior` is at least 1.
    temperature : float, default=1.0
        The posterior over a sentence's trees is proportional to weight ** (1 / temperature):
        1 is EM, 0 is hard EM, which counts the best tree only, and between is softmax-EM with
        sigma = 1 - temperature (Tu and Honavar, 2012). Values below 1e-12 are taken as 0.
    tol : float, default=1e-4
        A change of the lower bound, per sentence, that ends the fit.
    max_iter : int, default=50
        Number of EM steps at most; 0 keeps the start.
    random_state : int, RandomState instance or None, default=None
        Seed of the random start and of `sample`.

    Attributes
    ----------
    tags_ : ndarray of shape (n_tags,)
        The tags that the rules are about.
    root_log_prob_ : ndarray of shape (n_tags,)
        Log-probability of each tag as root.
    stop_log_prob_ : ndarray of shape (n_tags, 2, 2, 2)
        Log-probabilities by head, direction (left, right), whether the head has a child there
        (no, yes), and outcome (stop, go on).
    choose_log_prob_ : ndarray of shape (n_tags, 2, n_tags)
        Log-probabilities of dependents by head, direction (left, right) and dependent.
    lower_bounds_ : list of float
        The bound before each EM step and at the end, per sentence: the expected
        log-probability of tags and trees plus temperature times the posterior's entropy, plus
        the log-prior without its constant, or minus the divergence from the prior. It never
        falls.
    lower_bound_ : float
        The last of them.
    n_iter_ : int
        Number of EM steps; 0 if fitted to given trees.
    converged_ : bool
        Whether the last step changed the bound by less than `tol`.

    See Also
    --------
    skvmf.grammar.attachment_score : The share of heads that a parser has right.
    skvmf.datasets.load_conllu : Sentences, tags and heads from a treebank file.

    Notes
    -----
    Sentences are lists of tags. `sklearn.model_selection.GridSearchCV` and its kin work on
    lists of them; give `tags`, so that a tag missing from a fold is no error.

    References
    ----------
    Klein and Manning (2004), "Corpus-based induction of syntactic structure: models of
    dependency and constituency", ACL.

    Tu (2016), "Modified Dirichlet distribution: allowing negative parameters to induce
    stronger sparsity", EMNLP, section 4.

    Tu and Honavar (2012), "Unambiguity regularization for unsupervised learning of
    probabilistic grammars", EMNLP-CoNLL.

    Kurihara and Sato (2004), "An application of the variational Bayesian approach to
    probabilistic context-free grammars", IJCNLP workshop.

    Examples
    --------
    >>> from skvmf.grammar import DependencyModelWithValence
    >>> X = [["DT", "NN", "VBD"], ["NN", "VBD"], ["NN", "VBD", "DT", "NN"], ["VBD", "NN"]] * 10
    >>> model = DependencyModelWithValence(weight_concentration_prior=0.0).fit(X)
    >>> model.predict([["DT", "NN", "VBD", "NN"]])
    [array([2, 3, 0, 3])]
    """

    _parameter_constraints = {
        "inference": [StrOptions({"map", "mean-field"})],
        "init": [StrOptions({"harmonic", "random"}), tuple, list],
        "distance_power": [Interval(Real, 0, None, closed="left")],
        "tags": ["array-like", None],
        "unknown_tags": [StrOptions({"error", "average"})],
        "weight_concentration_prior": [
            Interval(Real, -_LARGEST_PRIOR, _LARGEST_PRIOR, closed="both")
        ],
        "weight_floor": [Interval(Real, 0, 1, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        inference="map",
        init="harmonic",
        distance_power=1.0,
        tags=None,
        unknown_tags="error",
        weight_concentration_prior=1.0,
        weight_floor=1e-4,
        temperature=1.0,
        tol=1e-4,
        max_iter=50,
        random_state=None,
    ):
        self.inference = inference
        self.init = init
        self.distance_power = distance_power
        self.tags = tags
        self.unknown_tags = unknown_tags
        self.weight_concentration_prior = weight_concentration_prior
        self.weight_floor = weight_floor
        self.temperature = temperature
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def from_parameters(cls, tags, root, stop, choose, **options):
        """Return a fitted model with given rules.

        Parameters
        ----------
        tags : array-like of shape (n_tags,)
            Distinct strings or integers.
        root : array-like of shape (n_tags,)
            Probability of each tag as root.
        stop : array-like of shape (n_tags, 2, 2, 2)
            Probabilities by head, direction (left, right), whether the head has a child there
            (no, yes), and outcome (stop, go on); each pair sums to one.
        choose : array-like of shape (n_tags, 2, n_tags)
            Probabilities of dependents by head, direction and dependent.
        **options : dict
            Constructor arguments.

        Returns
        -------
        model : DependencyModelWithValence
            Ready for `predict`, `score` and `sample`.

        Raises
        ------
        ValueError
            If a shape is wrong or probabilities do not sum to one.

        Examples
        --------
        >>> import numpy as np
        >>> from skvmf.grammar import DependencyModelWithValence
        >>> leave, stay = [[1, 0], [1, 0]], [[0.2, 0.8], [1, 0]]  # no child; one child, mostly
        >>> model = DependencyModelWithValence.from_parameters(
        ...     tags=["N", "V"],
        ...     root=[0, 1],
        ...     stop=[[leave, leave], [stay, stay]],
        ...     choose=[[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 0]]],
        ... )
        >>> float(np.exp(model.score([["N", "V", "N"]])))  # 0.8 on the left, 0.8 on the right
        0.64
        """
        model = cls(**options)
        model.tags_ = _check_tag_set(tags)
        with np.errstate(divide="ignore"):
            log_rules = tuple(map(np.log, check_rules(root, stop, choose, len(model.tags_))))
        model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_ = log_rules
        return model

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the rules from sentences, or count them in given trees.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence. A sentence has at least one tag.
        y : sequence of array-like of int, default=None
            The head of every tag, as positions in the sentence from 1, with exactly one 0, the
            root. With heads, the rules are estimated from the trees in one step. The
            trees need not be projective, though the model gives probability to such only.

        Returns
        -------
        self : DependencyModelWithValence
            The fitted grammar.

        Raises
        ------
        ValueError
            If a sentence is empty, tags are neither all strings nor all integers, heads do not
            form a tree, or the prior cannot have the given floor.
        """
        tags, sentences = self._learn_tags(X)
        heads = None if y is None else check_trees(y, sentences.offsets)
        model = DependencyModel(self._estimate(len(tags)), self.temperature)
        with workers():
            if heads is None:
                result = self._climb(model, sentences, tags)
            else:
                result = _count(model, sentences, heads)
        self.tags_ = tags
        self.root_log_prob_, self.stop_log_prob_, self.choose_log_prob_ = result.params.log_prob
        self.lower_bounds_ = result.bounds
        self.lower_bound_ = result.bounds[-1]
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        if not self.converged_ and self.max_iter > 0:
            warnings.warn(
                f"The fit did not reach tol={self.tol} within max_iter={self.max_iter} "
                "iterations. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X):
        """Return the most probable tree of each sentence.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence.

        Returns
        -------
        heads : list of ndarray of int64
            The head of every tag, as positions in the sentence from 1; 0 is the root. The
            trees are projective. A sentence that the grammar cannot generate gets some tree.
        """
        sentences, log_rules = self._new_sentences(X)
        return np.split(sentences.best_trees(log_rules), sentences.offsets[1:-1])

    def score_samples(self, X):
        """Return the log-likelihood of each sentence, summed over its projective trees.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence.

        Returns
        -------
        log_likelihood : ndarray of shape (n_sentences,)
            Log-probabilities, whatever temperature the grammar was fitted with; -inf for a
            sentence that the grammar cannot generate.
        """
        sentences, log_rules = self._new_sentences(X)
        return sentences.log_partitions(log_rules)

    def score(self, X, y=None):
        """Return the mean log-likelihood of the sentences.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence.
        y : Ignored
            Not used, present for API consistency by convention. For the share of heads that
            are right see `attachment_score`.

        Returns
        -------
        log_likelihood : float
            Mean log-probability of a sentence.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, *, max_length=100):
        """Draw sentences and their trees from the grammar.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sentences.
        max_length : int, default=100
            A longer sentence is thrown away and drawn again; some grammars never stop.

        Returns
        -------
        X : list of ndarray
            The tags of each sentence.
        y : list of ndarray of int64
            The heads, as `predict` returns them.

        Raises
        ------
        ValueError
            If nearly all sentences are longer than `max_length`.
        """
        check_is_fitted(self)
        for name, value in (("n_samples", n_samples), ("max_length", max_length)):
            if value < 1:
                raise ValueError(f"Invalid value for '{name}': {value}. It should be at least 1.")
        rng = check_random_state(self.random_state)
        sentences, heads = draw_trees(rng, self._log_rules(), n_samples, max_length)
        return [self.tags_[sentence] for sentence in sentences], heads

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __getstate__(self):
        return stamp(super().__getstate__())

    def __setstate__(self, state):
        super().__setstate__(unstamp(state, type(self).__name__))

    def _log_rules(self):
        return self.root_log_prob_, self.stop_log_prob_, self.choose_log_prob_

    def _learn_tags(self, X):
        """Return the tag set and the training sentences in its numbers."""
        items, offsets = flatten(X)
        check_tags(items, offsets)
        tags = np.array(sorted(set(items))) if self.tags is None else _check_tag_set(self.tags)
        return tags, Sentences(number_tags(items, tags), offsets, len(tags))

    def _new_sentences(self, X):
        """Return sentences to parse, and rules that cover their tags."""
        check_is_fitted(self)
        items, offsets = flatten(X)
        check_tags(items, offsets)
        log_rules, n_tags = self._log_rules(), len(self.tags_)
        if self.unknown_tags == "error":
            return Sentences(number_tags(items, self.tags_), offsets, n_tags), log_rules
        numbers = number_tags(items, self.tags_, unknown=n_tags)
        return Sentences(numbers, offsets, n_tags + 1), with_average_tag(log_rules)

    def _estimate(self, n_tags):
        """Return how counts become rules, or say why they cannot."""
        concentration, floor = self.weight_concentration_prior, self.weight_floor
        if self.inference == "mean-field":
            if concentration < np.finfo(np.float64).tiny:
                raise ValueError(
                    f"weight_concentration_prior={concentration}: mean-field inference needs a "
                    "Dirichlet prior, whose parameter is positive. Use inference='map'."
                )
            return MeanField(concentration)
        largest = max(n_tags, 2)
        if floor > 1 / largest:
            raise ValueError(
                f"weight_floor={floor} is larger than 1 / {largest}: that many probabilities, "
                "each at least the floor, cannot sum to 1."
            )
        if floor == 0 and concentration < 1:
            raise ValueError(
                f"weight_concentration_prior={concentration} needs a positive weight_floor: "
                "without one the prior has no mode."
            )
        return MaximumPosterior(concentration, floor)

    def _climb(self, model, sentences, tags):
        rules = self._start(model, sentences, len(tags))
        return run_em(model, sentences, rules, max_iter=self.max_iter, tol=self.tol)

    def _start(self, model, sentences, n_tags):
        """Return the rules to start from."""
        if isinstance(self.init, str) and self.init == "harmonic":
            counts = sentences.harmonic_counts(self.distance_power)
            return model.estimate.start(tuple(count + _SMOOTHING for count in counts))
        if isinstance(self.init, str):
            rng = check_random_state(self.random_state)
            shapes = (n_tags,), (n_tags, 2, 2, 2), (n_tags, 2, n_tags)
            given = [rng.dirichlet(np.ones(shape[-1]), size=shape[:-1]) for shape in shapes]
        else:
            given = check_rules(*self._given_rules(), n_tags)
        if self.inference == "mean-field":  # a posterior is made from counts
            given = sentences.fold(partial(model.expect, as_rules(given))).counts
        rules = model.estimate.start(given)
        impossible = np.flatnonzero(np.isinf(sentences.log_partitions(rules.log_weights)))
        if len(impossible):
            raise ValueError(
                f"Under the rules given as init, sentence {impossible[0]} of X cannot be "
                "generated. Give every rule that it needs a positive probability."
            )
        return rules

    def _given_rules(self):
        if len(self.init) != 3:
            raise ValueError("init should be 'harmonic', 'random' or (root, stop, choose).")
        return self.init


def _count(model, sentences, heads):
    """Estimate the rules from trees; the bound is that of tags and trees together."""
    counts = sentences.tree_counts(heads)
    rules = model.estimate.maximize(counts, None)
    value = log_weight(counts, rules)
    bound = model.lower_bound(RuleCounts(value, len(sentences), counts), rules)
    return EMResult(rules, [bound], n_iter=0, converged=True)


def _check_tag_set(tags):
    """Return distinct tags, all strings or all integers, as an array."""
    items, offsets = flatten([tags], name="tags")
    check_tags(items, offsets, name="tags")
    if len(set(items)) < len(items):
        raise ValueError("tags should be distinct.")
    return np.array(items)
