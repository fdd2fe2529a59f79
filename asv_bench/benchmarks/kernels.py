"""Speed and digits of the special functions."""

import time
from pathlib import Path

import numpy as np

from skvmf.distributions import vonmises_fisher as vmf

N_VALUES = 20_000
TABLE = Path(__file__).parents[2] / "tests" / "reference" / "vmf_table.npz"


class VonMisesFisher:
    """One dimension, many values. Dimensions 2 and 10 are iterated where kappa is below 45."""

    params = ([2, 10, 64, 100, 1000, 100_000], ["scattered", "corner", "concentrated"])
    param_names = ("dim", "kappa")

    def setup(self, dim, kappa):
        low, high = {
            "scattered": (0.1 * dim, 10 * dim),
            "corner": (20.0, 45.0),
            "concentrated": (1e5, 1e8),
        }[kappa]
        rng = np.random.default_rng(0)
        self.kappa = np.exp(rng.uniform(np.log(low), np.log(high), N_VALUES))
        self.r = vmf.mean_resultant_length(self.kappa, dim)
        self.q = vmf.mean_resultant_length(self.kappa, dim, complement=True)
        vmf.log_partition(self.kappa, dim)
        vmf.negentropy(self.r, dim, complement=self.q)

    def time_log_partition(self, dim, kappa):
        vmf.log_partition(self.kappa, dim)

    def time_mean_resultant_length(self, dim, kappa):
        vmf.mean_resultant_length(self.kappa, dim)

    def time_mean_resultant_length_complement(self, dim, kappa):
        vmf.mean_resultant_length(self.kappa, dim, complement=True)

    def time_concentration(self, dim, kappa):
        vmf.concentration(self.r, dim, complement=self.q)

    def time_negentropy(self, dim, kappa):
        vmf.negentropy(self.r, dim, complement=self.q)

    def time_curvature(self, dim, kappa):
        vmf.negentropy(self.r, dim, order=2, complement=self.q)


class MeanResultantLengthInverse:
    """The inverse of A in one dimension, where it takes longest."""

    params = (2, 3, 10, 100)
    param_names = ("dim",)

    def track_nanoseconds(self, dim):
        r = np.linspace(0.01, 0.99, N_VALUES)
        vmf.concentration(r, dim)
        return 1e9 / N_VALUES * min(_seconds(vmf.concentration, r, dim) for _ in range(9))

    track_nanoseconds.unit = "nanoseconds a value"


class VonMisesFisherMethods:
    """The routes from r to kappa beside each other."""

    params = ([3, 100, 10_000], ["exact", "ode", "rational", "refined", "banerjee", "newton"])
    param_names = ("dim", "method")

    def setup(self, dim, method):
        self.r = np.random.default_rng(0).uniform(0.01, 0.99, N_VALUES)
        vmf.concentration(self.r, dim, method=method)

    def time_concentration(self, dim, method):
        vmf.concentration(self.r, dim, method=method)

    def track_digits(self, dim, method):
        exact = vmf.concentration(self.r, dim)
        return _digits(vmf.concentration(self.r, dim, method=method), exact)

    track_digits.unit = "digits beside the exact route, 16 at most"


class VonMisesFisherDigits:
    """Digits of agreement with a table to 30 digits: speed bought with accuracy would show."""

    def setup(self):
        table = np.load(TABLE)
        self.table = {name: table[name] for name in table}
        self.arguments = {"dim": table["d"], "complement": table["one_minus_r"]}

    def track_log_partition(self):
        result = vmf.log_partition(self.table["kappa"], self.table["d"])
        return _digits(result, self.table["log_partition"])

    def track_mean_resultant_length(self):
        result = vmf.mean_resultant_length(self.table["kappa"], self.table["d"])
        return _digits(result, self.table["r"])

    def track_complement(self):
        kappa, dim = self.table["kappa"], self.table["d"]
        result = vmf.mean_resultant_length(kappa, dim, complement=True)
        return _digits(result, self.table["one_minus_r"])

    def track_concentration(self):
        result = vmf.concentration(self.table["r"], **self.arguments)
        return _digits(result, self.table["kappa_of_rounded"])

    def track_negentropy(self):
        result = vmf.negentropy(self.table["r"], **self.arguments)
        return _digits(result, self.table["psi"])

    def track_curvature(self):
        result = vmf.negentropy(self.table["r"], order=2, **self.arguments)
        return _digits(result, self.table["psi2"])


class VonMisesFisherSampling:
    params = ([2, 100, 10_000], [0.0, 10.0, 1e6])
    param_names = ("dim", "kappa")

    def setup(self, dim, kappa):
        self.mu = np.eye(1, dim)[0]
        vmf.rvs(self.mu, kappa, size=1, random_state=0)

    def time_rvs(self, dim, kappa):
        vmf.rvs(self.mu, kappa, size=1000, random_state=0)


def _seconds(function, *args):
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def _digits(result, expected):
    """Digits of agreement at the worst value, at most 16."""
    worst = np.abs(result / expected - 1).max()
    return float(-np.log10(max(worst, 1e-16)))
