"""Parts of the files of data, for runs that take seconds."""

import gzip
import struct
from itertools import islice
from math import prod
from pathlib import Path

EACH = {"20news-bydate.jsonl.gz": 40, "subj.jsonl.gz": 25, "mr.jsonl.gz": 25}
SENTENCES = 600
IMAGES = 500


def copy(folder, target):
    """Fill a folder with parts of the files of another, in the same order and format."""
    for path in Path(folder).iterdir():
        if path.name in EACH:
            lines_of(path, target / path.name, EACH[path.name])
        elif path.name.endswith(".conllu.gz"):
            sentences_of(path, target / path.name)
        elif path.name.endswith("-ubyte.gz"):
            images_of(path, target / path.name)
        else:  # small, or what judgements name
            (target / path.name).symlink_to(path.resolve())


def lines_of(path, target, each):
    """Take every so manieth line: classes come one after the other."""
    with gzip.open(path, "rb") as lines, gzip.open(target, "wb", 1) as out:
        out.writelines(islice(lines, 0, None, each))


def sentences_of(path, target):
    """Take the first sentences, which empty lines end."""
    left = SENTENCES
    with gzip.open(path, "rb") as lines, gzip.open(target, "wb", 1) as out:
        for line in lines:
            out.write(line)
            left -= not line.strip()
            if not left:
                break


def images_of(path, target):
    """Take the first images, or labels, of a file in idx format."""
    with gzip.open(path, "rb") as file:
        magic = file.read(4)
        shape = struct.unpack(f">{magic[3]}i", file.read(4 * magic[3]))
        shape = (min(IMAGES, shape[0]), *shape[1:])
        with gzip.open(target, "wb", 1) as out:
            out.write(magic + struct.pack(f">{len(shape)}i", *shape) + file.read(prod(shape)))
