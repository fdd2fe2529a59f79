"""Families of components: densities, sufficient statistics and estimates.

What a family offers beyond EM, gradients and costs of merging, is here too.
"""
