"""The gallery's script draws its figures for a treebank too."""

import re
import runpy
import sys

import pytest

from skvmf.grammar import DependencyModelWithValence


def write_treebank(path, X, y):
    """Write tags and heads in CoNLL-U format."""
    sentences = [
        "\n".join(
            f"{i}\tw\t_\t_\t{tag}\t_\t{head}\t_\t_\t_"
            for i, (tag, head) in enumerate(zip(tags, heads, strict=True), start=1)
        )
        for tags, heads in zip(X, y, strict=True)
    ]
    path.write_text("\n\n".join(sentences), encoding="utf-8")


@pytest.mark.slow
def test_the_script_reads_a_treebank(root, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    X = [["DT", "NN", "VB"], ["NN", "VB"], ["NN", "VB", "DT", "NN"]] * 8
    y = [[2, 3, 0], [2, 0], [2, 0, 4, 2]] * 8
    write_treebank(tmp_path / "bank.conllu", X, y)
    script, figure = root / "doc" / "examples" / "plot_grammar_prior.py", tmp_path / "a.png"
    arguments = ["--data", tmp_path / "bank.conllu", "--n-subsamples", 2, "--output", figure]
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert figure.stat().st_size > 10_000
    assert str(figure) in printed
    assert "24 sentences, 72 tokens, 3 tags" in printed
    model = DependencyModelWithValence().fit(X, y)
    assert [heads.tolist() for heads in model.predict(X)] == y
    assert "accuracy with the trees 1.000" in printed
    assert len(re.findall(r"^(?:EM|softmax-EM|hard EM), ", printed, re.MULTILINE)) == 12
