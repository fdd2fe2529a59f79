"""Errors of densities on the sphere, for the home page."""

from pathlib import Path
from unittest.mock import patch

import numpy as np

from .items import item
from .results import Result, Table

EXAMPLE = Path(__file__).parents[1] / "doc" / "examples" / "plot_error_map.py"


@item("guide.densities", "errors of densities on the sphere", needs=("mpmath",))
def densities(setting):
    """Run the example of the gallery, which holds skvmf and SciPy against mpmath."""
    points = setting.size(24, 3)
    panels = of_example(points)
    table = Table(
        "Errors in units in the last place, d from 2 to a million, kappa from .001 to 1e8",
        ["function", "largest error", "not finite, %"],
        0,
    )
    for name, errors in panels.items():
        largest = f"{float(f'{np.nanmax(errors):.2g}'):,.0f}"
        table.add(name, largest, 100 * np.isnan(errors).mean())
    return Result(
        f"{points} dimensions times {points} concentrations, both geometric; the reference has 40 "
        "digits. Errors of a log-density are relative to 1 at least.",
        "none",
        [table],
    )


def of_example(points):
    """Return the errors that the example draws, with so many points along each axis."""
    import matplotlib

    code = EXAMPLE.read_text(encoding="utf-8").replace("N_POINTS = 24", f"N_POINTS = {points}")
    scope = {"__name__": "example"}
    with matplotlib.rc_context({"backend": "agg"}), patch("matplotlib.pyplot.show"):
        exec(compile(code, str(EXAMPLE), "exec"), scope)
    return scope["panels"]
