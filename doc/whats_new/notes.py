"""Notes on changes, one file each in ``doc/whats_new/upcoming``, put together by section.

``python doc/whats_new/notes.py`` prints the notes of the next release, for the page of changes;
with ``--remove`` it also removes their files.
"""

import argparse
from pathlib import Path

UPCOMING = Path(__file__).with_name("upcoming")
SECTIONS = {  # how the name of a file begins, before its first hyphen
    "estimators": "Estimators",
    "mixtures": "All mixtures",
    "functions": "Functions and data",
    "faster": "Faster",
    "changes": "Changes",
    "fixed": "Fixed",
    "documentation": "Documentation",
}


def section(path):
    """Return the section of a note, by its file's name."""
    name = path.name.partition("-")[0]
    if name not in SECTIONS or path.suffix != ".rst":
        raise ValueError(f"{path.name} should be one of {', '.join(SECTIONS)}, -, a name and .rst.")
    return name


def upcoming(folder=UPCOMING):
    """Return the notes of a folder as a list per section, under a heading if there are any."""
    paths = sorted(folder.glob("*"))
    of_section = {name: [p for p in paths if section(p) == name] for name in SECTIONS}
    lists = [
        f"**{SECTIONS[name]}**\n\n" + "".join(_item(path) for path in notes)
        for name, notes in of_section.items()
        if notes
    ]
    heading = ["In development\n--------------\n"] if lists else []
    return "\n".join(heading + lists)


def _item(path):
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    return "- " + "\n".join(f"  {line}".rstrip() for line in lines).lstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--remove", action="store_true", help="remove the files of the notes")
    options = parser.parse_args()
    print(upcoming())
    if options.remove:
        for note in sorted(UPCOMING.glob("*")):
            note.unlink()
