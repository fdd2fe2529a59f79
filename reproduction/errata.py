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
]
