"""
=================================
Keep the same labels in every fit
=================================

The order of components in a mixture is arbitrary: if you fit it twice, labels may be swapped.
:class:`~skvmf.RelativeGMM` writes the means as a reference and gaps along one feature, so
component 0 is always the one with the smallest mean there. Here the three species of the iris data
are found five times, each time in another four fifths of the rows, ordered by petal length.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from skvmf import RelativeGMM
from skvmf.plotting import MixtureDisplay

iris = load_iris()
X, species = iris.data, iris.target
petal_length = iris.feature_names.index("petal length (cm)")
sepal_width = iris.feature_names.index("sepal width (cm)")

# %%
# Five fits of each
# -----------------
# The species are numbered by petal length. With an order, label and species can be compared
# one to one; without, a fit may be as good and agree with nothing.

folds = [train for train, _ in KFold(5, shuffle=True, random_state=1).split(X)]
options_of_both = {"tol": 1e-6, "max_iter": 1000, "random_state": 0}
ordered = [
    RelativeGMM(3, ordering_feature=petal_length, **options_of_both).fit(X[rows]) for rows in folds
]
unordered = [GaussianMixture(3, **options_of_both).fit(X[rows]) for rows in folds]

print("label = species   RelativeGMM  GaussianMixture    mean log-likelihoods")
for fold, (mixture, rival) in enumerate(zip(ordered, unordered, strict=True)):
    agreement = [np.mean(each.predict(X) == species) for each in (mixture, rival)]
    likelihood = [each.score(X) for each in (mixture, rival)]
    print(
        f"without fold {fold}    {agreement[0]:8.0%} {agreement[1]:16.0%}"
        f"    {likelihood[0]:12.3f} {likelihood[1]:8.3f}"
    )

# %%
# The pictures
# ------------
# Blue, orange and green are labels 0, 1 and 2.

figure, axes = plt.subplots(2, 5, figsize=(13, 5.4), sharex=True, sharey=True, layout="constrained")
for row, mixtures in zip(axes, (ordered, unordered), strict=True):
    for fold, (axis, mixture) in enumerate(zip(row, mixtures, strict=True)):
        MixtureDisplay.from_estimator(mixture, X, features=(petal_length, sepal_width), ax=axis)
        axis.set(title=f"without fold {fold}", xlabel="petal length", ylabel="")
    row[0].set_ylabel(f"{type(mixtures[0]).__name__}\nsepal width")
for axis in figure.axes:
    axis.label_outer()
plt.show()
