"""Test of the program that checks the links of the built documentation."""

from __future__ import annotations

from pathlib import Path

from tests.pages.links import find_broken_links


def test_check_finds_broken_links_and_anchors(tmp_path: Path) -> None:
    there = '<a href="b.html#there">b</a><a href="#top" id="top">top</a><img src="a.png?1"><a href="https://x/">x</a>'
    (tmp_path / "a.html").write_text(f'{there}<a href="c.html">c</a><a href="b.html#not">b</a><a href="#not">a</a>')
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "a.png").write_bytes(b"")
    assert sorted(find_broken_links(tmp_path)) == ["a.html: #not", "a.html: b.html#not", "a.html: c.html"]
