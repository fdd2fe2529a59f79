"""What Nonnenmacher and Sahani say, and how records are read for it."""

from itertools import pairwise

from .claims import claim, difference, exact, level, mean

ABSOLUTE = "Largest absolute errors"
FIGURE_2 = ("10", "100", "1000", "10000")
TRUE_NUMBERS = (("classic3", "3"), ("classic300", "3"), ("news20", "20"), ("news20-small", "20"))
SETS = "Ten starts of our own per set, where the authors have ten of theirs; thirty of classic300."
LOST = "[symbol lost]"


@claim(
    "P0.fig1",
    "Section 3",
    f"As seen in Fig. 1, the ODE solutions agree well with the {LOST}-derived values of both the "
    "negative entropy and its gradient.",
    differs="Solved implicitly here; P0.fig4 has the paper's explicit solver.",
)
def solutions_agree(record):
    """Every relative error is small."""
    title = "Largest relative errors"
    return [
        exact(
            f"relative error of {name} at d = {dim}:",
            record.cell(title, dim, f"{name}, equation"),
            at_most=1e-6,
            partly_at_most=1e-3,
        )
        for dim in record.names(title)
        for name in ("psi", "kappa")
    ]


@claim(
    "P0.fig2",
    "Section 3",
    "Our adjusted closed-form estimate and our estimate for the derivative (solid lines) achieve "
    "lower absolute and relative errors than [Banerjee's] across the full range of "
    f"{LOST} investigated (Fig. 2).",
    differs="Judged at the figure's dimensions, 10, 100, 1000 and 10,000; the table has others.",
)
def lower_errors(record):
    """Expect no larger error of the first form at any r, in the figure's dimensions."""
    return [
        exact(
            f"share of r where the error of {name} is no larger at d = {dim}:",
            record.cell("Share of r", dim, name),
            at_least=1,
            partly_at_least=0.5,
        )
        for dim in FIGURE_2
        for name in ("kappa", "psi", "divergence")
    ]


@claim(
    "P0.fig2",
    "Section 3",
    "Interestingly, also the absolute errors for our approximations shrink with increasing "
    f"dimensionality {LOST}.",
)
def errors_shrink(record):
    """Expect that the largest error falls from each dimension of the figure to the next."""
    return [
        exact(
            f"largest error of {name}, d = {after} against {before}:",
            record.cell(ABSOLUTE, after, name) / record.cell(ABSOLUTE, before, name),
            at_most=1,
        )
        for before, after in pairwise(FIGURE_2)
        for name in ("kappa, first", "kappa, second", "psi, first")
    ]


@claim(
    "P0.fig2",
    "Appendix A.4",
    f"Beyond that, we found the next iteration to do worse than {LOST} and fall between {LOST} and "
    f"{LOST} in terms of approximation quality.",
    differs="Compared with the second form. The appendix names no dimension.",
    obstacle="The symbols are missing in our copy of the paper: what is compared is not known.",
)
def third_is_worse(record):
    """Expect that the third iteration has a larger error than the second form."""
    return [
        exact(
            f"largest error, third iteration against second form at d = {dim}:",
            record.cell(ABSOLUTE, dim, "kappa, third")
            / record.cell(ABSOLUTE, dim, "kappa, second"),
            at_least=1.01,
        )
        for dim in ("2", "3", "10", "50", "100", "1000")
    ]


@claim(
    "P0.fig4",
    "Appendix A.3",
    f"In particular for larger {LOST}, the effects of different choices for {LOST} on the full "
    "radial profile are limited, because the first derivative converges quickly even from "
    "initializations that differ by four orders of magnitude.",
    differs="None: tolerances of 1e-12, starts from 1e-6 to 1e-2. With loose tolerances a start "
    "that is too small misses the solution, as the further tables show; so does 1e-8 from d = 1000 "
    "on at 1e-12, where the authors raise it.",
)
def starts_hardly_matter(record):
    """Solutions from four starts end at the same kappa."""
    return [
        exact(
            f"relative error from kappa(0) = {start} at d = {dim}, {where}:",
            record.cell(f"Relative error of kappa by its value at r = 0. {title}", dim, start),
            at_most=1e-9,
            partly_at_most=1e-3,
        )
        for title, where, dims in (
            ("Tolerance 1e-12, r = .5", "r = .5", ("10", "100", "1000")),
            ("Tolerance 1e-12, r = .1", "r = .1", ("10000",)),
            ("Tolerance 1e-12, the ends", "r = .001", ("100",)),
        )
        for dim in dims
        for start in ("0.01", "0.0001", "1e-06")
    ]


@claim(
    "P0.fig5",
    "Section 3",
    f"For {LOST}, we noticed little difference in absolute error to the ODE solution between the "
    f"approximation {LOST} and root-finding on {LOST} via Newton-Raphson and common numerical "
    f"approximations to {LOST} (see appendix A.5).",
    differs="The dimension is missing in our copy of the paper. Appendix A.5 says that it is "
    "large: 1,000 and more here. The table also has smaller ones. The reference is exact here.",
)
def as_good_as_root_finding(record):
    """Expect that the closed form's error is at most ten times Newton's, in absolute terms."""
    title = "Largest errors of kappa"
    return [
        exact(
            f"absolute error against Newton's at d = {dim}:",
            record.cell(title, dim, "second form, absolute")
            / record.cell(title, dim, "Newton, absolute"),
            at_most=10,
            partly_at_most=100,
        )
        for dim in ("1000", "3000", "10000", "30000")
    ]


