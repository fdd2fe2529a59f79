"""A report is one file that shows what the mixture says, and no text in it becomes code."""

import csv
import json
import shutil
import zlib
from base64 import b64decode
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from skvmf import ComponentPath, SparseGaussianMixture, StudentTMixture, VonMisesFisherMixture
from skvmf.datasets import make_vonmises_fisher_blobs
from skvmf.inspection import _components, component_stability, component_summary
from skvmf.plotting import cluster_report
from skvmf.plotting._displays import map_landmarks, map_positions
from skvmf.plotting._word_index import word_index

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


@pytest.mark.parametrize("title", ["DATA", "TITLE", "<b>"])
def test_titles_and_texts_are_not_taken_for_places_of_the_page(rows, tmp_path, title):
    X, _ = rows
    mixture = VonMisesFisherMixture(2, random_state=0).fit(X)
    cluster_report(mixture, X, [title] * 500, file=tmp_path / "page.html", title=title)
    page = Page(tmp_path / "page.html")
    assert page.data["title"] == page.data["points"]["text"][0] == title
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<title>{escape(title)}</title>" in written


def test_wrong_texts_are_refused(path, rows, report):
    with pytest.raises(ValueError, match="texts should be one per row"):
        report(path, rows[0], rows[1][:-1])


# In a browser.


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    installed = next(filter(None, map(shutil.which, names)), None)  # None is Playwright's own
    with api.sync_playwright() as engine:
        path_of_browser = installed or engine.chromium.executable_path
        if not Path(path_of_browser).exists():
            pytest.skip("needs Chromium")
        yield engine.chromium.launch(executable_path=path_of_browser, args=["--no-sandbox"])


class Opened:
    """A report in a browser, and what it complained about or asked for."""

    def __init__(self, browser, file, suffix="", **options):
        self.page = browser.new_context(**options).new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri() + suffix)
        self.page.evaluate("isReady")


PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_folds_searches_and_runs_no_text(path, rows, report, browser, scheme):
    X, texts = rows
    file = report(path, X, [EVIL, *texts[1:]])
    opened = Opened(browser, file, color_scheme=scheme)
    page = opened.page
    assert "500 rows in 5 clusters" in page.inner_text("#counts")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")
    page.focus("summary")  # keys choose, fold, and go from line to line
    assert page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")
    assert page.inner_text("h2") == page.evaluate("nodes[chosen].name")
    page.keyboard.press("Enter")
    assert not page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement !== document.querySelector('summary')")
    page.evaluate("lines[2].focus()")
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
    assert "1 of 500 texts with" in page.inner_text("h2")
    assert EVIL in page.inner_text("#details")
    page.keyboard.press("Escape")
    assert page.evaluate("found") is None
    assert page.title() == "Clusters"
    assert page.locator("img, #details script").count() == 0
    assert (opened.errors, opened.requests) == ([], [file.as_uri()])
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_nodes_have_words_beside_their_sibling_and_any_number_of_clusters(
    path, rows, report, browser
):
    X, texts = rows
    page = Opened(browser, report(path, X, texts)).page
    numbers = np.array(page.evaluate("points.k"))
    for K in (3, 1, 5, 2):
        page.fill("#number", str(K))
        assert f"500 rows in {K} clusters" in page.inner_text("#counts")
        owner = np.array(page.evaluate("owner"))
        assert len(np.unique(owner)) == K
        assert page.evaluate("Number(document.getElementById('slider').value)") == K
        if K in (2, 3):  # a cut of the path, but for rows that its last fit has moved
            assert adjusted_rand_score(path.cut(K), owner[numbers]) > 0.99
    node, parts = page.evaluate("[nodes.length - 1, nodes.at(-1).pair]")
    page.evaluate(f"choose({node})")
    assert page.inner_text("h2") == page.evaluate(f"nodes[{node}].name")
    for part in parts:
        words = page.evaluate(f"nodes[{part}].words ?? clusters[{part}].words")
        members = np.isin(numbers, page.evaluate(f"nodes[{part}].leaves"))
        own = set(" ".join(np.array(texts)[members]).split())
        other = set(" ".join(np.array(texts)[~members]).split())
        assert set(" ".join(words[:2]).split()) <= own - other


