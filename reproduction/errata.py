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
        ("P0.fig2",),
        "Section 2.5 and A.4, the antiderivative, for 2 <= d <= 6",
        "A logarithm with the square root of d^2/4 - 2 d + 2, which is negative there.",
        "The polynomial has complex roots, and the antiderivative is an arctangent.",
        "tests/reproduction/test_errata.py::test_the_antiderivative_is_an_arctangent_up_to_six",
    ),
    Erratum(
        ("P0.fig2",),
        "Section 3 and Figure 2",
        "The new forms have smaller errors than Banerjee's for all r.",
        "From d = 4 on. At d = 2 Banerjee's kappa is better for r < .74 and its psi for r < .84, "
        "at d = 3 for r < .44 and r < .53.",
        "tests/reproduction/test_errata.py::test_banerjees_form_is_better_in_few_dimensions",
    ),
    Erratum(
        ("P0.fig2",),
        "A.4",
        "The iteration after the second form does worse than the second.",
        "Only at d = 2. The largest error falls from 9.0e-4 to 1.4e-4 at d = 10, and from 2.9e-5 "
        "to "
        "7.9e-7 at d = 50.",
        "tests/reproduction/test_errata.py::test_a_third_iteration_is_better_but_for_circles",
    ),
    Erratum(
        ("P0.fig4",),
        "A.3",
        "For large d the start value has little effect, since kappa is attracted.",
        "It is attracted from above. A start value that is small for the solver's tolerance "
        "misses it, "
        "and the solver ends at a wrong solution, without a warning: from 1e-4 and with a "
        "tolerance "
        "of 1e-6, from d = 30 on.",
        "tests/reproduction/test_errata.py::test_a_small_start_value_misses_the_solution",
    ),
    Erratum(
        ("P0.tab1",),
        "A.6",
        "Removing duplicates leaves 18,803 messages.",
        "Those are the messages with a word of the vocabulary; no duplicate is removed. The least "
        "numbers of texts for a word are 7, 2, 6 and 2.",
        "tests/papers/test_vonmises_fisher_text.py::test_rows_have_the_shapes_of_table_1",
    ),
    Erratum(
        ("P1.alg",),
        "Algorithm 2, lines 4 to 8",
        "x_i is (alpha_i - 1)/s_i (1 - epsilon t), with s_i the sum of all alpha_j - 1 from i on.",
        "The factor is the mass that is left, 1 less the sum of the x assigned so far (or s at "
        "the first "
        "free entry for all that follow), and entries with alpha_j <= 1 stay out of the sums. For "
        "alpha "
        "= (3, 3) the printed one returns (1/2, 1).",
        "tests/reproduction/test_errata.py::test_algorithm_2_is_wrong_as_printed",
    ),
    Erratum(
        ("P2.tab1",),
        "Table 1",
        "AMI of .606 (standard) and .636 (sparse EM), with covariances .11 I, .5 I, .7 I, .9 I.",
        "The true parameters reach .49. Read as standard deviations they reach .66, and the order "
        "of the "
        "methods is the paper's but for ARI.",
        "tests/reproduction/test_errata.py::test_the_true_parameters_do_not_reach_table_1",
    ),
    Erratum(
        ("P2.tab1",),
        "Equation 19",
        "The last bracket is missing, and the scores are pi^(alpha - 1)/(alpha - 1).",
        "alpha-entmax of (pi_k^(alpha - 1) - 1)/(alpha - 1) + log p_k: the same shares, since "
        "entmax does "
        "not see a constant, and the limit alpha = 1 exists.",
        "tests/reproduction/test_errata.py::test_a_constant_in_the_scores_changes_no_share",
    ),
    Erratum(
        ("P2.tab2",),
        "Section 4 and Figure 3 against section 4.2 and Table 2",
        '"Categorical" observation models.',
        '"Bernoulli": one probability for each pixel, and no sum over pixels.',
        "tests/neural/test_vae.py::test_alpha_one_is_bernoulli",
    ),
    Erratum(
        ("P2.tab3",),
        "Table 3 against appendix A.2",
        "1.4984 and 1.3384 in Table 3; 1.484 and 1.384, of a Table 4 that does not exist, in the "
        "appendix. 7,531 test documents, less 1,000, are 6,505.",
        "20news-bydate has 7,532 test messages; 6,502 of those after the first thousand have one "
        "of the "
        "2000 words.",
        "tests/papers/test_fenchel_young_autoencoders.py::test_documents_are_those_of_the_paper",
    ),
    Erratum(
        ("P3.fig2",),
        "Algorithm 1, the reference mean",
        "mu_1 = (T_1 Delta N_1 + T_2)/(N_1 + N_2).",
        "mu_1 = (T_1 + T_2 - N_2 Delta)/(N_1 + N_2), and Delta not below the clearance.",
        "tests/reproduction/test_errata.py::test_the_printed_reference_mean_is_no_maximum",
    ),
    Erratum(
        ("P3.fig2",),
        "Section 3.1, singularities (2) and (3)",
        "If the means are equal, or if the standard deviations are, the other parameters are "
        "unidentifiable.",
        "Only if both are. With equal means and different standard deviations, or the reverse, the "
        "Fisher information of all parameters is regular; equal weights are no singularity either.",
        "tests/reproduction/test_errata.py::test_components_overlap_only_if_all_is_equal",
    ),
    Erratum(
        ("P3.scales",),
        "Section 3.1, the reparametrization",
        "Theta = {mu_1, mu_2, sigma_1, sigma_2, pi_1} becomes Lambda = {mu_1, Delta_mu, sigma_1, "
        "Delta_sigma, pi_1} with Delta_mu, Delta_sigma > 0.",
        "Either of the two conditions can be had by numbering the components; both cannot, where "
        "the component with the smaller mean is the wider. Lambda is then a smaller model.",
        "tests/reproduction/test_errata.py::test_both_orders_leave_mixtures_out",
    ),
    Erratum(
        ("P4.tab1", "P4.tab2"),
        "Equations 7 to 12",
        "The gradient in mu_i is sum gamma kappa_i x_t, divided by the root of the Fisher "
        "information; "
        "equation 12 has d/(w_i kappa_i ||mu_i||), with ||mu_i|| = 1.",
        "d/(w_i kappa_i) divides by the information and not by its root, which is kappa_i "
        "sqrt(w_i/d) for "
        "one vector. A gradient on the sphere has no part along mu_i, and is zero on average.",
        "tests/reproduction/test_errata.py::test_equation_12_is_no_score_of_a_direction",
    ),
]
