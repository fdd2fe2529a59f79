"""The modified Dirichlet distribution, whose parameters may be zero or negative."""

from ._density import log_kernel, log_normalizer, logpdf, mean, mode, posterior, rvs

__all__ = ["log_kernel", "log_normalizer", "logpdf", "mean", "mode", "posterior", "rvs"]
