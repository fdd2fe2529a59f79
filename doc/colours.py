"""The colours of the site's pictures, which the colour-blind can tell apart.

The first ten are those of Petroff, "Accessible color sequences for data visualization", 2021, its
two greys last, since grey rows are those of a background. Ten more were searched for so that all
differ for every kind of sight in ``check_colours.py``.
"""

COLOURS = [
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#92dadd",
    "#717581",
    "#94a4a2",
    "#193279",
    "#f1e374",
    "#78080b",
    "#58fbc0",
    "#bb82ba",
    "#17638d",
    "#d2ea97",
    "#3f3254",
    "#efabfb",
    "#6a323a",
]


def reset(gallery_conf, script):
    """Draw the next script of the gallery in these colours."""
    from cycler import cycler
    from matplotlib import rcParams

    rcParams["axes.prop_cycle"] = cycler(color=COLOURS)
