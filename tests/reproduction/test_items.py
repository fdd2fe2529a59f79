"""Every item runs, at sizes of seconds, from its command to its record and its picture."""

import functools
import gzip
import re
import subprocess
import warnings

import pytest

from reproduction import claims, items, p1_grammars, p2_images, results
from reproduction.__main__ import main

from ..conftest import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")  # umap

ITEMS = items.load()


def missing(item):
    """Return the first package that an item needs and that is not installed."""
    for need in item.needs:
        if "." not in need:
            try:
                __import__(need)
            except ModuleNotFoundError:
                return need
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_runs_at_reduced_size(name, small_folder, tmp_path):
    item = ITEMS[name]
    if package := missing(item):
        pytest.skip(f"needs {package}")
    setting = items.Setting(small_folder, small=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = item.run(setting)
    assert all(table.rows for table in result.tables)
    record = result.record(1.0)
    results.write(tmp_path / "record.json", record)
    assert results.read(tmp_path / "record.json") == record
    for claim in claims.load()[name]:
        verdict = claim.judge(record)
        assert verdict.verdict in claims.VERDICTS
        assert verdict.because
        assert "nan" not in verdict.because
    if result.draw:
        figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
        result.draw(figure)
        assert figure.axes


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_asks_for_the_data_that_it_says_it_needs(name, small_folder):
    item = ITEMS[name]
    files = [need for need in item.needs if "." in need]
    if not files:
        pytest.skip("needs no data")
    if package := missing(item):
        pytest.skip(f"needs {package}")
    with pytest.raises(items.Missing, match="--data"):
        item.run(items.Setting(None, small=True))


def test_the_command_prints_and_keeps_what_an_item_gives(tmp_path, capsys):
    assert main(["P0.fig5", "--small", "--pictures", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Newton" in printed
    assert "little difference" in printed
    if "Picture" in printed:
        assert (tmp_path / "P0.fig5.png").stat().st_size > 5000


def test_the_list_names_every_item_and_its_time(capsys):
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    for name, item in ITEMS.items():
        assert name in printed
        assert item.title in printed
    assert "all" in printed.splitlines()[-1]


def test_an_item_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["P0.fig99"])
    assert "P0.fig99" in capsys.readouterr().err


def test_an_item_without_its_data_says_what_it_needs(capsys):
    assert main(["P0.tab1", "--small"]) == 1
    assert "classic3.jsonl.gz" in capsys.readouterr().out


def test_small_runs_are_not_kept(capsys):
    with pytest.raises(SystemExit):
        main(["P0.fig5", "--small", "--keep"])


def test_repeats_are_kept_with_their_mean_and_spread(tmp_path):
    table = results.Table("t", ["name", "paper", "ours", "once"], digits=2)
    table.add("row", 0.5, [0.25, 0.75], 1 / 3)
    record = results.Result("s", "0 and 1", [table]).record(60)
    results.write(tmp_path / "r.json", record)
    kept = results.read(tmp_path / "r.json")
    assert kept.tables[0].text()[1] == ["row", "0.50", "0.50 ± 0.25", "0.33"]
    assert kept.cell("t", "row", "ours")["values"] == [0.25, 0.75]
    assert kept.minutes == 1.0
    assert "0.50 ± 0.25" in results.shown(kept)


def test_a_record_says_where_it_was_made():
    record = results.Result("s", "0", []).record(60)
    assert record.commit
    assert record.machine
    assert "/" not in record.commit
    assert not record.machine.startswith("/")


def git(*arguments):
    """Return what git prints, None where it fails or is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def full_history():
    return git("rev-parse", "--is-shallow-repository") == "false"


@functools.cache
def known(commit):
    """Return whether a commit is one of the history."""
    return git("merge-base", "--is-ancestor", commit.rstrip("+"), "HEAD") is not None


@pytest.mark.parametrize("path", sorted(items.RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_that_is_kept_says_how_it_was_made(path):
    record = results.read(path)
    assert re.fullmatch(r"[0-9a-f]{12}\+?", record.commit)
    if full_history():
        assert known(record.commit)
    assert record.machine
    assert record.machine != "not recorded"
    assert record.seeds
    assert record.minutes > 0


def numbers(record):
    """Return the figures of a record, by table, row and column."""
    return {
        (table.title, row[0], column): claims.mean(cell)
        for table in record.tables
        for row in table.rows
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
        if isinstance(cell, int | float | dict)
    }


@pytest.mark.parametrize("name", ["P0.fig2", "P1.alg", "P3.information"])
def test_a_cheap_item_gives_its_record_again(name):
    item = ITEMS[name]
    ran, kept = (
        numbers(own) for own in (item.run(items.Setting()).record(1), results.read(item.record))
    )
    assert ran.keys() == kept.keys()
    for key, value in kept.items():
        # What is nothing but rounding differs from machine to machine.
        assert ran[key] == pytest.approx(value, rel=0.02, abs=1e-9), key


def test_what_has_been_trained_is_not_trained_again(tmp_path):
    setting, calls = items.Setting(cache=tmp_path), []

    def train():
        calls.append(1)
        return [[1.5, 0.25], [[0.0]]]

    first, second = (p2_images.kept(setting, "key", train) for _ in range(2))
    assert (first.found, first.commit) == (second.found, second.commit)
    assert first.earlier == 0 < second.earlier
    assert len(calls) == 1


def test_grammars_take_files_of_the_wall_street_journal(small_folder, tmp_path):
    lines = gzip.decompress((small_folder / "en_ewt-ud-train.conllu.gz").read_bytes()).decode()
    (tmp_path / "train.conllu").write_text(lines)
    (tmp_path / "test.conllu").write_text(lines[: lines.index("# sent_id = 9")])
    train, test = p1_grammars.treebanks(items.Setting(tmp_path), "xpos")
    assert len(train.tags) == 40
    assert len(test.tags) == 9