def test_a_search_joins_words_and_counts_all_texts(path, rows, report, browser):
    X, _ = rows
    rng = np.random.default_rng(0)
    filler = [" ".join(rng.choice(["tea", "milk", "salt"], 150)) for _ in range(500)]
    texts = [
        f"{text} " + "needle " * (i % 5 == 0) + "haystack" * (i % 3 == 0)
        for i, text in enumerate(filler)
    ]
    page = Opened(browser, report(path, X, texts)).page
    assert not any("needle" in text for text in page.evaluate("points.text"))
    for query, n in [("needle", 100), ("needle  HAY", 34), ("needle thread", 0), ("nee", 100)]:
        page.fill("#search", query)
        assert page.inner_text("h2").startswith(
            f"{n} of 500 texts with “{query.lower().split()[0]}”"
        )
    page.fill("#search", "")
    assert page.evaluate("found") is None


def test_a_search_hides_branches_without_hits(path, rows, report, browser):
    X, texts = rows
    page = Opened(browser, report(path, X, texts)).page
    page.fill("#search", "granite slate")
    hits = set(page.evaluate("[...found].map(j => points.k[j])"))
    line = "(node.pair ? lines[n].parentElement : lines[n])"
    states = page.evaluate(f"nodes.map((node, n) => [node.leaves, {line}.hidden])")
    assert [hidden for _, hidden in states] == [not hits & set(leaves) for leaves, _ in states]
    assert 0 < sum(hidden for _, hidden in states) < len(states)


