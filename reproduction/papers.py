"""What the five papers show: every table, figure and claim, and what of it is reproduced."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    """A table, figure or claim: the items that reproduce it, or the reason why none does."""

    what: str
    items: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self):
        if not self.items and not self.reason:
            raise ValueError(f"{self.what!r} needs an item or a reason.")


@dataclass(frozen=True)
class Paper:
    """A paper, the page on its method and what it shows."""

    title: str
    guides: tuple[str, ...]  # pages of the documentation
    shows: tuple[Shown, ...]


ILLUSTRATION = "An illustration of the idea, without figures to compare."

PAPERS = {
    "P0": Paper(
        "M. Nonnenmacher, M. Sahani, A solution for the mean parametrization of the von "
        "Mises-Fisher distribution",
        ("mean_parameters",),
        (
            Shown("Figure 1: solutions of the equation", ("P0.fig1",)),
            Shown("Figure 2: errors of the closed forms; A.4: a third iteration", ("P0.fig2",)),
            Shown("Table 1: data sets", ("P0.tab1",)),
            Shown("Figure 3: NMI over the number of clusters", ("P0.fig3", "P0.prior")),
            Shown("Figure 4 and A.3: the equation's start value", ("P0.fig4",)),
            Shown("Figure 5: closed form and root finding", ("P0.fig5",)),
        ),
    ),
    "P1": Paper(
        "K. Tu, Modified Dirichlet distribution: allowing negative parameters to induce stronger "
        "sparsity",
        ("modified_dirichlet", "grammar_priors"),
        (
            Shown("Algorithms 1 and 2: the mode", ("P1.alg",)),
            Shown(
                "Figures 1 to 4: likelihood and number of components; Figure 5: models",
                ("P1.fig1", "P1.which"),
            ),
            Shown("Figures 6 to 8: accuracy and sparsity of grammars", ("P1.fig6",)),
            Shown(
                "Figures 6 to 8 on sections 2 to 21 and 23 of the Wall Street Journal",
                reason="The corpus is licensed. Whoever has it gives train.conllu and test.conllu "
                "to P1.fig6, as with UD_English-EWT, which is public (en_ewt-ud-train.conllu and "
                "-test.conllu of github.com/UniversalDependencies/UD_English-EWT).",
            ),
        ),
    ),
    "P2": Paper(
        "S. Sklaviadis et al., Fenchel-Young variational learning",
        ("sparse_expectation", "sparse_autoencoders"),
        (
            Shown(
                "Table 1 and Figure 1: expectation steps",
                ("P2.tab1", "P2.unequal", "P2.dimension", "P2.texts"),
            ),
            Shown("Table 2 and Figure 3: autoencoders of images", ("P2.tab2", "P2.beta")),
            Shown(
                "Table 2, column of FashionMNIST",
                reason="We have no copy of the files. They have MNIST's format: beside its files, "
                "with names that begin with fashion, they give P2.tab2 the column.",
            ),
            Shown("Table 3: autoencoders of documents", ("P2.tab3",)),
            Shown(
                "Figure 2: coherence by sentence embeddings",
                reason="The embedding model is a download. P2.tab3 measures coherence by NPMI in "
                "the corpus instead.",
            ),
        ),
    ),
    "P3": Paper(
        "P. M. Esser, F. Nielsen, On the influence of enforcing model identifiability on learning "
        "dynamics of Gaussian mixture models",
        ("relative_coordinates",),
        (
            Shown("Figure 1: averaged dynamics", ("P3.fig1",)),
            Shown("Figure 2: trajectories", ("P3.fig2",)),
            Shown("Section 3.1: the coordinate of the standard deviations", ("P3.scales",)),
            Shown("Figures 3, 4 and 5: the idea", reason=ILLUSTRATION),
        ),
    ),
    "P4": Paper(
        "R. Zhang et al., Aggregating neural word embeddings for document representation",
        ("fisher_vectors",),
        (
            Shown("Table 1: classification, Subj", ("P4.tab1", "P4.ablation")),
            Shown(
                "Table 1: classification, MR",
                reason="We have no copy of the sentences (rt-polaritydata.tar.gz); "
                "reproduction.prepare reads them, and P4.tab1 then prints their table.",
            ),
            Shown("Table 2: clustering", ("P4.tab2",)),
            Shown("Table 3: retrieval", ("P4.tab3",)),
            Shown(
                "Table 3, on Robust04",
                reason="The collection is licensed, and is not to be had; MEDLINE and Cranfield "
                "stand in for it.",
            ),
        ),
    ),
    "guide": Paper(
        "figures of the user guide that are no paper's",
        (
            "../user_guide/background",
            "../user_guide/number_of_components",
            "../user_guide/streams",
        ),
        (
            Shown("Clusters among uniform rows", ("guide.background",)),
            Shown("The number of components", ("guide.components",)),
            Shown("One pass over a stream", ("guide.streams",)),
            Shown("One pass beside whole fits", ("guide.passes",)),
        ),
    ),
}
