"""The documentation's pages are what the records give, and leave nothing of the papers out."""

import ast

import pytest

from reproduction import claims, items, page
from reproduction.errata import ERRATA
from reproduction.papers import PAPERS

from ..conftest import ROOT

ITEMS = items.load()


def test_pages_are_written_from_the_records(tmp_path):
    page.write(tmp_path)
    found = (tmp_path / "reproduction_items.rst").read_text(encoding="utf-8")
    for name, own in claims.load().items():
        assert name.startswith("guide.") or f".. _{page.anchor(name)}:" in found
        for claim in own:
            assert claim.ours or page.escaped(claim.words) in found
    ours = (tmp_path / "reproduction_ours.rst").read_text(encoding="utf-8")
    assert "item-guide-components" in ours


def test_every_row_of_the_glance_has_a_verdict():
    _head, *rows = page.glance(PAPERS)
    assert {row[2] for row in rows} <= set(claims.VERDICTS)
    said = sum(len(own) for name, own in claims.load().items() if not name.startswith("guide."))
    assert len(rows) >= said


def test_every_item_has_a_claim_and_every_claim_an_item():
    assert set(claims.load()) == set(ITEMS)


def test_every_item_shows_something_of_a_paper():
    shown = {name for paper in PAPERS.values() for own in paper.shows for name in own.items}
    assert shown == set(ITEMS)


def test_every_record_is_that_of_an_item():
    assert {path.stem for path in items.RECORDS.glob("*.json")} <= set(ITEMS)


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: erratum.where)
def test_an_erratum_names_items_and_a_test_that_exist(erratum):
    assert set(erratum.items) <= set(ITEMS)
    path, name = erratum.test.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("key", PAPERS)
def test_a_paper_has_its_pages(key):
    folder = ROOT / "doc" / "reproduction"
    assert all((folder / f"{guide}.rst").exists() for guide in PAPERS[key].guides)
