"""``python -m tests.pages.links FOLDER`` checks the links and anchors in the HTML pages of the built
documentation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

_ADDRESS_ATTRIBUTES = ("href", "src")
_EXTERNAL_ADDRESS = re.compile(r"[a-z]+:")


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in _ADDRESS_ATTRIBUTES and value:
                self.links.append(value)


def find_broken_links(folder: Path) -> Iterator[str]:
    """For each broken link, yield a text that contains the page and the link.

    Links to other sites are not checked.
    """
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    assert pages, f"there is no site in {folder}"
    for path, page in pages.items():
        for link in page.links:
            if _EXTERNAL_ADDRESS.match(link) is None and not _target_exists(path, link, pages):
                yield f"{path.name}: {link}"


def _target_exists(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    address, anchor = urldefrag(link)
    address = unquote(address.partition("?")[0])
    target = (path.parent / address).resolve() if address else path
    return target.exists() and (not anchor or target not in pages or unquote(anchor) in pages[target].anchors)


if __name__ == "__main__":
    sys.exit("\n".join(sorted({*find_broken_links(Path(sys.argv[1]))})) or 0)
