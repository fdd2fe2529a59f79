"""Say whether colours stay apart for the colour-blind: ``python doc/check_colours.py``.

Colours of neighbouring components are seen as by people without red, green or blue cones
(Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
deficiency", 2009, severity 1) and compared in CIELAB. Differences below ten are hard to see.
"""

import sys
from itertools import combinations

import numpy as np
from colours import COLOURS
from matplotlib.colors import to_rgb

GREY = "0.7"  # rows of a background
LEAST = 10  # in CIELAB

SEEN = {
    "usual": np.eye(3),
    "without red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(rgb, matrix):
    """Return CIELAB coordinates of colours as they are seen."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = (linear @ np.transpose(matrix)).clip(0, 1) @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    x, y, z = f.T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def main():
    """Print the nearest colours in each kind of sight, and return how many pairs are too near."""
    names = [colour for colour in COLOURS if colour != "#94a4a2"] + [GREY]  # itself a grey
    rgb = np.array([to_rgb(name) for name in names])
    near = 0
    for kind, matrix in SEEN.items():
        seen = lab(rgb, matrix)
        gaps = {
            (names[i], names[j]): float(np.linalg.norm(seen[i] - seen[j]))
            for i, j in combinations(range(len(names)), 2)
        }
        low = sorted((gap, pair) for pair, gap in gaps.items() if gap < LEAST)
        near += len(low)
        print(
            f"{kind}: least {min(gaps.values()):.0f};", *(f"{a}-{b} {g:.0f}" for g, (a, b) in low)
        )
    return near


if __name__ == "__main__":
    sys.exit(bool(main()))
