"""Style rules: short functions, few uses of `Any`, only existing names in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gmongo
from tests.unit.test_layers import MODULES, layer_or_package_of

ROOT = Path(gmongo.__file__).parent
ARCHITECTURE = ROOT.parent / "ARCHITECTURE.md"

MAX_LINES = 35
MAX_LINES_WHEN_HOT = 80
# These functions run in each operation, or at each creation of a cursor. The functions may have up to
# 80 lines, because calls of additional functions would cost time.
HOT_FUNCTIONS = {
    "execution/attempt.py:Attempt.run",
    "execution/command.py:CommandRunner.run",
    "execution/command_fields.py:CommandFields.add_fields",
    "wire/transport.py:Transport.round_trip",
    "cursor.py:Cursor.__init__",
    "cmap/server_connection.py:ServerConnection.exchange",
}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def function_lengths(module: str) -> Iterator[tuple[str, int]]:
    """For each function of a module, yield the name, and the number of lines of the body without the
    docstring.
    """
    for name, function in _functions(_tree(module), ""):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if body:
            yield (
                f"{MODULES[module].relative_to(ROOT)}:{name}",
                int(body[-1].end_lineno or 0) - body[0].lineno + 1,
            )


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def test_only_hot_functions_exceed_35_lines() -> None:
    lengths = {name: length for module in MODULES for name, length in function_lengths(module)}
    assert {name for name, length in lengths.items() if length > MAX_LINES} == HOT_FUNCTIONS
    assert max(lengths[name] for name in HOT_FUNCTIONS) <= MAX_LINES_WHEN_HOT


# The maximum number of uses of `Any`. The uses are types of option values, of objects of untyped
# libraries, and of results of operations.
MAX_USES_OF_ANY = 41


def count_any(module: str) -> int:
    """Count the uses of `Any` in a module.

    Documents have types of `gmongo._documents` instead of `Any`.
    """
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(_tree(module)))


def test_number_of_uses_of_any_does_not_increase() -> None:
    counts = Counter({module: count_any(module) for module in MODULES if layer_or_package_of(module) != "testing"})
    assert counts.total() <= MAX_USES_OF_ANY, f"reduce the uses of Any in {+counts}"


def names_in(text: str) -> list[str]:
    """Return the names in backquotes that look like a Python file, a folder or a dotted name."""
    quoted_names = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [name for name in quoted_names if re.fullmatch(r"[\w/]+\.py|[\w/]+/|_?[A-Za-z]\w*(\.\w+)+", name)]


def name_exists(name: str) -> bool:
    """Return True if a file, folder, object in a module, or class attribute has the name `name`.
    Do not check names that begin with `gevent`, `pymongo` or `notes`.
    """
    if name.endswith((".py", "/")) or "/" in name:
        return any((base / name).exists() for base in (ROOT, ROOT.parent))
    if name.split(".", maxsplit=1)[0] in ("gevent", "notes", "pymongo"):
        return True
    first, _, rest = name.removeprefix("gmongo.").partition(".")
    sources = [path for module, path in MODULES.items() if module.split(".")[-1] == first]
    if sources:
        return any(re.search(rf"\b{re.escape(rest.split('.')[0])}\b", path.read_text("utf-8")) for path in sources)
    return any(_has_attribute(module, first, rest) for module in MODULES)


def _has_attribute(module: str, class_name: str, attribute: str) -> bool:
    for each in ast.walk(_tree(module)):
        if isinstance(each, ast.ClassDef) and each.name == class_name:
            nodes = list(ast.walk(each))
            names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
            if attribute in names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}:
                return True
    return False


def test_every_name_in_the_architecture_page_exists() -> None:
    assert [name for name in names_in(ARCHITECTURE.read_text("utf-8")) if not name_exists(name)] == []


@pytest.mark.parametrize("name", ["cmap/nothing.py", "nothing/", "Pool.nothing", "Nothing.check_out", "_clock.nothing"])
def test_missing_name_on_page_is_detected(name: str) -> None:
    assert names_in(f"`{name}`") == [name]
    assert not name_exists(name)
