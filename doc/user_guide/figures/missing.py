"""Missing values: imputation beside scikit-learn's, and intervals of a regression."""

import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

from reproduction.items import item
from reproduction.results import Record, Table
from skvmf import SparseGaussianMixture

SETS = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
NAMES = ["mixture", "IterativeImputer", "KNNImputer", "feature means"]
SIZES = (1, 3)  # numbers of components that are compared


def mixture_of(X, seed):
    """Return the mixture whose density at a fifth of the rows, left out, is the largest."""
    options = {"reg_covar": 0.1, "weight_concentration_prior": 1.0, "random_state": seed}
    options |= {"missing_values": "marginal", "max_iter": 100}
    order = np.random.default_rng(seed).permutation(len(X))
    held, others = order[: len(X) // 5], order[len(X) // 5 :]
    fits = [SparseGaussianMixture(K, **options).fit(X[others]) for K in SIZES]
    best = SIZES[int(np.argmax([fit.score(X[held]) for fit in fits]))]
    return SparseGaussianMixture(best, **options).fit(X)


@item("guide.missing", "missing values", small={"sets": 1, "every": 20, "names": ("wine",)})
def missing(setting, sets=5, every=1, names=tuple(SETS)):
    """Impute values that are left out at random, and predict one feature from others."""
    table = Table("Root mean squared error of imputed values", ["rows", *NAMES])
    times = Table("Seconds of a processor, to fit and to impute", ["rows", *NAMES], 1)
    for name in names:
        X = SETS[name]().data[::every]
        X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
        for share in (0.1, 0.3, 0.5):
            found = [imputed(X, share, seed) for seed in range(sets)]
            errors, seconds = np.transpose(found, (2, 1, 0))
            table.add(f"{name}, {share:.0%} missing", *errors)
            times.add(f"{name}, {share:.0%} missing", *seconds)
    return Record(
        "The features that vary, at unit variance. One or three components, by the density at a "
        "fifth of the rows; others have their defaults.",
        f"{sets} patterns of missing values, 0 to {sets - 1}",
        [table, times, regression(sets, every)],
    )


def imputed(X, share, seed):
    """Return errors and seconds of all methods, (4, 2)."""
    gone = np.random.default_rng(seed).random(X.shape) < share
    gone[0] = False  # each feature has a value
    rows = np.where(gone, np.nan, X)
    methods = [
        lambda: mixture_of(rows, seed).impute(rows),
        lambda: IterativeImputer(random_state=seed).fit_transform(rows),
        lambda: KNNImputer().fit_transform(rows),
        lambda: SimpleImputer().fit_transform(rows),
    ]
    found = []
    for method in methods:
        start = time.process_time()
        filled = method()
        seconds = time.process_time() - start
        found.append((np.sqrt(np.mean((filled - X)[gone] ** 2)), seconds))
    return found


def regression(sets, every):
    """Return the table of a regression: its error, and how often 90 % intervals hold the value."""
    table = Table(
        "Diabetes: a fifth of the rows predicted",
        ["method", "root mean squared error", "share within 90 % intervals"],
    )
    found = {"mixture": [], "the same, 30 % missing": [], "BayesianRidge": []}
    for seed in range(sets):
        data = load_diabetes()
        X = StandardScaler().fit_transform(np.column_stack([data.data, data.target]))[::every]
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = X[order[len(X) // 5 :]], X[order[: len(X) // 5]]
        gone = np.random.default_rng(seed).random(train.shape) < 0.3
        found["mixture"].append(intervals(mixture_of(train, seed), test))
        rows = np.where(gone, np.nan, train)
        found["the same, 30 % missing"].append(intervals(mixture_of(rows, seed), test))
        ridge = BayesianRidge().fit(train[:, :-1], train[:, -1])
        mean, deviation = ridge.predict(test[:, :-1], return_std=True)
        gaps = test[:, -1] - mean
        within = np.abs(gaps) <= 1.645 * deviation
        found["BayesianRidge"].append((np.sqrt(np.mean(gaps**2)), within.mean()))
    for name, own in found.items():
        table.add(name, *np.transpose(own))
    return table


def intervals(mixture, rows):
    """Return the error of means of the last feature, and how often intervals hold it."""
    gaps, within = [], []
    for row in rows:
        part = mixture.condition(np.arange(len(row) - 1), row[:-1])
        draws = part.set_params(random_state=0).sample(2000)[0]
        low, high = np.quantile(draws, [0.05, 0.95])
        gaps.append(row[-1] - part.weights_ @ part.means_[:, 0])
        within.append(low <= row[-1] <= high)
    return np.sqrt(np.mean(np.square(gaps))), np.mean(within)
