"""Every item runs, at sizes of seconds, from its command to its record and its picture."""

import functools
import gzip
import re
import subprocess
import warnings

import pytest

from reproduction import claims, items, p1_grammars, p2_images, results
from reproduction.__main__ import main

from ..conftest import FULL_SIZE, ROOT
from ..processes import fork_workers

pytestmark = pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")  # umap

ITEMS = items.load()
FILES = {name: [need for need in own.needs if "." in need] for name, own in ITEMS.items()}


def run(name, folder, small=True):
    """Return what an item gives, at reduced size or not, or skip."""
    for need in set(ITEMS[name].needs) - set(FILES[name]):
        pytest.importorskip(need)
    if "distributed" in ITEMS[name].needs:
        fork_workers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ITEMS[name].run(items.Setting(folder, small=small))


@pytest.mark.slow
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_runs_at_reduced_size(name, small_folder, tmp_path, monkeypatch):
    record = run(name, small_folder)
    assert all(table.rows for table in record.tables)
    monkeypatch.setattr(results, "path_of", lambda name: tmp_path / "records.json")
    results.keep(name, record)
    assert results.kept(name) == record
    for own in claims.claims_of(name):
        verdict = own.judge(record)
        assert verdict.verdict in claims.VERDICTS
        assert verdict.because
        assert "nan" not in verdict.because


@pytest.mark.parametrize("name", [name for name, own in FILES.items() if own])
def test_an_item_asks_for_the_data_that_it_says_it_needs(name, tmp_path):
    with pytest.raises(items.Missing, match="--data"):
        ITEMS[name].run(items.Setting(None, small=True))
    with pytest.raises(items.Missing, match="prepare"):
        ITEMS[name].run(items.Setting(tmp_path, small=True))


def test_items_have_an_order_whatever_was_imported_first(monkeypatch):
    fourth_first = sorted(ITEMS.items(), key=lambda own: own[0][:2] != "P4")
    monkeypatch.setattr(items, "ITEMS", dict(fourth_first))
    assert list(items.load()) == list(ITEMS)


def test_the_command_prints_and_draws_what_an_item_gives(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["P0.fig5", "--small", "--pictures", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Newton" in printed
    assert "little difference" in printed
    assert (tmp_path / "P0.fig5.png").stat().st_size > 5000


def test_the_list_names_every_item_and_its_time(capsys):
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed and own.title in printed for name, own in ITEMS.items())
    last = printed.splitlines()[-1]
    assert last.startswith("all")
    hours = sum(results.kept(name).minutes for name in ITEMS if results.kept(name)) / 60
    assert f"{hours:.2f} h CPU" in last
    assert re.search(r"P2\.tab2-faster +2\.33 h CPU \+ 9 min GPU", printed)


def test_networks_of_gpus_are_told_from_those_of_cores():
    core = p2_images.Network("c", "AMD EPYC", 120, [], before=True)
    gpus = [p2_images.Network("c", "NVIDIA H200", 60, [], before) for before in (False, True)]
    assert p2_images.earlier([core, *gpus]) == {"minutes": 2, "gpu_minutes": 2}


@pytest.mark.parametrize(
    ("arguments", "words"), [(["P0.fig99"], "P0.fig99"), (["P0.fig5", "--small", "--keep"], "full")]
)
def test_what_cannot_be_run_is_refused(arguments, words, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err


def test_an_item_without_its_data_says_what_it_needs(capsys):
    assert main(["P0.tab1", "--small"]) == 1
    assert "classic3.jsonl.gz" in capsys.readouterr().out


def test_a_record_is_shown_with_its_verdicts(capsys):
    assert main(["P1.alg", "--show"]) == 0
    assert "DOES NOT HOLD: Section 2.1" in capsys.readouterr().out


def test_repeats_are_kept_and_shown_with_their_spread(tmp_path, monkeypatch):
    table = results.Table("t", ["name", "paper", "ours", "once"], digits=2)
    table.add("row", 0.5, [0.25, 0.75], 1 / 3)
    monkeypatch.setattr(results, "path_of", lambda name: tmp_path / "r.json")
    for name in ("P9.b", "P9.a"):
        results.keep(name, results.Record("s", "0 and 1", [table], 1.0, "c", "m"))
    kept = results.kept("P9.a")
    assert kept.tables[0].text()[1] == ["row", "0.50", "0.50 ± 0.25", "0.33"]
    assert kept.tables[0].compared()[1] == ["row", "0.50", "+0.00", "0.50 ± 0.25", "0.33"]
    assert kept.cell("t", "row", "ours") == [0.25, 0.75]
    assert "0.50 ± 0.25" in results.shown(kept)
    assert results.kept("P9.b") == kept
    assert results.kept("P9.c") is None


@functools.cache
def git(*arguments):
    """Return what git prints, None where it fails or is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@pytest.mark.parametrize("name", [name for name in ITEMS if results.kept(name)])
def test_a_record_that_is_kept_says_how_it_was_made(name):
    record = results.kept(name)
    assert re.fullmatch(r"[0-9a-f]{12}\+?", record.commit)
    if git("rev-parse", "--is-shallow-repository") == "false":
        commit = record.commit.rstrip("+")
        assert git("merge-base", "--is-ancestor", commit, "HEAD") is not None
    assert record.machine
    assert not record.machine.startswith("/")
    assert record.seeds
    assert record.minutes > 0


MINUTES = ["P0.tab1", "P3.fig1", "P3.general", "P3.layers"]
MORE_MINUTES = ["P0.fig3", "P1.fig1", "P1.fig6", "P2.tab1", "P3.fig2", "P3.printed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MINUTES + MORE_MINUTES * FULL_SIZE)
def test_a_run_gives_the_verdicts_of_its_record(name, request):
    folder = request.getfixturevalue("data_folder") if FILES[name] else None
    record = run(name, folder, small=False)
    for own in claims.claims_of(name):
        verdict = own.judge(record)
        assert verdict.verdict == own.judge(results.kept(name)).verdict, verdict.because


@pytest.mark.parametrize("name", ["P0.fig2", "P1.alg", "P3.information"])
def test_a_cheap_item_gives_its_record_again(name):
    for own, kept in zip(
        ITEMS[name].run(items.Setting()).tables, results.kept(name).tables, strict=True
    ):
        assert own.columns == kept.columns
        for first, second in zip(own.rows, kept.rows, strict=True):
            # What is nothing but rounding differs from machine to machine.
            figures = [cell for cell in second if isinstance(cell, float)]
            assert [c for c in first if isinstance(c, float)] == pytest.approx(figures, 0.02, 1e-9)


def test_what_has_been_trained_is_not_trained_again(tmp_path):
    pytest.importorskip("torch")
    setting, calls = items.Setting(trained=tmp_path / "trained.json"), []

    def train():
        calls.append(1)
        return [[1.5, 0.25]]

    first, second = (p2_images.once(setting, "key", train) for _ in range(2))
    assert (first.found, first.commit) == (second.found, second.commit)
    assert (first.before, second.before) == (False, True)
    assert len(calls) == 1


def test_grammars_take_files_of_the_wall_street_journal(small_folder, tmp_path):
    lines = gzip.decompress((small_folder / "en_ewt-ud-train.conllu.gz").read_bytes()).decode()
    (tmp_path / "train.conllu").write_text(lines)
    (tmp_path / "test.conllu").write_text(lines[: lines.index("# sent_id = 9")])
    train, test = p1_grammars.treebanks(items.Setting(tmp_path), "xpos")
    assert len(train.tags) == 40
    assert len(test.tags) == 9
