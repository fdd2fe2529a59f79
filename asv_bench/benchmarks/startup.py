"""What the first second costs: imports and first fits, with and without compiled kernels.

Each sample is a fresh interpreter. A cold fit compiles into a folder of its own; a cached one
reads what another process has compiled.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FITS = {
    "von Mises-Fisher, dense": "VonMisesFisherMixture(3, random_state=0).fit(X)",
    "von Mises-Fisher, sparse": "VonMisesFisherMixture(3, random_state=0).fit(csr_array(X))",
    "von Mises-Fisher, float32": "VonMisesFisherMixture(3, random_state=0).fit(X.astype('f'))",
    "Gaussian": "SparseGaussianMixture(3, random_state=0).fit(X)",
    "Gaussian, sparse posterior": "SparseGaussianMixture(3, entmax_alpha=2).fit(X)",
}
PREPARE = """
import os, tempfile, warnings
folder = {folder}
os.environ["NUMBA_CACHE_DIR"] = getattr(folder, "name", folder)
import numpy as np
from scipy.sparse import csr_array
from skvmf import SparseGaussianMixture, VonMisesFisherMixture
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(200, 5))
"""


# What is imported when it is asked for.
IMPORT = "from skvmf import SparseGaussianMixture, VonMisesFisherMixture"


class ImportTime:
    """What two mixtures of skvmf add to what they are built on."""

    number = 1

    def timeraw_dependencies(self):
        return "import numba, sklearn.cluster, sklearn.mixture"

    def timeraw_skvmf(self):
        return f"import numba, sklearn.cluster, sklearn.mixture; {IMPORT}"

    def timeraw_skvmf_after_its_dependencies(self):
        return IMPORT, "import numba, sklearn.cluster, sklearn.mixture"


class FirstFit:
    """The first fit of a process, after the imports."""

    params = tuple(FITS)
    param_names = ("mixture",)
    number = 1
    repeat = 3
    timeout = 300

    def setup_cache(self):
        folder = str(Path("numba_cache").resolve())
        for fit in FITS.values():
            code = PREPARE.format(folder=repr(folder)) + fit
            subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
        return folder

    def timeraw_cold(self, folder, mixture):
        return FITS[mixture], PREPARE.format(folder="tempfile.TemporaryDirectory()")

    def timeraw_cached(self, folder, mixture):
        return FITS[mixture], PREPARE.format(folder=repr(folder))


class CompileTime:
    """Seconds of processor time of the first fits with an empty cache, one after the other."""

    fits = ("von Mises-Fisher, dense", "von Mises-Fisher, sparse", "Gaussian")
    params = tuple(fits)
    param_names = ("mixture",)
    timeout = 300

    def track_seconds(self, mixture):
        number = self.fits.index(mixture)
        lines = [PREPARE.format(folder="tempfile.TemporaryDirectory()"), "import time"]
        for fit in self.fits[: number + 1]:
            lines += ["start = time.process_time()", FITS[fit]]
        lines.append("print(time.process_time() - start)")
        command = [sys.executable, "-c", "\n".join(lines)]
        runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(3)]
        return min(float(run.stdout) for run in runs)

    track_seconds.unit = "seconds"


class ImportSkvmf:
    """Seconds of processor time that two mixtures add to importing what they are built on."""

    def track_seconds(self):
        code = (
            "import time, numba, sklearn.cluster, sklearn.mixture; start = time.process_time();"
            f"{IMPORT}; print(time.process_time() - start)"
        )
        command = [sys.executable, "-c", code]
        with tempfile.TemporaryDirectory() as folder:  # as installed: Python keeps what it parses
            env = os.environ | {"PYTHONPYCACHEPREFIX": folder}
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            options = {"capture_output": True, "check": True, "env": env}
            runs = [subprocess.run(command, **options) for _ in range(6)]
        return min(float(run.stdout) for run in runs)

    track_seconds.unit = "seconds"
