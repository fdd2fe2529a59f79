"""Count the instructions of the main kernels under valgrind: they are stable where times are not.

``python -m tests.kernels.instructions`` records them in ``instructions.json``. Kernels are compiled
for a named processor, whatever this one is, before valgrind starts. So counts depend on the version
of Numba, which is recorded too, and hardly on anything else.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from contextlib import suppress
from functools import partial
from pathlib import Path

import numba
import numpy as np

RECORD = Path(__file__).with_name("instructions.json")
ROOT = Path(__file__).parents[2]
PROCESSOR = {  # valgrind knows no AVX-512
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse2,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2",
}
MARK = "Py_SetRecursionLimit"  # which nobody else calls: where a part of the profile ends


def why_not():
    """Return why nothing can be counted here, or compared with the record; None if it can."""
    if numba.config.DISABLE_JIT:
        return "without the compiler there are no instructions of kernels to count"
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    version = recorded()["numba"]
    if version != numba.__version__:
        return f"recorded with Numba {version}, and this is {numba.__version__}"
    return None


def recorded():
    return json.loads(RECORD.read_text())


def count():
    """Return the instructions of one call of each kernel, by name."""
    names = list(calls())
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | PROCESSOR | {"NUMBA_CACHE_DIR": folder, "PYTHONHASHSEED": "0"}
        environment |= {"SKVMF_CACHE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        options = {"cwd": folder, "env": environment, "check": True, "capture_output": True}
        command = [sys.executable, "-c", f"from {__spec__.name} import run; run()"]
        subprocess.run(command, **options)  # compile
        totals = profile(command, f"{folder}/late", "--instr-atstart=no", **options)
        if len(totals) != 2 * len(names) + 1:  # profiling could not be begun late
            totals = profile(command, f"{folder}/whole", **options)
    assert len(totals) == 2 * len(names) + 1
    # The first part is all before the first call; then come a call and an empty part in turn.
    return {name: totals[2 * i + 1] - totals[2 * i + 2] for i, name in enumerate(names)}


def profile(command, parts, *more, **options):
    """Return the instructions of a process from mark to mark; write parts of that name."""
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={parts}"]
    subprocess.run([*tool, f"--dump-before={MARK}", *more, *command], **options)
    result = sorted(
        Path(parts).parent.glob(f"{Path(parts).name}.*"), key=lambda p: int(p.suffix[1:])
    )
    return [int(re.search(r"^totals: (\d+)", part.read_text(), re.M)[1]) for part in result]


def run():
    """Call each kernel, first to load it and then, profiled, between two marks."""
    package = sys.modules["skvmf"] = types.ModuleType("skvmf")  # without scikit-learn
    package.__path__ = [str(ROOT / "skvmf")]
    made = calls()
    for call in made.values():
        call()
    begin_profile()
    mark()
    for call in made.values():
        call()
        mark()
        mark()


def mark():
    sys.setrecursionlimit(1000)


def begin_profile():
    """Ask valgrind to count from here on: imports under callgrind take most of a minute.

    Valgrind looks for requests while a process computes. Nothing happens outside of valgrind, or
    where nobody answers in a minute.
    """
    with suppress(OSError):
        control = ["callgrind_control", "--instr=on", str(os.getpid())]
        asking = subprocess.Popen(control, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while asking.poll() is None and time.monotonic() < end:
            pass
        asking.kill()


def calls():
    """Return calls of the main kernels by name, the parts of a step of EM first."""
    parts = row_calls(), sparse_calls(), gaussian_calls(), scalar_calls(), grammar_calls()
    return {name: call for made in parts for name, call in made.items()}


def row_calls():
    from skvmf._kernels import rows, simplex

    rng = np.random.default_rng(0)
    n, K = 512, 20
    made = {}
    for dtype in (np.float32, np.float64):
        source = (3 * rng.standard_normal((n, K))).astype(dtype)
        scores, ones = source.copy(), np.ones(n)
        rest = np.ones(n, dtype), np.zeros(K, dtype), ones, ones, np.zeros(K), np.empty(n)

        def in_place(kernel, *more, scores=scores, source=source, rest=rest):
            def call():
                np.copyto(scores, source)
                kernel(scores, *rest, *more)

            return call

        labels, name = np.empty(n, np.int32), np.dtype(dtype).name
        work, alone = simplex.work_space(source), (source, *rest[:2], np.empty(n))
        to_label = source, *rest[:3], np.zeros(K), np.empty(n), labels
        made[f"softmax_rows {name}"] = in_place(simplex.softmax_rows, work)
        made[f"argmax_rows {name}"] = partial(simplex.argmax_rows, *to_label, work)
        made[f"log_sum_rows {name}"] = partial(simplex.log_sum_rows, *alone, work)
        for alpha in (1.5, 2.0):
            made[f"entmax_rows {alpha} {name}"] = in_place(simplex.entmax_rows, alpha)
        X, sums = rng.standard_normal((n, 64)).astype(dtype), np.zeros((K, 64))

        def labelled(X=X, labels=labels, sums=sums):
            rows.add_labelled_rows(X, labels % 20, np.ones(n), sums)

        made[f"add_labelled_rows {name}"] = labelled
        sparse = source * (source > 5)  # one in twenty
        made[f"add_sparse_responsibilities {name}"] = partial(
            rows.add_sparse_responsibilities, X, sparse, sums
        )
    return made


def sparse_calls():
    from scipy.sparse import csr_array

    from skvmf._kernels import rows as sparse

    rng = np.random.default_rng(0)
    n, d, K, size = 256, 300, 20, 30
    indptr = np.arange(0, n * size + 1, size, dtype=np.int32)
    indices = np.concatenate([np.sort(rng.permutation(d)[:size]) for _ in range(n)])
    indices, data = indices.astype(np.int32), rng.random(n * size)
    matrix, product, sums = rng.random((d, K)), np.empty((n, K)), np.empty((d, K))
    result, resp = csr_array((data, indices, indptr), shape=(n, d)).tocsc(), rng.random((n, K))
    columns = result.indptr.astype(np.int64), result.indices.astype(np.uint16), result.data
    return {
        "csr_dot": lambda: sparse.csr_dot(indptr, indices, data, matrix, product),
        "csr_dot by columns": lambda: sparse.csr_dot(*columns, resp, sums),
    }


def gaussian_calls():
    from skvmf._kernels import gaussian, rows
    from skvmf._kernels import gaussian as kernels

    rng = np.random.default_rng(0)
    n, d, K = 512, 16, 8
    X, origin, out = rng.standard_normal((n, d)), np.zeros(d), np.empty((n, d + d * (d + 1) // 2))
    means, halves, scores = rng.standard_normal((K, d)), np.full(K, -0.5), np.zeros((n, K))
    roots, totals = rng.standard_normal((K, d, d)), np.zeros(K * kernels.BLOCK_ROWS)
    some, many = (np.zeros(m * kernels.BLOCK_ROWS) for m in (kernels.BLOCK_FEATURES, 2 * d + 4))
    few = X, origin, means, halves, some, totals, scores
    full = X, origin, roots, means, halves, many, totals, scores
    scaled = X, origin, means, means, halves, some, totals, scores
    single = [array.astype(np.float32) for array in scaled]
    return {
        "gap_squares": lambda: gaussian.gap_squares(X, origin, out),
        "gap_products": lambda: gaussian.gap_products(X, origin, out),
        "add_dense_responsibilities": lambda: rows.add_dense_responsibilities(
            out, scores, np.zeros((K, out.shape[1]))
        ),
        "spherical_scores": lambda: kernels.spherical_scores(*few),
        "diagonal_scores": lambda: kernels.diagonal_scores(*scaled),
        "diagonal_scores float32": lambda: kernels.diagonal_scores(*single),
        "full_scores": lambda: kernels.full_scores(*full),
    }


def scalar_calls():
    from skvmf._kernels import vonmises_fisher as vmf
    from skvmf._kernels.vonmises_fisher import expansions
    from skvmf.distributions.vonmises_fisher._maps import inverse_cells

    made = {}
    for d in (3, 300):
        table, r, out = expansions(d), np.linspace(0.01, 0.99, 200), np.empty(200)
        kappa, tables = d * r, (table.excess, table.inverse_tail, inverse_cells(d))

        def inverse(d=d, r=r, tables=tables, out=out):
            vmf.negentropy(r, np.empty(0), d, *tables, 1, out)

        def partition(d=d, kappa=kappa, table=table, out=out):
            vmf.log_partition(kappa, d, table.tail, table.constant, False, out)

        made[f"negentropy d={d}"], made[f"log_partition d={d}"] = inverse, partition
    return made


def grammar_calls():
    from skvmf._kernels import inside_outside as charts

    rng = np.random.default_rng(0)
    shapes = (32,), (32, 2, 2, 2), (32, 2, 32)
    rules = tuple(np.log(rng.dirichlet(np.ones(s[-1]), size=s[:-1])) for s in shapes)
    counts, made = tuple(map(np.zeros, shapes)), {}
    for n in (20, 40, 80):
        tags, offsets = rng.integers(32, size=n), np.array([0, n])
        arguments = tags, offsets, rules, False, counts, np.empty(1)
        made[f"inside_outside n={n}"] = partial(charts.inside_outside, *arguments)
    return made


if __name__ == "__main__":
    record = {"numba": numba.__version__, "counts": count()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
