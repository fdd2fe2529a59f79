"""The order of the gallery's cards: that of the sections above them, with the tutorial first."""

from pathlib import Path


class AsInHeader:
    """Sort scripts by the place where the header names them."""

    def __init__(self, folder):
        self.header = Path(folder, "GALLERY_HEADER.rst")

    def __repr__(self):
        return "<AsInHeader>"

    def __call__(self, name):
        """Return where the header names it."""
        return self.header.read_text(encoding="utf-8").index(name)
