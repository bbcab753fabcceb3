"""An error that is raised while another is handled says which is its cause, or that it has none. Otherwise Python shows
both, and takes the second for an accident ("during handling of the above exception, another exception occurred").
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gmongo

ROOT = Path(gmongo.__file__).parent
SETS_THE_CAUSE = {"self._failed", "self._timeout", "misread"}


def raised_in_handlers(node: ast.AST, handles: bool = False) -> Iterator[ast.Raise]:
    """What is raised in a handler, and not what the functions in it raise."""
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
