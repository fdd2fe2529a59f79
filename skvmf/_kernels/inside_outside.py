"""Charts of the dependency model with valence: sums, maxima, expected counts, best trees.

The grammar generates a head's left and right dependents apart (split heads), so a chart has
only spans that start at a head: O(n^2) cells. "No child yet" is "the span is empty", so
valence costs nothing, and every cell is a sum over one split point: O(n^3) time. The left side
is the right side of the sentence read backwards: position i of direction LEFT is position
n - 1 - i of the sentence, and both directions share every line.

For a head h, j >= h in its direction, its dependents a, and v = (j > h):

    span[h, j]   = sum over h < a <= j of arc[h, a] * closed[a, j]           span[h, h] = 1
    open[h, j]   = span[h, j] * P(continue | h, v)
    closed[h, j] = span[h, j] * P(stop | h, v)
    arc[h, a]    = P(a | h) * sum over h <= m < a of open[h, m] * closed'[a, m + 1]
    Z            = sum over r of P(r | root) * closed'[r, first] * closed[r, last]

where a dash marks the dependent's other side. Charts hold logarithms, so that weights of any
size do. Expected counts are the slopes of log Z in the log-weights, pushed back through the
same sums from the longest spans to the shortest (the outside pass as reverse differentiation);
with maxima in place of sums the slopes are the best tree.

Arguments, everywhere: `tags` (n_tokens,) int64 holds the sentences one after the other,
sentence i at ``tags[offsets[i]:offsets[i + 1]]``, none of them empty. `rules` and `counts` are
tuples of float64 arrays: root (T,), stop (T, 2, 2, 2) by head, direction, has a child and
outcome, choose (T, 2, T) by head, direction and dependent. `rules` are log-weights, where -inf
is what cannot happen.
"""

import math

import numpy as np

from ._jit import kernel

# Directions, outcomes of a decision, and charts: numbers of axes of arrays.
LEFT = 0
RIGHT = 1
STOP = 0
CONTINUE = 1
OPEN = 0
CLOSED = 1
ARC = 2

# Terms below exp(-60), 9e-27, of the largest count as 0: rounding loses even the sum of them all.
MIN_LOG_RATIO = -60.0


@kernel
def inside(tags, offsets, rules, values):
    """Write each sentence's log-partition, the log of its trees' total weight, to `values`."""
    work = _workspace(offsets)
    for i in range(len(offsets) - 1):
        sentence = tags[offsets[i] : offsets[i + 1]]
        charts, _, terms = _parts(work, len(sentence))
        values[i] = _fill(sentence, rules, charts, terms, False)


@kernel
def inside_outside(tags, offsets, rules, best, counts, values):
    """Write log-partitions to `values` and add expected rule counts to `counts`.

    With `best`, write the largest log-weight of a tree and add that tree's rules instead.
    A sentence whose trees all have weight zero counts nothing; its value is -inf.
    """
    work = _workspace(offsets)
    for i in range(len(offsets) - 1):
        sentence = tags[offsets[i] : offsets[i + 1]]
        charts, slopes, terms = _parts(work, len(sentence))
        values[i] = _fill(sentence, rules, charts, terms, best)
        if values[i] > -np.inf:
            _push_back(sentence, rules[0], charts, best, slopes, terms)
            _count(sentence, slopes, counts)


@kernel
def best_trees(tags, offsets, rules, heads):
    """Write each sentence's tree of largest weight to `heads` (n_tokens,), root as 0.

    Heads are positions in the sentence from 1. The first split wins a tie. Where every tree
    has weight zero some projective tree is written.
    """
    work = _workspace(offsets)
    for i in range(len(offsets) - 1):
        sentence = tags[offsets[i] : offsets[i + 1]]
        n = len(sentence)
        charts, slopes, terms = _parts(work, n)
        _fill(sentence, rules, charts, terms, True)
        _push_back(sentence, rules[0], charts, True, slopes, terms)
        heads[offsets[i] : offsets[i + 1]] = 0
        for h in range(n):
            for a in range(h + 1, n):
                if slopes[ARC, RIGHT, h, a] > 0.0:
                    heads[offsets[i] + a] = h + 1
                if slopes[ARC, LEFT, h, a] > 0.0:
                    heads[offsets[i] + n - 1 - a] = n - h


