"""The modified Dirichlet prior: which parameter."""

import numpy as np

from skvmf import SparseGaussianMixture

from .items import item
from .results import Result, Table


@item("guide.which", "which negative parameter")
def which_parameter(setting):
    """Fit ten components to data sets of three clusters, under four priors and tolerances."""
    tolerances = (1e-3, 1e-5, 1e-7)
    table = Table(
        "Components that remain of ten, and how often three",
        ["weight_concentration_prior", *(f"tol={tol:g}" for tol in tolerances)],
    )
    share = Table("How often three remain", table.columns, 2)
    for alpha in (1, 0, -5, -10, -20):
        cells, found = [], []
        for tol in tolerances:
            numbers = np.array(
                [
                    SparseGaussianMixture(
                        10, weight_concentration_prior=alpha, tol=tol, max_iter=2000, random_state=0
                    )
                    .fit(three_clusters(seed))
                    .n_active_components_
                    for seed in range(setting.size(20, 2))
                ]
            )
            found.append(numbers == 3)
            cells.append(f"{numbers.mean():.1f} ({np.mean(numbers == 3):.0%})")
        table.add(str(alpha), *cells)
        share.add(str(alpha), *found)
    return Result(
        "300 rows of three Gaussians six apart, the default start.",
        "20 data sets, 0 to 19",
        [table, share],
    )


def three_clusters(seed):
    """Return a hundred rows of each of three clusters."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(c, 1, (100, 2)) for c in ([0, 0], [6, 0], [3, 6])])
