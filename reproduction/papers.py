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
            Shown("Sections 2.1 to 2.4, A.1: variance function, Hessian", ("P0.variance",)),
            Shown("Figure 2: errors of the closed forms; A.4: a third iteration", ("P0.fig2",)),
            Shown("Figure 4 and A.3: the equation's start value", ("P0.fig4",)),
            Shown("Figure 5 and A.5: root finding", ("P0.fig5", "P0.operations")),
            Shown("Table 1: data sets", ("P0.tab1",)),
            Shown("Figure 3: NMI over the number of clusters", ("P0.fig3",)),
        ),
    ),
    "P1": Paper(
        "K. Tu, Modified Dirichlet distribution: allowing negative parameters to induce stronger "
        "sparsity",
        ("modified_dirichlet", "grammar_priors"),
        (
            Shown("Algorithms 1 and 2: the mode", ("P1.alg",)),
            Shown("Figures 1 to 5: mixtures of Gaussians", ("P1.fig1",)),
            Shown("Figures 6 to 8: accuracy and sparsity of grammars", ("P1.fig6",)),
            Shown(
                "Figures 6 to 8 on sections 2 to 21 and 23 of the Wall Street Journal",
                reason="The corpus is licensed. Whoever has it gives train.conllu and test.conllu "
                "to P1.fig6.",
            ),
        ),
    ),
    "P2": Paper(
        "S. Sklaviadis et al., Fenchel-Young variational learning",
        ("sparse_expectation", "sparse_autoencoders"),
        (
            Shown("Table 1 and Figure 1: expectation steps", ("P2.tab1",)),
            Shown("Table 2 and Figure 3: autoencoders of images", ("P2.tab2", "P2.tab2-fashion")),
            Shown("Table 3 and Figure 2: autoencoders of documents", ("P2.tab3",)),
            Shown(
                "Section 3.4: a score function estimator",
                reason="The paper names it beside the reparametrization trick and uses the trick, "
                "as skvmf does.",
            ),
        ),
    ),
    "P3": Paper(
        "P. M. Esser, F. Nielsen, On the influence of enforcing model identifiability on learning "
        "dynamics of Gaussian mixture models",
        ("relative_coordinates",),
        (
            Shown("Figure 1: averaged dynamics", ("P3.fig1",)),
            Shown("Figure 2: trajectories, Algorithm 1 corrected", ("P3.fig2",)),
            Shown("Figure 2: trajectories, Algorithm 1 as printed", ("P3.printed",)),
            Shown("Appendix C: Algorithm 2", ("P3.general",)),
            Shown("Section 3.1: the coordinate of the standard deviations", ("P3.scales",)),
            Shown("Sections 3.1 and 5.1: Fisher information", ("P3.information",)),
            Shown("Section 6: layers", ("P3.layers",)),
            Shown("Figures 3, 4 and 5: the idea", reason=ILLUSTRATION),
        ),
    ),
    "P4": Paper(
        "R. Zhang et al., Aggregating neural word embeddings for document representation",
        ("fisher_vectors",),
        (
            Shown("Table 1: classification", ("P4.tab1",)),
            Shown("Sections 3.2 and 4.2: gradients and components", ("P4.ablation",)),
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
        ("ours",),
        (
            Shown(
                "Concentrations, priors, posteriors and beta",
                (
                    "guide.prior",
                    "guide.which",
                    "guide.mode",
                    "guide.unequal",
                    "guide.dimension",
                    "guide.texts",
                    "guide.beta",
                ),
            ),
            Shown("Clusters among uniform rows", ("guide.background",)),
            Shown("The number of components", ("guide.components",)),
            Shown("Embeddings", ("guide.whitening", "guide.embeddings", "guide.umap")),
            Shown("One pass over a stream", ("guide.streams",)),
            Shown("One pass beside whole fits", ("guide.passes",)),
            Shown("Errors of densities", ("guide.densities",)),
            Shown("An iteration on a cluster", ("guide.cluster",)),
        ),
    ),
}
