"""A report is one file that shows what the mixture says, and no text in it becomes code."""

import json
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from skvmf import ComponentPath, SparseGaussianMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.inspection import component_summary
from skvmf.plotting import cluster_report
from skvmf.plotting._displays import map_positions

WORDS = ["apple pear", "violin cello", "granite slate", "sparrow finch", "copper zinc"]
EVIL = '</script><script>document.title = "taken"</script><img src=x onerror="alert(1)"> zebra'


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.tags, self.parts, self._open = [], [], False
        self.feed(path.read_text(encoding="utf-8"))
        self.data = json.loads("".join(self.parts))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open = ("type", "application/json") in attributes

    def handle_data(self, data):
        if self._open:
            self.parts.append(data)

    def handle_endtag(self, tag):
        self._open = False


@pytest.fixture(scope="module")
def rows():
    X, y = make_vonmises_fisher_blobs(500, 8, centers=5, concentration=80.0, random_state=0)
    return X, [f"{WORDS[label]} text {i}" for i, label in enumerate(y)]


@pytest.fixture(scope="module")
def path(rows):
    return ComponentPath(VonMisesFisherMixture(random_state=0), max_components=12).fit(rows[0])


@pytest.fixture
def report(tmp_path):
    """Return a function that writes a report and returns its file."""

    def write(*arguments):
        cluster_report(*arguments, file=tmp_path / "clusters.html")
        return tmp_path / "clusters.html"

    return write


def test_a_report_says_what_the_summary_says(path, rows, report):
    X, texts = rows
    data = Page(report(path, X, texts)).data
    mixture = path.best_estimator_
    summary = component_summary(mixture, X, texts=texts, n_features=8, n_rows=5)
    clusters = data["clusters"]
    assert [each["k"] for each in clusters] == summary.labels.tolist()
    assert [each["size"] for each in clusters] == summary.sizes.tolist()
    assert [each["words"] for each in clusters] == summary.words
    assert [each["name"] for each in clusters] == [summary.names()[k] for k in summary.labels]
    for each, typical in zip(clusters, summary.typical, strict=True):
        assert each["typical"] == [[row, texts[row]] for row in typical]
    points = data["points"]
    assert points["row"] == list(range(500))
    assert points["text"] == texts
    assert [clusters[i]["k"] for i in points["k"]] == mixture.labels_.tolist()
    centres = np.array([[each["x"], each["y"]] for each in clusters])[points["k"]]
    gaps = np.linalg.norm(np.column_stack([points["x"], points["y"]]) - centres, axis=1)
    radii = np.array([each["r"] for each in clusters])[points["k"]]
    assert np.mean(gaps < radii) > 0.95
    least = [row for row, _ in data["outliers"]]
    assert least == np.argsort(mixture.score_samples(X), kind="stable")[:20].tolist()


def test_the_tree_of_a_path_is_that_of_its_cuts(path, rows, report):
    data = Page(report(path, rows[0])).data
    n = len(data["clusters"])
    assert n == path.best_n_components_ == 5
    assert len(data["merges"]) == n - 1
    members = [{i} for i in range(n)]
    for a, b in data["merges"]:
        members.append(members[a] | members[b])
    assert members[-1] == set(range(n))
    numbers = np.array(data["points"]["k"])
    for n_parts in range(2, n):  # the last merges join the parts of a cut
        cut = path.cut(n_parts)
        parts = {frozenset(np.unique(numbers[cut == part]).tolist()) for part in range(n_parts)}
        assert parts <= set(map(frozenset, members))


def test_reports_of_other_mixtures_and_without_texts(report):
    X, _ = make_blobs(300, 4, centers=3, random_state=0)
    X = np.vstack([X, np.random.default_rng(0).uniform(-30, 30, size=(30, 4))])
    data = Page(report(SparseGaussianMixture(3, background=True, random_state=0).fit(X), X)).data
    assert [each["name"] for each in data["clusters"]] == [
        f"Cluster {each['k']}" for each in data["clusters"]
    ]
    assert data["points"]["k"].count(-1) == data["n_outliers"] > 10
    assert len(data["merges"]) == 2
    alone = Page(report(VonMisesFisherMixture(1).fit(X), X)).data
    assert (len(alone["clusters"]), alone["merges"]) == (1, [])


