"""The documentation's pages are what the records give, and leave nothing of the papers out."""

import ast

import pytest

from reproduction import items, page
from reproduction.errata import ERRATA
from reproduction.papers import PAPERS

from ..conftest import ROOT

ITEMS = items.load()


@pytest.mark.parametrize("name", ["items.rst", "errata.rst"])
def test_a_page_is_what_the_records_give(name):
    path = page.FOLDER / name
    assert path.read_text(encoding="utf-8") == page.pages()[name], (
        "run: python -m reproduction --page"
    )


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
    assert all((page.FOLDER / f"{guide}.rst").exists() for guide in PAPERS[key].guides)
