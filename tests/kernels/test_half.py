"""Half precision, against NumPy."""

import numpy as np
from numpy.testing import assert_array_equal

from skvmf._kernels.rows import widen


def test_every_half_is_the_same_number_in_single_precision():
    """Subnormal numbers, infinities and each nan among them: the same bits."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    out = np.empty(2**16, dtype=np.float32)
    widen(halves.view(np.int16), out)
    assert_array_equal(out.view(np.int32), halves.astype(np.float32).view(np.int32))
