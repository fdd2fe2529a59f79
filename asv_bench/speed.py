"""Measure the table of speed in the user guide: ``python asv_bench/speed.py [part of a name ...]``.

Each figure is a benchmark of ``asv_bench/benchmarks``, named by file, class, method and parameters.
Each is run several times (``--runs``) with the code that BLAS, NumPy and Numba choose for each kind
of processor that this one can stand in for. All are kept in ``doc/user_guide/speed.json`` with the
machine and the day; given parts of names, the other figures stay as they are.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "doc" / "user_guide" / "speed.json"
VERSIONS = ("numpy", "scipy", "sklearn", "numba")
EMBEDDINGS = ("200,000 x 384, K=100", "blurred")
SMALL = ("1,000,000 x 64, K=64", "blurred")
FITS = ("von Mises-Fisher, dense", "von Mises-Fisher, sparse", "Gaussian")
COVARIANCES = ("diag float64", "full float64", "tied float64", "spherical float64", "diag float32")
SPREADS = {"touching clusters": 1.0, "far apart": 100.0}
GAUSSIAN = "mixture.SparseGaussianMixtureStep.track_times_faster_than_scikit_learn"
OVER_TWO = "mixture.VonMisesFisherMixtureStepRatios.track_{}_step_over_two_products"

# What threads share, by the names of `limits.Threads`.
SHARED = (
    *(f"embeddings, {posterior}" for posterior in ("soft", "sparse", "hard")),
    "embeddings of 64",
    "1,000 components",
    "texts, float64",
    "texts, float32",
    *(f"Gaussian, {kind}" for kind in COVARIANCES),
    "predict",
    "predict_proba",
    "score_samples",
    "Fisher vectors",
    "sentences",
)

# File, class, method and parameters of benchmarks, by what is measured and in what unit.
ROWS = [
    (
        "Start",
        "seconds",
        [
            (
                "first fit after installing, which compiles: dense rows",
                "startup.CompileTime.track_seconds",
                FITS[:1],
            ),
            ("then sparse rows", "startup.CompileTime.track_seconds", FITS[1:2]),
            ("then Gaussians", "startup.CompileTime.track_seconds", FITS[2:]),
            (
                "import, in addition to NumPy, Numba and scikit-learn",
                "startup.ImportSkvmf.track_seconds",
                (),
            ),
        ],
    ),
    (
        "Gaussian step, 100,000 x 32, 32 components",
        "times as fast as scikit-learn",
        [
            (f"{name}, {clusters}", GAUSSIAN, (name, "soft", spread))
            for name in COVARIANCES
            for clusters, spread in SPREADS.items()
        ],
    ),
    (
        "von Mises-Fisher step, 200,000 x 384, 100 components",
        "times its two matrix products",
        [
            (f"{kind} memberships", OVER_TWO.format(kind), EMBEDDINGS)
            for kind in ("soft", "sparse", "hard")
        ],
    ),
    (
        "von Mises-Fisher step, float16 rows, 200,000 x 384, 100 components",
        "times as long as with float32 rows",
        [
            (where, "limits.HalfPrecision.track_step_over_float32", (rows,))
            for where, rows in (("in memory", "array"), ("in a file", "file"))
        ],
    ),
    (
        "von Mises-Fisher step, 1,000,000 x 64, 64 components",
        "times its two matrix products",
        [("soft memberships", OVER_TWO.format("soft"), SMALL)],
    ),
    (
        "von Mises-Fisher step, texts, 18,803 x 28,571, 20 components",
        "times SciPy's two products",
        [
            (
                f"{kind} memberships, {dtype}",
                "mixture.VonMisesFisherMixtureSparseStep.track_step_over_two_products",
                (dtype, kind),
            )
            for kind, dtype in (("soft", "float64"), ("soft", "float32"), ("hard", "float64"))
        ],
    ),
    (
        "many components, 20,000 x 384",
        "times its products",
        [
            (
                f"{K:,} components, {kind}",
                "limits.ManyComponents.track_step_over_products",
                (K, kind),
            )
            for K in (1000, 5000)
            for kind in ("soft", "hard")
        ],
    ),
    (
        "predictions, 1,000,000 x 64, 64 components",
        "times one matrix product",
        [
            (name, "limits.Predict.track_prediction_over_one_product", (method,))
            for name, method in (
                *((f"``{own}``", own) for own in ("predict", "predict_proba", "score_samples")),
                ("``responsibilities``, none of which is zero", "responsibilities"),
                ("``responsibilities``, 1.5-entmax", "responsibilities, sparse"),
            )
        ],
    ),
    (
        "sparse responsibilities, 100,000 x 64",
        "times ``Z.copy()``",
        [
            (name, "simplex.Entmax.track_ratio_to_copy", ((100_000, 64), 3.0, alpha))
            for name, alpha in (("1.5-entmax", 1.5), ("sparsemax", 2.0))
        ],
    ),
    (
        "inverse of the mean resultant length",
        "nanoseconds per value",
        [
            (f"{d} dimensions", "kernels.MeanResultantLengthInverse.track_nanoseconds", (d,))
            for d in (3, 100)
        ],
    ),
    (
        "Fisher vectors of 2,000 bags of 200 vectors, all gradients",
        "times as fast as scikit-image",
        [
            (
                f"Gaussian, {dtype}",
                "fisher_vector.FisherVectorTransformerBags.track_times_faster_than_scikit_image",
                (dtype, "Gaussian"),
            )
            for dtype in ("float64", "float32")
        ],
    ),
    (
        "likelihoods of sentences under a dependency grammar",
        "times as fast as NumPy",
        [
            (
                f"{length} words, NumPy's {rival}",
                "grammar.DependencyModelBesideNumPy.track_times_faster_than_numpy",
                (length, rival),
            )
            for length in (10, 40)
            for rival in ("one by one", "together")
        ],
    ),
    *(
        ("two threads", unit, [(work, f"limits.Threads.{method}", (work,)) for work in SHARED])
        for unit, method in (
            ("times as fast as one", "track_times_faster_than_one"),
            ("times as fast as two processes", "track_over_two_processes"),
        )
    ),
]


def measure(name, params):
    """Return the figure of one benchmark, or None where it cannot be had here."""
    sys.path.insert(0, str(Path(__file__).parent))
    file, owner, method = name.split(".")
    module = importlib.import_module(f"benchmarks.{file}")
    task = getattr(module, owner)()
    for hook in (getattr(module, "setup", None), getattr(task, "setup", None)):
        if hook is not None:
            try:
                hook(*params)
            except NotImplementedError:
                return None
    try:
        return float(f"{getattr(task, method)(*params):.3g}")
    finally:
        if hasattr(module, "teardown"):
            module.teardown(*params)


def machine():
    """Return processor, cores and versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "versions": {name: importlib.import_module(name).__version__ for name in VERSIONS},
    }


