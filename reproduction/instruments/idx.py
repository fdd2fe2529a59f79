"""Images and labels in idx format, the format of MNIST and its relatives."""

import gzip
from pathlib import Path

import numpy as np


def load_idx(path):
    """Return the uint8 array of a file, plain or compressed by gzip."""
    content = Path(path).read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} holds no bytes in idx format: it starts with {content[:4]!r}.")
    shape = np.frombuffer(content, ">u4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)
