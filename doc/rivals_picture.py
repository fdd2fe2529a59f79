"""The picture of times and agreement of the performance page, from ``rivals.json``.

``asv_bench/rivals.py`` measures the figures.
"""

import json
from datetime import date
from pathlib import Path
from statistics import median

RECORD = Path(__file__).with_name("user_guide") / "rivals.json"
COLOURS = {
    "VonMisesFisherMixture": "#bd1f01",
    "KMeans": "#3f90da",
    "MiniBatchKMeans": "#17638d",
    "FaissKMeans": "#a96b59",
    "SuperKMeans": "#4f7942",
    "GaussianMixture": "#ffa90e",
    "HDBSCAN": "#832db6",
}
ALT = (
    "Six panels: seconds and ARI of default fits by the number of rows, components and features, "
    "for VonMisesFisherMixture, KMeans, MiniBatchKMeans, FAISS, SuperKMeans, GaussianMixture and "
    "HDBSCAN."
)


def draw(record):
    """Return a figure: seconds above, ARI below, by rows, components and features."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.2), layout="constrained")
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    sweeps = list(record["base"])
    for sweep, (time, agreement) in zip(sweeps, axes.T, strict=True):
        fixed = [f"{size:,} {name}" for name, size in record["base"].items() if name != sweep]
        time.set(xscale="log", yscale="log", title=f"by {sweep}\n({', '.join(fixed)})")
        time.title.set_fontsize(10)
        agreement.set(xlabel=f"number of {sweep}", ylim=(-0.05, 1.05))
        sizes = sorted({fit[sweep] for fit in record["fits"] if fit["sweep"] == sweep})
        agreement.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        agreement.minorticks_off()
        for method, colour in COLOURS.items():
            fits = [f for f in record["fits"] if (f["sweep"], f["method"]) == (sweep, method)]
            done = [fit for fit in fits if "seconds" in fit]
            style = {"color": colour, "linewidth": 2.2 if method.startswith("Von") else 1.3}
            style["linestyle"] = "--" if method == "GaussianMixture" else "-"  # KMeans is below it
            line = [(fit[sweep], fit.get("seconds", record["limit"])) for fit in fits]
            time.plot(*zip(*line, strict=True), label=method, **style)
            time.plot([f[sweep] for f in done], [f["seconds"] for f in done], "o", ms=4, c=colour)
            stopped = [fit[sweep] for fit in fits if "seconds" not in fit]
            time.plot(stopped, [record["limit"]] * len(stopped), "x", ms=8, mew=2, c=colour)
            figures = [fit["ari"] for fit in done]
            agreement.plot([f[sweep] for f in done], figures, marker="o", ms=4, **style)
        time.axhline(record["limit"], color="0.6", linewidth=1, linestyle=":")
    axes[0, 0].set_ylabel("seconds of one processor")
    axes[1, 0].set_ylabel("agreement (ARI)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def figure_text(record):
    """Return the figure with its caption, and a table of threads, as reStructuredText."""
    day = date.fromisoformat(record["date"])
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    columns = {sweep: max(fit[sweep] for fit in record["fits"]) for sweep in record["base"]}
    lines = [["method", *(f"{size:,} {sweep}" for sweep, size in columns.items())]]
    for method in COLOURS:
        fits = {(f["sweep"], f[f["sweep"]]): f for f in record["fits"] if f["method"] == method}
        lines.append([f"``{method}``", *(seconds(fits.get(size)) for size in columns.items())])
    rows = "\n".join("   * - " + "\n     - ".join(line) for line in lines)
    return (
        ".. figure:: ../generated/rivals.svg\n"
        f"   :figclass: wide\n   :alt: {ALT}\n\n"
        "   Default fits of random clusters of directions, each with one thread: the median of\n"
        f"   three runs. A cross is a fit that was stopped after {record['limit']} seconds;\n"
        f"   larger ones were left out. Measured on {day:%d %B %Y}: {record['processor']},\n"
        f"   {versions}.\n\n"
        "The table shows the largest data of each panel: seconds of the processor with one\n"
        f"thread, those of all with {record['cores']} threads, and the seconds that pass then.\n\n"
        f".. list-table::\n   :header-rows: 1\n\n{rows}\n"
    )


def seconds(fit):
    """Return a cell: seconds with one thread, with all, and those that pass with all."""
    if not fit or not fit.get("all_threads"):  # a fit that was stopped with one thread has none
        return "stopped"
    figures = (fit["seconds"], *map(median, zip(*fit["all_threads"], strict=True)))
    return " / ".join(f"{figure:.2f}" for figure in figures)


def write(folder):
    """Write the picture and the text that includes it."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    draw(record).savefig(folder / "rivals.svg", metadata={"Date": None})
    (folder / "rivals.rst").write_text(figure_text(record), encoding="utf-8")
