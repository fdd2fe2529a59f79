"""The von Mises-Fisher distribution in every dimension, in natural and mean parameters.

Notation: d is the dimension of the ambient space (`dim`, an integer from 2 to 1e15), kappa the
concentration (from 0 to 1e150), and r in [0, 1) the mean resultant length: the mean parameter is r
m for mean direction m (`mu`). Functions compute in float64, broadcast (except `rvs` and `fit`), and
raise a ValueError for arguments out of range.

Functions cite sections of Nonnenmacher and Sahani, "A solution for the mean parametrization of the
von Mises-Fisher distribution".
"""

from ._density import (
    entropy,
    fit,
    kl_divergence,
    logpdf,
    mean_negentropy,
    natural_parameter,
    negentropy_hessian,
    negentropy_hessian_product,
    rvs,
    variance_eigenvalues,
    variance_function,
)
from ._maps import (
    concentration,
    log_partition,
    log_partition_deficit,
    log_sphere_area,
    mean_resultant_length,
    negentropy,
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
