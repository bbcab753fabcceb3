"""Error codes, wire versions, error labels and message overheads occur only in `_server_facts`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gmongo
from gmongo._server_facts import codes, labels, sizes, wire_versions

ROOT = Path(gmongo.__file__).parent
# The simulated servers in `gmongo.testing` have their own codes, because a server does not share code with a driver.
EXEMPT = ("_server_facts", "testing")
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in EXEMPT]

CODES = {value for value in vars(codes).values() if isinstance(value, int)}
LABELS = {value for name, value in vars(labels).items() if name.isupper()}
LARGE = {sizes.MAX_BSON_SIZE, sizes.MAX_MESSAGE_SIZE}
COMPARED = ("code", "wire_version", "label")
LIMITED = ("max_bson_size", "max_message_size", "max_write_batch_size", "message_size", "document_size")


def server_facts_in(source: str) -> set[str]:
    tree = ast.parse(source)
    numbers = dict(_named_numbers(tree))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in LABELS:
            found.add(f"label {node.value}")
        elif isinstance(node, ast.Compare) and _contains_name(node, COMPARED):
            found |= {f"number {each}" for each in _numbers_in(node, numbers)}
        elif isinstance(node, ast.BinOp) and _contains_name(node, LIMITED):
            found |= {f"size {each}" for each in _numbers_in(node, numbers)}
        elif isinstance(node, ast.Dict | ast.Set) and len(_codes_of(node)) > 1:
            found |= {f"code {each}" for each in _codes_of(node)}
        value = _number(node) if isinstance(node, ast.expr) else None
        if value in LARGE:
            found.add(f"size {value}")
    return found


def _named_numbers(tree: ast.Module) -> Iterator[tuple[str, set[int]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values = {value for each in ast.walk(node.value) if (value := _number(each)) is not None}
            if values:
                yield node.targets[0].id, values


def _numbers_in(expression: ast.expr, numbers_of_constants: dict[str, set[int]]) -> set[int]:
    """Return the integers in an expression, except -1, 0 and 1.

    :param numbers_of_constants: the integers in the definition of each constant. If the expression
        names a constant, the result contains these integers.
    """
    found: set[int] = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id.isupper():
            found |= numbers_of_constants.get(node.id, set())
        elif (value := _number(node)) is not None:
            found.add(value)
    return found - {-1, 0, 1}


def _number(node: ast.AST) -> int | None:
    """Return the value of an integer literal or of a product of literals. Otherwise return None."""
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
    """Return the elements of a set or the keys of a dict in source code, if all are error codes."""
    elements = node.keys if isinstance(node, ast.Dict) else node.elts
    values = {_number(each) for each in elements if each is not None}
    return {value for value in values if value is not None} if values <= CODES else set()


def test_other_modules_contain_no_server_facts() -> None:
    found = {path: server_facts_in(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: facts for path, facts in found.items() if facts} == {}


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        ("error.code == 50", {"number 50"}),
        ("reply.get('code') == 64", {"number 64"}),
        ("error.code in (6, 7)", {"number 6", "number 7"}),
        ("_X = 391\nerror.code != _X", {"number 391"}),
        ("_X = frozenset({6, 7})\ndef f(code): return code in _X", {"code 6", "code 7", "number 6", "number 7"}),
        ("{43: CursorNotFound, 50: ExecutionTimeout}", {"code 43", "code 50"}),
        ("hello.max_wire_version >= 9", {"number 9"}),
        ("_X = 13\ndef f(wire_version): return wire_version < _X", {"number 13"}),
        ("error.has_error_label('RetryableWriteError')", {"label RetryableWriteError"}),
        ("hello.max_bson_size + 16 * 1024", {"size 16384", "size 16", "size 1024"}),
        ("_X = 1000\nroom = limits.message_size - _X", {"size 1000"}),
        ("x = 48_000_000", {"size 48000000"}),
        ("x = 16 * 1024 * 1024", {"size 16777216"}),
        ("error.code == codes.MAX_TIME_MS_EXPIRED", set()),
        ("encode(x) == 50", set()),
        ("error.code is None or error.code < 0", set()),
        ("_BUFFER = 16 * 1024", set()),
    ],
)
def test_server_facts_in_source_are_found(source: str, facts: set[str]) -> None:
    assert server_facts_in(source) == facts


def test_each_server_fact_is_used() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    names = {name for module in (labels, sizes, wire_versions) for name in vars(module) if name.isupper()}
    assert {name for name in names if name not in text} == set()


def test_each_error_code_has_one_name() -> None:
    named = [value for value in vars(codes).values() if isinstance(value, int)]
    assert len(named) == len(set(named))


# The names and numbers come from the server's error_codes.yml and from the specifications.
NUMBERS = {
    "AUTHENTICATION_FAILED": 18, "ILLEGAL_OPERATION": 20, "NAMESPACE_NOT_FOUND": 26, "CURSOR_NOT_FOUND": 43,
    "MAX_TIME_MS_EXPIRED": 50, "WRITE_CONCERN_TIMEOUT": 64, "MULTIPLE_ERRORS_OCCURRED": 65, "API_STRICT_ERROR": 323,
    "API_DEPRECATION_ERROR": 324, "REAUTHENTICATION_REQUIRED": 391, "DUPLICATE_KEY": 11000,
    "DUPLICATE_KEY_IN_UPDATE": 11001, "DUPLICATE_KEY_IN_CAPPED_COLLECTION": 12582,
}  # fmt: skip
SETS = {
    "NOT_PRIMARY": {10107, 13435, 10058},
    "RECOVERING": {11600, 11602, 13436, 189, 91},
    "SHUTDOWN": {11600, 91},
    "STATE_CHANGE": {10107, 13435, 10058, 11600, 11602, 13436, 189, 91},
    "RETRYABLE_WRITE": {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436},
    "RETRYABLE_READ": {6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436},
    "RESUMABLE_CHANGE_STREAM": {
        *(6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436)
    },
    "BAD_WRITE_CONCERN": {79, 100},
    "CURSOR_GONE": {43, 96, 136, 17406, 175, 237},
    "API_REFUSALS": {323, 324},
}
RELEASES = {5: "3.4", 6: "3.6", 8: "4.2", 9: "4.4", 13: "5.0", 17: "6.0", 21: "7.0", 22: "7.1", 25: "8.0", 29: "8.2"}


def test_error_codes_match_server() -> None:
    sets = {name: value for name, value in vars(codes).items() if isinstance(value, frozenset)}
    assert sets == SETS
    alone = {name: value for name, value in vars(codes).items() if isinstance(value, int)}
    in_sets = frozenset().union(*sets.values())
    assert {name: value for name, value in alone.items() if value not in in_sets or name in NUMBERS} == NUMBERS


def test_wire_versions_match_releases() -> None:
    """Compare each wire version with the server release that the preceding comment in the module
    names.
    """
    release = ""
    found = {}
    for line in (ROOT / "_server_facts/wire_versions.py").read_text("utf-8").splitlines():
        if match := re.match(r"# MongoDB (\d+\.\d+)", line):
            release = match[1]
        elif match := re.match(r"(\w+) = (\d+)$", line):
            found[match[1]] = int(match[2]), release
    assert found.pop("MIN_SUPPORTED") == (8, "4.2") and found.pop("MAX_SUPPORTED")[0] == 29
    assert len(found) > 10
    for name, (version, release) in found.items():
        assert RELEASES[version] == release, name


def test_size_limits_match_documentation() -> None:
    assert {name: value for name, value in vars(sizes).items() if isinstance(value, int)} == {
        "MAX_BSON_SIZE": 16_777_216, "MAX_MESSAGE_SIZE": 48_000_000, "MAX_WRITE_BATCH_SIZE": 1000,
        "USUAL_WRITE_BATCH_SIZE": 100_000, "COMMAND_OVERHEAD": 16_384, "BULK_WRITE_OVERHEAD": 1000,
    }  # fmt: skip
