"""Each `raise` of a new error in an exception handler has a `from` clause.

Without the clause, Python prints "during handling of the above exception, another exception occurred".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gmongo

ROOT = Path(gmongo.__file__).parent
SETS_THE_CAUSE = {"self._failed", "self._timeout", "malformed_reply_error"}


def raise_statements_in_handlers(node: ast.AST, in_handler: bool = False) -> Iterator[ast.Raise]:
    """Yield the raise statements of exception handlers, except statements in functions that a handler defines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and in_handler and child.exc is not None:
            yield child
        function = isinstance(child, (ast.FunctionDef, ast.Lambda))
        yield from raise_statements_in_handlers(
            child, not function and (in_handler or isinstance(child, ast.ExceptHandler))
        )


def test_raise_in_exception_handler_has_from_clause() -> None:
    for file in ROOT.rglob("*.py"):
        for each in raise_statements_in_handlers(ast.parse(file.read_text("utf-8"))):
            made_by = ast.unparse(each.exc.func) if isinstance(each.exc, ast.Call) else ""
            assert each.cause is not None or made_by in SETS_THE_CAUSE, f"{file}:{each.lineno}"
