"""What the documentation shows is what happens: docstrings, README, user guide, main job."""

import doctest
import importlib
import json
import re
import runpy
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import skvmf
from skvmf.grammar import DependencyModelWithValence

from .conftest import ROOT
from .docstrings import OPTIONAL, PUBLIC, mistakes, public_names
from .processes import fork_workers

ESTIMATORS = [
    *("skvmf", "skvmf.grammar", "skvmf.model_selection", "skvmf.neural", "skvmf.preprocessing")
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "skvmf").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
PAGES = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "doc").rglob("*.rst")
    if ">>>" in path.read_text(encoding="utf-8")
    and not {"_build", "generated", "auto_examples"} & set(path.parts)
)
LONG = {"on_a_cluster.rst", "grid_search.rst"}  # which start processes
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run examples where the files they write do no harm."""
    monkeypatch.chdir(tmp_path)


def run(example):
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    failed = runner.run(example, out=report.append).failed
    assert not failed, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name.startswith("skvmf.plotting"):
        pytest.importorskip("matplotlib", reason="needs matplotlib")
    module = load(name)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        run(example)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=SLOW if page.name in LONG else ()) for page in PAGES], ids=str
)
def test_pages(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / page.parent)  # pages of code have it beside them
    text = (ROOT / page).read_text(encoding="utf-8")
    if "from skvmf.neural" in text:
        pytest.importorskip("torch", reason="needs torch")
    for name in ("distributed", "dask.dataframe", "zarr", "h5py"):
        if re.search(rf"^>>> (import|from) {name}\b", text, re.MULTILINE):
            pytest.importorskip(name, reason=f"needs {name}")
    if ">>> from distributed import" in text:
        fork_workers()
    run(doctest.DocTestParser().get_doctest(text, {}, str(page), str(page), 0))


@SLOW
def test_the_script_on_a_cluster_runs_as_a_script(tmp_path):
    pytest.importorskip("distributed", reason="needs distributed")
    text = (ROOT / "doc" / "user_guide" / "on_a_cluster.rst").read_text(encoding="utf-8")
    block = re.search(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)[1]
    script = tmp_path / "script.py"
    block = textwrap.dedent(block).replace("n_workers=2", "n_workers=1")
    script.write_text(block, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert re.fullmatch(r"\[\d \d \d\]", done.stdout.strip()), done.stderr


def test_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


def load(name):
    """Import a module, or skip where it needs an optional package that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"needs {error.name}")
        raise


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_lists_every_public_object(name):
    listed = [getattr(load(home), item) for home, item in reference()]
    module = load(name)
    missing = [item for item in public_names(module) if getattr(module, item) not in listed]
    assert not missing, f"not in doc/api.rst: {missing}"


def reference():
    """Yield the module and the name of everything that doc/api.rst lists."""
    text = (ROOT / "doc" / "api.rst").read_text(encoding="utf-8")
    for section in re.split(r"^.. currentmodule:: ", text, flags=re.MULTILINE)[1:]:
        home = section.split()[0]
        yield from ((home, item) for item in re.findall(r"^   (\w+)$", section, re.MULTILINE))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_docstrings_pass_numpydoc_validation(name):
    pytest.importorskip("numpydoc", reason="needs numpydoc")
    load(name)  # or skip
    assert mistakes(name) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_help_on_a_public_package_begins_with_what_it_is_for(name):
    first = load(name).__doc__.split("\n")[0]
    assert first.endswith(".")
    assert not re.search(r"[Ff]loor \d|[Rr]oom", first)


def test_skops_asks_to_trust_what_the_guide_names():
    io = pytest.importorskip("skops.io", reason="needs skops")
    text = (ROOT / "doc" / "user_guide" / "migration.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"skvmf\.\w+\._\w+\.\w+", text))
    X, sentences = np.random.default_rng(0).normal(size=(40, 3)), [["A", "B"], ["B", "A", "B"]]
    directions = skvmf.VonMisesFisherMixture(2, entmax_alpha=1.5, random_state=0)
    fits = [
        (directions.fit(X), "predict_proba", X),
        (skvmf.SparseGaussianMixture(2, covariance_type="diag").fit(X), "predict_proba", X),
        (skvmf.RelativeGMM(2, random_state=0).fit(X), "predict_proba", X),
        (skvmf.StudentTMixture(2, random_state=0).fit(X), "predict_proba", X),
        (skvmf.FisherVectorTransformer(directions).fit([X, X]), "transform", [X]),
        (DependencyModelWithValence().fit(sentences), "score_samples", sentences),
    ]
    asked = set()
    for estimator, method, data in fits:
        dumped = io.dumps(estimator)
        untrusted = io.get_untrusted_types(data=dumped)
        loaded = io.loads(dumped, trusted=untrusted)
        np.testing.assert_array_equal(
            getattr(loaded, method)(data), getattr(estimator, method)(data)
        )
        expected = {dotted(part) for part in (estimator, getattr(estimator, "mixture", estimator))}
        assert set(untrusted) == expected
        asked |= expected
    assert asked == named


def dotted(part):
    return f"{type(part).__module__}.{type(part).__qualname__}"


TOPICS = {
    "hockey": ["puck", "ice", "goal", "skate", "rink"],
    "cooking": ["salt", "pan", "butter", "oven", "flour"],
    "sewing": ["thread", "needle", "button", "sleeve", "hem"],
    "space": ["orbit", "moon", "rocket", "launch", "crater"],
}


def main_job(monkeypatch, *arguments):
    """Run the main job as a script and leave its figure in the current directory."""
    plt = pytest.importorskip("matplotlib.pyplot")
    script = ROOT / "doc" / "examples" / "plot_cluster_docstrings.py"
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    names = runpy.run_path(str(script), run_name="__main__")
    plt.close(names["figure"])
    return names


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--concentration-type", "free"], ["--n-components", "5"]])
def test_main_job_clusters_the_texts_of_a_file(tmp_path, monkeypatch, capsys, more):
    rng = np.random.default_rng(0)
    lines = [
        json.dumps({"label": label, "text": "From: me\n\n" + " ".join(rng.choice(words, 8))})
        for label, words in TOPICS.items()
        for _ in range(20)
    ]
    path, figure = tmp_path / "texts.jsonl", tmp_path.resolve() / "a.png"
    path.write_text("\n".join(lines), encoding="utf-8")
    names = main_job(monkeypatch, "--data", path, "--skip-headers", "--output", figure, *more)
    printed = capsys.readouterr().out
    assert figure.stat().st_size > 10_000
    assert str(figure) in printed
    assert "80 texts in 4 classes" in printed
    if "--n-components" not in more:
        heads = [set(words[:5]) for words in names["top_words"]]
        assert all(set(words) in heads for words in TOPICS.values())
        assert "1.000  1.000" in printed


def test_main_job_finds_three_collections(data_folder, tmp_path, monkeypatch, capsys):
    data = data_folder / "classic3.jsonl.gz"
    main_job(monkeypatch, "--data", data, "--output", tmp_path / "a.png")
    printed = capsys.readouterr().out
    nmi = float(re.search(r"von Mises-Fisher.*?([01]\.\d+)", printed)[1])
    assert nmi >= 0.9


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_picture_of_an_estimator_links_to_its_page(name):
    module = load(name)
    listed = [getattr(module, item) for home, item in reference() if home == name]
    estimators = [each for each in listed if hasattr(each, "_get_doc_link")]
    assert estimators
    for each in estimators:
        link = each.__new__(each)._get_doc_link()
        assert link.endswith(f"/generated/{name}.{each.__name__}.html")
