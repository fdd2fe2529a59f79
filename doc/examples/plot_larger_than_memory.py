"""
========================================
Fit rows that stay in a file on disk
========================================

A mixture reads its rows in blocks, and a block is in memory only while it is read. So rows can be
in a memory-mapped file that is larger than the memory: pass it to ``fit`` like any array.
"""

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from skvmf import VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs

N_BLOCKS, N_ROWS, N_FEATURES, K = 8, 25_000, 64, 10  # 49 MiB; a hundred times as much works alike

# %%
# A file, written part by part
# ----------------------------
# Parts are independent of each other. Save float32 or float64: other types are converted when they
# are read.

folder = TemporaryDirectory()
path = Path(folder.name, "rows.npy")
centres = np.random.default_rng(0).normal(size=(K, N_FEATURES))
file = np.lib.format.open_memmap(
    path, mode="w+", dtype=np.float32, shape=(N_BLOCKS * N_ROWS, N_FEATURES)
)
truth = []
for i in range(N_BLOCKS):
    part = slice(i * N_ROWS, (i + 1) * N_ROWS)
    file[part], labels = make_vonmises_fisher_blobs(
        N_ROWS, N_FEATURES, centers=centres, concentration=90.0, random_state=i
    )
    truth.append(labels)
file.flush()
del file
print(f"{path.name}: {path.stat().st_size / 2**20:.0f} MiB")

# %%
# The fit
# -------
# ``mmap_mode="r"`` opens the file without reading it.

rows = np.load(path, mmap_mode="r")
mixture = VonMisesFisherMixture(K, random_state=0)
mixture.fit(rows[:1000])  # compile before measuring
usage = []
for n in [25_000, 50_000, 100_000, 200_000]:
    tracemalloc.start()
    mixture.fit(rows[:n])
    usage.append((n, rows[:n].nbytes / 2**20, tracemalloc.get_traced_memory()[1] / 2**20))
    tracemalloc.stop()
    print("{:7} rows: {:5.1f} MiB on disk, {:5.1f} MiB of memory".format(*usage[-1]))
print(f"ARI: {adjusted_rand_score(np.concatenate(truth), mixture.labels_):.3f}")

# %%
# Memory does not grow with the file
# ----------------------------------
# What grows are labels and their probabilities, a few bytes for each row.

_, on_disk, in_memory = np.transpose(usage)
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.plot(on_disk, on_disk, "--", color="0.6", label="the file")
axis.plot(on_disk, in_memory, "o-", label="memory that the fit takes")
axis.set(xlabel="MiB on disk", ylabel="MiB", ylim=0, title="Memory of a fit by size of the file")
axis.legend()
del rows
folder.cleanup()
plt.show()
