"""P0, the negative entropy: Figures 1, 2, 4 and 5, and what appendices A.3 and A.4 say of them."""

import numpy as np
from scipy.integrate import solve_ivp

from skvmf.distributions.vonmises_fisher import concentration, negentropy

from .items import item
from .results import Result, Table, Verdict, judge

METHODS = {"Banerjee": "banerjee", "first": "rational", "second": "refined"}


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


@item(
    "P0.fig1", "negative entropy and its derivative by the equation", minutes=0.2, needs=("mpmath",)
)
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
    worst = max(max(row[1:3]) for row in table.rows)
    verdict = judge(
        "The solution of the differential equation agrees with Bessel functions.",
        worst < 1e-9,
        f"Relative errors are at most {worst:.0e}.",
    )

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
    return Result(settings, [table], [verdict], draw)


@item("P0.fig2", "errors of the rational forms (also appendix A.4)", minutes=0.1)
def figure_2(setting):
    """Hold the closed forms against exact values, over radii and dimensions."""
    r = lengths(setting.size(4000, 60))
    names = ["d", "kappa, Banerjee", "kappa, first", "kappa, second", "kappa, third"]
    absolute = Table(
        "Largest absolute errors, .001 <= r <= .999",
        [*names, "psi, Banerjee", "psi, first"],
        digits="e",
    )
    relative = Table("Largest relative errors, .001 <= r <= .999", absolute.columns, digits="e")
    crossing = Table("Banerjee's form is better for r below", ["d", "kappa", "psi"], digits=2)
    errors = {}
    for dim in setting.size([2, 3, 4, 6, 10, 50, 100, 300, 1000], [2, 3, 10, 50]):
        exact = {order: negentropy(r, dim, order=order) for order in (0, 1)}
        found = {(1, name): concentration(r, dim, method=m) for name, m in METHODS.items()}
        found[1, "third"] = iterated(r, dim)
        for name in ("Banerjee", "first"):
            found[0, name] = negentropy(r, dim, method=METHODS[name])
        gaps = {key: np.abs(values - exact[key[0]]) for key, values in found.items()}
        errors[dim] = gaps
        absolute.add(str(dim), *(gap.max() for gap in gaps.values()))
        relative.add(str(dim), *((gap / exact[key[0]]).max() for key, gap in gaps.items()))
        crossing.add(
            str(dim),
            *(last_below(r, gaps[order, "Banerjee"], gaps[order, "first"]) for order in (1, 0)),
        )
    return Result(
        f"{len(r)} mean resultant lengths r; exact values have errors below 1e-14.",
        [absolute, relative, crossing],
        verdicts_on_closed_forms(absolute, crossing),
        lambda figure: draw_errors(figure, r, errors),
    )


def iterated(r, dim):
    """Return kappa by one more iteration than the paper's second form (appendix A.4)."""
    slope = negentropy(r, dim, order=2, method="refined")
    return (dim - 1) * r / ((1 - r) * (1 + r) - 1 / slope)


def last_below(r, left, right):
    """Return the largest r at which the left error is the smaller, 0 where it never is."""
    better = left < right
    return float(r[better].max()) if better.any() else 0.0


def verdicts_on_closed_forms(absolute, crossing):
    """Judge section 3 and appendix A.4 by the tables."""
    dims = [int(row[0]) for row in absolute.rows]
    largest = np.array([row[1:] for row in absolute.rows])
    worse = {int(d): (k, p) for d, k, p in crossing.rows if k or p}
    where = "; ".join(
        f"d = {d}: kappa below {k:.2f}, psi below {p:.2f}" for d, (k, p) in worse.items()
    )
    thirds = [d for d, row in zip(dims, largest, strict=True) if row[3] > row[2]]
    ten, fifty = (largest[dims.index(d)] for d in (10, 50))
    first = largest[[d >= 10 for d in dims], 1]
    return [
        Verdict(
            "The new forms have smaller errors than Banerjee's for all r.",
            "holds in part" if worse else "holds",
            f"Banerjee's is better at {where}." if worse else "In every dimension tried.",
        ),
        judge(
            "Absolute errors shrink with the dimension.",
            bool(np.all(np.diff(first) < 0)),
            f"First form, d = {dims[-1]}: {largest[-1, 1]:.1e}; d = 10: {ten[1]:.1e}.",
        ),
        Verdict(
            "A.4: the next iteration does worse than the second form.",
            "holds in part" if thirds else "does not hold",
            f"Only at d = {', '.join(map(str, thirds))}. The largest error falls from "
            f"{ten[2]:.1e} to {ten[3]:.1e} at d = 10 and from {fifty[2]:.1e} to {fifty[3]:.1e} "
            "at d = 50.",
        ),
    ]


