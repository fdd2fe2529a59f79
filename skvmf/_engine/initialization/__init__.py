"""Starts of EM: partitions, k-means, and starts that split and merge components.

Most of the work is done on a sample of the rows.
"""
