"""``python -m tests.find CMAP-97`` prints tests that match a query. A query is one of the following:

- A requirement, such as ``CMAP-97``. The program prints the tests that prove the requirement.
- A file of gmongo, such as ``cmap/pool.py``. The program prints the tests that
  detect the mutations of the file, and the test files that import the file.
- Words, such as ``interrupted cursor``. The program prints the tests whose path, module docstring,
  name and docstring together contain all words. The name or docstring must contain at least one word.
  The program also prints the tests that detect a mutation whose description contains all words.

The search reads the source code of the tests, and does not import the tests.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.pages import ROOT, TESTS, find_proofs

CONFORMANCE = ROOT / "docs" / "conformance"
_REQUIREMENT_NAME = re.compile(r"[A-Z]+-\d+")
_MAX_RESULTS = 60


def search(query: str) -> list[str]:
    """Return lines with the pytest IDs or files of the tests that match the query.

    In a search for words, a comment after the tests that detect a mutation describes the mutation.
    """
    if _REQUIREMENT_NAME.fullmatch(query):
        return find_proofs().get(query, [])
    if query.endswith(".py"):
        return list(dict.fromkeys(_tests_of_file(query.removeprefix("./").removeprefix("gmongo/"))))
    words = list(filter(None, map(_letters_and_digits, query.split())))
    return [*_tests_with_words(words), *_tests_of_mutations(words)]


def _tests_of_file(file: str) -> Iterator[str]:
    # The import is local, because the imported module reads `mutations.jsonl`.
    from tests.mutations.tables import AREAS

    for mutations in AREAS.values():
        for mutation in mutations:
            if mutation.file == file:
                yield from mutation.targets
    module = "gmongo." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, name = module.rpartition(".")
    import_patterns = (rf"from {module} import", rf"from {package} import .*\b{name}\b", rf"import {module}\b")
    import_pattern = re.compile(rf"^\s*(?:{'|'.join(import_patterns)})")
    for path in _test_files():
        if any(map(import_pattern.match, path.read_text("utf-8").splitlines())):
            yield path.relative_to(ROOT).as_posix()


def _tests_with_words(words: list[str]) -> Iterator[str]:
    for path in _test_files():
        tree = ast.parse(path.read_text("utf-8"))
        file = path.relative_to(ROOT).as_posix()
        module_text = f"{file} {ast.get_docstring(tree) or ''}"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                text = f"{node.name} {ast.get_docstring(node) or ''}"
                if _contains_words(f"{module_text} {text}", words) and _contains_words(text, words, any_word=True):
                    yield f"{file}::{node.name}"


def _tests_of_mutations(words: list[str]) -> Iterator[str]:
    from tests.mutations.tables import AREAS

    for mutations in AREAS.values():
        for mutation in mutations:
            if _contains_words(mutation.what, words):
                yield f"{' '.join(dict.fromkeys(mutation.targets))}  # {mutation.what}"


def _contains_words(text: str, words: Iterable[str], any_word: bool = False) -> bool:
    letters = _letters_and_digits(text)
    return (any if any_word else all)(word in letters for word in words)


def _letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, in lower case.

    Therefore searches for ``back-off``, ``back_off`` and ``backoff`` have equal results.
    """
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _test_files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def _requirement_text(name: str) -> str:
    """Return a comment line with the level and text of a requirement from its conformance page."""
    row_pattern = re.compile(rf"^\| {name} \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
    rows = filter(None, (row_pattern.search(page.read_text("utf-8")) for page in sorted(CONFORMANCE.glob("*.md"))))
    return "".join(f"# {each[1]}: {each[2]}" for each in rows)


def main(query: list[str]) -> int:
    if not query:
        print(__doc__)
        return 2
    lines = search(" ".join(query))
    if _REQUIREMENT_NAME.fullmatch(query[0]):
        print(_requirement_text(query[0]))
    print("\n".join(lines[:_MAX_RESULTS]) or f"no tests found for {' '.join(query)}")
    if len(lines) > _MAX_RESULTS:
        print(f"and {len(lines) - _MAX_RESULTS} more: add words to the query")
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
