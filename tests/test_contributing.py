"""What the pages for contributors build works, and they describe the code as it is."""

import ast
import itertools
import re
import subprocess
import sys
from inspect import isabstract
from pathlib import Path
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skvmf import VonMisesFisherMixture, families
from skvmf.model_selection import ComponentPath

from .conftest import ROOT
from .feature_extraction.mixtures import frozen
from .mixture.checks import assert_bound_never_falls, assert_finite

PAGES = ROOT / "doc" / "contributing"
POSTERIORS = [(1.0, 1.0), (1.5, 1.0), (2.0, 3.0), (1.0, 0.0)]


@pytest.fixture
def built(page):
    """Return what the pages build, and build on: their modules' names in one place."""
    names = {}
    for module in ["watson_distribution", "watson", "watson_mixture", "capped_weights"]:
        names |= vars(page(module))
    return SimpleNamespace(**names)


def axial_rows(built, axes, size, kappa=20.0):
    rng = np.random.RandomState(0)
    X = np.vstack([built.draw(axis, kappa, size, rng) for axis in np.asarray(axes)])
    return X, np.repeat(np.arange(len(axes)), size)


# Axes.


@pytest.mark.parametrize("dim", [2, 3, 4, 11, 100, 3000])
def test_kummer_function_and_its_moments_agree_with_mpmath(built, dim):
    kappas = np.array([0.0, 1e-8, 0.1, 1.0, 30.0, 700.0, built.LARGEST])
    values, seconds, fourths = built.log_kummer(kappas, dim)
    for kappa, value, second, fourth in zip(kappas, values, seconds, fourths, strict=True):
        b = mp.mpf(dim) / 2
        with mp.workdps(50):
            exact = mp.hyp1f1(0.5, b, kappa, maxterms=10**6)
            exact_second = mp.hyp1f1(1.5, b + 1, kappa, maxterms=10**6) / exact / dim
            exact_fourth = mp.hyp1f1(2.5, b + 2, kappa, maxterms=10**6) / exact
            exact_fourth *= mp.mpf(3) / dim / (dim + 2)
            assert abs(value - mp.log(exact)) <= 1e-13 * max(1, abs(mp.log(exact)))
            assert abs(second / exact_second - 1) <= 1e-13
            assert abs(fourth / exact_fourth - 1) <= 1e-12
    result = built.concentration(seconds, dim)
    np.testing.assert_allclose(result[kappas >= 0.1], kappas[kappas >= 0.1], rtol=1e-7)


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_axial_clusters_are_recovered(built, dim):
    axes = np.eye(dim)[:2] if dim == 2 else np.vstack([np.eye(dim)[:3], np.ones(dim) / dim**0.5])
    X, y = axial_rows(built, axes, 300, kappa=60.0)
    mixture = built.WatsonMixture(len(axes), n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(y, mixture.labels_) > 0.95
    assert_bound_never_falls(mixture)
    assert_finite(mixture, np.vstack([X, np.zeros(dim)]))
    result = np.abs(mixture.axes_ @ axes.T).max(axis=0)
    np.testing.assert_allclose(result, 1, atol=1e-2)
    directional = VonMisesFisherMixture(len(axes), random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, directional) < 0.8


def test_a_watson_mixture_learns_from_a_stream(built):
    axes = np.eye(5)[:3]
    X, y = axial_rows(built, axes, 200)
    order = np.random.default_rng(0).permutation(len(X))
    mixture = built.WatsonMixture(3, n_init=3, random_state=0)
    for start in range(0, len(X), 150):
        mixture.partial_fit(X[order[start : start + 150]])
    assert adjusted_rand_score(y, mixture.predict(X)) > 0.95


@pytest.mark.parametrize("tied", [True, False])
def test_merging_axes_costs_what_the_log_likelihood_loses(built, tied):
    X, y = axial_rows(built, np.eye(4)[:3], 50, kappa=9.0)
    family = built.Watson(4, tied=tied)
    block = SimpleNamespace(X=X, scales=np.ones(len(X)))

    def statistics(labels, K):
        scatter = np.array([X[labels == k].T @ X[labels == k] for k in range(K)])
        counts = np.bincount(labels).astype(float)
        return SimpleNamespace(counts=counts, moments=(scatter,))

    first = family.components(np.eye(4)[:3], 9.0)
    cost = family.merge_cost(statistics(y, 3), first, np.arange(3))

    def log_likelihood(rows):
        axes, squares = built.leading_axes((X[rows].T @ X[rows])[None], np.array([rows.sum()]))
        kappa = 9.0 if tied else built.concentration(squares, 4)
        scores = family.scores(block, family.components(axes, kappa)).log_density()[:, 0]
        return scores[rows].sum()

    expected = log_likelihood(y == 0) + log_likelihood(y == 2) - log_likelihood(y % 2 == 0)
    np.testing.assert_allclose(cost.losses(0)[2], expected, rtol=1e-9)
    np.testing.assert_allclose(cost.log_likelihoods()[1], log_likelihood(y == 1), rtol=1e-9)
    cost.merge(0, 2)
    np.testing.assert_allclose(cost.log_likelihoods()[0], log_likelihood(y % 2 == 0), rtol=1e-9)


def test_a_path_finds_the_number_of_axial_clusters(built):
    X, y = axial_rows(built, np.eye(4)[:3], 100, kappa=30.0)
    path = ComponentPath(built.WatsonMixture(random_state=0), max_components=6).fit(X)
    assert path.best_estimator_.n_components == 3
    assert adjusted_rand_score(y, path.best_estimator_.labels_) > 0.95


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_watson_gradients_are_those_of_the_log_likelihood(built, temperature):
    axes = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, 0.6]])
    X, _ = axial_rows(built, axes, 100, kappa=15.0)
    mixture = built.WatsonMixture(2, random_state=0).fit(X)
    mixture.temperature = temperature
    fitted, bag = mixture._fitted, 3 * X[::29]  # of any length

    def log_likelihood(shift, kind):
        weights, components = fitted.params.weights, fitted.params.components
        axes, kappa = components.axes, components.concentrations
        if kind == "axes":
            axes = axes + shift.reshape(axes.shape)
            axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        elif kind == "concentrations":
            kappa = kappa + shift
        else:
            weights = weights * np.exp(shift) / (weights @ np.exp(shift))
        moved = fitted.family.components(axes, kappa)
        block = SimpleNamespace(X=bag, scales=1 / np.linalg.norm(bag, axis=1))
        scores = fitted.family.scores(block, moved).log_density() + np.log(weights)
        best = scores.max(axis=1) if temperature == 0 else np.logaddexp(*scores.T)
        return best.sum()

    for kind, size in [("axes", 6), ("concentrations", 2), ("weights", 2)]:
        steps = 1e-5 * np.eye(size)
        expected = [log_likelihood(s, kind) - log_likelihood(-s, kind) for s in steps]
        encoder = frozen(mixture, gradients=(kind,), norm=None, normalization=None).fit([bag])
        result = encoder.transform([bag])[0]
        np.testing.assert_allclose(result, np.array(expected) / 2e-5, rtol=1e-6, atol=1e-6)


