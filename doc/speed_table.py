"""The speed table of the guide, from ``speed.json``.

``asv_bench/speed.py`` measures the figures.
"""

import json
from datetime import date
from pathlib import Path
from statistics import median

RECORD = Path(__file__).with_name("user_guide") / "speed.json"
GAUSSIAN = "mixture.SparseGaussianMixtureStep.track_times_faster_than_scikit_learn"
DIRECTIONAL = "mixture.VonMisesFisherMixtureStepRatios.track_soft_step_over_two_products"

# The rows that the page shows first.
MAIN = [
    "startup.CompileTime.track_seconds von Mises-Fisher, dense",
    "startup.ImportSkvmf.track_seconds",
    *(f"{GAUSSIAN} {kind} float64 soft 1.0" for kind in ("full", "diag", "tied")),
    f"{DIRECTIONAL} 200,000 x 384, K=100 blurred",
    "mixture.VonMisesFisherMixtureSparseStep.track_step_over_two_products float64 soft",
    "limits.Predict.track_prediction_over_one_product predict",
    "fisher_vector.FisherVectorTransformerBags.track_times_faster_than_scikit_image"
    " float64 Gaussian",
    "limits.Threads.track_times_faster_than_one embeddings, soft",
]


def speed_table(keys=None):
    """Return the table as reStructuredText, machine and day first; by default with all rows."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    day = date.fromisoformat(record["date"])
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    kinds = list(dict.fromkeys(kind for own in record["figures"].values() for kind in own))
    lines = [
        f"Measured on {day:%d %B %Y}: {record['processor']}, {record['cores']} cores, {versions}. "
        "Processor time of one thread, except for rows on threads; medians of the runs, with the "
        f"smallest and the largest in brackets, with the code for {' and for '.join(kinds)}.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - Benchmark",
        *(f"     - {kind}" for kind in kinds),
        "     - Unit",
        "     - Class",
    ]
    for group in record["table"]:
        for name, key in group["lines"].items():
            figures = record["figures"][key]
            if any(figures.values()) and (keys is None or key in keys):
                benchmark = key.partition(" ")[0].rpartition(".")[0]  # without the method
                lines += [
                    f"   * - {group['what']}: {name}",
                    *(f"     - {spread(figures.get(kind))}".rstrip() for kind in kinds),
                    f"     - {group['unit']}",
                    f"     - ``{benchmark}``",
                ]
    return "\n".join(lines) + "\n"


def spread(runs):
    """Return the median of some runs, and their range if there are several."""
    if not runs:
        return ""
    middle = f"{median(runs):.3g}"
    return middle if len(runs) == 1 else f"{middle} ({min(runs):.3g} to {max(runs):.3g})"


def folded(text):
    """Return a text in a box that opens with a click."""
    lines = [f"   {line}".rstrip() for line in text.splitlines()]
    return "\n".join([".. dropdown:: All benchmarks", "", *lines, ""])
