"""Conversion of half precision to float32, faster than NumPy's."""

import numpy as np

from ._jit import row_kernel

# Moved 13 places up, the bits of a half are those of a float32, but for its sign and an exponent
# that is 112 less. Multiplication by 2^112 is exact, for subnormal halves too.
SHIFT, RESCALING = np.int32(13), np.float32(2.0**112)
SIGN_BIT, MAGNITUDE_BITS = np.int32(-(2**31)), np.int32(0x0FFFE000)
INFINITE_FROM, INFINITE_EXPONENT = (
    np.int32(0x0F800000),
    np.int32(0x7F800000),
)  # from where on; their exponent


@row_kernel
def widen(bits, out):
    """Write the float32 of each half, given as int16 (n,), to `out` (n,): the same number."""
    for i in range(np.uintp(bits.shape[0])):
        shifted = np.int32(np.int32(bits[i]) << SHIFT)
        rest = np.int32(shifted & MAGNITUDE_BITS)
        number = np.float32(rest.view(np.float32) * RESCALING).view(np.int32)
        number |= INFINITE_EXPONENT if rest >= INFINITE_FROM else np.int32(0)
        out[i] = np.int32(number | np.int32(np.int32(bits[i]) & SIGN_BIT)).view(np.float32)
