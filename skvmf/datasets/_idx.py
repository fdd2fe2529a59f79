"""A reader of arrays in idx format, in which MNIST and its relatives come."""

import gzip
from pathlib import Path

import numpy as np

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def load_idx(path):
    """Load an array from an idx file, such as MNIST's images or labels.

    Parameters
    ----------
    path : str or path-like
        The file, as it is or compressed by gzip (ending in ``.gz``).

    Returns
    -------
    ndarray
        The array, of the file's shape and type: for images (n_images, height, width), uint8.

    Raises
    ------
    ValueError
        If the file is not in idx format, or not as long as its header says.

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
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise ValueError(f"{path} is not in idx format: it starts with {content[:4]!r}.")
    dtype, header = np.dtype(_TYPES[content[2]]), 4 + 4 * content[3]
    sizes = content[4:header].ljust(header - 4, b"\0")  # a header that is cut off promises more
    shape = np.frombuffer(sizes, dtype=">u4").tolist()
    expected = header + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(content) != expected:
        raise ValueError(
            f"{path} holds {len(content)} bytes, and its header promises {expected}: it is cut "
            "off or not an idx file."
        )
    values = np.frombuffer(content, dtype, offset=header).reshape(shape)
    return values.astype(dtype.newbyteorder("="))
