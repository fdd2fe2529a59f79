"""Readers of plain or compressed files; a damaged one is a ValueError with the line."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)  # what gzip raises, none of it a ValueError


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read bytes; one that starts as gzip does is unpacked under any name."""
    with path.open("rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(file) as unpacked:
                yield cast(IO[bytes], unpacked)
        else:
            yield file


def read_at_most(file: IO[bytes], size: int, where: object) -> bytearray:
    """Return the next bytes, fewer at the end of the file, without allocating `size` at once."""
    content = bytearray()
    while len(content) < size:
        try:
            part = file.read(min(size - len(content), 1 << 20))
        except _DAMAGED as error:
            raise _damaged(where, error) from error
        if not part:
            break
        content += part
    return content


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place ("file, line 1") and the text of each line of a UTF-8 file.

    Empty lines are included; a byte order mark at the start is left out.
    """
    number = 0
    with open_bytes(path) as file:
        while True:
            number += 1
            where = f"{path}, line {number}"
            try:
                line = file.readline()
            except _DAMAGED as error:
                raise _damaged(where, error) from error
            if not line:
                return
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{where}: the text should be UTF-8, but {error}.") from error
            yield where, text.rstrip("\r\n")


def _damaged(where: object, error: Exception) -> ValueError:
    return ValueError(f"{where}: the compressed file is damaged or cut off: {error}")
