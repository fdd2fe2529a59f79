"""P0, the negative entropy: Figures 1, 2, 4 and 5, and what appendices A.3 and A.4 say of them."""

import numpy as np
from scipy.integrate import solve_ivp

from skvmf.distributions.vonmises_fisher import concentration, negentropy

from .items import item
from .results import Result, Table

METHODS = {"Banerjee": "banerjee", "first": "rational", "second": "refined"}
FUNCTIONS = ("psi", "divergence")  # from the origin, r kappa - psi


def lengths(count):
    """Return mean resultant lengths, denser towards both ends."""
    ends = np.logspace(-3, np.log10(0.5), count // 2, endpoint=False)
    return np.concatenate([ends, 1 - ends[::-1] - 0.0])


def reference(kappas, dim):
    """Return r, psi(r) and psi'(r) = kappa by 40 digits of Bessel functions."""
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


@item("P0.fig1", "negative entropy and its derivative by the equation", needs=("mpmath",))
def figure_1(setting):
    """Hold solutions of the differential equation against Bessel functions."""
    table = Table(
        "Largest relative errors, kappa from d/100 to 30 d",
        ["d", "psi, equation", "kappa, equation", "psi, exact", "kappa, exact"],
        digits="e",
    )
    curves = {}
    for dim in setting.size([2, 3, 10, 100, 500], [2, 10]):
        kappas = dim * np.logspace(-2, np.log10(30), setting.size(15, 4))
        r, psi, kappa, rest = reference(kappas, dim)
        errors = []
        for method in ("ode", "exact"):
            found = [
                negentropy(r, dim, order=order, complement=rest, method=method) for order in (0, 1)
            ]
            errors += [np.abs(found[0] / psi - 1).max(), np.abs(found[1] / kappa - 1).max()]
        table.add(str(dim), *errors)
        curves[dim] = r, psi, kappa

    def draw(figure):
        axes = figure.subplots(1, 2)
        for dim, (r, psi, kappa) in curves.items():
            grid = np.linspace(0.001, r.max(), 200)
            for axis, order, marks in zip(axes, (0, 1), (psi, kappa), strict=True):
                axis.plot(
                    grid, negentropy(grid, dim, order=order, method="ode"), label=f"d = {dim}"
                )
                axis.plot(r, marks, "k.", ms=4)
        for axis, name in zip(axes, ("negative entropy", "its derivative, kappa"), strict=True):
            axis.set(yscale="log", xlabel="mean resultant length", title=name)
        axes[0].legend(frameon=False, title="lines: equation; dots: Bessel")

    settings = "The equation is solved implicitly, to 1e-12; the reference has 40 digits."
    return Result(settings, "none", [table], draw)


@item("P0.fig2", "errors of the rational forms (also appendix A.4)")
def figure_2(setting):
    """Hold the closed forms against exact values, over radii and dimensions."""
    r = lengths(setting.size(4000, 60))
    names = ["d", "kappa, Banerjee", "kappa, first", "kappa, second", "kappa, third"]
    columns = [*names, *(f"{f}, {m}" for f in FUNCTIONS for m in ("Banerjee", "first"))]
    absolute = Table("Largest absolute errors, .001 <= r <= .999", columns, digits="e")
    relative = Table("Largest relative errors, .001 <= r <= .999", columns, digits="e")
    ahead = Table(
        "Share of r at which the first form is no worse than Banerjee's",
        ["d", "kappa", *FUNCTIONS],
    )
    crossing = Table("Banerjee's form is better for r below", ["d", "kappa", *FUNCTIONS], digits=2)
    errors = {}
    for dim in setting.size([2, 3, 4, 6, 10, 50, 100, 1000, 10_000], [2, 3, 10, 50]):
        gaps, exact = errors_of_closed_forms(r, dim)
        errors[dim] = gaps
        absolute.add(str(dim), *(gap.max() for gap in gaps.values()))
        relative.add(str(dim), *((gap / exact[key[0]]).max() for key, gap in gaps.items()))
        shares, last = [], []
        for name in ("kappa", *FUNCTIONS):
            rounding = 1e-14 * exact[name]
            worse = gaps[name, "first"] > gaps[name, "Banerjee"] + rounding
            shares.append(1 - worse.mean())
            last.append(r[worse].max() if worse.any() else 0.0)
        ahead.add(str(dim), *shares)
        crossing.add(str(dim), *last)
    return Result(
        f"{len(r)} mean resultant lengths r; exact values have errors below 1e-14. The divergence "
        "from the origin is r kappa - psi, the third row of Figure 2.",
        "none",
        [absolute, relative, ahead, crossing],
        lambda figure: draw_errors(figure, r, errors),
    )


def errors_of_closed_forms(r, dim):
    """Return absolute errors by function and form, and the exact values."""
    psi, kappa = (negentropy(r, dim, order=order) for order in (0, 1))
    exact = {"kappa": kappa, "psi": psi, "divergence": r * kappa - psi}
    kappas = {name: concentration(r, dim, method=method) for name, method in METHODS.items()}
    kappas["third"] = iterated(r, dim)
    gaps = {("kappa", name): np.abs(found - kappa) for name, found in kappas.items()}
    psis = {name: negentropy(r, dim, method=METHODS[name]) for name in ("Banerjee", "first")}
    for name, found in psis.items():
        gaps["psi", name] = np.abs(found - psi)
    for name, found in psis.items():
        gaps["divergence", name] = np.abs(r * kappas[name] - found - exact["divergence"])
    return gaps, exact


def iterated(r, dim):
    """Return kappa by one more iteration than the paper's second form (appendix A.4)."""
    slope = negentropy(r, dim, order=2, method="refined")
    return (dim - 1) * r / ((1 - r) * (1 + r) - 1 / slope)


def draw_errors(figure, r, errors):
    """Draw absolute errors over r, a colour for each dimension."""
    functions = ("kappa", *FUNCTIONS)
    axes = figure.subplots(1, 3, sharey=True)
    for index, (dim, gaps) in enumerate(errors.items()):
        for (function, name), gap in gaps.items():
            style = {"Banerjee": "--", "first": "-", "second": ":"}.get(name)
            if style:
                label = f"d = {dim}" if (function, name) == ("kappa", "first") else None
                axes[functions.index(function)].plot(
                    r, np.maximum(gap, 1e-17), style, color=f"C{index}", lw=1, label=label
                )
    for axis, name in zip(axes, functions, strict=True):
        axis.set(yscale="log", xlabel="mean resultant length", title=f"absolute error of {name}")
    axes[0].legend(
        frameon=False, fontsize="small", ncols=2, title="-- Banerjee, - first, : second form"
    )


STARTS = [1e-2, 1e-4, 1e-6, 1e-8]


@item("P0.fig4", "the equation's start value (also appendix A.3)")
def figure_4(setting):
    """Solve the equation from r = 0 as the paper does, from start values of four sizes."""
    columns = ["d", *(f"{start:g}" for start in STARTS)]
    tables, curves = [], {}
    for title, tolerance, ends in (
        ("Tolerance 1e-12, r = .5", 1e-12, {2: 0.5, 10: 0.5, 100: 0.5, 1000: 0.5}),
        ("Tolerance 1e-12, r = .1", 1e-12, {10_000: 0.1}),
        ("Tolerance 1e-12, the ends of the figure's ranges", 1e-12, {2: 0.1, 100: 0.001}),
        ("Tolerance 1e-9, r = .5", 1e-9, dict.fromkeys([2, 10, 30, 100, 300], 0.5)),
        ("Tolerance 1e-6, r = .5", 1e-6, dict.fromkeys([2, 10, 30, 100, 300], 0.5)),
    ):
        table = Table(f"Relative error of kappa by its value at r = 0. {title}", columns, "e")
        for dim, end in ends.items():
            if setting.small and dim > 10:
                continue
            errors = []
            for start in STARTS:
                r, kappa = curves[dim, end, start] = explicit(dim, start, tolerance, end)
                errors.append(abs(kappa[-1] / concentration(r[-1], dim) - 1))
            table.add(str(dim), *errors)
        if table.rows:
            tables.append(table)

    def draw(figure):
        ranges = [own for own in ((2, 0.1), (100, 0.001)) if (*own, STARTS[0]) in curves]
        for axis, (dim, end) in zip(np.ravel(figure.subplots(1, len(ranges))), ranges, strict=True):
            for start in STARTS:
                axis.plot(*curves[dim, end, start], label=f"kappa(0) = {start:g}")
            axis.set(xlabel="r", yscale="log", title=f"kappa, d = {dim}")
            axis.legend(frameon=False)

    return Result("SciPy's RK45 from r = 0, as in the paper.", "none", tables, draw)


def explicit(dim, start, tolerance, r=0.5):
    """Solve the equation from r = 0 by an explicit method, and return r and kappa."""

    def equation(r, state):
        return [state[0] / ((1 - r) * (1 + r) * state[0] - (dim - 1) * r)]

    options = {"method": "RK45", "rtol": tolerance, "atol": tolerance}
    end = solve_ivp(equation, (0, r), [start], **options)
    return end.t, end.y[0]


@item("P0.fig5", "the closed form beside root finding, in many dimensions")
def figure_5(setting):
    """Hold the second form and Newton-Raphson on a continued fraction against exact values."""
    r = lengths(setting.size(400, 40))
    table = Table(
        "Largest errors of kappa, .001 <= r <= .999",
        [
            "d",
            "second form, absolute",
            "Newton, absolute",
            "second form, relative",
            "Newton, relative",
        ],
        digits="e",
    )
    for dim in setting.size([100, 300, 1000, 3000, 10_000, 30_000], [100, 1000]):
        exact = concentration(r, dim)
        gaps = [np.abs(concentration(r, dim, method=m) - exact) for m in ("refined", "newton")]
        table.add(str(dim), *(g.max() for g in gaps), *((g / exact).max() for g in gaps))

    def draw(figure):
        axis = figure.subplots()
        dims = [int(row[0]) for row in table.rows]
        for column in (1, 2):
            axis.loglog(
                dims, [row[column] for row in table.rows], ".-", label=table.columns[column]
            )
        axis.set(xlabel="d", ylabel="largest absolute error of kappa")
        axis.legend(frameon=False)

    return Result(f"{len(r)} mean resultant lengths.", "none", [table], draw)