def test_one_file_needs_nothing_else_and_texts_are_no_code(path, rows, report):
    X, texts = rows
    page = Page(report(path, X, [EVIL, "\ud800 half a letter", *texts[2:]]))
    assert page.data["points"]["text"][0] == EVIL
    names = [tag for tag, _ in page.tags]
    assert names.count("script") == 2
    assert not {"img", "link", "iframe"} & set(names)
    assert not [set(of) & {"src", "href"} for _, of in page.tags if set(of) & {"src", "href"}]
    policy = [of["content"] for tag, of in page.tags if "http-equiv" in of]
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'")


def test_many_rows_are_sampled_into_five_megabytes(report):
    X, y = make_vonmises_fisher_blobs(25_000, 4, centers=3, concentration=80.0, random_state=0)
    mixture = VonMisesFisherMixture(3, random_state=0).fit(X)
    file = report(mixture, X, [f"{WORDS[label]} " + "漢字" * 150 for label in y])
    data = Page(file).data
    assert 2_000_000 < file.stat().st_size <= 5_000_000
    assert data["n_rows"] == sum(each["size"] for each in data["clusters"]) == 25_000
    assert 5_000 < len(data["points"]["x"]) <= 20_000
    assert np.all(np.diff(data["points"]["row"]) > 0)
    assert data == Page(report(mixture, X, [f"{WORDS[label]} " + "漢字" * 150 for label in y])).data


def test_wrong_texts_are_refused(path, rows, report):
    with pytest.raises(ValueError, match="texts should be one per row"):
        report(path, rows[0], rows[1][:-1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_folds_searches_and_runs_no_text(path, rows, report, scheme):
    api = pytest.importorskip("playwright.sync_api")
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    installed = next(filter(None, map(shutil.which, names)), None)  # None is Playwright's own
    X, texts = rows
    file = report(path, X, [EVIL, *texts[1:]])
    with api.sync_playwright() as engine:
        path_of_browser = installed or engine.chromium.executable_path
        if not Path(path_of_browser).exists():
            pytest.skip("needs Chromium")
        options = {"executable_path": path_of_browser, "args": ["--no-sandbox"]}
        page = engine.chromium.launch(**options).new_page(color_scheme=scheme)
        errors, requests = [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        assert "500 rows in 5 clusters" in page.inner_text("#counts")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(255, 255, 255)") == (scheme == "light")
        page.focus("summary")  # keys fold, go from line to line, and choose
        assert page.evaluate("document.activeElement.parentElement.open")
        page.keyboard.press("Enter")
        assert not page.evaluate("document.activeElement.parentElement.open")
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement !== document.querySelector('summary')")
        page.evaluate("leaves[2].focus()")
        page.keyboard.press("Enter")
        assert page.inner_text("h2") == page.evaluate("clusters[2].name")
        place = page.evaluate("[...place(clusters[1].x, clusters[1].y)]")
        page.click("#map", position={"x": place[0], "y": place[1]})
        assert page.evaluate("chosen") == 1
        zoom = page.evaluate("view.zoom")
        page.focus("#map")
        page.keyboard.press("+")
        assert page.evaluate("view.zoom") > zoom
        page.keyboard.press("/")
        page.keyboard.type("ZEBRA")
        assert "1 text with" in page.inner_text("h2")
        assert EVIL in page.inner_text("#details")
        page.keyboard.press("Escape")
        assert page.evaluate("found") is None
        assert page.title() == "Clusters"
        assert page.locator("img, #details script").count() == 0
        assert (errors, requests) == ([], [file.as_uri()])
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_the_map_of_thousands_of_clusters_takes_seconds():
    rng = np.random.default_rng(0)
    points = 3 * rng.normal(size=(4000, 3))
    radii = np.sqrt(rng.dirichlet(np.ones(4000)))
    log_affinities = np.array([-((points - point) ** 2).sum(axis=1) / 8 for point in points])
    began = time.process_time()
    positions = map_positions(log_affinities, radii)
    assert time.process_time() - began < 20
    for i in range(len(points)):
        distances = np.linalg.norm(positions - positions[i], axis=1)
        distances[i] = np.inf
        assert (distances > 0.99 * (radii + radii[i])).all()
