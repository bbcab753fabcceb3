"""Write and check the conformance pages ``docs/conformance/<specification>.md``.

A page has one row for each requirement of a specification.

A page contains a table ``| ID | Level | What it demands | Proof |``. Authors write the first three
columns. ``python -m tests.conformance.pages --write`` writes the last column from the markers of all
tests, such as ``@pytest.mark.requirement("CMAP-17")``. If no test can prove a requirement, the author
of the page writes a reason that begins with ``none: `` in the last column.

The program reads the markers from the source code, and does not import the tests. A new page needs
no entry in another file.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS, PAGES = ROOT / "tests", ROOT / "docs" / "conformance"
NO_PROOF = "none: "
UNPROVEN = "**not proven**"
MAX_SHOWN_TESTS = 6  # Maximum number of tests that a row of a page names.

_ROW_REGEX = re.compile(r"^\| (?P<id>[A-Z]+-\d+) \| (?P<level>[^|]+) \| (?P<demand>[^|]+) \|(?P<proof>.*)\|$")

# Requirement ID -> names of the tests that prove the requirement, such as
# tests/cmap/test_clear.py::test_x.
Proofs = dict[str, list[str]]


@dataclass(frozen=True)
class Row:
    id: str
    level: str
    demand: str
    proof: str

    def __str__(self) -> str:
        return f"| {self.id} | {self.level} | {self.demand} | {self.proof} |"

    @property
    def reason(self) -> str | None:
        """The reason why no test proves the requirement, or None if the row contains no reason."""
        return self.proof if self.proof.startswith(NO_PROOF) and len(self.proof) > len(NO_PROOF) else None


def find_proofs(tests: Path = TESTS) -> Proofs:
    """Return the names of the tests that have a marker for a requirement, keyed by the requirement
    ID.
    """
    proofs: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(tests.rglob("*.py")):
        file_name = file.relative_to(tests.parent).as_posix()
        for identifier, name in read_markers(file.read_text("utf-8")):
            proofs[identifier].append(f"{file_name}::{name}")
    return dict(proofs)


def read_markers(source: str) -> Iterator[tuple[str, str]]:
    """For each marker in a file of tests, yield the requirement ID and the name of the test.

    A marker of a class or module applies to all its tests.
    """
    module = ast.parse(source)
    module_ids = _assigned_markers(module.body)
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            class_ids = module_ids + _decorator_markers(node) + _assigned_markers(node.body)
            for member in node.body:
                yield from _markers_of_test(member, class_ids, f"{node.name}::")
        else:
            yield from _markers_of_test(node, module_ids, "")


def _markers_of_test(node: ast.AST, inherited_ids: list[str], prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        for identifier in dict.fromkeys(inherited_ids + _decorator_markers(node)):
            yield identifier, prefix + node.name


def _decorator_markers(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    return [identifier for decorator in node.decorator_list for identifier in _ids_in(decorator)]


def _assigned_markers(body: list[ast.stmt]) -> list[str]:
    """Return the requirement IDs that ``pytestmark = ...`` assigns to a module or class."""
    return [
        identifier
        for statement in body
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in statement.targets)
        for identifier in _ids_in(statement.value)
    ]


def _ids_in(expression: ast.AST) -> list[str]:
    return [
        argument.value
        for call in ast.walk(expression)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.requirement")
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def pages(folder: Path = PAGES) -> list[Path]:
    return sorted(page for page in folder.glob("*.md") if page.name != "README.md")


def read_rows(text: str) -> list[Row]:
    matches = filter(None, map(_ROW_REGEX.match, text.splitlines()))
    return [Row(*(value.strip() for value in match.group("id", "level", "demand", "proof"))) for match in matches]


def render_page(text: str, proofs: Proofs) -> str:
    """Return the text of a page with the current proofs in the last column."""
    return "\n".join(_render_line(line, proofs) for line in text.splitlines()) + "\n"


def _render_line(line: str, proofs: Proofs) -> str:
    rows = read_rows(line)
    return str(replace(rows[0], proof=_proof_cell(rows[0], proofs))) if rows else line


def _proof_cell(row: Row, proofs: Proofs) -> str:
    test_names = proofs.get(row.id, [])
    if not test_names:
        return row.reason or UNPROVEN
    links = [_markdown_link(name) for name in test_names[:MAX_SHOWN_TESTS]]
    omitted_count = len(test_names) - MAX_SHOWN_TESTS
    return ", ".join([*links, *([f"and {omitted_count} more"] if omitted_count > 0 else [])])


def _markdown_link(test_name: str) -> str:
    file, _, name = test_name.partition("::")
    return f"[{file}::{name}](../../{file})"


def differences_of_pages(folder: Path = PAGES, tests: Path = TESTS) -> list[str]:
    """Return a text for each difference between the pages and the markers of the tests."""
    proofs = find_proofs(tests)
    known: dict[str, str] = {}
    found: list[str] = []
    for page in pages(folder):
        text = page.read_text("utf-8")
        for row in read_rows(text):
            if row.id in known:
                found.append(f"{page.name}: {row.id} is there twice")
            known[row.id] = page.name
            if row.id not in proofs and row.reason is None:
                found.append(f"{page.name}: {row.id} has neither a proof nor a reason")
            if row.id in proofs and row.reason is not None:
                found.append(f"{page.name}: {row.id} has a proof, so remove its reason")
        if render_page(text, proofs) != text:
            found.append(f"{page.name}: out of date; run python -m tests.conformance.pages --write")
    prefixes = {identifier.split("-")[0] for identifier in known}
    unknown = sorted(each for each in proofs if each.split("-")[0] in prefixes and each not in known)
    return found + [f"{proofs[each][0]}: no page knows {each}" for each in unknown]


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that the conformance pages agree with the tests.")
    parser.add_argument("--write", action="store_true", help="update the column of proofs first")
    if parser.parse_args().write:
        proofs = find_proofs()
        for page in pages():
            page.write_text(render_page(page.read_text("utf-8"), proofs), "utf-8")
    found = differences_of_pages()
    print("\n".join(found) or f"{len(pages())} page(s) agree with the tests")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
