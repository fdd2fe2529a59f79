"""Sums over bags of vectors: statistics of the words of a document under each component.

A bag is a row of a CSR matrix of counts over the rows of a table of vectors. Row v of the table
has the responsibilities ``resp[v]``; those of a sparse mixture come as compressed rows
 ``(ptr, components, values)``. `pad_bags` prepares the counts: ``bags = (ptr, words,
amounts)`` are what the other kernels read. Sums are float64 for any table.
"""

from math import sqrt

import numpy as np

from ._jit import kernel, row_kernel

# Words that `moment_sums` takes at a time: sums are read and written a quarter as often.
WORDS_PER_STEP = 4

# Words whose vectors are put together for one product of matrices. 8 take a third longer, with 300
# features half as long again; more than 64 save nothing.
WORDS_PER_PRODUCT = 64

# The error of a sum, for the sum of its terms' absolute values, is below this times the root of
# their number but for one sum in 10^13: errors of half an epsilon each, by Hoeffding's inequality.
ROUNDING = 4 * 2.0**-52

# The error of a mean that a mixture has found, for its absolute value: a unit in the last place or
# two.
ROUNDING_OF_MEANS = 2 * 2.0**-52


@kernel
def pad_bags(indptr, indices, data, ptr, words, amounts, largest):
    """Copy CSR rows with counts relative to the row's largest, padded to whole steps.

    Sums of relative counts can neither over- nor underflow. A padding word repeats the last one
    with an amount of zero. Padded row n of `words` (intp) and `amounts` is from ptr[n] to ptr[n +
    1]; `largest` (n,) gets each row's largest count, or 1 if none is above zero.
    """
    for n in range(largest.shape[0]):
        top = 0.0
        for j in range(indptr[n], indptr[n + 1]):
            top = max(top, np.float64(data[j]))
        largest[n] = top if top > 0.0 else 1.0

        i = ptr[n]
        for j in range(indptr[n], indptr[n + 1]):
            words[i] = indices[j]
            amounts[i] = data[j] / largest[n]
            i += 1
        for padding in range(i, ptr[n + 1]):
            words[padding] = words[i - 1]
            amounts[padding] = 0.0


@row_kernel
def _gather(bags, start, resp, table, scales, vectors, resps, count):
    """Copy vectors of words from `start` on, and scaled responsibilities; add up the latter."""
    _, words, amounts = bags
    # Unsigned, here and below: a signed index is tested for being negative.
    d = np.uintp(table.shape[1])
    K = np.uintp(resp.shape[1])
    for j in range(start, start + vectors.shape[0]):
        v = words[j]
        amount = amounts[j]
        scale = scales[v]

        x = table[v]
        vector = vectors[j - start]
        for i in range(d):
            vector[i] = x[i]

        g = resp[v]
        scaled = resps[j - start]
        for k in range(K):
            part = amount * g[k]
            count[k] += part
            scaled[k] = part * scale


@row_kernel
def direction_sums(bags, resp, table, scales, counts, sums):
    """Set counts = C @ resp and sums[:, k] = C @ (resp[:, k] * scales * table).

    `bags` are n rows from `pad_bags`, resp is (V, K), table (V, d), scales (V,) and sums (n, K, d).
    """
    ptr = bags[0]
    d = table.shape[1]
    K = resp.shape[1]
    vectors = np.empty((WORDS_PER_PRODUCT, d))
    resps = np.empty((WORDS_PER_PRODUCT, K))
    part = np.empty((K, d))
    for n in range(sums.shape[0]):
        count = counts[n]
        total = sums[n]
        count[:] = 0
        total[:] = 0
        for start in range(ptr[n], ptr[n + 1], WORDS_PER_PRODUCT):
            size = min(WORDS_PER_PRODUCT, ptr[n + 1] - start)
            x = vectors[:size]
            g = resps[:size]
            _gather(bags, start, resp, table, scales, x, g, count)
            np.dot(g.T, x, part)
            for k in range(K):
                for i in range(d):
                    total[k, i] += part[k, i]


@row_kernel
def packed_direction_sums(bags, resp, table, scales, counts, sums):
    """As `direction_sums`, for compressed rows of responsibilities: zeros cost nothing."""
    ptr, words, amounts = bags
    starts, components, values = resp
    d = np.uintp(table.shape[1])
    for n in range(sums.shape[0]):
        count = counts[n]
        total = sums[n]
        count[:] = 0
        total[:] = 0
        for j in range(ptr[n], ptr[n + 1]):
            v = words[j]
            x = table[v]
            for m in range(starts[v], starts[v + 1]):
                k = components[m]
                a = amounts[j] * values[m]
                count[k] += a
                a *= scales[v]
                row = total[k]
                for i in range(d):
                    row[i] += a * x[i]


