"""The speed table of the guide and the speed card of the home page, from ``speed.json``.

``asv_bench/speed.py`` measures the figures.
"""

import json
from datetime import date
from pathlib import Path

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
    lines = [
        f"Measured on {day:%d %B %Y}: {record['processor']}, {record['cores']} cores, {versions}. "
        "Medians of alternating pairs; processor time of one thread, except for rows on threads.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - Benchmark",
        "     - Result",
        "     - Class",
    ]
    for group in record["table"]:
        for name, key in group["lines"].items():
            figure = record["figures"][key]
            if figure is not None and (keys is None or key in keys):
                benchmark = key.partition(" ")[0].rpartition(".")[0]  # without the method
                lines += [
                    f"   * - {group['what']}: {name}",
                    f"     - {figure:g} {group['unit']}",
                    f"     - ``{benchmark}``",
                ]
    return "\n".join(lines) + "\n"


def folded(text):
    """Return a text in a box that opens with a click."""
    lines = [f"   {line}".rstrip() for line in text.splitlines()]
    return "\n".join([".. dropdown:: All benchmarks", "", *lines, ""])


def speed_card():
    """Return the card of the home page as reStructuredText."""
    figures = json.loads(RECORD.read_text(encoding="utf-8"))["figures"]
    kinds = ("full", "diag", "tied")
    times = {kind: figures[f"{GAUSSIAN} {kind} float64 soft 1.0"] for kind in kinds}
    least, most = min(times.values()), max(times.values())
    return (
        f".. grid-item-card:: {least:.0f} to {most:.0f} times as fast\n"
        "   :link: user_guide/performance\n"
        "   :link-type: doc\n\n"
        "   One EM step of a Gaussian mixture compared with scikit-learn's ``GaussianMixture``:\n"
        f"   {times['full']:.1f} times as fast with full, {times['diag']:.1f} with diagonal and\n"
        f"   {times['tied']:.1f} with tied covariances, on the same rows and one thread.\n"
    )
