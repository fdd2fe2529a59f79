"""P0, the negative entropy: Figures 1, 2, 4 and 5, the variance function, operation counts."""

import ast
import inspect

import numpy as np
from scipy.integrate import solve_ivp

from skvmf.distributions import vonmises_fisher
from skvmf.distributions.vonmises_fisher import concentration, negentropy

from .items import item
from .results import Record, Table

METHODS = {"Banerjee": "banerjee", "first": "rational", "second": "refined"}
FUNCTIONS = ("kappa", "psi", "divergence")  # the last from the origin, r kappa - psi


def lengths(count):
    """Return mean resultant lengths, denser towards both ends."""
    ends = np.logspace(-3, np.log10(0.5), count // 2, endpoint=False)
    return np.concatenate([ends, 1 - ends[::-1] - 0.0])


def reference(kappas, dim):
    """Return r, psi(r), psi'(r) = kappa and 1 - r by 40 digits of Bessel functions."""
    import mpmath

    rows = []
    with mpmath.workdps(40 + int(dim)):
        half = mpmath.mpf(dim) / 2
        for kappa in kappas:
            k = mpmath.mpf(float(kappa))
            phi = mpmath.log(mpmath.hyp0f1(half, k * k / 4))
            r = k / dim * mpmath.hyp0f1(half + 1, k * k / 4) / mpmath.hyp0f1(half, k * k / 4)
            rows.append([float(r), float(k * r - phi), float(k), float(1 - r)])
    return np.transpose(rows)


def draw_solutions(figure, record):
    """Draw solutions of the equation, and values by Bessel functions."""
    axes = figure.subplots(1, 2)
    for dim in map(int, record.names("Largest")):
        r, *marks, _ = reference(dim * np.logspace(-2, np.log10(30), 15), dim)
        grid = np.linspace(0.001, r.max(), 200)
        for order, axis in enumerate(axes):
            axis.plot(grid, negentropy(grid, dim, order=order, method="ode"), label=f"d = {dim}")
            axis.plot(r, marks[order], "k.", ms=4)
    for axis, name in zip(axes, ("negative entropy", "its derivative, kappa"), strict=True):
        axis.set(yscale="log", xlabel="mean resultant length", title=name)
    axes[0].legend(frameon=False, title="lines: equation; dots: Bessel")


@item(
    "P0.fig1",
    "negative entropy and its derivative by the equation",
    needs=("mpmath",),
    small={"dims": (2, 10), "count": 4},
    draw=draw_solutions,
)
def figure_1(setting, dims=(2, 3, 10, 100, 500), count=15):
    """Hold solutions of the differential equation against Bessel functions."""
    columns = ["d", "psi, equation", "kappa, equation", "psi, exact", "kappa, exact"]
    table = Table("Largest relative errors, kappa from d/100 to 30 d", columns, "e")
    for dim in dims:
        r, psi, kappa, rest = reference(dim * np.logspace(-2, np.log10(30), count), dim)
        options = [(method, order) for method in ("ode", "exact") for order in (0, 1)]
        errors = [
            negentropy(r, dim, order=order, complement=rest, method=method) / (psi, kappa)[order]
            for method, order in options
        ]
        table.add(str(dim), *(np.abs(own - 1).max() for own in errors))
    settings = "The equation is solved implicitly, to 1e-12; the reference has 40 digits."
    return Record(settings, "none", [table])


def draw_errors(figure, record):
    """Draw absolute errors over r, a colour for each dimension."""
    axes = figure.subplots(1, 3, sharey=True)
    r = lengths(400)
    for index, dim in enumerate((2, 10, 100, 1000, 10_000)):
        gaps, _ = errors_of_closed_forms(r, dim)
        for (function, name), gap in gaps.items():
            if style := {"Banerjee": "--", "first": "-", "second": ":"}.get(name):
                label = f"d = {dim}" if (function, name) == ("kappa", "first") else None
                axes[FUNCTIONS.index(function)].plot(
                    r, np.maximum(gap, 1e-17), style, color=f"C{index}", lw=1, label=label
                )
    for axis, name in zip(axes, FUNCTIONS, strict=True):
        axis.set(yscale="log", xlabel="mean resultant length", title=f"absolute error of {name}")
    axes[0].legend(
        frameon=False, fontsize="small", ncols=2, title="-- Banerjee, - first, : second form"
    )


@item(
    "P0.fig2",
    "errors of the rational forms (also appendix A.4)",
    small={"count": 60, "dims": (2, 3, 10, 50)},
    draw=draw_errors,
)
def figure_2(setting, count=4000, dims=(2, 3, 4, 6, 10, 50, 100, 1000, 10_000)):
    """Hold the closed forms against exact values, over radii and dimensions."""
    r = lengths(count)
    columns = ["d", *(f"kappa, {name}" for name in (*METHODS, "third"))]
    columns += [f"{f}, {name}" for f in FUNCTIONS[1:] for name in ("Banerjee", "first")]
    absolute = Table("Largest absolute errors, .001 <= r <= .999", columns, "e")
    relative = Table("Largest relative errors, .001 <= r <= .999", columns, "e")
    no_worse = "Share of r at which the first form is no worse than Banerjee's"
    ahead = Table(no_worse, ["d", *FUNCTIONS])
    crossing = Table("Banerjee's form is better for r below", ["d", *FUNCTIONS], 2)
    for dim in dims:
        gaps, exact = errors_of_closed_forms(r, dim)
        absolute.add(str(dim), *(gap.max() for gap in gaps.values()))
        relative.add(str(dim), *((gap / exact[key[0]]).max() for key, gap in gaps.items()))
        worse = [
            gaps[name, "first"] > gaps[name, "Banerjee"] + 1e-14 * exact[name] for name in FUNCTIONS
        ]
        ahead.add(str(dim), *(1 - own.mean() for own in worse))
        crossing.add(str(dim), *(r[own].max() if own.any() else 0.0 for own in worse))
    return Record(
        f"{len(r)} mean resultant lengths r; exact values have errors below 1e-14. The divergence "
        "from the origin is r kappa - psi, the third row of Figure 2.",
        "none",
        [absolute, relative, ahead, crossing],
    )


def errors_of_closed_forms(r, dim):
    """Return absolute errors by function and form, and the exact values."""
    psi, kappa = (negentropy(r, dim, order=order) for order in (0, 1))
    exact = {"kappa": kappa, "psi": psi, "divergence": r * kappa - psi}
    kappas = {name: concentration(r, dim, method=method) for name, method in METHODS.items()}
    slope = negentropy(r, dim, order=2, method="refined")
    kappas["third"] = (dim - 1) * r / ((1 - r) * (1 + r) - 1 / slope)  # appendix A.4
    gaps = {("kappa", name): np.abs(found - kappa) for name, found in kappas.items()}
    psis = {name: negentropy(r, dim, method=METHODS[name]) for name in ("Banerjee", "first")}
    gaps |= {("psi", name): np.abs(found - psi) for name, found in psis.items()}
    gaps |= {
        ("divergence", name): np.abs(r * kappas[name] - found - exact["divergence"])
        for name, found in psis.items()
    }
    return gaps, exact


STARTS = [1e-2, 1e-4, 1e-6, 1e-8]
LOOSE = dict.fromkeys([2, 10, 30, 100, 300], 0.5)
ENDS = {  # of the solutions, by dimension
    "1e-12, r = .5": {2: 0.5, 10: 0.5, 100: 0.5, 1000: 0.5},
    "1e-12, r = .1": {10_000: 0.1},
    "1e-12, the ends of the figure's ranges": {2: 0.1, 100: 0.001},
    "1e-9, r = .5": LOOSE,
    "1e-6, r = .5": LOOSE,
}


def draw_starts(figure, record):
    """Draw solutions from four starts, over the ranges of the paper's figure."""
    for axis, (dim, end) in zip(figure.subplots(1, 2), ((2, 0.1), (100, 0.001)), strict=True):
        for start in STARTS:
            axis.plot(*explicit(dim, start, 1e-12, end), label=f"kappa(0) = {start:g}")
        axis.set(xlabel="r", yscale="log", title=f"kappa, d = {dim}")
        axis.legend(frameon=False)


@item(
    "P0.fig4",
    "the equation's start value (also appendix A.3)",
    small={"largest": 10},
    draw=draw_starts,
)
def figure_4(setting, largest=10_000):
    """Solve the equation from r = 0 as the paper does, from start values of four sizes."""
    tables = []
    for title, ends in ENDS.items():
        title = f"Relative error of kappa by its value at r = 0. Tolerance {title}"
        table = Table(title, ["d", *(f"{start:g}" for start in STARTS)], "e")
        for dim, end in ends.items():
            if dim <= largest:
                tolerance = float(title.split("Tolerance ")[1].split(",")[0])
                found = [explicit(dim, start, tolerance, end) for start in STARTS]
                errors = [abs(k[-1] / concentration(r[-1], dim) - 1) for r, k in found]
                table.add(str(dim), *errors)
        tables += [table] * bool(table.rows)
    return Record("SciPy's RK45 from r = 0, as in the paper.", "none", tables)


def explicit(dim, start, tolerance, r=0.5, first=0.0):
    """Solve the equation from a first r by an explicit method, and return r and kappa."""

    def equation(r, state):
        return [state[0] / ((1 - r) * (1 + r) * state[0] - (dim - 1) * r)]

    options = {"method": "RK45", "rtol": tolerance, "atol": tolerance}
    end = solve_ivp(equation, (first, r), [start], **options)
    return end.t, end.y[0]


def draw_root_finding(figure, record):
    """Draw errors over the dimension."""
    table, axis = record.table("Largest errors"), figure.subplots()
    for column in (1, 2):
        errors = [row[column] for row in table.rows]
        axis.loglog([int(row[0]) for row in table.rows], errors, ".-", label=table.columns[column])
    axis.set(xlabel="d", ylabel="largest absolute error of kappa")
    axis.legend(frameon=False)


@item("P0.reverse", "the equation in reverse (appendix A.3)", small={"dims": (10,)})
def reverse(setting, dims=(2, 3, 10, 100, 1000), far=0.9, near=0.1, error=1e-10):
    """Solve the equation inwards from a value that is a little too large."""
    title = f"kappa at r = {near} over the exact one, from r = {far} with a relative error of"
    table = Table(title, ["d", "0", f"{error:g}"], "e")
    exact = [concentration(np.array([near, far]), dim) for dim in dims]
    for dim, (inner, outer) in zip(dims, exact, strict=True):
        starts = (outer, outer * (1 + error))
        table.add(str(dim), *(explicit(dim, k, 1e-12, near, far)[1][-1] / inner for k in starts))
    return Record("SciPy's RK45, tolerances of 1e-12.", "none", [table])


@item(
    "P0.fig5",
    "the closed form beside root finding, in many dimensions",
    small={"count": 40, "dims": (100, 1000)},
    draw=draw_root_finding,
)
def figure_5(setting, count=400, dims=(100, 300, 1000, 3000, 10_000, 30_000)):
    """Hold the second form and Newton-Raphson on a continued fraction against exact values."""
    r, names = lengths(count), ("second form", "Newton")
    columns = [f"{name}, {kind}" for kind in ("absolute", "relative") for name in names]
    table = Table("Largest errors of kappa, .001 <= r <= .999", ["d", *columns], "e")
    for dim in dims:
        exact = concentration(r, dim)
        gaps = [np.abs(concentration(r, dim, method=m) - exact) for m in ("refined", "newton")]
        table.add(str(dim), *(g.max() for g in gaps), *((g / exact).max() for g in gaps))
    return Record(f"{len(r)} mean resultant lengths.", "none", [table])


@item(
    "P0.variance",
    "the variance function and the Hessian (sections 2.1 to 2.4, A.1)",
    small={"dims": (2, 10), "number": 2000},
)
def variance_function(setting, dims=(2, 3, 10, 100), number=100_000):
    """Hold the variance function against samples, and the Hessian against differences."""
    variance = Table(
        "Samples against the variance function",
        ["d and r", "trace less 1 - r^2", "along the mean, z", "across it, z"],
        "e",
    )
    hessian = Table(
        "The Hessian against differences of the gradient, and times the variance function",
        ["d and r", "relative error", "distance of the product from the identity"],
        "e",
    )
    for dim in dims:
        for r in (0.05, 0.5, 0.95):
            mean = np.zeros(dim)
            mean[0] = r
            variance.add(f"{dim}, {r:g}", *against_samples(mean, number))
            hessian.add(f"{dim}, {r:g}", *against_differences(mean))
    return Record(
        "V(mu) = r/kappa (I - m m^T) + m m^T/psi'' for a mean mu = r m; variances of 100,000 "
        "samples, in standard errors.",
        "0",
        [variance, hessian],
    )


@item("P0.ball", "the bound on the trace, inside the ball (A.2)", small={"number": 100})
def bound_on_the_trace(setting, number=10_000):
    """Draw directions from von Mises-Fisher distributions, and lengths in three ways."""
    table = Table(
        "What 1 - r^2 is above the trace of the covariance of samples",
        ["lengths", "d = 2", "d = 10", "d = 100"],
        "e",
    )
    rng = np.random.default_rng(0)
    for name in ("one", "uniform in [0, 1]", "one half"):
        cells = []
        for dim in (2, 10, 100):
            X = vonmises_fisher.rvs(np.eye(dim)[0], 2.0 * dim, size=number, random_state=0)
            scales = {"one": 1.0, "one half": 0.5}.get(name, rng.random((number, 1)))
            X = X * scales
            mean = X.mean(axis=0)
            cells.append(1 - mean @ mean - ((X - mean) ** 2).sum(axis=1).mean())
        table.add(name, *cells)
    return Record(f"{number:,} samples; kappa = 2 d; r is the length of their mean.", "0", [table])


def radial(mean):
    """Return r, psi'(r), psi''(r), the direction of a mean, and the projection on it."""
    r, dim = np.linalg.norm(mean), len(mean)
    slope, curvature = (negentropy(r, dim, order=order) for order in (1, 2))
    return r, slope, curvature, mean / r, np.outer(mean / r, mean / r)


def covariance(mean):
    """Return the variance function at a mean."""
    r, slope, curvature, _, along = radial(mean)
    return r / slope * (np.eye(len(mean)) - along) + along / curvature


def against_samples(mean, number):
    """Return the error of the trace, and two variances of samples in standard errors."""
    r, slope, _, m, _ = radial(mean)
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

    def gradient(mean):  # of the negative entropy: the natural parameter
        _, slope, _, m, _ = radial(mean)
        return slope * m

    r, slope, curvature, _, along = radial(mean)
    hessian = slope / r * np.eye(len(mean)) + (curvature - slope / r) * along
    shifts = step * np.eye(len(mean))[:2]
    found = [(gradient(mean + h) - gradient(mean - h)) / (2 * step) for h in shifts]
    error = np.abs(found - hessian[:2]).max() / np.abs(hessian).max()
    return error, np.abs(hessian @ covariance(mean) - np.eye(len(mean))).max()


@item("P0.operations", "operation counts of root finding (A.5)", small={"count": 9})
def operations(setting, count=99):
    """Count Newton steps and terms of Perron's continued fraction, as A.5 describes them."""
    table = Table(
        "Root finding on a truncated continued fraction, .01 <= r <= .99",
        ["d", "Newton steps", "terms each", "operations", "error of kappa, relative"],
        1,
    )
    closed = Table("Operations of the closed form", ["form", "operations"], 0)
    lengths = np.linspace(0.01, 0.99, count)
    for dim in (10, 100, 1000, 10_000):
        found = np.array([newton(r, dim) for r in lengths])
        error = np.abs(found[:, 0] / concentration(lengths, dim) - 1).max()
        table.add(str(dim), *found[:, 1:].T, f"{error:.0e}")
    for name, form in (("first", first_form), ("second", second_form)):
        closed.add(name, operations_of(form))
    return Record(
        "Newton's method from Banerjee's form until a step is below 1e-13 of kappa; a fraction "
        "until a term is below 1e-16 of its sum, and never longer than 1,000 terms. Six operations "
        "a term, as the paper counts, and ten a step.",
        "none; 99 mean resultant lengths",
        [table, closed],
    )


def operations_of(form):
    """Return the operations of a function's source, but for those of the dimension alone."""
    return sum(
        isinstance(own, ast.BinOp)
        and any(isinstance(part, ast.Name) and part.id != "dim" for part in ast.walk(own))
        for own in ast.walk(ast.parse(inspect.getsource(form)))
    )


def first_form(r, dim):
    """Return the paper's first closed form of kappa."""
    w = r * r
    Q = w * (w + (dim - 2)) + (dim - 1)
    return (r / (1 - w) + r / Q) * (dim - 1)


def second_form(r, dim):
    """Return the paper's second closed form of kappa."""
    w = r * r
    rest, twice = 1 - w, w + w
    Q = w * (w + (dim - 2)) + (dim - 1)
    slope = ((w + 1) / (rest * rest) + (Q - twice * (twice + (dim - 2))) / (Q * Q)) * (dim - 1)
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
