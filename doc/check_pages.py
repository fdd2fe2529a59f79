"""Open pages of the built site in a browser, as a desktop and as a phone show them.

``python doc/check_pages.py doc/_build/html SCREENSHOTS`` needs Playwright and a chromium, whose
path CHROMIUM may give. It fails where a page scrolls sideways, asks another server for
anything, logs an error or leaves a formula undrawn, where a desktop cuts a line of code, and where
the search does not find a page.
"""

import functools
import http.server
import os
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGES = [
    "index",
    "install",
    "api",
    "generated/skvmf.VonMisesFisherMixture",
    "generated/skvmf.datasets.load_docstrings",
    "auto_examples/index",
    "auto_examples/plot_sphere_and_map",
    "auto_examples/plot_embeddings_end_to_end",
    "auto_examples/plot_parameters",
    "auto_examples/plot_clusterers_on_directions",
    "user_guide/index",
    "user_guide/quick_start",
    "user_guide/cluster_embeddings",
    "user_guide/choosing_parameters",
    "user_guide/number_of_components",
    "user_guide/hierarchy",
    "user_guide/many_components",
    "user_guide/larger_than_memory",
    "user_guide/on_a_cluster",
    "user_guide/bertopic",
    "user_guide/streams",
    "user_guide/new_data",
    "user_guide/checkpoints",
    "user_guide/how_it_works",
    "user_guide/vonmises_fisher",
    "user_guide/modified_dirichlet",
    "user_guide/performance",
    "user_guide/faq",
    "user_guide/comparison",
    "reproduction/index",
    "reproduction/grammar_priors",
]
WIDTHS = [1200, 390]
SEARCHES = {
    "number of clusters": "number_of_components",
    "outliers": "background",
    "memory-mapped": "performance",
    "load and save": "save_and_load",
}
TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) return false;
    for (let p = e; p && p !== document.body; p = p.parentElement)
        if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return false;
    return getComputedStyle(e).position !== 'fixed';
}).slice(0, 3).map(e => e.tagName + '.' + e.className)"""


CUT = """() => [...document.querySelectorAll('.bd-article pre')].filter(
    e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40))"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that says nothing."""

    def log_message(self, *args):
        pass


def faults_of(page, address, width):
    """Yield what is wrong with a page at a width."""
    width_of_page = page.evaluate("document.documentElement.scrollWidth")
    if width_of_page > width:
        yield f"{address} at {width}: {width_of_page} wide: {page.evaluate(TOO_WIDE)}"
    cut = page.evaluate(CUT) if width == max(WIDTHS) else []
    if cut:
        yield f"{address} at {width}: lines of code are cut in {cut}"
    formulas, drawn = page.locator(".math").count(), page.locator("mjx-container").count()
    if formulas and not drawn:
        yield f"{address}: {formulas} formulas are not drawn"


def main(site, shots):
    """Print what is wrong and return how many problems there are."""
    shots.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}"
    faults = []
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-headless-shell")
        path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: faults.append(f"{page.url}: {error}"))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((home, "data:", "blob:"))
                or faults.append(f"{page.url} asks for {request.url}")
            ),
        )
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for name in PAGES:
                page.goto(f"{home}/{name}.html")
                page.wait_for_load_state("networkidle")
                faults += faults_of(page, name, width)
                target = shots / f"{name.replace('/', '_')}_{width}.png"
                page.screenshot(path=target, full_page=name == "index")
        for query, expected in SEARCHES.items():
            page.goto(f"{home}/search.html?q={query.replace(' ', '+')}")
            page.wait_for_selector("#search-results li a")
            page.wait_for_timeout(500)
            links = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
            if not any(expected in link for link in links[:5]):
                faults.append(f"a search for {query!r} finds {links[:5]}")
        browser.close()
    server.shutdown()
    print("\n".join(faults) or f"{len(PAGES)} pages at {WIDTHS} pixels: no fault")
    return len(faults)


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), Path(sys.argv[2]))))
