"""Draw the pictures of ``doc/_static`` again: ``python doc/draw_pictures.py relative_order ...``.

Each is what the gallery's script of this name draws.
"""

import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent

plt.switch_backend("Agg")
plt.show = lambda: None
names, sys.argv = sys.argv[1:], sys.argv[:1]
for name in names:
    runpy.run_path(str(HERE / "examples" / f"plot_{name}.py"), run_name="__main__")
    plt.savefig(HERE / "_static" / f"{name}.png", dpi=100)
    plt.close("all")
