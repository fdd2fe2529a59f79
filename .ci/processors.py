"""Run the tests of bits and of rounding as other processors would: ``python .ci/processors.py``.

OpenBLAS, NumPy and Numba each choose code for the processor that they find. A promise is one
only if it holds whatever they choose. Prints what is run, and what this machine cannot run.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KERNELS = {  # of OpenBLAS, and what a processor must have for them
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Zen": {"avx2", "fma"},
    "Prescott": {"pni"},  # SSE3: the generic ones
}
CHOSEN = """
import numpy, scipy.linalg, threadpoolctl
libraries = threadpoolctl.threadpool_info()
print(*sorted({each["architecture"] for each in libraries if each["user_api"] == "blas"}))
"""


def flags():
    """Return what the processor has, in the words of Linux."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


def environments():
    """Yield a name, and the environment variables or the reason why there are none."""
    taken = {}
    for kernels, needed in KERNELS.items():
        variables = {"OPENBLAS_CORETYPE": kernels}
        if missing := needed - flags():
            yield kernels, f"the processor lacks {', '.join(sorted(missing))}"
            continue
        chosen = python(variables, "-c", CHOSEN, stdout=subprocess.PIPE, text=True).stdout.strip()
        if chosen in taken:
            yield kernels, f"OpenBLAS takes the kernels of {taken[chosen]}"
        else:
            taken[chosen] = kernels
            yield kernels, variables
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    wide = [name for name in found if name.startswith("AVX512") or name == "X86_V4"]
    for name, features in {"NumPy without AVX-512": wide, "NumPy's baseline": found}.items():
        if features:
            yield name, {"NPY_DISABLE_CPU_FEATURES": " ".join(features)}
        else:
            yield name, "NumPy uses none here that could be disabled"
    yield "Numba for any processor", {"NUMBA_CPU_NAME": "generic"}


def python(variables, *arguments, **options):
    """Run Python with more environment variables."""
    return subprocess.run([sys.executable, *arguments], env=os.environ | variables, **options)


def main():
    """Run the tests in each environment, and return 0 if all passed."""
    sources = sorted((ROOT / "tests").rglob("test_*.py"))
    files = [str(path) for path in sources if "mark.bits" in path.read_text(encoding="utf-8")]
    failed = []
    for name, variables in environments():
        if isinstance(variables, str):
            print(f"--- {name}: not run, {variables}", flush=True)
            continue
        print(f"--- {name}: {variables}", flush=True)
        if python(variables, "-m", "pytest", "-q", "-m", "bits and not slow", *files).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "the same promises on all of these")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
