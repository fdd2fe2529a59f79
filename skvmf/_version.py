"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("skvmf")
except PackageNotFoundError:  # run from a clone without having been installed
    __version__ = "0+unknown"