def draw_errors(figure, r, errors):
    """Draw absolute errors over r, a colour for each dimension."""
    axes = figure.subplots(1, 2, sharey=True)
    for index, (dim, gaps) in enumerate(errors.items()):
        for (order, name), gap in gaps.items():
            style = {"Banerjee": "--", "first": "-", "second": ":"}.get(name)
            if style:
                label = f"d = {dim}" if (order, name) == (1, "first") else None
                axes[1 - order].plot(
                    r, np.maximum(gap, 1e-17), style, color=f"C{index}", lw=1, label=label
                )
    for axis, name in zip(axes, ("kappa", "psi"), strict=True):
        axis.set(yscale="log", xlabel="mean resultant length", title=f"absolute error of {name}")
    axes[0].legend(
        frameon=False, fontsize="small", ncols=2, title="-- Banerjee, - first, : second form"
    )


@item("P0.fig4", "the equation's start value (also appendix A.3)", minutes=1)
def figure_4(setting):
    """Solve the equation from r = 0 as the paper does, from start values of four sizes."""
    starts, tables, curves = [1e-2, 1e-4, 1e-6, 1e-8], [], {}
    for tolerance in (1e-6, 1e-9):
        table = Table(
            f"Relative error of kappa at r = .5, by kappa's value at r = 0; tolerance "
            f"{tolerance:g}",
            ["d", *(f"{start:g}" for start in starts), "skvmf, from a series"],
            digits="e",
        )
        for dim in setting.size([2, 3, 10, 30, 100, 300], [2, 10]):
            ends = [explicit(dim, start, tolerance) for start in starts]
            curves |= {(dim, start): end for start, end in zip(starts, ends, strict=True)}
            exact = concentration(0.5, dim)
            errors = [abs(kappa[-1] / exact - 1) for _, kappa in ends]
            own = abs(concentration(0.5, dim, method="ode") / exact - 1)
            table.add(str(dim), *errors, own)
        tables.append(table)

    def draw(figure):
        axes = figure.subplots(1, 2)
        for axis, dim in zip(axes, (2, 10), strict=True):
            for start in starts:
                r, kappa = curves[dim, start]
                gap = np.abs(kappa[1:] / concentration(r[1:], dim) - 1)
                axis.plot(r[1:], np.maximum(gap, 1e-16), label=f"kappa(0) = {start:g}")
            axis.set(xscale="log", yscale="log", xlabel="r", title=f"relative error, d = {dim}")
        axes[0].legend(frameon=False)

    settings = "SciPy's RK45 from r = 0 to r = .5."
    return Result(settings, tables, [verdict_on_starts(tables)], draw)


def explicit(dim, start, tolerance):
    """Solve the equation from r = 0 by an explicit method, and return r and kappa."""

    def equation(r, state):
        return [state[0] / ((1 - r) * (1 + r) * state[0] - (dim - 1) * r)]

    options = {"method": "RK45", "rtol": tolerance, "atol": tolerance}
    end = solve_ivp(equation, (0, 0.5), [start], **options)
    return end.t, end.y[0]


def verdict_on_starts(tables):
    """Judge appendix A.3 by where solutions end."""
    lost, found = {}, []
    for table in tables:
        for row in table.rows:
            for start, error in zip(table.columns[1:-1], row[1:-1], strict=True):
                if error > 0.01:
                    lost.setdefault(start, set()).add(int(row[0]))
                elif int(row[0]) >= 10:
                    found.append(error)
    where = ", ".join(f"{start} (d from {min(dims)})" for start, dims in lost.items())
    return Verdict(
        "A.3: in high dimensions the start value hardly matters, since kappa is attracted.",
        "holds in part" if lost else "holds",
        f"From d = 10 on kappa is right to {max(found):.0e} where the solution is attracted. "
        + (
            f"From too small a start the solver misses it and ends at a wrong solution: {where}."
            if lost
            else "It always was."
        ),
    )


@item("P0.fig5", "the closed form beside root finding, in many dimensions", minutes=0.1)
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
    last = table.rows[-1]
    verdict = judge(
        "In high dimensions the closed form is as good as root finding.",
        last[1] <= 10 * last[2],
        f"At d = {last[0]} absolute errors are {last[1]:.0e} and {last[2]:.0e}, "
        f"relative ones {last[3]:.0e} and {last[4]:.0e}.",
    )

    def draw(figure):
        axis = figure.subplots()
        dims = [int(row[0]) for row in table.rows]
        for column in (1, 2):
            axis.loglog(
                dims, [row[column] for row in table.rows], ".-", label=table.columns[column]
            )
        axis.set(xlabel="d", ylabel="largest absolute error of kappa")
        axis.legend(frameon=False)

    return Result(f"{len(r)} mean resultant lengths.", [table], [verdict], draw)
