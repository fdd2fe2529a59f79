"""The von Mises-Fisher distribution in every dimension, in natural and mean parameters.

Notation: d is the dimension of the ambient space (`dim`), kappa the concentration, r the mean
resultant length, so that r m is the mean parameter for mean direction m (`mu`).
"""

from ._density import entropy, logpdf, variance_eigenvalues, variance_function
from ._maps import log_partition, log_partition_deficit, log_sphere_area, mean_resultant_length
from ._negentropy import concentration, negentropy
from ._sampling import fit, rvs
from ._vectors import (
    kl_divergence,
    mean_negentropy,
    natural_parameter,
    negentropy_hessian,
    negentropy_hessian_product,
)

__all__ = [
    "concentration",
    "entropy",
    "fit",
    "kl_divergence",
    "log_partition",
    "log_partition_deficit",
    "log_sphere_area",
    "logpdf",
    "mean_negentropy",
    "mean_resultant_length",
    "natural_parameter",
    "negentropy",
    "negentropy_hessian",
    "negentropy_hessian_product",
    "rvs",
    "variance_eigenvalues",
    "variance_function",
]
