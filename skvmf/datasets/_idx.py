"""A reader of arrays in idx format, the format of MNIST and its relatives."""

import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import open_bytes, read_at_most

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def load_idx(path: str | PathLike[str]) -> NDArray[Any]:
    """Load an array from an idx file, such as MNIST's images or labels [1]_.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed by gzip.

    Returns
    -------
    ndarray
        The array, of the file's shape and type: (n_images, height, width) and uint8 for images.

    Raises
    ------
    ValueError
        If the file is not in idx format, not as long as its header says, or damaged.

    References
    ----------
    .. [1] LeCun, Cortes and Burges, "The MNIST database of handwritten digits".

    Examples
    --------
    >>> from pathlib import Path
    >>> from skvmf.datasets import load_idx
    >>> _ = Path("two.idx").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    >>> load_idx("two.idx")
    array([5, 7], dtype=uint8)
    """
    path = Path(path)
    with open_bytes(path) as file:
        start = read_at_most(file, 4, path)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
            raise ValueError(f"{path} is not in idx format: it starts with {bytes(start)!r}.")
        dtype, n_sizes = np.dtype(_TYPES[start[2]]), 4 * start[3]
        sizes = read_at_most(file, n_sizes, path)
        _check_length(path, 4 + len(sizes), 4 + n_sizes)
        shape = np.frombuffer(sizes, dtype=">u4").tolist()
        n_bytes = math.prod(shape) * dtype.itemsize
        content = read_at_most(file, n_bytes + 1, path)
        _check_length(path, 4 + n_sizes + len(content), 4 + n_sizes + n_bytes)
    try:
        values = np.frombuffer(content, dtype).reshape(shape)
    except ValueError as error:  # more axes than NumPy has, or an empty array of endless sizes
        raise ValueError(f"{path} promises an array of sizes {shape}: {error}.") from error
    return values.astype(dtype.newbyteorder("="), copy=False)


def _check_length(path: Path, n_bytes: int, expected: int) -> None:
    if n_bytes != expected:
        held = f"more than {expected}" if n_bytes > expected else n_bytes
        raise ValueError(
            f"{path} holds {held} bytes, and its header promises {expected}: it is cut off or "
            "not an idx file."
        )
