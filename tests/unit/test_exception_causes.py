"""Each `raise` in an exception handler has a `from` clause.

Otherwise Python prints "during handling of the above exception, another exception occurred".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gmongo

ROOT = Path(gmongo.__file__).parent
SETS_THE_CAUSE = {"self._failed", "self._timeout", "malformed_reply_error"}


def raised_in_handlers(node: ast.AST, handles: bool = False) -> Iterator[ast.Raise]:
    """Yield the raise statements of handlers, without nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and handles and child.exc is not None:
            yield child
        function = isinstance(child, (ast.FunctionDef, ast.Lambda))
        yield from raised_in_handlers(child, not function and (handles or isinstance(child, ast.ExceptHandler)))


def test_error_raised_in_handler_names_its_cause() -> None:
    for file in ROOT.rglob("*.py"):
        for each in raised_in_handlers(ast.parse(file.read_text("utf-8"))):
            made_by = ast.unparse(each.exc.func) if isinstance(each.exc, ast.Call) else ""
            assert each.cause is not None or made_by in SETS_THE_CAUSE, f"{file}:{each.lineno}"
