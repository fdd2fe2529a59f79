"""
===================================
Why the order of components matters
===================================

Two Gaussians with means 1 and 3 are the same mixture as two with means 3 and 1. In the plane of the
means every mixture appears twice, mirrored at the line where the components coincide; in relative
coordinates, the first mean and the gap to the second, it appears once. A clearance excludes a band
at the line as well.

This is figure 5 of Esser and Nielsen, "On the influence of enforcing model identifiability on
learning dynamics of Gaussian mixture models", with the Fisher information added: near the line a
row contains no information about the gap, in any coordinates.
"""

import matplotlib.pyplot as plt
import numpy as np

from skvmf.inspection import fisher_information

# %%
# Information about the gap
# -------------------------
# The Fisher information of (mu_1, mu_2) and of (mu_1, Delta), for equal weights: both have an
# eigenvalue that goes to zero with the gap, as its square. The change of coordinates keeps the
# determinant. Only the clearance keeps away from zero.

sizes = np.geomspace(0.01, 6, 60)
eigenvalues = {}
for coordinates in ("absolute", "relative"):
    found = [
        fisher_information(([0.5, 0.5], [0.0, gap]), coordinates=coordinates, parameters=("means",))
        for gap in sizes
    ]
    eigenvalues[coordinates] = np.array([each.eigenvalues for each in found])
    determinants = [np.linalg.det(each.information) for each in found]
    print(f"{coordinates}: determinants from {determinants[0]:.3g} to {determinants[-1]:.3g}")

# %%
# Two planes, and the information
# -------------------------------
# Lines of one colour have one first mean, dots of one row one gap. On the dotted line the
# components coincide. White is what relative coordinates can reach with a clearance of 0.3.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
first, gaps = np.linspace(-2, 2, 9), np.linspace(0.3, 2.5, 8)
edge = np.array([-2.5, 2.5])
for axis, coordinates in zip(axes, ("absolute", "relative"), strict=False):
    overlap = edge if coordinates == "absolute" else 0 * edge
    for mean, colour in zip(first, plt.get_cmap("viridis")(np.linspace(0, 0.9, 9)), strict=True):
        heights = gaps + (mean if coordinates == "absolute" else 0)
        axis.plot(np.full(8, mean), heights, ".-", color=colour)
    axis.plot(edge, overlap, "k:", linewidth=1)
    axis.fill_between(edge, overlap + 0.3, overlap.min() - 0.5, color="0.92", linewidth=0, zorder=0)
    axis.set(title=f"{coordinates} coordinates", xlabel="$\\mu_1$", xlim=edge)
    axis.set_ylabel("$\\mu_2$" if coordinates == "absolute" else "$\\Delta$")
for (coordinates, values), style in zip(eigenvalues.items(), ("-", "--"), strict=True):
    for k, (size, colour) in enumerate([("smaller", "C1"), ("larger", "C0")]):
        axes[2].loglog(sizes, values[:, k], style, color=colour, label=f"{size}, {coordinates}")
axes[2].axvspan(sizes[0], 0.3, color="0.92", zorder=0)
axes[2].set(xlabel="gap", title="eigenvalues of the Fisher information", xlim=sizes[[0, -1]])
axes[2].legend()
plt.show()
