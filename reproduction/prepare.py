"""Turn public files into the data that ``--data`` wants. Nothing is downloaded.

``python -m reproduction.prepare`` lists the sources; ``python -m reproduction.prepare KIND FILE ...
--data FOLDER`` converts the files of one into FOLDER and compares checksums.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import shutil
import struct
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .instruments.idx import load_idx


@dataclass(frozen=True)
class Source:
    """What a reader can get, where it is described, and what becomes of it."""

    files: str
    described: str
    makes: str
    rows: str


SOURCES = {
    "newsgroups": Source(
        "20news-bydate.tar.gz, 14 MB, SHA-256 8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c7"
        "59fa66d95610 (the file that scikit-learn's fetch_20newsgroups takes)",
        "qwone.com/~jason/20Newsgroups: a folder of messages for each group and split, Latin-1",
        "20news-bydate.jsonl.gz",
        "18,846 messages: 11,314 for training, 7,532 for tests",
    ),
    "abstracts": Source(
        "MED.ALL, CISI.ALL and cran.all (also cran.all.1400), in this order",
        "ir.dcs.gla.ac.uk/resources/test_collections: .I begins a document, .T its title, .W its "
        "text, .X what follows",
        "classic3.jsonl.gz",
        "3,893 abstracts: 1,033, 1,460 and 1,400",
    ),
    "med": Source(
        "MED.QRY and MED.REL",
        "as above; judgements are lines of query, 0, document, 1",
        "med_queries_qrels.json.gz",
        "30 queries, 696 judgements",
    ),
    "cran": Source(
        "cran.qry and cranqrel",
        "as above; judgements are lines of the query's position, document, grade 1 to 4 or -1",
        "cran_queries_qrels.json.gz",
        "225 queries, 1,837 judgements",
    ),
    "subj": Source(
        "quote.tok.gt9.5000 and plot.tok.gt9.5000 (rotten_imdb.tar.gz, or NLTK's subjectivity.zip)",
        "www.cs.cornell.edu/people/pabo/movie-review-data: a sentence a line, Latin-1",
        "subj.jsonl.gz",
        "10,000 sentences, subjective ones first",
    ),
    "mr": Source(
        "rt-polarity.pos and rt-polarity.neg (rt-polaritydata.tar.gz, or NLTK's "
        "sentence_polarity.zip)",
        "as above, the sentence polarity dataset v1.0",
        "mr.jsonl.gz",
        "10,662 sentences, positive ones first",
    ),
    "wsj": Source(
        "dependency_treebank.zip, of NLTK's data",
        "www.nltk.org/nltk_data: lines of word, tag and head, for private, non-commercial use",
        "wsj_dependency_sample.conllu.gz",
        "3,914 sentences, 555 of up to ten words without punctuation",
    ),
    "ewt": Source(
        "en_ewt-ud-train.conllu and en_ewt-ud-test.conllu",
        "github.com/UniversalDependencies/UD_English-EWT, CC BY-SA 4.0",
        "en_ewt-ud-*.conllu.gz",
        "12,544 and 2,077 sentences, 5,378 and 1,224 of up to ten words without punctuation",
    ),
    "stopwords": Source(
        "english.stop, the list of the SMART system",
        "appendix 11 of Lewis et al., JMLR 5, 2004: a word a line",
        "stoplist_smart.txt",
        "571 words",
    ),
    "mnist": Source(
        "train-images-idx3-ubyte.gz, t10k-images-idx3-ubyte.gz and their labels, MD5 f68b3c2d..., "
        "9fb629c4..., d53e105e..., ec29112d...",
        "yann.lecun.com/exdb/mnist: idx files",
        "mnist-*-ubyte.gz",
        "60,000 and 10,000 images of 28 x 28",
    ),
    "fashion": Source(
        "the four files of the same names of Fashion-MNIST, images before labels",
        "github.com/zalandoresearch/fashion-mnist: idx files, in the format of MNIST",
        "fashion-*-ubyte.gz",
        "the first 1,000 training and 200 test images of each class: image i is number i // 10 of "
        "class i % 10",
    ),
}
# SHA-256 of the uncompressed contents with which the records were made.
CHECKSUMS = {
    "20news-bydate.jsonl.gz": "6b53df967967fcc985056871befa1df78322b9f146c58c835d764a6cc164a77d",
    "classic3.jsonl.gz": "3cf43dfc0ddf64e4189886add62dd4da4f84aa59cc63fb05aa5865f2a1bd8455",
    "subj.jsonl.gz": "9e46afd278100785cc219464f872f9ce0a2f7e4755dcd6803f6f8b3b521aa734",
    "wsj_dependency_sample.conllu.gz": (
        "8619b34a852c550180fdc49855d9756886f41a0f34b7ebbf916cbce81e64f721"
    ),
    "mnist-train-images-idx3-ubyte.gz": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "mnist-t10k-images-idx3-ubyte.gz": (
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "en_ewt-ud-train.conllu.gz": (
        "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"
    ),
    "en_ewt-ud-test.conllu.gz": (
        "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"
    ),
    "fashion-train-images-idx3-ubyte.gz": (
        "c7084bb6d8547680a90d1b7e62eef652b321599dcc052cb47df709f6ae65b129"
    ),
    "fashion-test-images-idx3-ubyte.gz": (
        "1b9a1884bcce59552fe06b761ebbd50c82321ffbf0a6fbbc881318e5bf226d2a"
    ),
    "fashion-train-labels-idx1-ubyte.gz": (
        "2a4fb3eec0877aa3d4ab80d8f59374733af9b2b2966e8be0e50efe715f443a4d"
    ),
    "mnist-train-labels-idx1-ubyte.gz": (
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
}


def newsgroups(files, folder):
    """Read an archive of messages, those of training first, then by group and number."""
    messages = []
    with tarfile.open(files[0]) as archive:
        for member in archive:
            if member.isfile():
                split, group, number = member.name.split("/")[-3:]
                text = archive.extractfile(member).read().decode("latin-1")
                text = text.replace("\r\n", "\n").replace("\r", "\n")
                messages.append(("test" in split, group, number, text))
    write_lines(
        folder / SOURCES["newsgroups"].makes,
        (
            {
                "id": f"{group}/{number}",
                "split": "test" if test else "train",
                "label": group,
                "text": text,
            }
            for test, group, number, text in sorted(messages)
        ),
    )


def abstracts(files, folder):
    """Read three collections of abstracts."""
    lines = []
    for name, file in zip(("med", "cisi", "cran"), files, strict=True):
        for number, sections in collection(file):
            title = " ".join(sections.get(".T", "").split())
            text = sections.get(".W", "")
            lines.append({"id": f"{name}-{number}", "label": name, "title": title, "text": text})
    write_lines(folder / SOURCES["abstracts"].makes, lines)


def collection(file):
    """Yield the number of each document of a file and its sections."""
    for block in re.split(r"^\.I ", Path(file).read_text(encoding="latin-1"), flags=re.MULTILINE):
        if not block.strip():
            continue
        number, *parts = re.split(r"^(\.[A-Z])[ \t]*$", block, flags=re.MULTILINE)
        sections = {}
        for mark, text in zip(parts[::2], parts[1::2], strict=True):
            sections[mark] = "\n".join(
                [sections[mark], text.strip()] if mark in sections else [text.strip()]
            )
        yield int(number), sections


def judgements(kind):
    """Return a function that reads queries and judgements of a collection."""

    def read(files, folder):
        queries, relevant = [], {}
        for position, (number, sections) in enumerate(collection(files[0]), 1):
            own = position if kind == "cran" else number
            queries.append({"id": own, "text": sections[".W"]})
            relevant[str(own)] = {}
        for line in Path(files[1]).read_text(encoding="latin-1").splitlines():
            if line.strip():
                query, *rest = line.split()
                document, grade = rest[:2] if kind == "cran" else (rest[1], rest[2])
                relevant[query][f"{kind}-{document}"] = int(grade)
        path = folder / SOURCES[kind].makes
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump({"queries": queries, "qrels": relevant}, file)

    return read


def sentences(kind, labels):
    """Return a function that reads a file of sentences for each label."""

    def read(files, folder):
        write_lines(
            folder / SOURCES[kind].makes,
            (
                {"id": f"{label}-{i}", "label": label, "text": line.strip()}
                for label, file in zip(labels, files, strict=True)
                for i, line in enumerate(Path(file).read_text(encoding="latin-1").splitlines(), 1)
                if line.strip()
            ),
        )

    return read


def wsj(files, folder):
    """Read the archive of the treebank's sample."""
    with (
        zipfile.ZipFile(files[0]) as archive,
        gzip.open(folder / SOURCES["wsj"].makes, "wt", encoding="utf-8") as out,
    ):
        for name in sorted(name for name in archive.namelist() if name.endswith(".dp")):
            blocks = re.split(r"\n\s*\n", archive.read(name).decode("latin-1").strip())
            for number, block in enumerate(blocks, 1):
                out.write(f"# sent_id = {Path(name).stem}-{number}\n")
                for position, line in enumerate(block.splitlines(), 1):
                    word, tag, head = line.split("\t")[:3]
                    out.write(f"{position}\t{word}\t_\t_\t{tag}\t_\t{head}\t_\t_\t_\n")
                out.write("\n")


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


