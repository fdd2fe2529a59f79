"""Draw the pictures of ``doc/_static`` again: ``python doc/draw_pictures.py relative_order ...``.

Each is what the gallery's script of this name draws; several are numbered.
"""

import runpy
import sys
from pathlib import Path

import colours
import matplotlib.pyplot as plt
from PIL import Image

HERE = Path(__file__).parent

plt.switch_backend("Agg")
plt.show = lambda: None
names, sys.argv = sys.argv[1:], sys.argv[:1]
colours.reset({}, "")
for name in names:
    runpy.run_path(str(HERE / "examples" / f"plot_{name}.py"), run_name="__main__")
    figures = plt.get_fignums()
    for number in figures:
        ending = f"_{number}" if len(figures) > 1 else ""
        path = HERE / "_static" / f"{name}{ending}.png"
        plt.figure(number).savefig(path, dpi=100)
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    plt.close("all")
