"""How mixture weights are estimated: their prior, and the update of each M-step.

The prior is a modified Dirichlet, whose parameters may be negative.
"""