@claim(
    "P0.operations",
    "Appendix A.5",
    f"At double precision, convergence typically required {LOST} or {LOST} Newton-Raphson steps, "
    f"for several hundred algebraic operations overall. Evaluating {LOST} for given {LOST} in "
    f"comparison required {LOST} algebraic operations or less.",
    differs="The numbers are missing in our copy of the paper.",
)
def several_hundred_operations(record):
    """Root finding takes hundreds of operations, closed forms few."""
    title = "Root finding on a truncated continued fraction"
    return [
        *(
            level(
                f"operations at d = {dim}",
                record.cell(title, dim, "operations"),
                at_least=200,
                partly_at_least=100,
            )
            for dim in record.names(title)
        ),
        exact(
            "operations of the second form",
            record.cell("Operations of the closed form", "second", "operations"),
            at_most=30,
        ),
    ]


@claim(
    "P0.variance",
    "Sections 2.1 and 2.4",
    "Furthermore, equality is obtained if and only if all the probability mass lies on the surface "
    "of unit ball [...] The vMF variance function for given radial profiles is (see appendix A.1) "
    "the trace of which recovers the result in section 2.2.",
)
def variance_is_right(record):
    """Expect that the trace is 1 - r^2, and variances are those of samples."""
    title = "Samples against"
    effects = []
    for name in record.names(title):
        gap = abs(record.cell(title, name, "trace less 1 - r^2"))
        effects.append(exact(f"trace less 1 - r^2 at {name}:", gap, at_most=1e-12))
        for column in ("along the mean, z", "across it, z"):
            score = record.cell(title, name, column)
            what = f"variance of samples {column} at {name}:"
            effects.append(exact(what, score, at_least=-4, at_most=4))
    return effects


@claim(
    "P0.variance",
    "Appendix A.1",
    "Then from basic calculus and the Sherman-Morrison formula, [gradient, Hessian, its inverse]",
)
def hessian_is_right(record):
    """Expect the derivative of the gradient, and the inverse of the variance function."""
    title = "The Hessian against"
    return [
        exact(f"{column} at {name}:", record.cell(title, name, column), at_most=most)
        for name in record.names(title)
        for column, most in (
            ("relative error", 1e-6),
            ("distance of the product from the identity", 1e-10),
        )
    ]


@claim(
    "P0.tab1",
    "Table 1",
    "classic3 3 3891 4674; class300 3 300 2551; news20 20 18803 28571; news20-small 20 2000 16218",
)
def shapes_are_equal(record):
    """Rows and words are those of the table."""
    return [
        exact(f"{name}, {part}", record.cell("Rows x words", name, part), at_least=0, at_most=0)
        for name in record.names("Rows x words")
        for part in ("rows off", "words off")
    ]


@claim(
    "P0.fig3",
    "Section 3.1",
    "We did not find qualitative differences in the results between the corresponding mean- and "
    "natural-parameter models and algorithms [...]",
    differs=f"{SETS} At the true number of clusters.",
)
def mean_is_natural(record):
    """NMI of both parametrizations differs by little."""
    title = "NMI by mean and by natural"
    return [
        exact(
            f"largest gap of a pair of fits, {name}:",
            record.cell(title, name, "largest gap of a pair"),
            at_most=0.01,
            partly_at_most=0.05,
        )
        for name in record.names(title)
    ]


@claim(
    "P0.fig3",
    "Section 3.1",
    "Since it was previously noted that MovMF models applied to document clustering perform better "
    "with tied concentration parameters [...] (Zhong & Ghosh, 2003), we also included such "
    "restricted model variants (Fig. 3, dashed lines).",
    differs=f"The paper quotes others here. {SETS}",
)
def tied_is_better(record):
    """Tied concentrations have the larger NMI at the true number of clusters."""
    return [
        difference(
            f"NMI, tied less free, {kind}, {name}, K = {K}:",
            record.cell(f"{name}: NMI", K, f"{kind} tied"),
            record.cell(f"{name}: NMI", K, f"{kind} free"),
            at_least=0,
        )
        for name, K in TRUE_NUMBERS
        for kind in ("soft", "hard")
    ]


@claim(
    "P0.fig3",
    "Figure 3",
    "[the authors' published arrays: mean NMI over ten starts]",
    differs="The comparison is with arrays published with the authors' code, which have no spread. "
    f"{SETS}",
)
def nmi_is_the_authors(record):
    """NMI is within .05 of the authors', at the true number of clusters."""
    effects = []
    for name, K in TRUE_NUMBERS:
        for kind in ("soft tied", "soft free", "hard tied", "hard free"):
            authors = mean(record.cell(f"{name}: NMI", K, f"authors, {kind}"))
            effects.append(
                difference(
                    f"NMI, ours less the authors', {name}, {kind}:",
                    record.cell(f"{name}: NMI", K, kind),
                    authors,
                    at_least=-0.05,
                    at_most=0.05,
                )
            )
    return effects
