"""What is read: rows of arrays, sparse matrices and Dask arrays, block by block."""
