"""The documentation's parts are what the records give, and leave nothing of the papers out."""

import ast

import pytest

from reproduction import claims, items, page
from reproduction.claims import Claim
from reproduction.results import Record, kept

from ..conftest import ROOT

ITEMS = items.load()


def test_pages_are_written_from_the_records(tmp_path):
    page.write(tmp_path, pictures=False)
    overview = (tmp_path / "reproduction_overview.rst").read_text(encoding="utf-8")
    for paper in claims.papers().values():
        assert paper.says in overview
        assert paper.why in overview
        for own in paper.claims:
            part = (tmp_path / f"reproduction_{own.item}.rst").read_text(encoding="utf-8")
            assert own.short in overview
            assert page.escaped(own.words.partition(": ")[2]) in part
            assert own.ours in part
            assert (own.ours in overview) != own.extra


def test_rows_of_ours_do_not_count_in_the_headline(monkeypatch):
    own = [Claim("P9.a", name, "", "", (), "x", "y", main=not i) for i, name in enumerate("ab")]
    extra = Claim("P9.a", "c", "", "", (), extra=True)
    screen = "\n".join(page.screen("P9", claims.Paper("", "", (), "", "", "", "", (*own, extra))))
    assert "Of 2 claims 2 cannot be judged" in screen
    assert "Rows of ours, which do not count above: :ref:`c" in screen
    assert "Main claim: a" in screen


def test_a_record_says_hours_of_cores_and_minutes_of_gpus():
    made = page.made(Record("", "1", [], minutes=95.0, gpu_minutes=8.9, commit="c", machine="m"))
    assert "It took 1.6 hours of a core and 9 minutes of a GPU" in made
    assert "less than two minutes of a core;" in page.made(Record("", "1", []))


@pytest.mark.parametrize("name", [name for name, own in ITEMS.items() if own.draw and kept(name)])
def test_pictures_are_drawn_from_the_records(name, tmp_path):
    pytest.importorskip("matplotlib")
    for need in ITEMS[name].needs:
        if "." not in need:
            pytest.importorskip(need)
    page.draw(ITEMS[name], kept(name), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5000


def test_how_far_ours_are_from_the_papers_is_a_column():
    head, *rows = kept("P2.tab2").table("l1").compared()
    assert head[2:4] == ["paper, 50 epochs", "ours less the paper's"]
    assert rows[0][1:4] == ["19.50 ± 0.12", "13.27", "+6.23"]


@pytest.mark.parametrize("key", claims.papers())
def test_a_paper_has_its_pages_and_every_item_a_place(key):
    texts = [
        (ROOT / "doc" / "reproduction" / f"{name}.rst").read_text(encoding="utf-8")
        for name in claims.papers()[key].pages
    ]
    for name in ITEMS:
        if name.startswith(key):
            assert any(f"reproduction_{name}.rst" in text for text in texts), name


def test_an_erratum_names_items_and_a_test_that_exist():
    path = ROOT / "tests" / "reproduction" / "test_errata.py"
    tests = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
    for paper in claims.papers().values():
        assert {own.test for own in paper.errata} <= tests
        assert {name for own in paper.errata for name in own.items} <= set(ITEMS)