@row_kernel
def moment_sums(bags, resp, table, means, counts, first, second):
    """Set counts = C @ resp and the weighted sums of x - mu_k and of their squares.

    Taken about the means, which is what gradients need, the sums do not cancel. `bags` are n rows
    from `pad_bags`, resp is (V, K), table (V, d), means (K, d) and both sums (n, K, d).
    """
    ptr, words, amounts = bags
    d = np.uintp(table.shape[1])
    K = np.uintp(resp.shape[1])
    for n in range(first.shape[0]):
        count = counts[n]
        total = first[n]
        squares = second[n]
        count[:] = 0
        total[:] = 0
        squares[:] = 0
        for j in range(ptr[n], ptr[n + 1], WORDS_PER_STEP):
            v0, v1, v2, v3 = words[j], words[j + 1], words[j + 2], words[j + 3]
            c0, c1, c2, c3 = amounts[j], amounts[j + 1], amounts[j + 2], amounts[j + 3]
            x0, x1, x2, x3 = table[v0], table[v1], table[v2], table[v3]
            g0, g1, g2, g3 = resp[v0], resp[v1], resp[v2], resp[v3]
            for k in range(K):
                a0, a1, a2, a3 = c0 * g0[k], c1 * g1[k], c2 * g2[k], c3 * g3[k]
                count[k] += (a0 + a1) + (a2 + a3)
                mean = means[k]
                row = total[k]
                square = squares[k]
                for i in range(d):
                    z0 = x0[i] - mean[i]
                    z1 = x1[i] - mean[i]
                    z2 = x2[i] - mean[i]
                    z3 = x3[i] - mean[i]
                    # Sums in this order are fused with their products: faster than in pairs.
                    row[i] += a0 * z0 + a1 * z1 + a2 * z2 + a3 * z3
                    square[i] += a0 * z0 * z0 + a1 * z1 * z1 + a2 * z2 * z2 + a3 * z3 * z3


@row_kernel
def packed_moment_sums(bags, resp, table, means, counts, first, second):
    """As `moment_sums`, for compressed rows of responsibilities: zeros cost nothing."""
    ptr, words, amounts = bags
    starts, components, values = resp
    d = np.uintp(table.shape[1])
    for n in range(first.shape[0]):
        count = counts[n]
        total = first[n]
        squares = second[n]
        count[:] = 0
        total[:] = 0
        squares[:] = 0
        for j in range(ptr[n], ptr[n + 1]):
            v = words[j]
            x = table[v]
            for m in range(starts[v], starts[v + 1]):
                k = components[m]
                a = amounts[j] * values[m]
                count[k] += a
                mean = means[k]
                row = total[k]
                square = squares[k]
                for i in range(d):
                    z = x[i] - mean[i]
                    row[i] += a * z
                    square[i] += a * z * z


@row_kernel
def clear_rounding(sizes, units, values):
    """Set values[n, k] = 0 where all are rounding of sums of terms.

    Scaled to unit length, a document would otherwise be a direction that rounding chose: one word
    at a component's mean, or two that are opposite. The terms of values[n, k, i] add up to at most
    sizes[n, k] units[k, i]. Shapes are (n, K), (K, d) and (n, K, d).
    """
    n_values = values.shape[2]
    for n in range(values.shape[0]):
        for k in range(values.shape[1]):
            bound = ROUNDING * sizes[n, k]
            row = values[n, k]
            unit = units[k]
            i = 0
            while i < n_values and abs(row[i]) < bound * unit[i]:
                i += 1
            if i == n_values:
                row[:] = 0


@row_kernel
def clear_rounded_moments(n_terms, means, counts, first, second):
    """As `clear_rounding`, for first moments of `n_terms` (n,) words that `moment_sums` returned.

    By the inequality of Cauchy and Schwarz ``counts * second`` is at least the square of the
    sizes. Means are rounded, too.
    """
    d = first.shape[2]
    for n in range(first.shape[0]):
        factor = ROUNDING * sqrt(n_terms[n])
        for k in range(first.shape[1]):
            count = counts[n, k]
            row = first[n, k]
            i = 0
            while i < d:
                of_sum = factor * sqrt(count) * sqrt(second[n, k, i])
                bound = of_sum + ROUNDING_OF_MEANS * count * abs(means[k, i])
                if abs(row[i]) >= bound:
                    break
                i += 1
            if i == d:
                row[:] = 0
