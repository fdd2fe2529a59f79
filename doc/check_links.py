"""Say which links and pictures of the built site lead nowhere: ``python doc/check_links.py HTML``.

Only what the site itself should have is looked for; other sites are not asked. Addresses of objects
and folders of the machine that built it have no place in a page either.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEAK = re.compile(r"object at 0x|/home/\w|/root/|/tmp/\w")


class Page(HTMLParser):
    """The names that a page can be entered by, and where it leads."""

    def __init__(self, path):
        super().__init__()
        self.names, self.targets = set(), []
        text = path.read_text(encoding="utf-8")
        self.leaks = set(LEAK.findall(text))
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def main(site):
    """Print dead ends and return how many there are."""
    site = site.resolve()
    pages = {path: Page(path) for path in site.rglob("*.html") if path.parent != site / "_static"}
    dead, seen = set(), 0
    for path, page in pages.items():
        where = path.relative_to(site)
        dead |= {f"{where}: has {leak}" for leak in page.leaks}
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            end = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = pages[end].names if end in pages and parts.fragment else {parts.fragment}
            if not end.exists() or unquote(parts.fragment) not in names | {""}:
                dead.add(f"{where}: {target}")
    print("\n".join(sorted(dead)) or f"{seen} links in {len(pages)} pages: none leads nowhere")
    return len(dead)


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]))))
