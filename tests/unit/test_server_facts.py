"""In the driver, only `_server_facts` contains error codes, error labels, wire versions and sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gmongo
from gmongo._server_facts import codes, labels, sizes, wire_versions
from tests.support.cases import rows, with_cases

ROOT = Path(gmongo.__file__).parent
# The simulated servers in `gmongo.testing` define their own error codes, labels and sizes.
EXEMPT_PACKAGES = ("_server_facts", "testing")
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in EXEMPT_PACKAGES]

CODES = {value for value in vars(codes).values() if isinstance(value, int)}
LABELS = {value for name, value in vars(labels).items() if name.isupper()}
LARGE_SIZES = {sizes.MAX_BSON_SIZE, sizes.MAX_MESSAGE_SIZE}
COMPARED_NAMES = ("code", "wire_version", "label")
SIZE_NAMES = ("max_bson_size", "max_message_size", "max_write_batch_size", "message_size", "document_size")


def server_facts_in(source: str) -> set[str]:
    tree = ast.parse(source)
    numbers = dict(_named_numbers(tree))
    facts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in LABELS:
            facts.add(f"label {node.value}")
        elif isinstance(node, ast.Compare) and _contains_name(node, COMPARED_NAMES):
            facts |= {f"number {each}" for each in _numbers_in(node, numbers)}
        elif isinstance(node, ast.BinOp) and _contains_name(node, SIZE_NAMES):
            facts |= {f"size {each}" for each in _numbers_in(node, numbers)}
        elif isinstance(node, ast.Dict | ast.Set) and len(_codes_of(node)) > 1:
            facts |= {f"code {each}" for each in _codes_of(node)}
        value = _number(node) if isinstance(node, ast.expr) else None
        if value in LARGE_SIZES:
            facts.add(f"size {value}")
    return facts


def _named_numbers(tree: ast.Module) -> Iterator[tuple[str, set[int]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values = {value for each in ast.walk(node.value) if (value := _number(each)) is not None}
            if values:
                yield node.targets[0].id, values


def _numbers_in(expression: ast.expr, numbers_of_constants: dict[str, set[int]]) -> set[int]:
    """Return the integers in an expression and in its named constants, except -1, 0 and 1."""
    numbers: set[int] = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id.isupper():
            numbers |= numbers_of_constants.get(node.id, set())
        elif (value := _number(node)) is not None:
            numbers.add(value)
    return numbers - {-1, 0, 1}


def _number(node: ast.AST) -> int | None:
    """Return the value of an integer literal or of a product of literals, else None."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left), _number(node.right)
        return None if left is None or right is None else left * right
    return None


def _contains_name(expression: ast.expr, words: tuple[str, ...]) -> bool:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)}
    names |= {str(node.value) for node in ast.walk(expression) if isinstance(node, ast.Constant)}
    return any(name == word or name.endswith(f"_{word}") for name in names for word in words)


def _codes_of(node: ast.Dict | ast.Set) -> set[int]:
    """Return the elements of a set or the keys of a dict if all are error codes, else no codes."""
    elements = node.keys if isinstance(node, ast.Dict) else node.elts
    values = {_number(each) for each in elements if each is not None}
    return {value for value in values if value is not None} if values <= CODES else set()


def test_server_facts_occur_only_in_their_package() -> None:
    facts_by_path = {path: server_facts_in(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: facts for path, facts in facts_by_path.items() if facts} == {}


@with_cases
def test_server_facts_in_source_are_found(source: str, facts: list[str]) -> None:
    assert server_facts_in(source) == set(facts)


def test_each_server_fact_is_used() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    names = {name for module in (labels, sizes, wire_versions) for name in vars(module) if name.isupper()}
    assert {name for name in names if name not in text} == set()


def test_each_error_code_has_one_name() -> None:
    code_values = [value for value in vars(codes).values() if isinstance(value, int)]
    assert len(code_values) == len(set(code_values))


# The names and numbers come from the server's error_codes.yml and from the specifications.
NAMED_CODES = {row["name"]: row["code"] for row in rows(__file__, "codes")}
CODE_SETS = {row["name"]: set(row["codes"]) for row in rows(__file__, "sets of codes")}
RELEASES = {row["wire_version"]: row["release"] for row in rows(__file__, "releases")}


def test_error_codes_match_server() -> None:
    sets = {name: value for name, value in vars(codes).items() if isinstance(value, frozenset) and name[0] != "_"}
    assert sets == CODE_SETS
    all_codes = {name: value for name, value in vars(codes).items() if isinstance(value, int)}
    in_sets = frozenset().union(*sets.values())
    assert {name: code for name, code in all_codes.items() if code not in in_sets or name in NAMED_CODES} == NAMED_CODES


def test_wire_versions_match_releases() -> None:
    """Check that the comment before each wire version states the correct server release."""
    release = ""
    versions_by_name = {}
    for line in (ROOT / "_server_facts/wire_versions.py").read_text("utf-8").splitlines():
        if match := re.match(r"# MongoDB (\d+\.\d+)", line):
            release = match[1]
        elif match := re.match(r"(\w+) = (\d+)$", line):
            versions_by_name[match[1]] = int(match[2]), release
    assert versions_by_name.pop("MIN_SUPPORTED") == (8, "4.2") and versions_by_name.pop("MAX_SUPPORTED")[0] == 29
    assert len(versions_by_name) > 10
    for name, (version, release) in versions_by_name.items():
        assert RELEASES[version] == release, name


def test_size_limits_match_documentation() -> None:
    assert {name: value for name, value in vars(sizes).items() if isinstance(value, int)} == {
        "MAX_BSON_SIZE": 16_777_216, "MAX_MESSAGE_SIZE": 48_000_000, "MAX_WRITE_BATCH_SIZE": 1000,
        "USUAL_WRITE_BATCH_SIZE": 100_000, "COMMAND_OVERHEAD": 16_384, "BULK_WRITE_OVERHEAD": 1000,
    }  # fmt: skip
