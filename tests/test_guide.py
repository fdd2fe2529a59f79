"""The guide and the README show the figures of the records, and none that are typed by hand."""

import importlib.util
import re

import pytest

from reproduction import items
from reproduction.results import cell_text, kept, mean

from .conftest import ROOT

ITEMS = items.load()
PAGES = sorted([*(ROOT / "doc" / "user_guide").glob("*.rst"), ROOT / "doc" / "index.rst"])
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
HELD = ("said", "held", "said, calibrated")
README = [  # item, table, row and column of each of its figures
    *(
        ("guide.prior", "The default start", f"{rows}, tf-idf", way)
        for rows in ("docstrings", "news20")
        for way in ("a tenth a feature", "KMeans", "FAISS")
    ),
    *(
        ("guide.passes", "200,000", method, column)
        for method in (
            *("fit", "the same, the first batch of 10,000", "KMeans, n_init=1"),
            *("FAISS, spherical, 25 iterations", "SuperKMeans, the same"),
            "FAISS, the same, its sample of 256 rows a centre",
        )
        for column in ("NMI held out", "CPU seconds")
    ),
    *(
        ("guide.labels", rows, method, column)
        for rows in ("messages", "MNIST", "Fashion-MNIST", "windows")
        for method in (
            *("VonMisesFisherMixture", "DirectionWhitener before it", "StudentTMixture"),
            *("scikit-learn's KMeans", "scikit-learn's GaussianMixture"),
            "UMAP, SparseGaussianMixture",
        )
        for column in ("NMI", "ARI")
    ),
    *(("guide.memberships", "Memberships of", "sentences, tied, 50", each) for each in HELD),
    *(
        (
            "guide.tracker",
            "Streams of messages in which groups",
            "ClusterTracker, 15 at first",
            each,
        )
        for each in ("late groups found in ten days", "ended groups dead in 30 days")
    ),
    ("guide.labels", "windows", "FAISS, spherical", "ARI"),
]


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_that_names_an_item_shows_its_record(name):
    named = re.findall(r"``python -m\s+reproduction\s+(\w[\w.-]+)``", TEXTS[name])
    assert set(named) <= set(ITEMS)
    missing = {item for item in named if not re.search(rf"measured.*{item}\b", TEXTS[name])}
    assert not missing


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_page_shows_is_in_a_record(name, measured):
    for item, options in re.findall(r"\.\. measured:: (\S+)\n((?: +:?\S.*\n)*)", TEXTS[name]):
        result = dict(re.findall(r":(\w+): ((?:[^:]|:(?!\w+: ))+)", options))
        table = kept(item).table(result.get("table", "").strip())
        assert measured.chosen(table, result.get("columns"))[1:]
    for cell in re.findall(r":measured:`([^`]+)`", TEXTS[name]):
        item, *place = (part.strip() for part in cell.split(";"))
        assert kept(item).cell(*place) is not None


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_has_no_table_of_typed_fractions(name):
    typed = re.findall(r"^ +- +(?:\*\*)?-?0?\.\d{2,}[\d ./*]*$", TEXTS[name], re.MULTILINE)
    assert not typed


def test_the_readme_has_the_figures_of_the_records():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for row in ("mixture", "mixture with limits"):
        own = kept("guide.sizes")
        largest = own.cell("Sizes and cosines", row, "largest / mean", "1000")
        cosine = own.cell("Sizes and cosines", row, "mean cosine", "1000")
        assert f"{largest:.2f}" in text
        assert f"{cosine:.4f}" in text
    for item, title, row, column in README:
        cell = kept(item).cell(title, row, column)
        shown = mean(cell) if isinstance(cell, list) else cell
        assert cell_text(shown, kept(item).table(title).digits) in text


@pytest.fixture(scope="module")
def measured():
    """Return the extension of the documentation."""
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("measured", ROOT / "doc" / "measured.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_columns_are_chosen_and_named(measured):
    table = kept("guide.prior").table("A random partition")
    head, *rows = measured.chosen(table, "rows; one pseudo-row -> free")
    assert head == ["rows", "free"]
    assert rows[0] == ["classic3, tf-idf", table.rows[0][1]]
    with pytest.raises(ValueError, match="no such"):
        measured.chosen(table, "no such")


def test_a_cell_is_one_of_several_rows_of_a_name():
    record = kept("guide.beta")
    assert 6 < mean(record.cell("l1 distance", "bernoulli", "0.1", "gaussian")) < 7
    with pytest.raises(LookupError, match="3 rows"):
        record.cell("l1 distance", "bernoulli", "0.1")
