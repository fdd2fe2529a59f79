"""Notes on changes: one file each, all of them on the page."""

import runpy

import pytest

from .conftest import ROOT

FOLDER = ROOT / "doc" / "whats_new"


@pytest.fixture
def notes():
    """Return the names of the script that puts notes together."""
    return runpy.run_path(str(FOLDER / "notes.py"))


def test_every_note_of_the_next_release_is_an_item_of_its_section(notes):
    page = notes["upcoming"]()
    for path in (FOLDER / "upcoming").glob("*"):
        text = path.read_text(encoding="utf-8")
        first = text.splitlines()[0]
        assert not first.startswith(("-", "*")), f"{path.name} should be text, without a bullet"
        heading = f"**{notes['SECTIONS'][notes['section'](path)]}**"
        assert page.index(heading) < page.index(f"- {first}")
        assert " ".join(text.split()) in " ".join(page.split())


def test_notes_come_by_section(notes, tmp_path):
    assert notes["upcoming"](tmp_path) == notes["upcoming"](tmp_path / "none") == ""
    (tmp_path / "fixed-b.rst").write_text("Two\nlines.\n", encoding="utf-8")
    (tmp_path / "fixed-a.rst").write_text("One.\n", encoding="utf-8")
    (tmp_path / "faster-c.rst").write_text("Fits.\n", encoding="utf-8")
    expected = (
        "In development\n--------------\n\n"
        "**Faster**\n\n- Fits.\n\n**Fixed**\n\n- One.\n- Two\n  lines.\n"
    )
    assert notes["upcoming"](tmp_path) == expected


@pytest.mark.parametrize("name", ["improved-speed.rst", "fixed-speed.md", "fixed.txt"])
def test_a_note_of_no_section_is_refused(notes, tmp_path, name):
    (tmp_path / name).write_text("One.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="should be one of estimators, "):
        notes["upcoming"](tmp_path)


def test_the_page_includes_them():
    page = (ROOT / "doc" / "whats_new.rst").read_text(encoding="utf-8")
    assert ".. include:: generated/upcoming.rst" in page
