"""Rows of arrays, sparse matrices and Dask arrays as blocks of bounded size, with their weights.

Values are validated and scaled to unit length as they are read.
"""