def kinds():
    """Return the variables with which libraries choose the code of each kind of processor."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    wide = [name for name in found if name.startswith("AVX512") or name == "X86_V4"]
    narrow = {"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell"}
    if not wide:
        return {"AVX2": narrow}
    narrow["NPY_DISABLE_CPU_FEATURES"] = " ".join(wide)
    return {"AVX2": narrow, "AVX-512": {"OPENBLAS_CORETYPE": "SkylakeX"}}


def main(parts, runs):
    figures = json.loads(RESULTS.read_text())["figures"] if parts else {}
    lines = [line for _, _, lines in ROWS for line in lines]
    chosen = [line for line in lines if not parts or any(part in key(*line[1:]) for part in parts)]
    for _, name, params in chosen:
        figures[key(name, params)] = {kind: [] for kind in kinds()}
    for run in range(1, runs + 1):
        for _, name, params in chosen:
            for kind, variables in kinds().items():
                figure = in_a_process(name, params, variables)
                print(f"{run}, {kind}, {key(name, params)}: {figure}", flush=True)
                if figure is not None:
                    figures[key(name, params)][kind].append(figure)
            RESULTS.write_text(json.dumps(record(figures), indent=1) + "\n")


def in_a_process(name, params, variables):
    """Return the figure of one benchmark, run in a process and a folder of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, json.dumps(params)]
    with tempfile.TemporaryDirectory() as folder:  # some benchmarks write files
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def record(figures):
    """Return the figures with the machine, the day and the lines of the table."""
    table = [
        {"what": what, "unit": unit, "lines": {line: key(*own) for line, *own in lines}}
        for what, unit, lines in ROWS
    ]
    keys = [key for group in table for key in group["lines"].values()]
    return {
        "date": datetime.date.today().isoformat(),
        **machine(),
        "table": table,
        "figures": {key: figures.get(key, {}) for key in keys},
    }


def key(name, params):
    return " ".join([name, *map(str, params)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        given = [tuple(p) if isinstance(p, list) else p for p in json.loads(sys.argv[3])]
        print(json.dumps(measure(sys.argv[2], given)))
    else:
        parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
        parser.add_argument("parts", nargs="*", help="parts of the names of the figures to measure")
        parser.add_argument("--runs", type=int, default=5, help="of each figure")
        options = parser.parse_args()
        main(options.parts, options.runs)
