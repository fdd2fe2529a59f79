"""Half precision, which processors widen fast and NumPy number by number."""

import numpy as np

from ._jit import row_kernel

# Moved 13 places up, the bits of a half are those of a float32, but for its sign and an exponent
# that is 112 less. Multiplication by 2^112 is exact, for subnormal halves too.
PLACES, EXPONENT = np.int32(13), np.float32(2.0**112)
SIGN, REST = np.int32(-(2**31)), np.int32(0x0FFFE000)
NOT_FINITE, ONES = np.int32(0x0F800000), np.int32(0x7F800000)  # from where on; their exponent


@row_kernel
def widen(bits, out):
    """Write the float32 of each half, given as int16 (n,), to `out` (n,): the same number."""
    for i in range(np.uintp(bits.shape[0])):
        shifted = np.int32(np.int32(bits[i]) << PLACES)
        rest = np.int32(shifted & REST)
        number = np.float32(rest.view(np.float32) * EXPONENT).view(np.int32)
        number |= ONES if rest >= NOT_FINITE else np.int32(0)
        out[i] = np.int32(number | np.int32(np.int32(bits[i]) & SIGN)).view(np.float32)
