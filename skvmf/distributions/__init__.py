"""Distributions as SciPy-like functions: densities, entropies, random draws and fits.

There are three modules: ``vonmises_fisher``, ``modified_dirichlet`` and ``simplex``.
"""
