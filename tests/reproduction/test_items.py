"""Every item runs, at sizes of seconds, from its command to its record and its picture."""

import gzip
import json
import warnings

import pytest

from reproduction import items, p1_grammars, results
from reproduction.__main__ import main

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


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_runs_at_reduced_size(name, small_folder):
    item = ITEMS[name]
    if package := missing(item):
        pytest.skip(f"needs {package}")
    setting = items.Setting(small_folder, small=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = item.run(setting)
    assert result.verdicts and all(table.rows for table in result.tables)
    record = json.loads(json.dumps(result.record(1.0)))
    for verdict in record["verdicts"]:
        assert "nan" not in verdict["because"]
    for table in record["tables"]:
        assert "nan" not in json.dumps(table).lower().replace("nanome", "")
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
    assert "Newton" in printed and "HOLDS" in printed
    if "Picture" in printed:
        assert (tmp_path / "P0.fig5.png").stat().st_size > 5000


def test_the_list_names_every_item_and_its_time(capsys):
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    for name, item in ITEMS.items():
        assert name in printed and item.title in printed
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


def test_repeats_are_kept_as_mean_and_spread(tmp_path):
    table = results.Table("t", ["name", "paper", "ours", "once"], digits=2)
    table.add("row", 0.5, [0.25, 0.75], 1 / 3)
    record = results.Result("s", [table], [results.judge("c", True, "b")]).record(60)
    results.write(tmp_path / "r.json", record)
    kept = results.read(tmp_path / "r.json")
    assert kept["tables"][0].text()[1] == ["row", "0.50", "0.50 ± 0.25", "0.33"]
    assert kept["verdicts"][0].verdict == "holds" and kept["minutes"] == 1.0
    assert "HOLDS: c" in results.shown(kept)


def test_grammars_take_separate_files_for_training_and_tests(small_folder, tmp_path):
    lines = gzip.open(small_folder / "wsj_dependency_sample.conllu.gz", "rt").read()
    (tmp_path / "train.conllu").write_text(lines)
    (tmp_path / "test.conllu").write_text(lines[: lines.index("# sent_id = 9")])
    train, test, what = p1_grammars.treebanks(items.Setting(tmp_path))
    assert len(train.tags) == 40 and len(test.tags) == 9
    assert what == "train.conllu and test.conllu"
