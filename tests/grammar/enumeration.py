"""The slow obvious twin of the charts: every projective tree, and what the grammar says of it."""

import itertools
from functools import cache

import numpy as np

LEFT, RIGHT = 0, 1
STOP, CONTINUE = 0, 1


def is_projective_tree(heads):
    """Whether heads (from 1, root 0) form one tree with one root and no crossing arcs."""
    n = len(heads)
    if heads.count(0) != 1:
        return False
    for a in range(1, n + 1):
        seen, node = set(), a
        while node != 0:
            if node in seen:
                return False
            seen.add(node)
            node = heads[node - 1]
    for a in range(1, n + 1):
        head = heads[a - 1]
        for between in range(min(head, a) + 1, max(head, a)) if head else ():
            node = between  # whatever lies under an arc descends from its head
            while node not in (0, head):
                node = heads[node - 1]
            if node == 0:
                return False
    return True


@cache
def projective_trees(n):
    """Every projective tree over n words: 1, 2, 7, 30, 143, 728, ..."""
    return [h for h in itertools.product(range(n + 1), repeat=n) if is_projective_tree(h)]


def empty_counts(n_tags):
    return (np.zeros(n_tags), np.zeros((n_tags, 2, 2, 2)), np.zeros((n_tags, 2, n_tags)))


def tree_counts(sentence, heads, n_tags):
    """How often a tree uses each rule, told as the story of its generation."""
    root, stop, choose = empty_counts(n_tags)
    root[sentence[heads.index(0)]] += 1
    for h, head in enumerate(sentence, start=1):
        children = [a for a, parent in enumerate(heads, start=1) if parent == h]
        sides = {LEFT: [a for a in children if a < h], RIGHT: [a for a in children if a > h]}
        for direction, side in sides.items():
            for i, a in enumerate(side):
                stop[head, direction, min(i, 1), CONTINUE] += 1
                choose[head, direction, sentence[a - 1]] += 1
            stop[head, direction, min(len(side), 1), STOP] += 1
    return root, stop, choose


def log_weight(counts, rules):
    """The log-weight of the rules counted; what is not used may have weight zero."""
    parts = zip(counts, rules, strict=True)
    return sum(count[count > 0] @ rule[count > 0] for count, rule in parts)


def weighed(shares, counts):
    """Sum the counts of trees, each with its share."""
    return [np.tensordot(shares, rule, 1) for rule in zip(*counts, strict=True)]


def enumerate_sentence(sentence, rules):
    """Every tree of a sentence with its counts and log-weight."""
    trees = projective_trees(len(sentence))
    counts = [tree_counts(sentence, heads, len(rules[0])) for heads in trees]
    return trees, counts, np.array([log_weight(count, rules) for count in counts])


def random_rules(rng, n_tags, concentration=1.0):
    return tuple(
        np.log(rng.dirichlet(np.full(shape[-1], concentration), size=shape[:-1]))
        for shape in ((n_tags,), (n_tags, 2, 2, 2), (n_tags, 2, n_tags))
    )


def probabilities(model):
    """Return the rules of a fitted grammar."""
    rules = model.root_log_prob_, model.stop_log_prob_, model.choose_log_prob_
    return [np.exp(log_prob) for log_prob in rules]
