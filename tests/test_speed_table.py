"""The table of speed in the guide: its figures, and the benchmarks that they come from."""

import importlib
import json
import runpy
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from skvmf import SparseGaussianMixture, VonMisesFisherMixture

from .conftest import ROOT

RECORD = json.loads((ROOT / "doc" / "user_guide" / "speed.json").read_text(encoding="utf-8"))
BENCHMARKS = ROOT / "asv_bench"


def test_the_page_shows_every_figure_with_machine_and_day():
    table = runpy.run_path(str(ROOT / "doc" / "speed_table.py"))["speed_table"]()
    assert RECORD["processor"] in table
    assert RECORD["date"][:4] in table
    shown = table.count("   * - ") - 1
    assert shown == sum(any(figures.values()) for figures in RECORD["figures"].values()) > 20
    for figures in RECORD["figures"].values():
        for runs in figures.values():
            assert not runs or f"- {np.median(runs):.3g}" in table


def test_the_first_number_of_the_home_page_is_a_whole_fit():
    page = (ROOT / "doc" / "index.rst").read_text(encoding="utf-8")
    first = page.partition("grid-item-card:: ")[2].partition("\n")[0]
    assert first == ":measured:`guide.passes; 200,000; fit; CPU seconds` seconds"


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not in the sdist")
def test_every_sweep_of_rivals_was_measured(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    rivals = runpy.run_path(str(BENCHMARKS / "rivals.py"))
    record = json.loads(rivals["RESULTS"].read_text(encoding="utf-8"))
    assert record["base"] == rivals["BASE"]
    for sweep, sizes in rivals["SWEEPS"].items():
        for method in rivals["METHODS"]:
            measured = [f for f in record["fits"] if (f["sweep"], f["method"]) == (sweep, method)]
            assert [fit[sweep] for fit in measured] == list(sizes[: len(measured)])
            assert len(measured) == len(sizes) or "seconds" not in measured[-1]


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not in the sdist")
def test_figures_are_those_of_benchmarks_that_there_are(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    speed = runpy.run_path(str(BENCHMARKS / "speed.py"))
    named = [(name, params) for _, _, lines in speed["ROWS"] for _, name, params in lines]
    assert list(RECORD["figures"]) == [speed["key"](*line) for line in named]
    for name in {name for name, _ in named}:
        file, owner, method = name.split(".")
        module = importlib.import_module(f"benchmarks.{file}")
        assert callable(getattr(getattr(module, owner), method))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not in the sdist")
@pytest.mark.parametrize("cast", [np.asarray, csr_array, None], ids=["dense", "CSR", "Gaussian"])
def test_the_step_that_is_measured_is_one_of_the_fit(cast, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    em_step = importlib.import_module("benchmarks.mixture").em_step
    X = np.random.default_rng(0).normal(size=(200, 4))
    mixture = SparseGaussianMixture if cast is None else VonMisesFisherMixture
    X = X if cast is None else cast(X)
    options = {"init_params": np.arange(200) % 2, "tol": 0, "weight_concentration_prior": 1.0}
    before, after = (mixture(2, max_iter=n, **options).fit(X) for n in (1, 2))
    step = em_step(before, X)
    np.testing.assert_allclose(step().weights, after.weights_, rtol=1e-12)
