"""
=====================================
Where gradient ascent takes two means
=====================================

How would gradient ascent move the means of two unit Gaussians with unlimited data? The arrows are
the expected gradient of the log-density, in the plane of the two means, for ascent in (mu_1, mu_2)
and for ascent in the relative coordinates (mu_1, Delta): figure 1 of Esser and Nielsen, "On the
influence of enforcing model identifiability on learning dynamics of Gaussian mixture models".

The paper's polynomials for it still contain x, over which the expectation should be; here
expectations are integrals.
"""

import matplotlib.pyplot as plt
import numpy as np

from skvmf.inspection import expected_gradient
from skvmf.plotting import DynamicsDisplay

# %%
# The field around the singularity, and a wider one
# --------------------------------------------------
# The truth is a single Gaussian, so both components belong on it. Arrows of a row have the same
# scale.

figure, axes = plt.subplots(2, 2, figsize=(9.5, 8.8), layout="constrained")
for row, (centre, reach) in zip(axes, [(0.0, 2.0), (20.0, 10.0)], strict=True):
    line = np.linspace(centre - reach, centre + reach, 17)
    grid = np.stack(np.meshgrid(line, line), axis=-1)
    truth = [0.5, 0.5], [centre, centre]
    fields = {
        name: expected_gradient(grid, truth, coordinates=name).velocity
        for name in ("absolute", "relative")
    }
    fastest = np.linalg.norm(fields["relative"], axis=-1).max()
    for axis, (name, velocity) in zip(row, fields.items(), strict=True):
        quiver = {"scale": 9 * fastest, "clim": (0, fastest), "width": 0.005}
        DynamicsDisplay.from_velocity(grid, velocity, truth=truth[1], ax=axis, quiver_kwargs=quiver)
        axis.set(title=f"ascent in {name} coordinates", aspect="equal")
plt.show()

# %%
# Longer, but in which direction?
# -------------------------------
# Ascent in relative coordinates multiplies the gradient by [[1, 1], [1, 2]]. Its eigenvalues are
# 2.6 and 0.4: it is faster along the common mean, which is fast anyway. Along mu_2 - mu_1, the
# slow direction at the singularity, it has exactly half the speed.

line = np.linspace(-2, 2, 41)
grid = np.stack(np.meshgrid(line, line), axis=-1)
absolute, relative = (
    expected_gradient(grid, ([0.5, 0.5], [0.0, 0.0]), coordinates=name).velocity
    for name in ("absolute", "relative")
)
lengths = [np.linalg.norm(velocity, axis=-1) for velocity in (absolute, relative)]
moving = lengths[0] > 1e-9
print(f"ratio of mean lengths            {lengths[1].mean() / lengths[0].mean():.2f}")
print(f"mean ratio of lengths            {np.mean(lengths[1][moving] / lengths[0][moving]):.2f}")
print(f"share of the grid with a longer  {np.mean(lengths[1] > lengths[0]):.0%}")
distance = np.linalg.norm(grid, axis=-1)
for name, velocity, length in zip(
    ("absolute", "relative"), (absolute, relative), lengths, strict=True
):
    cosine = -(grid * velocity).sum(axis=-1)[moving] / (distance * length)[moving]
    print(f"mean cosine to the truth, {name}  {cosine.mean():.2f}")