def test_a_family_without_a_proposal_is_refused_by_name(built):
    class PlainWatson(built.Watson):
        proposal, merge_cost = built.SeedFamily.proposal, built.SeedFamily.merge_cost

    class Plain(built.WatsonMixture):
        def _family(self, n_features):
            return PlainWatson(n_features)

    X, _ = axial_rows(built, np.eye(3)[:2], 30)
    with pytest.raises(ValueError, match=r"PlainWatson .* has no `proposal`. Set init_params"):
        Plain(2).fit(X)
    fitted = Plain(2, init_params="kmeans", random_state=0).fit(X)
    assert len(np.unique(fitted.labels_)) == 2
    with pytest.raises(ValueError, match=r"PlainWatson .* has no `merge_cost`"):
        ComponentPath(Plain(init_params="kmeans"), max_components=3).fit(X)


# Weights with a cap.


@pytest.mark.parametrize("seed", range(5))
def test_no_legal_weights_are_better_than_the_capped_mode(built, seed):
    """The conditions of Karush, Kuhn and Tucker: they suffice, as the objective is concave."""
    rng = np.random.default_rng(seed)
    for size, cap in itertools.product(range(1, 8), [0.05, 0.2, 0.4, 1.0]):
        counts = rng.exponential(size=size) ** 4
        prior = built.CappedWeights(cap=cap)
        weights = prior.mode(counts)
        assert prior.log_density(weights) == 0
        np.testing.assert_allclose(weights.sum(), 1, rtol=1e-12)
        limit = max(cap, 1 / size)
        free, slopes = weights < limit * (1 - 1e-9), counts / weights
        if free.any():
            np.testing.assert_allclose(slopes[free], slopes[free][0], rtol=1e-9)
            assert (slopes[~free] >= slopes[free][0] * (1 - 1e-9)).all()
        np.testing.assert_allclose(prior.clip(weights), weights, rtol=1e-12)


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_the_bound_never_falls_under_a_cap(built, posterior):
    X, _ = axial_rows(built, np.eye(3), 80, kappa=3.0)
    alpha, temperature = posterior

    class Capped(VonMisesFisherMixture):
        def _weight_prior(self):
            return built.CappedWeights(cap=0.35)

    options = {"entmax_alpha": alpha, "temperature": temperature, "init_params": "random"}
    mixture = Capped(3, random_state=0, tol=1e-8, max_iter=2000, **options).fit(X)
    assert_bound_never_falls(mixture)
    assert mixture.weights_.max() <= 0.35 * (1 + 1e-9)


