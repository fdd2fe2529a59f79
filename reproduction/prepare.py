"""Turn public files into the data that ``--data`` wants. Nothing is downloaded.

``python -m reproduction.prepare`` lists the sources; ``python -m reproduction.prepare KIND FILE ...
--data FOLDER`` converts the files of one into FOLDER and compares checksums.
"""

import argparse
import gzip
import hashlib
import json
import re
import shutil
import struct
import sys
import tarfile
import tomllib
from pathlib import Path

import numpy as np

from .instruments.idx import load_idx


def newsgroups(files, folder):
    """Read an archive of messages, those of training first, then by group and number."""
    messages = []
    with tarfile.open(files[0]) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            split, group, number = member.name.split("/")[-3:]
            text = archive.extractfile(member).read().decode("latin-1")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            messages.append(("test" in split, group, number, text))
    names = ("id", "split", "label", "text")
    rows = [(f"{g}/{n}", "test" if t else "train", g, text) for t, g, n, text in sorted(messages)]
    write_lines(folder / "20news-bydate.jsonl.gz", [dict(zip(names, r, strict=True)) for r in rows])


def abstracts(files, folder):
    """Read three collections of abstracts."""
    lines = []
    for name, file in zip(("med", "cisi", "cran"), files, strict=True):
        for number, sections in collection(file):
            own = {"id": f"{name}-{number}", "label": name}
            own["title"] = " ".join(sections.get(".T", "").split())
            lines.append(own | {"text": sections.get(".W", "")})
    write_lines(folder / "classic3.jsonl.gz", lines)


def collection(file):
    """Yield the number of each document of a file and its sections."""
    whole = Path(file).read_text(encoding="latin-1")
    for block in re.split(r"^\.I ", whole, flags=re.MULTILINE):
        number, *parts = re.split(r"^(\.[A-Z])[ \t]*$", block, flags=re.MULTILINE)
        sections = {}
        for mark, text in zip(parts[::2], parts[1::2], strict=True):
            sections[mark] = "\n".join(filter(None, [sections.get(mark), text.strip()]))
        if block.strip():
            yield int(number), sections


def judged(kind, judgements):
    """Return a function that reads documents, if any, and the queries and judgements last."""

    def read(files, folder):
        documents = [
            {"id": f"{kind}-{number}", "label": kind, "text": sections[".W"]}
            for file in files[:-2]
            for number, sections in collection(file)
        ]
        if documents:
            write_lines(folder / f"{kind}.jsonl.gz", documents)
        queries = [
            {"id": place if kind == "cran" else number, "text": sections[".W"]}
            for place, (number, sections) in enumerate(collection(files[-2]), 1)
        ]
        relevant = {str(query["id"]): {} for query in queries}
        for line in Path(files[-1]).read_text(encoding="latin-1").splitlines():
            if line.strip():
                query, *rest = line.split()
                relevant[query] |= {f"{kind}-{own}": grade for own, grade in judgements(rest)}
        with gzip.open(folder / f"{kind}_queries_qrels.json.gz", "wt", encoding="utf-8") as file:
            json.dump({"queries": queries, "qrels": relevant}, file)

    return read


def sentences(kind, labels):
    """Return a function that reads a file of sentences for each label."""

    def read(files, folder):
        lines = [
            {"id": f"{label}-{i}", "label": label, "text": line.strip()}
            for label, file in zip(labels, files, strict=True)
            for i, line in enumerate(Path(file).read_text(encoding="latin-1").splitlines(), 1)
            if line.strip()
        ]
        write_lines(folder / f"{kind}.jsonl.gz", lines)

    return read


def renamed(prefix):
    """Return a function that puts files into the folder under names with a prefix."""

    def copy(files, folder):
        for file in files:
            shutil.copyfile(file, folder / f"{prefix}-{Path(file).name}")

    return copy


