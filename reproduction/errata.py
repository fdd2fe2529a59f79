"""Errata of the papers: where, what is printed, what is right, and the test that shows it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Erratum:
    """An error in a paper."""

    items: tuple[str, ...]  # those it bears on; the first names the paper
    where: str
    printed: str
    right: str
    test: str  # a file and a function of the tests


ERRATA = [
    Erratum(
        ("P1.alg",),
        "Algorithm 2, lines 4 to 8",
        "x_i is (alpha_i - 1)/s_i (1 - epsilon t), with s_i the sum of all alpha_j - 1 from i on.",
        "The factor is the mass that is left, 1 less the sum of the x assigned so far"
        " (or s at the first free entry for all that follow), and entries with "
        "alpha_j <= 1 stay out of the sums. For alpha = (3, 3) the printed one "
        "returns (1/2, 1).",
        "tests/reproduction/test_errata.py::test_algorithm_2_is_wrong_as_printed",
    ),
    Erratum(
        ("P2.tab1",),
        "Table 1",
        "AMI of .606 (standard) and .636 (sparse EM), with covariances .11 I, .5 I, .7 I, .9 I.",
        "With these covariances the true parameters reach .49. They reach .66 if the "
        "numbers are standard deviations.",
        "tests/reproduction/test_errata.py::test_the_true_parameters_do_not_reach_table_1",
    ),
    Erratum(
        ("P2.tab1",),
        "Equation 19",
        "The last bracket is missing, and the scores are pi^(alpha - 1)/(alpha - 1).",
        "alpha-entmax of (pi_k^(alpha - 1) - 1)/(alpha - 1) + log p_k: the same "
        "responsibilities, since entmax does not see a constant, and the limit alpha "
        "= 1 exists.",
        "tests/reproduction/test_errata.py::test_a_constant_in_the_scores_changes_no_responsibility",
    ),
    Erratum(
        ("P2.tab2",),
        "Equation 20",
        "E[log p] + beta KL, which is maximized.",
        "E[log p] - beta KL: as printed it has no maximum.",
        "tests/reproduction/test_errata.py::test_equation_20_has_no_maximum_as_printed",
    ),
    Erratum(
        ("P2.tab2",),
        "Section 4 and Figure 3 against section 4.2 and Table 2",
        '"Categorical" observation models.',
        '"Bernoulli": one probability for each pixel, which do not sum to one.',
        "tests/reproduction/test_errata.py::test_pixels_are_no_categorical_distribution",
    ),
    Erratum(
        ("P2.tab3",),
        "Table 3 against appendix A.2",
        "Errors of 1.4984 and 1.3384 in Table 3; 1.484 and 1.384, of a Table 4 that "
        "does not exist, in the appendix.",
        "The 10.68 % of the text are those of Table 3; the appendix's figures are 6.7 % apart.",
        "tests/reproduction/test_errata.py::test_the_text_agrees_with_table_3_and_not_with_the_appendix",
    ),
    Erratum(
        (
            "P3.printed",
            "P3.fig2",
        ),
        "Algorithm 1 and appendix B, the reference mean",
        "mu_1 = (T_1 Delta N_1 + T_2)/(N_1 + N_2), an operator being lost.",
        "mu_1 = (T_1 + T_2 - N_2 Delta)/(N_1 + N_2), and Delta not below the "
        "clearance. No operator in the gap makes it right, since the count is the "
        "other one.",
        "tests/reproduction/test_errata.py::test_the_printed_reference_mean_is_no_maximum",
    ),
    Erratum(
        ("P3.fig2",),
        "Section 4.1",
        "N_k is 1/N times the sum of gamma_nk, mu_k is 1/N_k times the sum of "
        "gamma_nk x_n, and pi_k = N_k/N.",
        "N_k is the sum: with the factor means are N times as large and weights sum to 1/N.",
        "tests/reproduction/test_errata.py::test_counts_have_no_factor",
    ),
    Erratum(
        ("P3.fig2",),
        "Appendix B, the Lagrangian",
        "f - lambda (-Delta), with f the sum of squares, and lambda >= 0.",
        "The sum of squares is minimized: f + lambda (-Delta), or f with a minus "
        "sign. As printed lambda is negative wherever the condition is active.",
        "tests/reproduction/test_errata.py::test_the_printed_multiplier_is_negative",
    ),
    Erratum(
        ("P3.information",),
        "Section 3.1, singularities (2) and (3)",
        "If the means are equal, or if the standard deviations are, other parameters "
        "are unidentifiable.",
        "Only if both are. With equal means and different standard deviations, or the"
        " reverse, the Fisher information of all parameters is regular.",
        "tests/reproduction/test_errata.py::test_components_overlap_only_if_all_is_equal",
    ),
    Erratum(
        ("P3.information",),
        "Section 5.1, the length element",
        "Delta eta, the Hessian of F^2(eta), Delta eta.",
        "The Hessian of F^*, the convex conjugate.",
        "tests/reproduction/test_errata.py::test_the_length_element_has_the_conjugate",
    ),
    Erratum(
        ("P3.fig1",),
        "Appendix D, the Jacobian under reparametrization",
        "A third row of (mu_1 - Delta, v + 1 - Delta, 1 - v - mu_1).",
        "(-Delta, 1, 1 - v), the derivatives of mu_1 + (1 - v) Delta by v, mu_1 and Delta.",
        "tests/reproduction/test_errata.py::test_the_printed_jacobian_is_no_derivative",
    ),
    Erratum(
        ("P3.fig1",),
        "Appendix D, J J^T under reparametrization",
        "A matrix that is not symmetric, with 3 Delta^3 + 2 mu_1 Delta - 4 Delta + "
        "mu_1^2 + 2 v^2 + 2 in its corner.",
        "It is not the product of the Jacobian printed above it. The right one has "
        "(-Delta, 1 - v, Delta^2 + 1 + (1 - v)^2) as its third row.",
        "tests/reproduction/test_errata.py::test_the_printed_product_is_not_that_of_the_printed_jacobian",
    ),
    Erratum(
        ("P3.fig1",),
        "Appendix D, du/dt and dw/dt",
        "The second line of du/dt has the series of dl/dv in the place of dl/dw, that"
        " of dw/dt has it in the place of dl/du.",
        "2 dl/du - (1 - 2 v) dl/dw, and u dl/dv - (1 - 2 v) dl/du + ..., as the first"
        " lines say. The expectations still contain x.",
        "tests/reproduction/test_errata.py::test_the_printed_series_of_the_dynamics_are_mixed_up",
    ),
    Erratum(
        (
            "P4.tab1",
            "P4.tab2",
        ),
        "Equations 7 to 12",
        "The gradient in mu_i is sum gamma kappa_i x_t, divided by the root of the "
        "Fisher information; equation 12 has d/(w_i kappa_i ||mu_i||), with ||mu_i|| "
        "= 1.",
        "d/(w_i kappa_i) divides by the information and not by its root, which is "
        "kappa_i sqrt(w_i/d) for one vector. A gradient on the sphere has no part "
        "along mu_i, and is zero on average.",
        "tests/reproduction/test_errata.py::test_equation_12_is_no_score_of_a_direction",
    ),
]
