"""1 - m.x for highly concentrated components, from the squared chord (x - m)^2 / 2.

Nothing cancels if x and m are close.
"""

import numpy as np

from ._jit import row_kernel, sum_kernel

MAX_FROM_CHORD = 1e-3  # 1 - cosine, at most: above, the difference itself loses four digits


@sum_kernel
def _half_squared_chord(row, scale, direction):
    """Return half of ||scale row - direction||^2."""
    total = 0.0
    for j in range(direction.shape[0]):
        gap = scale * np.float64(row[j]) - direction[j]
        total += gap * gap
    return 0.5 * total


@row_kernel
def cosine_complements(X, scales, directions, cosines):
    """Turn cosines (n, m) of rows and directions into 1 - cosine, in place.

    Parameters
    ----------
    X : (n, d) float32 or float64
    scales : (n,) float64, that give the rows unit length; a row of scale 0 is all zeros
    directions : (m, d) float64, of unit length
    cosines : (n, m) float64
    """
    for n in range(X.shape[0]):
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _half_squared_chord(X[n], scales[n], directions[k])
            cosines[n, k] = gap


@row_kernel
def _csr_half_squared_chord(columns, values, scale, direction):
    """Return half of ||scale row - direction||^2 for a row of sorted columns."""
    total, j, size = 0.0, 0, columns.shape[0]
    for c in range(direction.shape[0]):
        gap = -direction[c]
        while j < size and columns[j] == c:  # ends: j rises, by one where columns differ
            gap += scale * np.float64(values[j])
            j += 1
        total += gap * gap
    return 0.5 * total


@row_kernel
def csr_cosine_complements(indptr, indices, data, scales, directions, cosines):
    """As `cosine_complements`, for the CSR rows that indptr spans, their columns sorted."""
    for n in range(cosines.shape[0]):
        start, stop = indptr[n], indptr[n + 1]
        columns, values = indices[start:stop], data[start:stop]
        for k in range(directions.shape[0]):
            gap = 1.0 - cosines[n, k]
            if gap < MAX_FROM_CHORD and scales[n] > 0:
                gap = _csr_half_squared_chord(columns, values, scales[n], directions[k])
            cosines[n, k] = gap
