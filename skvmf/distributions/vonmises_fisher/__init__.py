"""The von Mises-Fisher distribution in every dimension, in natural and mean parameters.

Notation: d is the dimension of the ambient space (`dim`, an integer from 2 to 1e15), kappa the
concentration (from 0 to 1e150), and r in [0, 1) the mean resultant length: the mean parameter is r
m for mean direction m (`mu`). Functions compute in float64, broadcast (except `rvs` and `fit`), and
raise a ValueError for arguments out of range.

Functions cite sections of Nonnenmacher and Sahani, "A solution for the mean parametrization of the
von Mises-Fisher distribution".
"""

from ..._docstrings import add_shared_parameters
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

_OF_FUNCTIONS = {  # what functions take that do not describe it
    "kappa": """kappa : float or array_like
    Concentration, from 0 to 1e150.""",
    "dim": """dim : int or array_like of int
    Dimension d of the ambient space, from 2 to 1e15.""",
    "r": """r : float or array_like
    Mean resultant length in [0, 1).""",
    "complement": """complement : float or array_like, default=None
    1 - r, if it is known more precisely than by subtraction.""",
    "mean": """mean : array_like of shape (..., d)
    Mean parameters, inside the unit ball.""",
}
for _name in __all__:
    add_shared_parameters(globals()[_name], _OF_FUNCTIONS)
