"""Which components of two mixtures are the same: the assignment with the largest overlap."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils import Bunch

from ._components import join, log_affinities, read_mixture

if TYPE_CHECKING:
    from ._components import AnyMixture


def match_components(
    reference: "AnyMixture", mixture: "AnyMixture", *, min_overlap: float = 0.0
) -> Bunch:
    """Match the components of two mixtures of the same rows, or of older and newer ones.

    Two fits number their components by chance. Components are paired one to one, so that the sum
    of the pairs' overlaps is largest. An overlap is the Bhattacharyya coefficient, the integral
    of sqrt(p q), in closed form; scale matrices of Student-t components are taken for covariances.
    Pruned components match none.

    Parameters
    ----------
    reference, mixture : VonMisesFisherMixture, SparseGaussianMixture, StudentTMixture, \
RelativeGMM or GaussianMixture
        Fitted mixtures of the same features, both of directions or neither.
    min_overlap : float, default=0.0
        Pairs that overlap less are none: one component is gone, the other is new.

    Returns
    -------
    matched : :class:`~sklearn.utils.Bunch`
        The entries are

        indices : ndarray of shape (n_components of the reference,)
            The component of the mixture that matches each one of the reference; -1 if it is gone.
        overlaps : ndarray of shape (n_components of the reference,)
            Bhattacharyya coefficients of the pairs: 0 is apart, 1 the same; 0 if it is gone.
        new : ndarray of shape (n_new,)
            The components of the mixture that match none.

    Raises
    ------
    ValueError
        If the mixtures have different features or kinds of components.

    Examples
    --------
    >>> import numpy as np
    >>> from skvmf import SparseGaussianMixture
    >>> from skvmf.inspection import match_components
    >>> means, ones = np.array([[0.0, 0], [5, 0], [0, 5]]), np.tile(np.eye(2), (3, 1, 1))
    >>> old = SparseGaussianMixture.from_parameters([0.5, 0.5], means[:2], ones[:2])
    >>> new = SparseGaussianMixture.from_parameters(np.ones(3) / 3, means[::-1], ones)
    >>> matched = match_components(old, new)
    >>> matched.indices, matched.new
    (array([2, 1]), array([0]))
    """
    fitted = [read_mixture(each) for each in (reference, mixture)]
    K, (old, new) = len(fitted[0].weights), [np.flatnonzero(each.weights) for each in fitted]
    affinities = np.exp(log_affinities(join(*fitted))[:K, K:])[np.ix_(old, new)]
    rows, columns = linear_sum_assignment(affinities, maximize=True)
    overlaps = affinities[rows, columns]
    kept = overlaps >= max(min_overlap, np.finfo(np.float64).tiny)
    matched = Bunch(indices=np.full(K, -1), overlaps=np.zeros(K))
    matched.indices[old[rows[kept]]] = new[columns[kept]]
    matched.overlaps[old[rows[kept]]] = overlaps[kept]
    matched.new = np.setdiff1d(new, new[columns[kept]])
    return matched
