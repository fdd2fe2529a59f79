"""The contracts of families, priors and estimators, for whoever writes one.

A family says what a component is. This module has what a family, a prior of the weights or an
estimator derives from, what they exchange, and what fits a mixture of them without an estimator.
The pages "Add a family", "Add a prior" and "Add an estimator" of the documentation build on
nothing else.

**How it changes.** A name that is listed here is public. Until version 1.0, a minor release may
change what a contract asks for, and "What's new" then says what to change in your class. A method
that is added has a default that raises an error where it is needed, so that classes written
before keep working. From version 1.0, the deprecation policy holds. Within a minor release
nothing changes. `skvmf.testing.check_family` finds what a family lacks.
"""

from ._engine.em.loop import run_em
from ._engine.em.mixture import Mixture
from ._engine.em.posterior import FenchelYoungPosterior
from ._engine.em.predictions import labels
from ._engine.em.weight_prior import ModifiedDirichlet
from ._engine.families.family import (
    Constraint,
    Family,
    MergeCost,
    Proposal,
    Scores,
    SeedFamily,
    Update,
)
from ._engine.families.gradients import Gradients, ParameterBlock, repeat_columns
from ._engine.families.responsibilities import as_dense
from ._engine.families.statistics import Statistics
from ._engine.rows.sources import make_rows
from ._engine.search.starts import make_start
from .mixture._base import BaseMixture

__all__ = [
    "BaseMixture",
    "Constraint",
    "Family",
    "FenchelYoungPosterior",
    "Gradients",
    "MergeCost",
    "Mixture",
    "ModifiedDirichlet",
    "ParameterBlock",
    "Proposal",
    "Scores",
    "SeedFamily",
    "Statistics",
    "Update",
    "as_dense",
    "labels",
    "make_rows",
    "make_start",
    "repeat_columns",
    "run_em",
]
