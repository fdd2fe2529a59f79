"""Verdicts follow from records, and what is written of them is what they are."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from reproduction import claims, items
from reproduction.claims import Claim, combined, effect, papers
from reproduction.results import Record, Table, kept

ITEMS = items.load()
CLAIMS = [own for name in ITEMS for own in claims.claims_of(name)]
WRITTEN = (Path(__file__).parent / "verdicts.txt").read_text(encoding="utf-8").splitlines()


def record(ours=(1.0, 2.0, 3.0), other=(0.9, 1.9, 2.9), paper=2.0):
    """Return a record with rows of repeats, and with another without a paper's figure."""
    table = Table("Accuracy of all", ["row", "ours", "paper", "more", "also"])
    table.add("first", ours, paper, 7, np.add(ours, 2))
    table.add("second", other, None, "1,000", None)
    return Record("", "", [table])


def found(figure, limits=">= 0", **cells):
    return effect(f"what | {figure} | {limits}", record(**cells))


def test_verdicts_are_those_that_are_written():
    """A verdict that changes is told: it has a line in verdicts.txt."""
    found = [f"{own.item} | {own.short} | {own.judge(kept(own.item)).words}" for own in CLAIMS]
    assert found == WRITTEN


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
        ("equal within 5", "holds"),
        ("equal within 3", "cannot be judged"),  # zero is in the interval, and so is 4
        ("equal within 0.1, equal within 5", "holds in part"),
    ],
)
def test_limits_decide(limits, verdict):
    assert found("Accuracy; first; ours", limits, ours=(-1.0, 0.0, 2.0)).verdict == verdict


def test_one_repeat_decides_nothing():
    own = found("Accuracy; first; ours", ours=[1.0])
    assert (own.low, own.verdict) == (-np.inf, "cannot be judged")


def test_a_difference_that_is_large_for_sure_is_not_equal():
    figure = "Accuracy; first; ours LESS Accuracy; second; ours"  # .1 in each pair
    assert found(figure, "equal within 0.2").verdict == "holds"
    assert found(figure, "equal within 0.05").verdict == "does not hold"


def test_that_an_interval_has_zero_in_it_is_no_limit():
    with pytest.raises(ValueError, match="convert"):
        claims.bound("no difference")
    for own in CLAIMS:
        for part in own.parts:
            for limits in part.split(" | ")[2].split(", "):
                assert np.isfinite(claims.bound(limits)).any()


def claim(*parts, **options):
    return Claim("", "", "", "", tuple(parts), **options)


def test_figures_far_from_the_papers_count_and_the_label_says_so_if_all_are():
    refuted = "b | Accuracy; first; ours LESS Accuracy; second; ours | >= 9"
    own = claim(refuted).judge(record(paper=1.6))  # ours is 2: a quarter more
    assert own.words == "does not hold, at another level"
    assert "first 2, the paper's 1.6" in own.because
    own = claim(refuted, "c | Accuracy; second; ours | >= -9").judge(record(paper=1.6))
    assert own.words == "holds in part (1 of 2, 1 refuted)"
    assert claim("a | Accuracy; first; ours | >= -9").judge(record(paper=1.8)).words == "holds"


def test_a_verdict_in_part_has_the_numbers_of_its_parts():
    own = claim(*(f"{i} | Accuracy; first; ours | >= {i}" for i in (-9, -8, 2, 99)))
    assert own.judge(record()).words == "holds in part (2 of 4, 1 refuted)"  # one is open


def test_an_obstacle_decides_and_leaves_the_parts_to_be_seen():
    own = claim("a | Accuracy; first; ours | >= -9", obstacle="why").judge(record())
    assert (own.verdict, own.reason, len(own.effects)) == ("cannot be judged", "why", 1)


def test_summaries_of_repeats_are_read():
    own = effect(
        "a | Accuracy; first; paper | >= 0", record(paper={"mean": 1.0, "sd": 1.0, "n": 5})
    )
    assert own.value == 1
    assert own.high == pytest.approx(1 + student.ppf(0.975, 4) / 2)


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


# What is said of figures in sentences

NAMES = [  # numbers that are no figures of ours
    r":measured:`[^`]*`",
    r"\b(?i:table|figures?|algorithm|equation|sections?|appendix) [A-Z]?[\d.]*\d( to \d+)?",
    r"\bP\d\.[\w-]+",  # items
    r"\b\w+ = -?[\d.e,-]*\d|truths at -\d and \d",  # settings
    r"\bwithin [\d.]*\d",  # limits
    r"\b[\d.]+-entmax|BM25|word2vec|classic3(00)?|news20",
]
NUMBER = (
    r"\d|\b(three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|twice|thrice|half|"
    r"halves|halved|quarters?|fifths?|tenths?|dozen)\b"
)


def typed(text):
    """Return the figures of a sentence that are not taken from records."""
    for name in NAMES:
        text = re.sub(name, "", text)
    return [found[0] for found in re.finditer(NUMBER, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("By .9 of 19", ["9", "1", "9"]),
        ("In seven of eight cells, twice", ["seven", "eight", "twice"]),
        ("Of Table 1 and equation 12, at d = 10 and alpha = -1e-5, within .05", []),
        ("It is :measured:`P0.fig2; Largest; 10; kappa`, by 2-entmax", []),
        ("Figure 3 has 44.1", ["4", "4", "1"]),
    ],
)
def test_typed_figures_are_seen(text, expected):
    assert typed(text) == expected


@pytest.mark.parametrize("key", papers())
def test_figures_in_sentences_come_from_records(key):
    paper = papers()[key]
    texts = [paper.holds, paper.fails, paper.why, *(own.why for own in paper.claims)]
    assert {text: typed(text) for text in texts if typed(text)} == {}
    assert [own.short for own in paper.claims if ":measured:" not in own.ours] == []


@pytest.mark.parametrize("key", papers())
def test_figures_that_are_shown_are_in_records(key):
    paper = papers()[key]
    texts = [paper.holds, paper.fails, paper.why]
    texts += [text for own in paper.claims for text in (own.why, own.paper, own.ours)]
    for figure in re.findall(":measured:`([^`]*)`", " ".join(texts)):
        assert re.search(r"\d", claims.measured(figure)), figure


def test_measured_figures_are_cells_or_what_they_give(monkeypatch):
    monkeypatch.setattr(claims, "kept", lambda item: {"P9.a": record()}[item])
    assert claims.measured("P9.a; Accuracy; first; more") == "7.000"
    assert claims.measured("P9.a;\n Accuracy; first; ours") == "2.000 ± 0.816"
    assert claims.measured("P9.a; Accuracy; first; ours LESS Accuracy; second; ours") == "0.1"
    assert claims.measured("P9.a; Accuracy; second; more PER Accuracy; first; more") == "143"


def test_a_paper_has_one_main_claim_and_figures_beside_all():
    for paper in papers().values():
        (main,) = [own for own in paper.claims if own.main]
        assert not main.extra
        assert all(own.paper for own in paper.claims if not own.extra)


def test_every_item_of_a_paper_has_a_claim_and_every_claim_an_item():
    named = {own.item for paper in papers().values() for own in paper.claims}
    assert named == {name for name in ITEMS if not name.startswith("guide.")}
    assert {own.item for own in CLAIMS} <= set(ITEMS)
