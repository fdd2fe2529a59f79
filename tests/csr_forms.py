"""Matrices as compressed rows in all the forms that SciPy allows, equal to each other."""

import numpy as np
from scipy import sparse


def unsorted(X):
    """The entries of each row the other way round."""
    X = sparse.csr_array(X)
    flipped = X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        flipped.indices[start:stop] = X.indices[start:stop][::-1]
        flipped.data[start:stop] = X.data[start:stop][::-1]
    flipped.has_sorted_indices = False
    return flipped


def halved(X):
    """Each entry stored as a half of it and the rest; of the smallest number a half is 0."""
    X = sparse.csr_array(X)
    half = X.data / 2
    data = np.stack([half, X.data - half], axis=1).ravel()
    return sparse.csr_array((data, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def with_a_zero(X):
    """A zero stored at the end of the last row."""
    X = sparse.csr_array(X)
    data, indices, indptr = np.append(X.data, 0), np.append(X.indices, 0), X.indptr.copy()
    indptr[-1] += 1
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


def long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def locked(X):
    X = sparse.csr_array(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


FORMS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array]
FORMS += [sparse.coo_array, sparse.lil_matrix]
FORMS += [unsorted, halved, with_a_zero, long_indices, locked]
