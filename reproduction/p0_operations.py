"""P0: the variance function and the Hessian (section 2), and operation counts (A.5)."""

import numpy as np

from skvmf.distributions import vonmises_fisher

from .items import item
from .results import Result, Table

LENGTHS = (0.05, 0.5, 0.95)


@item("P0.variance", "the variance function and the Hessian (sections 2.1 to 2.4, A.1)")
def variance_function(setting):
    """Hold the variance function against samples, and the Hessian against differences."""
    variance = Table(
        "Samples against the variance function",
        ["d and r", "trace less 1 - r^2", "along the mean, z", "across it, z"],
        digits="e",
    )
    hessian = Table(
        "The Hessian against differences of the gradient, and times the variance function",
        ["d and r", "relative error", "distance of the product from the identity"],
        digits="e",
    )
    for dim in setting.size((2, 3, 10, 100), (2, 10)):
        for r in LENGTHS:
            name = f"{dim}, {r:g}"
            mean = np.zeros(dim)
            mean[0] = r
            variance.add(name, *against_samples(mean, setting.size(100_000, 2000)))
            hessian.add(name, *against_differences(mean))
    return Result(
        "V(mu) = r/kappa (I - m m^T) + m m^T/psi'' for a mean mu = r m; variances of 100,000 "
        "samples, in standard errors.",
        "0",
        [variance, hessian],
    )


def radial(mean):
    """Return r, psi'(r), psi''(r) and the direction of a mean."""
    r, dim = np.linalg.norm(mean), len(mean)
    slope, curvature = (vonmises_fisher.negentropy(r, dim, order=order) for order in (1, 2))
    return r, slope, curvature, mean / r


def covariance(mean):
    """Return the variance function at a mean."""
    r, slope, curvature, m = radial(mean)
    along = np.outer(m, m)
    return r / slope * (np.eye(len(mean)) - along) + along / curvature


def gradient(mean):
    """Return the gradient of the negative entropy, the natural parameter."""
    _, slope, _, m = radial(mean)
    return slope * m


def against_samples(mean, number):
    """Return the error of the trace, and two variances of samples in standard errors."""
    r, slope, _, m = radial(mean)
    V = covariance(mean)
    X = vonmises_fisher.rvs(m, slope, size=number, random_state=0)
    along = (X[:, 0] - r) ** 2
    across = (X[:, 1:] ** 2).mean(axis=1)
    scores = [
        (values.mean() - wanted) / (values.std() / np.sqrt(number))
        for values, wanted in ((along, V[0, 0]), (across, V[1, 1]))
    ]
    return [abs(np.trace(V) - (1 - r * r)), *scores]


def against_differences(mean, step=1e-5):
    """Return the relative error of the Hessian, and that of its being the inverse."""
    r, slope, curvature, m = radial(mean)
    along = np.outer(m, m)
    hessian = slope / r * np.eye(len(mean)) + (curvature - slope / r) * along
    shifts = step * np.eye(len(mean))[:2]
    found = [(gradient(mean + h) - gradient(mean - h)) / (2 * step) for h in shifts]
    error = np.abs(found - hessian[:2]).max() / np.abs(hessian).max()
    return error, np.abs(hessian @ covariance(mean) - np.eye(len(mean))).max()


@item("P0.operations", "operation counts of root finding (A.5)")
def operations(setting):
    """Count Newton steps and terms of Perron's continued fraction, as A.5 describes them."""
    table = Table(
        "Root finding on a truncated continued fraction, .01 <= r <= .99",
        ["d", "Newton steps", "terms each", "operations", "error of kappa, relative"],
        digits=1,
    )
    closed = Table("Operations of the closed form", ["form", "operations"], 0)
    lengths = np.linspace(0.01, 0.99, setting.size(99, 9))
    for dim in (10, 100, 1000, 10_000):
        found = np.array([newton(r, dim) for r in lengths])
        exact = vonmises_fisher.concentration(lengths, dim)
        error = np.abs(found[:, 0] / exact - 1).max()
        table.add(str(dim), *found[:, 1:].T, f"{error:.0e}")
    for name, form in (("first", first_form), ("second", second_form)):
        closed.add(name, form(Counted(0.5), 10).operations)
    return Result(
        "Newton's method from Banerjee's form until a step is below 1e-13 of kappa; a fraction "
        "until a term is below 1e-16 of its sum, and never longer than 1,000 terms. Six operations "
        "a term, as the paper counts, and ten a step.",
        "none; 99 mean resultant lengths",
        [table, closed],
    )


class Counted:
    """A number that counts the operations that led to it."""

    def __init__(self, value, operations=0):
        self.value, self.operations = value, operations

    def _then(self, other, function):
        value, before = getattr(other, "value", other), getattr(other, "operations", 0)
        return Counted(function(self.value, value), self.operations + before + 1)

    def __add__(self, other):
        return self._then(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._then(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._then(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._then(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self._then(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self._then(other, lambda a, b: b / a)

    def used(self):
        """Return the value for another use: its operations are counted once."""
        return Counted(self.value)


def first_form(r, dim):
    """Return the paper's first closed form of kappa."""
    w = r * r
    rest = 1 - w
    Q = w.used() * (w.used() + (dim - 2)) + (dim - 1)
    return (r / rest + r / Q) * (dim - 1)


def second_form(r, dim):
    """Return the paper's second closed form of kappa."""
    w = r * r
    rest, twice = 1 - w, w.used() + w.used()
    Q = w.used() * (w.used() + (dim - 2)) + (dim - 1)
    bent = (Q - twice * (twice.used() + (dim - 2))) / (Q.used() * Q.used())
    slope = ((w.used() + 1) / (rest.used() * rest.used()) + bent) * (dim - 1)
    return r * (dim - 1) / (rest - 1 / slope)


def newton(r, dim):
    """Return kappa, Newton's steps, terms a step, and operations in all."""
    kappa, terms, steps = r * (dim - r * r) / (1 - r * r), 0, 0
    while steps < 50:
        ratio, used = perron(kappa, dim)
        terms, steps = terms + used, steps + 1
        step = (ratio - r) / (1 - ratio * ratio - (dim - 1) / kappa * ratio)
        kappa -= step
        if abs(step) < 1e-13 * kappa:
            break
    return kappa, steps, terms / steps, 6 * terms + 10 * steps


def perron(kappa, dim):
    """Return the ratio of Bessel functions by Perron's continued fraction, and its terms."""
    n, x = dim / 2, kappa / 2
    v = n + kappa + 0.5
    u = (n + kappa) * v
    w = x * (n + 0.5)
    rho = w / ((n + x) * v - w)
    product = total = rho
    terms = 0
    while terms < 1000:
        terms += 1
        u, v, w = u + v, v + 0.5, w + x
        t = w * (1 + rho)
        rho = t / (u - t)
        product *= rho
        total += product
        if abs(product) < 1e-16 * abs(total):
            break
    return (1 + total) / (1 + 2 * n / kappa), terms