# The page on the architecture.


@pytest.fixture
def contracts(built):
    """Return the names of the abstract classes that parts of a mixture derive from."""
    home = sys.modules[built.SeedFamily.__module__]
    own = {name: value for name, value in vars(home).items() if isinstance(value, type)}
    names = {name for name, value in own.items() if value.__module__ == home.__name__}
    names = {name for name in names if isabstract(own[name])} | {"Proposal", "Update"}
    return names - {"Gradients"}  # which only Fisher vectors need


def test_the_diagrams_name_every_file_and_only_contracts(page, contracts):
    pytest.importorskip("matplotlib")
    diagrams = page("diagrams")
    [axes] = diagrams.draw_layers().axes
    drawn = [text.get_text() for text in axes.texts]
    files = [path.stem for path in (ROOT / "skvmf").rglob("*.py") if path.stem != "__init__"]
    assert not set(files) - set(drawn)
    [axes] = diagrams.draw_step().axes
    drawn = " ".join(text.get_text() for text in axes.texts)
    named = {name for *_, names in diagrams.STEP for name in re.findall(r"[A-Z]\w+", names)}
    assert all(name in drawn for name in named)
    others = {"RowSource", "Point", "Params", "FenchelYoungPosterior", "ModifiedDirichlet"}
    assert named <= contracts | others


def test_every_file_is_on_the_page_and_says_what_it_is(page):
    pytest.importorskip("matplotlib")
    listed = re.findall(r"^- ``(skvmf/\S+)``: \w.+", page("diagrams").file_list(), re.MULTILINE)
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "skvmf").rglob("*.py")}
    files = {name.replace("/__init__.py", "/") for name in files} - {"skvmf/"}
    assert sorted(listed) == sorted(files)


@pytest.mark.slow
def test_the_page_on_the_architecture_names_packages_and_answers(contracts):
    page = (PAGES / "architecture.rst").read_text(encoding="utf-8")
    for package in (ROOT / "skvmf").glob("*/__init__.py"):
        assert f"``{package.parent.name}``" in page
    for folder in (ROOT / "skvmf" / "_engine").glob("*/__init__.py"):
        assert f"``{folder.parent.name}``" in page
    members = re.findall(r":members: (.+)", page)
    documented = {name for line in members for name in line.split(", ")} | set(families.__all__)
    assert documented >= contracts | {"RowSource"}
    for role in contracts:
        for answer in derived(role):
            names = [answer, *derived(answer)]  # of what answers have in common, all of them
            named = [f"``{name}``" in page for name in names]
            assert named[0] or (named[1:] and all(named[1:])), f"architecture.rst: no {answer}"


def test_every_answer_of_the_exercise_is_a_file():
    text = (PAGES / "architecture.rst").read_text(encoding="utf-8")
    exercise = text.partition("Where is ...?")[2].partition("A mixture is a value")[0]
    answers = re.findall(r"``(skvmf/[\w/]+\.py)``", exercise)
    assert len(answers) == 10
    assert [name for name in answers if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("function", "source", "expected"),
    [
        ("loose_parameters", "def f(estimator: Any, mixture: Any, X: Any): pass", (2, 2)),
        ("loose_parameters", "def f(estimator: Mixture): pass", (0, 0)),
        ("background", "if a and background is not None: pass", (1, 1)),
        ("background", "x = [a for a in b if self.background]", (1, 1)),
        ("background", "if params.background_weight > 0: pass", (0, 1)),
        ("student_files", "from .student_t import StudentT", 1),
        ("student_files", "mixture.covariances_", 0),
    ],
)
def test_the_measures_themselves(page, function, source, expected):
    trees = {"mixture/_a.py": ast.parse(source)}
    assert getattr(page("measures"), function)(trees) == expected


# The page on the first release.


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sdist lacks the recipe and .github")
def test_the_page_on_the_first_release_names_the_placeholders_that_are_left():
    page, mark = PAGES / "first_release.rst", "PLACEHOLDER[-A-Z0-9]*"
    others = [f":!{path.relative_to(ROOT)}" for path in (page, Path(__file__))]
    command = ["git", "grep", "-oE", mark, "--", *others]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.split()
    steps = rf"^ +- ``(\S+)``: ``({mark})``"
    named = re.findall(steps, page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {tuple(line.split(":")) for line in found} == set(named)


def derived(base):
    """Return the names of the engine's classes that derive from a base directly."""
    return [
        node.name
        for path in (ROOT / "skvmf" / "_engine").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and base in map(ast.unparse, node.bases)
    ]
