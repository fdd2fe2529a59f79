"""A batch of a stream: where the first one begins, and the step that each one takes."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._engine.contracts.statistics import Statistics
from .._engine.data.base import RowSource
from .._engine.em.fitted import FittedMixture
from .._engine.em.online import step
from .._engine.em.progress import Progress
from .._engine.weights.modified_dirichlet import ModifiedDirichlet
from ._checkpoint import Checkpoint
from ._climb import MultiStart


class Batch:
    """What a batch makes of a mixture.

    Parameters
    ----------
    estimator : BaseMixture
        Its parameters say how.
    rows : RowSource
        The rows of the batch.
    memory : Statistics or None
        What is remembered of rows before; None where there were none.
    """

    def __init__(self, estimator: Any, rows: RowSource, memory: Statistics | None) -> None:
        self._estimator = estimator
        self._rows = rows
        self._memory = memory
        seen_before = 0.0 if memory is None else memory.total
        self._seen = seen_before + rows.total_weight
        self._family = estimator._family_after(rows, seen_before)

    def begin(self) -> FittedMixture:
        """Return the best start on the batch, before any step."""
        estimator, rows, family = self._estimator, self._rows, self._family
        background = estimator._background(rows, family) if estimator.background else None
        given = estimator._initialization(rows, family, background)
        own = estimator.get_params(deep=False)
        changed = {"max_iter": 0, "verbose": 0, "checkpoint": None}
        still = type(estimator)(**own | {name: changed[name] for name in changed if name in own})
        with Progress(still, {}, 0) as progress:
            flat, nowhere = ModifiedDirichlet(), Checkpoint(still, rows, None)
            climb = MultiStart(still, rows, flat, progress, background, nowhere)
            return climb.best(given, family)[0]

    def step(self, fitted: FittedMixture) -> tuple[FittedMixture, Statistics | None]:
        """Return a better fit, and what is remembered then; the same where no row counts."""
        self._check_same(fitted)
        if self._rows.total_weight == 0:
            return fitted, self._memory
        estimator, before = self._estimator, fitted.params
        family = fitted.family.refreshed(self._family)
        params = replace(before, components=estimator._converted(family, before.components))
        model = replace(
            estimator._model(family, self._prior()), background=fitted.background_log_density
        )
        decay = float(estimator.learning_decay)
        model, params, memory = step(model, self._rows, params, self._memory, decay)
        return replace(fitted, family=model.family, params=params), memory

    def _check_same(self, fitted: FittedMixture) -> None:
        """Refuse parameters with which the fit cannot go on."""
        for name, before in [
            ("n_components", fitted.n_components),
            ("background", fitted.background is not None),
        ]:
            now = getattr(self._estimator, name)
            if now != before:
                raise ValueError(
                    f"partial_fit goes on with {name}={before}, and {name} is {now} now: set it "
                    "back, or start afresh with a clone of the mixture."
                )

    def _prior(self) -> ModifiedDirichlet:
        """Return the prior on the weights, flat while it takes half of the rows seen or more."""
        estimator = self._estimator
        prior: ModifiedDirichlet = estimator._weight_prior()
        taken = np.maximum(1 - np.asarray(prior.alpha), 0)
        all_taken = taken.sum() if taken.ndim else estimator.n_components * taken
        held = estimator.flat_start and self._seen < 2 * all_taken
        return ModifiedDirichlet() if held else prior
