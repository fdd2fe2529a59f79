"""Verdicts follow from records, and what is written of them is what they are."""

import numpy as np
import pytest
from scipy.stats import t as student

from reproduction import claims, items
from reproduction.claims import Claim, combined, effect, papers
from reproduction.results import Record, Table, kept

ITEMS = items.load()
CLAIMS = [own for name in ITEMS for own in claims.claims_of(name)]


def record(ours=(1.0, 2.0, 3.0), other=(0.9, 1.9, 2.9), paper=2.0):
    """Return a record with rows of repeats, and with another without a paper's figure."""
    table = Table("Accuracy of all", ["row", "ours", "paper", "more", "also"])
    table.add("first", ours, paper, 7, np.add(ours, 2))
    table.add("second", other, None, "1,000", None)
    return Record("", "", [table])


def found(figure, limits=">= 0", **cells):
    return effect(f"what | {figure} | {limits}", record(**cells))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda own: f"{own.item}: {own.short}")
def test_a_claim_has_the_verdict_that_is_written(claim):
    assert claim.judge(kept(claim.item)).verdict == claim.found


def test_an_interval_is_that_of_the_t_distribution():
    own = found("Accuracy; first; ours")
    assert own.value == 2
    assert own.high - 2 == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert found("Accuracy; first; more").low == 7  # a figure without repeats


def test_differences_are_those_of_pairs():
    own = found("Accuracy; first; ours LESS Accuracy; second; ours")
    assert (own.low, own.high) == (pytest.approx(0.1), pytest.approx(0.1))
    assert found(
        "Accuracy; first; ours LESS Accuracy; second; ours PLUS Accuracy; first; ours"
    ).value == (pytest.approx(2.1))


def test_differences_from_a_papers_repeats_are_welchs():
    paper = {"mean": 0.0, "sd": 1.0, "n": 5}
    own = found("Accuracy; first; ours LESS Accuracy; first; paper", paper=paper)
    errors = np.array([np.var([1, 2, 3]) / 2, 1 / 4])
    freedom = errors.sum() ** 2 / (errors**2 / [2, 4]).sum()
    assert own.high - own.value == pytest.approx(student.ppf(0.975, freedom) * errors.sum() ** 0.5)


@pytest.mark.parametrize(
    ("column", "value"),
    [("least of ours", 1), ("mean of ours & also", 3), ("best of ours & also", 4)],
)
def test_columns_are_joined(column, value):
    assert found(f"Accuracy; first; {column}").value == value


def test_records_have_the_repeats_that_claims_compare_and_of_others_a_summary():
    columns, many = ["order", "least change of the bound", "another"], list(range(11))
    table = Table("Relative ECM of four components", columns)
    table.add("no clearance", many, many)
    (row,) = claims.summarized("P3.general", Record("", "", [table])).tables[0].rows
    assert row[1:] == [many, {"mean": 5.0, "sd": np.sqrt(10), "n": 11}]
    for name in filter(kept, ITEMS):
        assert claims.summarized(name, kept(name)) == kept(name)


def test_text_and_ratios_are_read():
    assert found("Accuracy; first; more PER Accuracy; second; more").value == 0.007


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (">= -9", "holds"),
        ("<= 9", "holds"),
        ("-9..9", "holds"),
        (">= 3, >= -9", "holds in part"),
        (">= 99", "does not hold"),
        (">= 2", "cannot be judged"),
        ("no difference", "holds"),
    ],
)
def test_limits_decide(limits, verdict):
    assert found("Accuracy; first; ours", limits, ours=(-1.0, 0.0, 2.0)).verdict == verdict


def test_one_repeat_decides_nothing():
    own = found("Accuracy; first; ours", ours=[1.0])
    assert (own.low, own.verdict) == (-np.inf, "cannot be judged")


def claim(*parts):
    return Claim("", "", "", "", "", tuple(parts))


def test_figures_far_from_the_papers_count_only_where_no_other_is_near():
    near, far = (
        "a | Accuracy; first; ours | >= -9",
        "b | Accuracy; first; ours LESS Accuracy; second; ours | >= 9",
    )
    own = claim(far).judge(record(paper=1.6))  # ours is 2: a quarter more
    assert own.words == "does not hold, at another level"
    assert "first 2, the paper's 1.6" in own.because
    own = claim(far, "c | Accuracy; second; ours | >= 0, >= -9").judge(record(paper=1.6))
    assert own.words == "holds in part"
    assert claim(near).judge(record(paper=1.8)).words == "holds"


def test_what_is_not_there_cannot_be_judged():
    assert "not been run" in claim().judge(None).because
    for figure in ("Accuracy; third; ours", "Accuracy; first; theirs", "Nothing; first; ours"):
        own = claim(f"a | {figure} | >= 0").judge(record())
        assert own.verdict == "cannot be judged"
        assert own.because.startswith("Not measured")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "cannot be judged"], "holds in part"),
        (["holds in part", "does not hold"], "holds in part"),
        (["does not hold", "cannot be judged"], "does not hold"),
        (["cannot be judged"], "cannot be judged"),
        ([], "cannot be judged"),
    ],
)
def test_parts_make_a_verdict(verdicts, expected):
    assert combined(verdicts) == expected


def test_every_item_of_a_paper_has_a_claim_and_every_claim_an_item():
    named = {own.item for paper in papers().values() for own in paper.claims}
    assert named == {name for name in ITEMS if not name.startswith("guide.")}
    assert {own.item for own in CLAIMS} <= set(ITEMS)