@kernel
def count_trees(tags, offsets, heads, counts):
    """Add the rules that the given trees use to `counts`; `heads` as `best_trees` writes it."""
    root, stop, choose = counts
    for i in range(len(offsets) - 1):
        sentence = tags[offsets[i] : offsets[i + 1]]
        parents = heads[offsets[i] : offsets[i + 1]] - 1
        for h in range(len(sentence)):
            head = sentence[h]
            if parents[h] < 0:
                root[head] += 1.0
            for direction in range(2):
                has_child = 0
                first, last = _side(h, len(sentence), direction)
                for a in range(first, last):
                    if parents[a] == h:
                        choose[head, direction, sentence[a]] += 1.0
                        stop[head, direction, has_child, CONTINUE] += 1.0
                        has_child = 1
                stop[head, direction, has_child, STOP] += 1.0


@kernel
def harmonic_counts(tags, offsets, power, counts):
    """Add the counts of a harmonic attachment, close words first, to `counts`.

    Every tag of n is the root with probability 1 / n; otherwise its head is drawn with
    probability proportional to distance^-power. The stop counts follow from taking the
    attachments p_a to one head as independent (derived here): with none = prod (1 - p_a) and
    c = sum p_a, a side stops at once `none` times, continues at once 1 - none times, and
    having a child continues c - (1 - none) times and stops 1 - none times.
    """
    root, stop, choose = counts
    work = _workspace(offsets)
    for i in range(len(offsets) - 1):
        sentence = tags[offsets[i] : offsets[i + 1]]
        n = len(sentence)
        for a in range(n):
            work[a] = _closeness(a, n, power)
        for h in range(n):
            root[sentence[h]] += 1.0 / n
            for direction in range(2):
                none = 1.0
                total = 0.0
                first, last = _side(h, n, direction)
                for a in range(first, last):
                    p = (n - 1) / n * float(abs(h - a)) ** -power / work[a]
                    choose[sentence[h], direction, sentence[a]] += p
                    none *= 1.0 - p
                    total += p

                outcomes = stop[sentence[h], direction]
                outcomes[0, STOP] += none
                outcomes[0, CONTINUE] += 1.0 - none
                outcomes[1, STOP] += 1.0 - none
                outcomes[1, CONTINUE] += max(total - (1.0 - none), 0.0)


@kernel
def _closeness(a, n, power):
    """Sum distance^-power over the other positions."""
    total = 0.0
    for h in range(n):
        if h != a:
            total += float(abs(h - a)) ** -power
    return total


@kernel
def _side(h, n, direction):
    """Return the positions on one side of h, as the ends of a range."""
    if direction == LEFT:
        return 0, h
    return h + 1, n


@kernel
def _tag(sentence, direction, position):
    """Return the tag at a position counted in a direction."""
    if direction == LEFT:
        return sentence[len(sentence) - 1 - position]
    return sentence[position]


@kernel
def _workspace(offsets):
    """Return memory for the charts of the longest sentence, and their slopes and terms."""
    n = 0
    for i in range(len(offsets) - 1):
        n = max(n, offsets[i + 1] - offsets[i])
    return np.empty(12 * n * n + n)


@kernel
def _parts(work, n):
    """Return charts and slopes (3, 2, n, n), and terms (n,), out of the workspace."""
    size = 6 * n * n
    charts = work[:size].reshape((3, 2, n, n))
    slopes = work[size : 2 * size].reshape((3, 2, n, n))
    return charts, slopes, work[2 * size : 2 * size + n]


@kernel
def _fill(sentence, rules, charts, terms, best):
    """Fill the charts from short spans to long; return the log-partition or the best score."""
    root, stop, choose = rules
    n = len(sentence)
    # Both directions of a length before the next: an arc needs its dependent's other side.
    for length in range(n):
        for direction in range(2):
            for h in range(n - length):
                j = h + length
                head = _tag(sentence, direction, h)
                total = 0.0
                if length > 0:
                    _arc_terms(direction, h, j, charts, terms)
                    rule = choose[head, direction, _tag(sentence, direction, j)]
                    charts[ARC, direction, h, j] = rule + _add_up(terms[:length], best)
                    _span_terms(direction, h, j, charts, terms)
                    total = _add_up(terms[:length], best)

                outcomes = stop[head, direction, min(length, 1)]
                charts[OPEN, direction, h, j] = total + outcomes[CONTINUE]
                charts[CLOSED, direction, h, j] = total + outcomes[STOP]
    _root_terms(sentence, root, charts, terms)
    return _add_up(terms, best)


@kernel
def _arc_terms(direction, h, a, charts, terms):
    """Write the splits h <= m < a between a head's span and its next dependent's other side."""
    n = len(terms)
    for m in range(h, a):
        other_side = charts[CLOSED, 1 - direction, n - 1 - a, n - 2 - m]
        terms[m - h] = charts[OPEN, direction, h, m] + other_side


