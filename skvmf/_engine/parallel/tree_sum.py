"""Sums over blocks that are bit-identical for any order and any number of workers.

Floating-point addition is not associative. So parts of single blocks are added along the aligned
binary tree of block numbers: blocks 2i and 2i + 1 first, then 4i to 4i + 3, and so on.
"""

from copy import deepcopy
from typing import Generic, TypeVar

Part = TypeVar("Part")


class BlockSum(Generic[Part]):
    """The sums of some blocks, in pieces: each piece is a whole subtree of the tree of blocks.

    Two neighbours in the tree are added as soon as both are there. A piece is the same subtree
    however its blocks were grouped, and in whichever order they came: so sums of threads and of
    workers, of runs of blocks and of scattered ones, are bit-identical. Of a run of n blocks
    that came in order at most 1 + log2(n) pieces are kept.
    """

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, int], Part] = {}  # by first block and number of blocks

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self._pieces)

    def add(self, first: int, part: Part, size: int = 1) -> None:
        """Take in the part of one block, or of a subtree of `size` blocks; it is used up."""
        while (neighbour := (first ^ size, size)) in self._pieces:
            left, right = self._pieces.pop(neighbour), part
            if first < neighbour[0]:
                left, right = right, left
            left += right  # type: ignore[operator]
            first, part, size = min(first, neighbour[0]), left, 2 * size
        self._pieces[first, size] = part

    def absorb(self, other: "BlockSum[Part]") -> None:
        """Take in the sums of other blocks, which are used up."""
        for (first, size), part in other._pieces.items():
            self.add(first, part, size)

    def join(self, other: "BlockSum[Part]") -> None:
        """Take in copies of the sums of other blocks, which stay as they are."""
        self.absorb(deepcopy(other))

    def total(self) -> Part:
        """Return the sum of all blocks, the last pieces first; the pieces are used up."""
        pieces = sorted(self._pieces.items())
        self._pieces = {}
        _, total = pieces.pop()
        while pieces:
            _, left = pieces.pop()
            left += total  # type: ignore[operator]
            total = left
        return total
