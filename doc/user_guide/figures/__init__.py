"""Figures of the user guide: ``python -m reproduction guide`` computes them."""
