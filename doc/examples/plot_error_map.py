"""
======================================
How exact are densities on the sphere?
======================================

The density of a von Mises-Fisher distribution contains a Bessel function whose value leaves the
range of floating point in a few hundred dimensions. skvmf never computes it, and this map shows
the effect: errors by dimension and concentration, compared with those of
:data:`scipy.stats.vonmises_fisher`, in units in the last place (ulp), relative to mpmath. The
script needs mpmath; it takes about ten seconds.
"""

import warnings

import matplotlib.pyplot as plt
import mpmath as mp
import numpy as np
from matplotlib.colors import LogNorm
from scipy import stats

from skvmf.distributions import vonmises_fisher as vmf

N_POINTS = 24  # along each axis

# %%
# What is exact
# -------------
# With cos(theta) = tanh(u) the normaliser, the mean cosine and one minus it are integrals of
# positive functions over the real line, for which the trapezoidal rule converges geometrically: no
# Bessel function is needed, so the reference is independent of what it checks.

mp.mp.dps = 40


def exact(d, kappa):
    """Return the log-density at the mean direction, the mean cosine r, and 1 - r."""
    m, kappa = mp.mpf(d - 1), mp.mpf(kappa)
    mode = mp.atanh(2 * kappa / (m + mp.sqrt(m * m + 4 * kappa * kappa)))
    h = min(1 / mp.sqrt(m * (1 + mp.tanh(mode) ** 2)) / 4, mp.mpf(1) / 14)
    weights, gaps = [], []
    for step in (h, -h):
        u = mode if step > 0 else mode + step
        weight = largest = mp.mpf(0)
        while weight >= mp.mpf(10) ** -35 * largest:
            gap = 2 / (1 + mp.exp(2 * u))  # 1 - tanh u
            weight = mp.exp(-kappa * gap + m * mp.log(gap * (2 - gap)) / 2)
            largest = max(weight, largest)
            weights.append(weight)
            gaps.append(gap)
            u += step
    total = mp.fsum(weights)
    r_complement = mp.fsum(w * gap for w, gap in zip(weights, gaps, strict=True)) / total
    area_below = mp.log(2) + m / 2 * mp.log(mp.pi) - mp.loggamma(m / 2)
    return -mp.log(total * h) - area_below, 1 - r_complement, r_complement


dims = np.unique(np.geomspace(2, 1e6, N_POINTS).astype(int))
kappas = np.geomspace(1e-3, 1e8, N_POINTS)
reference = np.array([[exact(int(d), kappa) for kappa in kappas] for d in dims])

# %%
# Errors
# ------
# Of the log-density at the mean direction, and of the concentration that belongs to the exact
# (r, 1 - r), both rounded to float64. Errors are relative; those of a log-density, which may be
# zero, are relative to 1 at least.


def ulps(result, expected, least=0):
    """Return errors in ulp of the expected values, or of `least`; nan where not finite."""
    errors, finite = np.full(result.shape, np.nan), np.isfinite(result)
    gaps = np.abs(result[finite] - expected[finite])
    errors[finite] = gaps / np.maximum(np.abs(expected[finite]), least) / np.finfo(float).eps
    return errors


d, kappa = dims[:, np.newaxis], kappas
log_density, r, q = np.moveaxis(reference, -1, 0)
ours = vmf.log_partition_deficit(kappa, d) - vmf.log_sphere_area(d)
scipys = np.empty_like(ours)
with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore")
    for i, dim in enumerate(dims):
        x = np.eye(1, dim)[0]
        scipys[i] = [stats.vonmises_fisher(x, k).logpdf(x) for k in kappas]
inverse = vmf.concentration(r.astype(float), d, complement=q.astype(float))

panels = {
    "log-density, skvmf": ulps(ours, log_density, 1),
    "log-density, SciPy": ulps(scipys, log_density, 1),
    "concentration from (r, 1 - r), skvmf": ulps(inverse, np.broadcast_to(kappa, r.shape)),
}
for name, errors in panels.items():
    lost = np.isnan(errors).mean()
    print(f"{name:37} largest {np.nanmax(errors):8.2g} ulp, not finite {lost:4.0%}")

# %%
# The map
# -------
# Red is where a result is not finite. SciPy's normalizer underflows above a few hundred
# dimensions, first for small concentrations. If it is finite but kappa is large, the difference of
# large terms loses digits.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
colours = plt.get_cmap("viridis").with_extremes(bad="tab:red")
for axis, (name, errors) in zip(axes, panels.items(), strict=True):
    shown = np.ma.masked_invalid(np.maximum(errors, 0.3))
    mesh = axis.pcolormesh(kappas, dims, shown, norm=LogNorm(0.3, 1e6), cmap=colours)
    axis.set(xscale="log", yscale="log", title=name, xlabel="concentration")
axes[0].set_ylabel("dimension")
figure.colorbar(mesh, ax=axes, label="error in ulp", extend="both")
plt.show()