def compressed(files, folder):
    """Put files into the folder, compressed."""
    for file in files:
        with gzip.open(folder / f"{Path(file).name}.gz", "wb") as out:
            out.write(Path(file).read_bytes())


def dependencies(files, folder):
    """Read sentences with a blank line between them: in a line a word, its tag and its head."""
    with gzip.open(folder / "wsj_dependency_sample.conllu.gz", "wt", encoding="utf-8") as out:
        for file in sorted(files):
            blocks = Path(file).read_text(encoding="utf-8").strip().split("\n\n")
            for number, block in enumerate(blocks, 1):
                out.write(f"# sent_id = {Path(file).stem}-{number}\n")
                for place, line in enumerate(block.splitlines(), 1):
                    word, tag, head = line.split()
                    out.write(f"{place}\t{word}\t_\t_\t{tag}\t_\t{head}\t_\t_\t_\n")
                out.write("\n")


def subset(files, folder):
    """Take the first images of each class of Fashion-MNIST, class after class."""
    for split, number, images, labels in (("train", 1000, *files[:2]), ("test", 200, *files[2:])):
        pixels, y = load_idx(images), load_idx(labels)
        first = [np.flatnonzero(y == c)[:number] for c in range(10)]
        order = np.stack(first, axis=1).ravel()
        for kind, values in (("images-idx3", pixels[order]), ("labels-idx1", y[order])):
            head = struct.pack(f">{1 + values.ndim}i", 0x800 + values.ndim, *values.shape)
            with gzip.open(folder / f"fashion-{split}-{kind}-ubyte.gz", "wb") as out:
                out.write(head + values.tobytes())


def stopwords(files, folder):
    """Copy the list without its comments."""
    lines = Path(files[0]).read_text(encoding="utf-8").splitlines()
    kept = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    (folder / "stoplist_smart.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")


def write_lines(path, objects):
    """Write objects as JSON lines, compressed."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(own, ensure_ascii=False) + "\n" for own in objects)


READERS = {
    "newsgroups": newsgroups,
    "abstracts": abstracts,
    "med": judged("med", lambda rest: [(rest[1], int(rest[2]))]),
    "cran": judged("cran", lambda rest: [(rest[0], int(rest[1]))]),
    "cisi": judged("cisi", lambda rest: [(rest[0], 1)]),
    "npl": judged("npl", lambda rest: [(own, 1) for own in rest]),
    "lisa": judged("lisa", lambda rest: [(own, 1) for own in rest]),
    "subj": sentences("subj", ("subjective", "objective")),
    "mr": sentences("mr", ("positive", "negative")),
    "nvdm": renamed("nvdm"),
    "ewt": compressed,
    "wsj": dependencies,
    "stopwords": stopwords,
    "mnist": renamed("mnist"),
    "fashion": subset,
}


def sources():
    """Return what files each kind needs, where they are described, and what becomes of them."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def compared(path, digits):
    """Say whether a file has the contents with which the records were made."""
    with gzip.open(path) as file:
        same = hashlib.file_digest(file, "sha256").hexdigest().startswith(digits)
    return f"{path.name}: {'' if same else 'not byte for byte '}as in our records"


def main(arguments=None):
    """Convert files, or list the sources."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.prepare", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=list(READERS))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the result goes")
    options = parser.parse_args(arguments)
    if options.kind is None:
        for kind, own in sources().items():
            print(f"{kind}: {own['makes']}, {own['rows']}")
            print(f"    from {own['files']}\n    {own['described']}")
        return 0
    if not options.files or options.data is None:
        parser.error(f"{options.kind} needs {sources()[options.kind]['files']}, and --data FOLDER.")
    options.data.mkdir(parents=True, exist_ok=True)
    READERS[options.kind](options.files, options.data)
    for name, digits in sources()[options.kind].get("sha256", {}).items():
        if (options.data / name).exists():
            print(compared(options.data / name, digits))
    return 0


if __name__ == "__main__":
    sys.exit(main())
