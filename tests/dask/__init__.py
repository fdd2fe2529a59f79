"""Dask arrays: skipped where Dask is missing (pip install 'skvmf[dask]')."""
