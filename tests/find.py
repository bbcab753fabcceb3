"""Where a rule, a file or a symptom is tested: ``python -m tests.find CMAP-97``.

- a rule, such as ``CMAP-97``: the tests that prove it;
- a file of gmongo, such as ``cmap/background.py``: the tests that its mutations turn red, and the tests that import it;
- words, such as ``interrupted cursor``: the tests whose name, docstring or file has all of them, and the tests of the
  mutations whose description has them.

Tests are read without being imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.pages import ROOT, TESTS, find_proofs

CONFORMANCE = ROOT / "docs" / "conformance"
_RULE = re.compile(r"[A-Z]+-\d+")
_MOST = 60


def found(asked: str) -> list[str]:
    """What pytest takes to run the tests that are asked for, each with a remark perhaps."""
    if _RULE.fullmatch(asked):
        return find_proofs().get(asked, [])
    if asked.endswith(".py"):
        return list(dict.fromkeys(_of_file(asked.removeprefix("./").removeprefix("gmongo/"))))
    words = list(filter(None, map(_letters, asked.split())))
    return [*_saying(words), *_faults(words)]


def _of_file(file: str) -> Iterator[str]:
    from tests.mutations.tables import AREAS  # it reads all pages

    for mutations in AREAS.values():
        for mutation in mutations:
            if mutation.file == file:
                yield from mutation.targets
    module = "gmongo." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    imports = (rf"from {module} import", rf"from {package} import .*\b{name}\b", rf"import {module}\b")
    imported = re.compile(rf"^\s*(?:{'|'.join(imports)})")
    for path in _files():
        if any(map(imported.match, path.read_text("utf-8").splitlines())):
            yield path.relative_to(ROOT).as_posix()


def _saying(words: list[str]) -> Iterator[str]:
    for path in _files():
        tree = ast.parse(path.read_text("utf-8"))
        where = path.relative_to(ROOT).as_posix()
        about = f"{where} {ast.get_docstring(tree) or ''}"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                own = f"{node.name} {ast.get_docstring(node) or ''}"
                if _says(f"{about} {own}", words) and _says(own, words, any_of_them=True):
                    yield f"{where}::{node.name}"


def _faults(words: list[str]) -> Iterator[str]:
    from tests.mutations.tables import AREAS

    for mutations in AREAS.values():
        for mutation in mutations:
            if _says(mutation.what, words):
                yield f"{' '.join(dict.fromkeys(mutation.targets))}  # {mutation.what}"


def _says(text: str, words: Iterable[str], any_of_them: bool = False) -> bool:
    there = _letters(text)
    return (any if any_of_them else all)(word in there for word in words)


def _letters(text: str) -> str:
    """A text without what separates words: ``back-off``, ``back_off`` and ``backoff`` are the same."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def _rule(name: str) -> str:
    """What a rule says, as the pages of conformance quote it."""
    row = re.compile(rf"^\| {name} \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
    rows = filter(None, (row.search(page.read_text("utf-8")) for page in sorted(CONFORMANCE.glob("*.md"))))
    return "".join(f"# {each[1]}: {each[2]}" for each in rows)


def main(asked: list[str]) -> int:
    """Print them, or say how to ask."""
    if not asked:
        print(__doc__)
        return 2
    lines = found(" ".join(asked))
    if _RULE.fullmatch(asked[0]):
        print(_rule(asked[0]))
    print("\n".join(lines[:_MOST]) or f"no test says so: {' '.join(asked)}")
    if len(lines) > _MOST:
        print(f"and {len(lines) - _MOST} more: ask with further words")
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