@kernel
def _span_terms(direction, h, j, charts, terms):
    """Write the choices h < a <= j of a span's last dependent."""
    for a in range(h + 1, j + 1):
        terms[a - h - 1] = charts[ARC, direction, h, a] + charts[CLOSED, direction, a, j]


@kernel
def _root_terms(sentence, root, charts, terms):
    """Write the choices of the root."""
    n = len(terms)
    for r in range(n):
        left = charts[CLOSED, LEFT, n - 1 - r, n - 1]
        right = charts[CLOSED, RIGHT, r, n - 1]
        terms[r] = root[sentence[r]] + left + right


@kernel
def _add_up(terms, best):
    """Return the log of the sum of exponentials; with `best` the largest term."""
    top = -np.inf
    for term in terms:
        top = max(top, term)
    # If no term is possible, differences of infinities would be nan.
    if best or top == -np.inf:
        return top
    total = 0.0
    for term in terms:
        total += _exp(term - top)
    return top + math.log(total)


@kernel
def _exp(x):
    """Return exp(x) for x <= 0, zero where it no longer matters: subnormals are slow."""
    return math.exp(x) if x > MIN_LOG_RATIO else 0.0


@kernel
def _to_slopes(terms, best):
    """Replace terms by the slopes of `_add_up`; with `best` the first largest takes all."""
    first = 0
    for k in range(1, len(terms)):
        if terms[k] > terms[first]:
            first = k
    if best:
        terms[:] = 0.0
        terms[first] = 1.0
        return
    top = terms[first]
    total = 0.0
    for k in range(len(terms)):
        terms[k] = _exp(terms[k] - top)
        total += terms[k]
    for k in range(len(terms)):
        terms[k] /= total


@kernel
def _push_back(sentence, root, charts, best, slopes, terms):
    """Write the slopes of what `_fill` returned in every cell of its charts.

    No head is its own dependent: those cells of ARC, to the right, keep the root's slopes.
    """
    n = len(sentence)
    slopes[:] = 0.0
    _root_terms(sentence, root, charts, terms)
    _to_slopes(terms, best)
    for r in range(n):
        slopes[ARC, RIGHT, r, r] = terms[r]
        slopes[CLOSED, LEFT, n - 1 - r, n - 1] = terms[r]
        slopes[CLOSED, RIGHT, r, n - 1] = terms[r]

    # From long spans to short: a cell's slope is whole once all longer ones are pushed back.
    for length in range(n - 1, 0, -1):
        for direction in range(2):
            for h in range(n - length):
                _push_span(direction, h, h + length, charts, best, slopes, terms)
                _push_arc(direction, h, h + length, charts, best, slopes, terms)


@kernel
def _push_span(direction, h, j, charts, best, slopes, terms):
    """Distribute a span's slope over the arcs of the dependents it may end with."""
    slope = slopes[OPEN, direction, h, j] + slopes[CLOSED, direction, h, j]
    if slope > 0.0:
        _span_terms(direction, h, j, charts, terms)
        _to_slopes(terms[: j - h], best)
        for a in range(h + 1, j + 1):
            part = slope * terms[a - h - 1]
            slopes[ARC, direction, h, a] += part
            slopes[CLOSED, direction, a, j] += part


@kernel
def _push_arc(direction, h, a, charts, best, slopes, terms):
    """Distribute an arc's slope over the splits of what it encloses."""
    n = len(terms)
    slope = slopes[ARC, direction, h, a]
    if slope > 0.0:
        _arc_terms(direction, h, a, charts, terms)
        _to_slopes(terms[: a - h], best)
        for m in range(h, a):
            part = slope * terms[m - h]
            slopes[OPEN, direction, h, m] += part
            slopes[CLOSED, 1 - direction, n - 1 - a, n - 2 - m] += part


@kernel
def _count(sentence, slopes, counts):
    """Add the slopes in the cells to the rules that the cells were multiplied by."""
    root, stop, choose = counts
    n = len(sentence)
    for direction in range(2):
        for h in range(n):
            head = _tag(sentence, direction, h)
            for j in range(h, n):
                outcomes = stop[head, direction, min(j - h, 1)]
                outcomes[CONTINUE] += slopes[OPEN, direction, h, j]
                outcomes[STOP] += slopes[CLOSED, direction, h, j]
            for a in range(h + 1, n):
                dependent = _tag(sentence, direction, a)
                choose[head, direction, dependent] += slopes[ARC, direction, h, a]

    # What `_push_back` keeps in cells that are no arcs.
    for r in range(n):
        root[sentence[r]] += slopes[ARC, RIGHT, r, r]