def test_labels_are_saved_for_all_rows(path, rows, report, browser, tmp_path):
    X, texts = rows
    opened = Opened(browser, report(path, X, texts), accept_downloads=True)
    labels = {}
    for K in (5, 2):
        opened.page.fill("#number", str(K))
        with opened.page.expect_download() as download:
            opened.page.click("#export")
        with open(download.value.path(), newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        assert [int(row["row"]) for row in table] == list(range(500))
        assert [int(row["component"]) for row in table] == path.best_estimator_.labels_.tolist()
        labels[K] = [row["cluster"] for row in table]
    assert labels[5] == [str(k) for k in path.best_estimator_.labels_]
    assert len(set(labels[2])) == 2
    assert opened.errors == []


@pytest.mark.parametrize("background", [True, False])
def test_outliers_say_of_how_many_they_are(rows, report, browser, background):
    X, texts = rows
    mixture = VonMisesFisherMixture(3, background=background, random_state=0).fit(X)
    labels = mixture.predict(X)
    n_outliers = np.count_nonzero(labels < 0)
    page = Opened(browser, report(mixture, X, texts), "#outliers").page
    scores = np.where((labels < 0) | (not n_outliers), mixture.score_samples(X), np.inf)
    least = np.argsort(scores, kind="stable")[: min(20, n_outliers or 20)].tolist()
    assert page.evaluate("outliers.map(([row, text]) => row)") == least
    of = f"{n_outliers} outliers" if n_outliers else "500 rows"
    assert page.inner_text("h3") == f"{len(least)} of {of}, the least likely first"


def test_a_link_opens_a_cluster(path, rows, report, browser):
    file = report(path, *rows)
    page = Opened(browser, file, "#3").page
    assert page.evaluate("clusters[chosen].k") == 3
    page.evaluate("location.hash = '#1'")
    page.wait_for_function("clusters[chosen].k === 1")
    page.evaluate("choose(nodes.length - 1)")
    name = page.inner_text("h2")
    again = Opened(browser, file, page.evaluate("location.hash")).page
    assert again.inner_text("h2") == name
    assert Opened(browser, file, "#nothing").page.evaluate("chosen") is None


def fingers(session, kind, *points):
    touches = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


def test_a_telephone_pinches_swipes_and_taps(path, rows, report, browser):
    opened = Opened(browser, report(path, *rows), **PHONE)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate("at('map').scrollIntoView({block: 'center'})")
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    before = page.evaluate("[view.zoom, scrollY, visualViewport.scale]")
    fingers(session, "touchStart", (x - 20, y), (x + 20, y))
    for gap in (30, 40, 60, 80):
        fingers(session, "touchMove", (x - gap, y), (x + gap, y))
    fingers(session, "touchEnd")
    zoom, scroll, scale = page.evaluate("[view.zoom, scrollY, visualViewport.scale]")
    assert zoom == pytest.approx(4 * before[0], rel=0.1)  # the map's, and not the page's
    assert [scroll, scale] == before[1:]

    fingers(session, "touchStart", (x, y))
    for way in range(10, 200, 10):
        fingers(session, "touchMove", (x, y + way))
    fingers(session, "touchEnd")
    page.wait_for_function(f"scrollY < {scroll - 100}")
    assert page.evaluate("[view.zoom, chosen]") == [zoom, None]

    page.evaluate("view = null; draw(); at('map').scrollIntoView({block: 'center'})")
    box = page.locator("#map").bounding_box()
    place = page.evaluate("[...place(clusters[1].x, clusters[1].y)]")
    page.touchscreen.tap(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_function("chosen === 1")
    top, height = page.evaluate("[at('details').getBoundingClientRect().top, innerHeight]")
    assert 0 <= top < height / 2
    assert opened.errors == []


def test_points_and_labels_grow_as_the_map_is_zoomed(path, rows, report, browser):
    page = Opened(browser, report(path, *rows)).page
    letters = "parseFloat(context.font)"
    small = page.evaluate(letters)
    page.evaluate("zoom(4)")
    assert 1.5 * small < page.evaluate(letters) < 2 * small
    size = page.evaluate("innerWidth")
    page.set_viewport_size({"width": size, "height": 500})  # what is seen stays
    assert page.evaluate("view.zoom / view.all") == pytest.approx(4)


# Names, labels, titles, stability and pipelines.


def test_names_title_and_stability_are_shown(path, rows, report, browser, tmp_path):
    X, texts = rows
    mixture = path.best_estimator_
    stability = component_stability(mixture, X, n_resamples=2, random_state=0)
    evil = {"title": EVIL, "names": {1: EVIL}, "stability": stability}
    file = tmp_path / "named.html"
    cluster_report(mixture, X, texts, file=file, **evil)
    page = Opened(browser, file, "#1").page
    assert page.title() == EVIL
    assert page.inner_text("h1") == page.inner_text("h2") == EVIL
    assert f"{stability['components'][1]:.2f}" in page.inner_text("dl")
    data = Page(file).data
    assert [each["name"] == EVIL for each in data["clusters"]] == [
        each["k"] == 1 for each in data["clusters"]
    ]
    for names, error in [(["a"] * 6, ValueError), ({7: "a"}, ValueError), ("abcde", TypeError)]:
        with pytest.raises(error, match="names should be"):
            cluster_report(mixture, X, file=file, names=names)


def test_words_are_those_of_the_vectorizer(path, rows, tmp_path):
    X, texts = rows
    vectorizer = CountVectorizer(vocabulary=["text", "pear"])
    cluster_report(path, X, texts, file=tmp_path / "words.html", vectorizer=vectorizer)
    data = Page(tmp_path / "words.html").data
    words = [word for each in data["clusters"] for word in each["words"]]
    assert set(words) | {word for own in data["words"] for word in own} == {"text", "pear"}


def test_a_report_of_labels_of_any_clusterer(rows, tmp_path):
    X, texts = rows
    labels = KMeans(4, n_init=2, random_state=0).fit(X).labels_ - 1  # one cluster as outliers
    cluster_report(None, X, texts, labels=labels, file=tmp_path / "labels.html")
    data = Page(tmp_path / "labels.html").data
    assert data["n_outliers"] == np.count_nonzero(labels == -1)
    k = np.array([each["k"] for each in data["clusters"]] + [-1])
    assert k[data["points"]["k"]].tolist() == labels.tolist()
    packed = np.frombuffer(b64decode(data["labels"]), "<u2").astype(int) - 1
    assert k[packed].tolist() == labels.tolist()
    with pytest.raises(ValueError, match="labels should be whole numbers"):
        cluster_report(None, X, labels=labels[:-1], file=tmp_path / "labels.html")


@pytest.mark.parametrize("K", [1, 4, 12])
def test_a_report_of_a_cut_has_the_tree_of_its_path(path, rows, tmp_path, K):
    X, texts = rows
    labels = path.cut(K)
    cluster_report(path, X, texts, labels=labels, file=tmp_path / "cut.html")
    data = Page(tmp_path / "cut.html").data
    assert len(data["merges"]) == K - 1
    k = np.array([each["k"] for each in data["clusters"]])
    members = [{i} for i in range(K)]
    for a, b in data["merges"]:
        members.append(members[a] | members[b])
    for fewer in range(1, K):
        alive = members[: 2 * K - fewer]
        coarse = path.cut(fewer)
        parts = [
            frozenset(np.flatnonzero(np.isin(k, labels[coarse == part]))) for part in range(fewer)
        ]
        assert set(parts) <= set(map(frozenset, alive))


def test_a_tree_of_many_components_is_no_chain():
    X, _ = make_vonmises_fisher_blobs(5000, 16, centers=64, concentration=40.0, random_state=0)
    mixture = VonMisesFisherMixture(64, random_state=0).fit(X)
    depths = [0] * 64
    for a, b in tree_of(mixture, X):
        depths.append(1 + max(depths[a], depths[b]))
    assert max(depths) <= 16  # 63 of a chain, 6 of a tree whose branches are equal


def tree_of(mixture, X):
    with TemporaryDirectory() as folder:
        cluster_report(mixture, X, file=Path(folder) / "tree.html")
        return Page(Path(folder) / "tree.html").data["merges"]


def test_a_pipeline_is_reported_from_what_its_first_step_takes(tmp_path):
    texts = [f"{WORDS[i % 5]} text {i}" for i in range(100)]
    pipeline = make_pipeline(TfidfVectorizer(), VonMisesFisherMixture(5, random_state=0)).fit(texts)
    cluster_report(pipeline, texts, file=tmp_path / "a.html")
    rows = pipeline[:-1].transform(texts)
    cluster_report(pipeline[-1], rows, texts, file=tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_index_has_the_texts_of_each_word():
    """As the page reads it: groups of seven bits, gaps between numbers."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(40)] + ["日本", "naïve"])
    drawn = [rng.choice(words, rng.integers(0, 9)) for _ in range(3000)]
    index = word_index([" ".join(each) for each in drawn])
    lines, packed = (zlib.decompress(b64decode(index[name])) for name in ("words", "texts"))
    numbers, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    numbers = iter(numbers)
    found = lines.decode().split("\n")
    assert found == sorted(words)
    for word in found:
        gaps = [next(numbers) for _ in range(next(numbers))]
        expected = [i for i, each in enumerate(drawn) if word in each]
        assert np.cumsum(gaps).tolist() == expected
    assert next(numbers, None) is None
    assert word_index(["", "!"]) == word_index(["a", "b"]) == {"words": "", "texts": ""}


def test_discs_of_a_map_of_many_clusters_are_apart():
    rng = np.random.default_rng(0)
    points = 3 * rng.normal(size=(1500, 3))
    radii = np.sqrt(rng.dirichlet(np.ones(1500)))
    log_affinities = np.array([-((points - point) ** 2).sum(axis=1) / 8 for point in points])
    landmarks = map_landmarks(radii)
    positions = map_positions(log_affinities[:, landmarks], landmarks, radii)
    for i in range(len(points)):
        distances = np.linalg.norm(positions - positions[i], axis=1)
        distances[i] = np.inf
        assert (distances > 0.99 * (radii + radii[i])).all()


def test_near_clusters_are_near_on_a_map_of_more_than_are_compared(report, monkeypatch):
    """Of many clusters only neighbours are compared, and all of them with some landmarks."""
    monkeypatch.setattr(_components, "MAX_PAIRED", 50)
    monkeypatch.setattr(_components, "NEAREST", 4)
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 20)
    directions = 8 * np.eye(8)[group] + rng.normal(size=(60, 8))
    y = np.repeat(np.arange(60), 10)
    X = directions[y] + 0.3 * rng.normal(size=(600, 8))
    mixture = VonMisesFisherMixture(60, init_params=y, max_iter=0).fit(X)
    clusters = Page(report(mixture, X)).data["clusters"]
    group = group[[each["k"] for each in clusters]]
    positions = np.array([[each["x"], each["y"]] for each in clusters])
    middles = np.array([positions[group == i].mean(axis=0) for i in range(3)])
    distances = np.linalg.norm(positions[:, np.newaxis] - middles, axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), group)


def test_a_background_that_has_every_row_is_reported(report):
    X, _ = make_vonmises_fisher_blobs(50, 4, centers=2, random_state=0)
    mixture = VonMisesFisherMixture(
        2, background=True, weight_concentration_prior=-30.0, random_state=0
    )
    with pytest.warns(UserWarning, match="leaves the background alone"):
        mixture.fit(X)
    data = Page(report(mixture, X)).data
    assert data["clusters"] == data["merges"] == []
    assert data["n_outliers"] == 50


def test_student_t_components_are_as_near_as_they_overlap(tmp_path):
    """Two Cauchy distributions overlap more than two Gaussian ones that are nearer."""
    means = np.array([[0.0, 0], [6, 0], [0, 400], [5, 400]])
    mixture = StudentTMixture.from_parameters(
        [0.3, 0.27, 0.23, 0.2],
        means,
        np.tile(np.eye(2), (4, 1, 1)),
        degrees_of_freedom=[1.0, 1, 1e6, 1e6],
    )
    X, _ = mixture.sample(200)
    cluster_report(mixture, X, file=tmp_path / "report.html")
    data = Page(tmp_path / "report.html").data
    overlaps = [cluster["overlap"] for cluster in data["clusters"]]
    assert overlaps[0] == overlaps[1] > 5 * overlaps[2] == 5 * overlaps[3]
    assert data["merges"][0] == [0, 1]
    x, y = (np.array([cluster[name] for cluster in data["clusters"]]) for name in "xy")
    assert np.hypot(x[0] - x[1], y[0] - y[1]) < np.hypot(x[2] - x[3], y[2] - y[3])
