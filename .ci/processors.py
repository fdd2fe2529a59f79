"""Run the tests of bits and of rounding as other processors would: ``python .ci/processors.py``.

OpenBLAS, NumPy and Numba each choose code for the processor that they find. A promise is one
only if it holds whatever they choose. Prints what is run, and what this machine cannot run.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PROCESSORS = {  # as OpenBLAS calls them, and what a processor must have for their code
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Zen": {"avx2", "fma"},
    "Prescott": {"pni"},  # SSE3, which all have
}
CHOSEN = """
import numpy, scipy.linalg, threadpoolctl
libraries = threadpoolctl.threadpool_info()
print(*sorted({each["architecture"] for each in libraries if each["user_api"] == "blas"}))
"""


def main():
    """Run the tests as each processor would, and return 0 if all passed."""
    runs, failed = [], []
    with ThreadPoolExecutor() as pool:
        for processor, variables in environments():
            print(f"--- {processor}: {variables}", flush=True)
            if isinstance(variables, dict):
                runs.append((processor, pool.submit(tests, variables)))
    for processor, run in runs:
        done = run.result()
        print(f"--- {processor}:\n{done.stdout}", flush=True)
        failed += [processor] if done.returncode else []
    print(f"failed as {', '.join(failed)}" if failed else "the same promises on each of these")
    return bool(failed)


def tests(variables):
    """Run the tests in one process beside the others: two would compile much of it twice."""
    sources = sorted((ROOT / "tests").rglob("test_*.py"))
    files = [str(path) for path in sources if "mark.bits" in path.read_text(encoding="utf-8")]
    options = ["-q", "-n", "1", "-m", "bits and not slow"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return python(variables, "-m", "pytest", *options, *files, **output)


def environments():
    """Yield each processor with its environment variables, or with the reason why not."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    wide = [name for name in found if name.startswith("AVX512") or name == "X86_V4"]
    disabled = {"Haswell": wide, "SkylakeX": [], "Zen": wide, "Prescott": found}
    taken, own = {}, chosen({})
    for processor, needed in PROCESSORS.items():
        variables = {"OPENBLAS_CORETYPE": processor}
        if missing := needed - flags():
            yield processor, f"not run, this processor lacks {', '.join(sorted(missing))}"
            continue
        code = chosen(variables)
        if code in taken:
            yield processor, f"not run, OpenBLAS takes its code for {taken[code]}"
            continue
        taken[code] = processor
        if code == own and not disabled[processor]:
            yield processor, "not run, all tests run as this one"
            continue
        if disabled[processor]:
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled[processor])
        if processor == "Prescott":
            variables["NUMBA_CPU_NAME"] = "generic"
        yield processor, variables


def chosen(variables):
    """Return the processors for which BLAS libraries have chosen their code."""
    return python(variables, "-c", CHOSEN, stdout=subprocess.PIPE, text=True).stdout.strip()


def flags():
    """Return what this processor has, in the words of Linux."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def python(variables, *arguments, **options):
    """Run Python with more environment variables."""
    return subprocess.run([sys.executable, *arguments], env=os.environ | variables, **options)


if __name__ == "__main__":
    sys.exit(main())