def subset(files, folder):
    """Take the first images of each class of Fashion-MNIST, class after class."""
    for split, number, images, labels in (
        ("train", 1000, *files[:2]),
        ("test", 200, *files[2:]),
    ):
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
    (folder / SOURCES["stopwords"].makes).write_text("\n".join(kept) + "\n", encoding="utf-8")


READERS = {
    "newsgroups": newsgroups,
    "abstracts": abstracts,
    "med": judgements("med"),
    "cran": judgements("cran"),
    "subj": sentences("subj", ("subjective", "objective")),
    "mr": sentences("mr", ("positive", "negative")),
    "wsj": wsj,
    "stopwords": stopwords,
    "mnist": renamed("mnist"),
    "ewt": compressed,
    "fashion": subset,
}


def write_lines(path, objects):
    """Write objects as JSON lines, compressed."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(own, ensure_ascii=False) + "\n" for own in objects)


def compared(path):
    """Say whether a file has the contents with which the records were made."""
    digest = hashlib.sha256()
    with gzip.open(path) as file:
        while block := file.read(io.DEFAULT_BUFFER_SIZE * 64):
            digest.update(block)
    same = digest.hexdigest() == CHECKSUMS[path.name]
    return "as in our records" if same else "not byte for byte as in our records"


def overview():
    """Return what there is to get and what becomes of it."""
    lines = []
    for kind, source in SOURCES.items():
        lines += [f"{kind}: {source.makes}, {source.rows}"]
        lines += [f"    from {source.files}", f"    {source.described}"]
    return "\n".join(lines)


def main(arguments=None):
    """Convert files, or list the sources."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.prepare", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=list(SOURCES))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the result goes")
    options = parser.parse_args(arguments)
    if options.kind is None:
        print(overview())
        return 0
    if not options.files or options.data is None:
        parser.error(f"{options.kind} needs {SOURCES[options.kind].files}, and --data FOLDER.")
    options.data.mkdir(parents=True, exist_ok=True)
    READERS[options.kind](options.files, options.data)
    for path in sorted(options.data.iterdir()):
        if path.name in CHECKSUMS and path.match(SOURCES[options.kind].makes):
            print(f"{path.name}: {compared(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
