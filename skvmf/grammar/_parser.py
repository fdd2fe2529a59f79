"""Predictions of a fitted grammar: parsing, scoring and sampling sentences."""

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._sklearn import BaseEstimator, DensityMixin
from .._typing import Array
from ..distributions._arguments import check_count
from ._model import Arrays, Sentences
from ._rules import draw_trees, with_average_tag
from ._sentences import check_tags, flatten, number_tags

TaggedSentences = Sequence[Sequence[str] | Sequence[int] | Array]


class Parser(DensityMixin, BaseEstimator):
    """Predictions from `tags_` and the log-probabilities of rules."""

    unknown_tags: str
    random_state: int | np.random.RandomState | None
    tags_: Array
    root_log_prob_: Array
    stop_log_prob_: Array
    choose_log_prob_: Array

    def predict(self, X: TaggedSentences) -> list[Array]:
        """Return the most probable tree of each sentence.

        Parameters
        ----------
        X : sequence of array-like of str or int
            The tags of each sentence.

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
            The tags of each sentence.

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
            The tags of each sentence.
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
            Number of sentences.
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
        check_is_fitted(self)
        self._validate_params()
        check_count(n_samples, "n_samples")
        check_count(max_length, "max_length")
        rng = check_random_state(self.random_state)
        sentences, heads = draw_trees(rng, self._log_rules, n_samples, max_length)
        return [self.tags_[sentence] for sentence in sentences], heads

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
        check_is_fitted(self)
        self._validate_params()
        items, offsets = flatten(X)
        check_tags(items, offsets)
        log_rules, n_tags = self._log_rules, len(self.tags_)
        if self.unknown_tags == "error":
            return Sentences(number_tags(items, self.tags_), offsets, n_tags), log_rules
        numbers = number_tags(items, self.tags_, unknown=n_tags)
        return Sentences(numbers, offsets, n_tags + 1), with_average_tag(log_rules)
