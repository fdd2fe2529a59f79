"""DependencyModelWithValence: its trees, its counts of rules and the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state

from .._engine.em.loop import EMResult, run_em
from .._engine.em.progress import Progress
from .._engine.rows.parallel import limited_blas
from .._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    CallbackTasks,
    DensityMixin,
    Interval,
    StrOptions,
    fit_context,
    with_callbacks,
)
from .._typing import Array, ParameterConstraints, RandomState, warn
from ..distributions._arguments import check_count
from ._model import (
    Arrays,
    DependencyModel,
    Estimate,
    MaximumPosterior,
    MeanField,
    RuleCounts,
    Rules,
    Sentences,
    as_rules,
    check_rules,
    draw_trees,
    empty_counts,
    log,
    log_weight,
    map_rules,
    with_average_tag,
)
from ._sentences import check_tag_set, check_trees, flatten_tags, number_tags, tag_array

TaggedSentences = Sequence[Sequence[str] | Sequence[int] | Array]
Trees = Sequence[Sequence[int] | Array]

# Added to every harmonic count, so that no rule starts at zero, where EM would leave it: a tenth of
# one observation.
_SMOOTHING = 0.1

# Log-weights of mean-field rules are at least -1 / this; divided by the lowest temperature they are
# still finite.
_MIN_DIRICHLET = 1e-290

# Beside larger priors, one observation is lost to rounding.
_MAX_PRIOR = 1e15

# Times the entropy of a corpus it is still a float.
_MAX_TEMPERATURE = 1e300


def start_rules(
    estimate: Estimate,
    temperature: float,
    sentences: Sentences,
    init: str | Sequence[Any],
    distance_power: float,
    random_state: RandomState,
) -> Rules:
    """Return the rules to start from; given ones must make every sentence possible."""
    if isinstance(init, str) and init == "harmonic":
        counts = sentences.harmonic_counts(distance_power)
        return estimate.start(map_rules(lambda count: count + _SMOOTHING, counts))

    if isinstance(init, str):
        probabilities = _random_rules(sentences.n_tags, check_random_state(random_state))
    elif len(init) != 3:
        raise ValueError("init should be 'harmonic', 'random' or (root, stop, choose).")
    else:
        probabilities = check_rules(*init, n_tags=sentences.n_tags)

    counts = probabilities
    if isinstance(estimate, MeanField):
        # A posterior is made from counts, and for these the sentences are needed.
        model = DependencyModel(estimate, temperature, as_rules(probabilities))
        counts = model.expect(sentences).counts
    rules = estimate.start(counts)
    impossible = np.flatnonzero(np.isinf(sentences.log_partitions(rules.log_weights)))
    if len(impossible):
        raise ValueError(
            f"Under the rules given as init, sentence {impossible[0]} of X cannot be "
            "generated. Give every rule that it needs a positive probability."
        )
    return rules


def _random_rules(n_tags: int, rng: np.random.RandomState) -> Arrays:
    """Draw the probabilities of every multinomial uniformly from the simplex."""

    def draw(like: Array) -> Array:
        return rng.dirichlet(np.ones(like.shape[-1]), size=like.shape[:-1])

    return map_rules(draw, empty_counts(n_tags))


class DependencyModelWithValence(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Dependency model with valence: a grammar learned from tagged sentences without trees.

    The model generates a projective dependency tree from the top [1]_. ROOT draws the tag of the
    root. On each side, a head decides to STOP or to continue, depending on whether it already has a
    child there (the valence). Each time it continues, CHOOSE draws the tag of a dependent, given
    the head's tag and the side. `fit` maximizes the probability of the tags by expectation
    maximization over all projective trees, in O(n^3) time and O(n^2) memory for a sentence of n
    tags.

    The grammar has few parameters, so only strong priors matter, such as a modified Dirichlet prior
    with a negative `weight_concentration_prior` [2]_. Read more in the :doc:`user guide
    </user_guide/grammar>`.

    Parameters
    ----------
    inference : {"map", "mean-field"}, default="map"
        How rules are estimated. "map" finds one value per probability, under a modified Dirichlet
        prior on every multinomial [2]_. "mean-field" finds a Dirichlet posterior per multinomial by
        variational Bayes [4]_; the fitted probabilities are its means.
    init : {"harmonic", "random"} or (root, stop, choose), default="harmonic"
        The start: rules counted in attachments that prefer near heads, random rules, or
        probabilities in the shapes of the attributes. Mean-field inference starts from the counts
        expected under the last two.
    distance_power : float, default=1.0
        With the harmonic start, a word attaches to another in proportion to ``distance **
        -distance_power``. 1 is the choice of [1]_.
    tags : array-like of str or int, default=None
        All tags, in the order of the rules; None takes the sorted tags of the training sentences.
    unknown_tags : {"error", "average"}, default="error"
        What to do with new tags after `fit`: raise an error, or give them the average of the known
        tags' rules; the log-likelihoods of such sentences are not normalized.
    weight_concentration_prior : float, default=1.0
        Parameter alpha of the symmetric prior on every multinomial. Any real number with "map",
        where 1 is maximum likelihood; positive with "mean-field". It counts like alpha - 1
        observations of every rule, for any number of sentences.
    weight_floor : float, default=1e-4
        Smallest probability of any rule with "map". It may be zero if `weight_concentration_prior`
        is at least 1.
    temperature : float, default=1.0
        The posterior of a sentence's trees is proportional to weight ** (1 / temperature). 1 is EM,
        0 is hard EM, which counts the best tree only, and between is softmax-EM with sigma = 1 -
        temperature [3]_. Values below 1e-12 count as 0; the largest is 1e300.
    tol : float, default=1e-4
        The fit ends if the lower bound per sentence changes by less.
    max_iter : int, default=50
        Maximum number of EM steps; 0 keeps the start.
    random_state : int, RandomState instance or None, default=None
        Seed of the random start and of `sample`.
    verbose : int, default=0
        Whether to print iterations with their times, bounds and gains.
    verbose_interval : int, default=10
        Number of iterations between lines.

    Attributes
    ----------
    tags_ : ndarray of shape (n_tags,)
        The tags of the rules.
    root_log_prob_ : ndarray of shape (n_tags,)
        Log-probability of each tag as root.
    stop_log_prob_ : ndarray of shape (n_tags, 2, 2, 2)
        Log-probabilities by head, direction (left, right), whether the head has a child there (no,
        yes), and outcome (stop, continue).
    choose_log_prob_ : ndarray of shape (n_tags, 2, n_tags)
        Log-probabilities of dependents by head, direction (left, right) and dependent.
    lower_bounds_ : list of float
        The bound per sentence before each EM step and at the end; it never decreases.
    lower_bound_ : float
        The last bound.
    n_iter_ : int
        Number of EM steps; 0 if fitted to given trees.
    converged_ : bool
        Whether the last step changed the bound by less than `tol`.

    References
    ----------
    .. [1] Klein and Manning, "Corpus-based induction of syntactic structure: models of dependency
       and constituency", ACL 2004.
    .. [2] Tu, "Modified Dirichlet distribution: allowing negative parameters to induce stronger
       sparsity", EMNLP 2016, sections 2 and 4.
    .. [3] Tu and Honavar, "Unambiguity regularization for unsupervised learning of probabilistic
       grammars", EMNLP-CoNLL 2012.
    .. [4] Kurihara and Sato, "An application of the variational Bayesian approach to probabilistic
       context-free grammars", IJCNLP workshop 2004.

    Examples
    --------
    >>> from skvmf.grammar import DependencyModelWithValence
    >>> X = [["DT", "NN", "VBD"], ["NN", "VBD"], ["NN", "VBD", "DT", "NN"], ["VBD", "NN"]] * 10
    >>> model = DependencyModelWithValence(weight_concentration_prior=0.0).fit(X)
    >>> model.predict([["DT", "NN", "VBD", "NN"]])
    [array([2, 3, 0, 3])]
    """

    tags_: Array
    root_log_prob_: Array
    stop_log_prob_: Array
    choose_log_prob_: Array

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "inference": [StrOptions({"map", "mean-field"})],
        "init": [StrOptions({"harmonic", "random"}), tuple, list],
        "distance_power": [Interval(Real, 0, None, closed="left")],
        "tags": ["array-like", None],
        "unknown_tags": [StrOptions({"error", "average"})],
        "weight_concentration_prior": [Interval(Real, -_MAX_PRIOR, _MAX_PRIOR, closed="both")],
        "weight_floor": [Interval(Real, 0, 1, closed="left")],
        "temperature": [Interval(Real, 0, _MAX_TEMPERATURE, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        inference: Literal["map", "mean-field"] = "map",
        init: Literal["harmonic", "random"] | Sequence[ArrayLike] = "harmonic",
        distance_power: float = 1.0,
        tags: ArrayLike | None = None,
        unknown_tags: Literal["error", "average"] = "error",
        weight_concentration_prior: float = 1.0,
        weight_floor: float = 1e-4,
        temperature: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 50,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        verbose_interval: int = 10,
    ) -> None:
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
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    @classmethod
    def from_parameters(
        cls, tags: ArrayLike, root: ArrayLike, stop: ArrayLike, choose: ArrayLike, **options: Any
    ) -> Self:
        """Return a fitted model with given rules.

        Parameters
        ----------
        tags : array-like of shape (n_tags,)
            Distinct strings or integers.
        root, stop, choose : array-like
            Probabilities in the shapes of `root_log_prob_`, `stop_log_prob_` and
            `choose_log_prob_`, with sums of one over the last axes.
        **options : dict
            Constructor arguments.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a shape is wrong, probabilities do not sum to one, or an option is invalid.

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
        model._validate_params()
        tag_set = check_tag_set(tags)
        model._estimate(len(tag_set))
        log_rules = map_rules(log, check_rules(root, stop, choose, n_tags=len(tag_set)))
        model.__dict__.update(_attributes(tag_set, log_rules))
        return model

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: TaggedSentences, y: Trees | None = None) -> Self:
        """Learn the rules from sentences, or count them in given trees.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence, at least one.
        y : sequence of array-like of int, default=None
            The head of every tag, as positions in the sentence from 1, with exactly one 0, the
            root. With heads, the rules are estimated from the trees in one step. The trees need not
            be projective, although the model gives others probability zero.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If the data or a parameter cannot be used. The estimator then stays as it was.
        """
        items, offsets = flatten_tags(X)
        tags = tag_array(sorted(set(items))) if self.tags is None else check_tag_set(self.tags)
        sentences = Sentences(number_tags(items, tags), offsets, len(tags))
        # Before the model: of several errors, that of the data comes first.
        heads = None if y is None else check_trees(y, offsets)
        estimate = self._estimate(len(tags))
        with limited_blas():
            tasks = CallbackTasks(self, {"X": X, "y": y}, 1)
            with Progress(tasks, self.verbose, self.verbose_interval) as progress:
                if heads is None:
                    result = self._fit_em(estimate, sentences, tags, progress)
                else:
                    result = _fit_trees(estimate, self.temperature, sentences, heads)
                self._set_attributes(tags, result)
        return self

    def predict(self, X: TaggedSentences) -> list[Array]:
        """Return the most probable tree of each sentence.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence, at least one.

        Returns
        -------
        heads : list of ndarray of int64
            The head of every tag, as positions in the sentence from 1; 0 is the root. Trees are
            projective. A sentence that the grammar cannot generate gets an arbitrary tree.
        """
        sentences, log_rules = self._new_sentences(X)
        return np.split(sentences.best_trees(log_rules), sentences.offsets[1:-1])

    def score_samples(self, X: TaggedSentences) -> Array:
        """Return the log-likelihood of each sentence, summed over its projective trees.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence, at least one.

        Returns
        -------
        log_likelihood : ndarray of shape (n_sentences,)
            Log-probabilities, for any temperature of the fit; -inf for a sentence that the grammar
            cannot generate.
        """
        sentences, log_rules = self._new_sentences(X)
        return sentences.log_partitions(log_rules)

    def score(self, X: TaggedSentences, y: object = None) -> float:
        """Return the mean log-likelihood of the sentences.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence, at least one.
        y : Ignored
            Present by convention; `attachment_score` compares trees.

        Returns
        -------
        log_likelihood : float
            Mean log-probability per sentence.
        """
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, *, max_length: int = 100
    ) -> tuple[list[Array], list[Array]]:
        """Draw sentences and their trees from the grammar.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        max_length : int, default=100
            Longer sentences are drawn again; some grammars never stop.

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
        self._check_ready()
        check_count(n_samples, "n_samples")
        check_count(max_length, "max_length")
        rng = check_random_state(self.random_state)
        sentences, heads = draw_trees(rng, self._log_rules, n_samples, max_length)
        return [self.tags_[sentence] for sentence in sentences], heads

    def _estimate(self, n_tags: int) -> Estimate:
        """Return how counts become rules, or say why they cannot."""
        concentration = self.weight_concentration_prior
        floor = self.weight_floor
        if self.inference == "mean-field":
            if concentration < _MIN_DIRICHLET:
                raise ValueError(
                    f"weight_concentration_prior={concentration}: mean-field inference needs a "
                    f"Dirichlet prior, whose parameter is positive, at least {_MIN_DIRICHLET:g}. "
                    "Use inference='map'."
                )
            return MeanField(concentration)
        # Outcomes are two, stop and continue, or all tags.
        n_outcomes = max(n_tags, 2)
        if floor > 1 / n_outcomes:
            raise ValueError(
                f"weight_floor={floor} is larger than 1 / {n_outcomes}: that many probabilities, "
                "each at least the floor, cannot sum to 1."
            )
        if floor == 0 and concentration < 1:
            raise ValueError(
                f"weight_concentration_prior={concentration} needs a positive weight_floor: "
                "without one the prior has no mode."
            )
        return MaximumPosterior(concentration, floor)

    def _fit_em(
        self, estimate: Estimate, sentences: Sentences, tags: Array, progress: Progress
    ) -> EMResult[DependencyModel, RuleCounts]:
        """Return the rules that EM finds without trees."""
        rules = start_rules(
            estimate, self.temperature, sentences, self.init, self.distance_power, self.random_state
        )
        on_iteration, finish = progress.task(
            "EM",
            attributes=lambda model: _attributes(tags, model.rules.log_prob),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        result = run_em(
            DependencyModel(estimate, self.temperature, rules),
            sentences,
            max_iter=self.max_iter,
            tol=self.tol,
            on_iteration=on_iteration,
        )
        finish(result)
        return result

    def _set_attributes(self, tags: Array, result: EMResult[DependencyModel, RuleCounts]) -> None:
        """Warn, and set all attributes in one step, so that an interrupt changes none."""
        if not result.converged and not result.stopped and self.max_iter > 0:
            limits = f"tol={self.tol} within max_iter={self.max_iter} iterations"
            warn(f"The fit did not reach {limits}. Increase max_iter or tol.", ConvergenceWarning)
        self.__dict__.update(
            _attributes(tags, result.point.rules.log_prob),
            lower_bounds_=result.bounds,
            lower_bound_=result.bounds[-1],
            n_iter_=result.n_iter,
            converged_=result.converged,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    @property
    def _log_rules(self) -> Arrays:
        return self.root_log_prob_, self.stop_log_prob_, self.choose_log_prob_

    def _new_sentences(self, X: TaggedSentences) -> tuple[Sentences, Arrays]:
        """Return sentences to parse, and rules that cover their tags."""
        self._check_ready()
        items, offsets = flatten_tags(X)
        n_tags = len(self.tags_)
        if self.unknown_tags == "error":
            numbers = number_tags(items, self.tags_)
            return Sentences(numbers, offsets, n_tags), self._log_rules
        # All unknown tags are one, the last.
        numbers = number_tags(items, self.tags_, unknown=n_tags)
        return Sentences(numbers, offsets, n_tags + 1), with_average_tag(self._log_rules)


def _fit_trees(
    estimate: Estimate, temperature: float, sentences: Sentences, heads: Array
) -> EMResult[DependencyModel, RuleCounts]:
    """Return the rules of given trees, and the bound of tags and trees together."""
    counts = sentences.tree_counts(heads)
    model = DependencyModel(estimate, temperature, estimate.maximize(counts, None))
    stats = RuleCounts(log_weight(counts, model.rules), len(sentences), counts)
    return EMResult(model, [model.bound(stats)], n_iter=0, converged=True)


def _attributes(tags: Array, log_rules: Arrays) -> dict[str, Array]:
    """Return the attributes that predictions use."""
    names = "root_log_prob_", "stop_log_prob_", "choose_log_prob_"
    return {"tags_": tags} | dict(zip(names, log_rules, strict=True))
