"""What a component is: densities, sufficient statistics and estimates of each family.

What a family offers beyond EM, gradients and costs of merging, is here too.
"""
