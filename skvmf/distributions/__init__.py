"""SciPy-like functions of ``vonmises_fisher``, ``modified_dirichlet`` and ``simplex``."""
