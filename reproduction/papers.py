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
    guide: str  # a page of the documentation
    shows: tuple[Shown, ...]


ILLUSTRATION = "An illustration of the idea, without figures to compare."

PAPERS = {
    "P0": Paper(
        "M. Nonnenmacher, M. Sahani, A solution for the mean parametrization of the von "
        "Mises-Fisher distribution",
        "mean_parameters",
        (
            Shown("Figure 1: solutions of the equation", ("P0.fig1",)),
            Shown("Figure 2: errors of the closed forms; A.4: a third iteration", ("P0.fig2",)),
            Shown("Table 1: data sets", ("P0.tab1",)),
            Shown("Figure 3: NMI over the number of clusters", ("P0.fig3",)),
            Shown("Figure 4 and A.3: the equation's start value", ("P0.fig4",)),
            Shown("Figure 5: closed form and root finding", ("P0.fig5",)),
        ),
    ),
}
