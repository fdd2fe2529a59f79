"""Expectation maximization: the loop, the mixture that it fits, and what a fit reports.

Online steps and predictions of a fitted mixture use the same parts.
"""
