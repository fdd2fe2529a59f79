import numpy as np
import pytest

from skvmf.datasets import load_idx

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def encode(array):
    header = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim])
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return header + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3), (0, 4)])
def test_what_was_written_is_read(tmp_path, code, shape):
    array = (np.arange(np.prod(shape)) - (code[0] != "u") * 2).astype(code).reshape(shape)
    path = tmp_path / "array.idx"
    path.write_bytes(encode(array))
    read = load_idx(path)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    assert read.flags.writeable


VECTOR, MATRIX = encode(np.arange(6, dtype="u1")), encode(np.ones((2, 3)))
FORMATS = [b"", b"\0\0\x08", b"P5 28", b"\0\0\x07\x01" + bytes(8)]
REFUSED = [(content, "not in idx format") for content in FORMATS]
REFUSED += [(VECTOR[:-1], "promises 14"), (VECTOR + b"x", "promises 14")]
REFUSED += [(MATRIX[:size], f"holds {size} bytes, .* cut off") for size in range(4, 12)]


@pytest.mark.parametrize(("content", "message"), REFUSED)
def test_other_formats_and_lengths_are_refused(tmp_path, content, message):
    path = tmp_path / "a.idx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_idx(path)


def test_digits_are_read(data_folder):
    labels = load_idx(data_folder / "mnist-t10k-labels-idx1-ubyte.gz")
    images = load_idx(data_folder / "mnist-t10k-images-idx3-ubyte.gz")
    assert images.shape == (10_000, 28, 28)
    assert set(labels) == set(range(10))
