"""Rules for the source code of gmongo.

- In the driver, only `gmongo._clock` imports `time`, so that a test can replace the clock.
- Each `raise` of a new error in an exception handler has a `from` clause, or calls a function that
  sets the cause. Otherwise, Python prints "during handling of the above exception ...".
- The overloads of a function have the parameter defaults of the implementation, or the default
  ``...``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gmongo import _clock
from tests.unit.test_layers import MODULES

_TIME_IMPORT_RE = re.compile(r"^\s*(from time import|import time\b)", re.MULTILINE)
FUNCTIONS_THAT_SET_CAUSE = {"self._store_error", "self._create_timeout_error", "malformed_reply_error"}


def sources() -> dict[Path, str]:
    """Return the source code of all modules, keyed by path. Read the files at each call, because a
    mutation may change a file.
    """
    return {path: path.read_text("utf-8") for path in MODULES.values()}


def test_only_clock_module_imports_time_module() -> None:
    others = {path: text for path, text in sources().items() if "testing" not in path.parts}
    del others[Path(_clock.__file__)]
    assert len(others) > 100
    assert [str(path) for path, text in others.items() if _TIME_IMPORT_RE.search(text)] == []


def raise_statements_in_handlers(node: ast.AST, in_handler: bool = False) -> Iterator[ast.Raise]:
    """Yield the raise statements of exception handlers. Skip each bare ``raise``, and functions that
    a handler defines.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and in_handler and child.exc is not None:
            yield child
        is_function = isinstance(child, (ast.FunctionDef, ast.Lambda))
        yield from raise_statements_in_handlers(
            child, not is_function and (in_handler or isinstance(child, ast.ExceptHandler))
        )


def test_raise_in_exception_handler_has_from_clause() -> None:
    for file, text in sources().items():
        for each in raise_statements_in_handlers(ast.parse(text)):
            called_function = ast.unparse(each.exc.func) if isinstance(each.exc, ast.Call) else ""
            assert each.cause is not None or called_function in FUNCTIONS_THAT_SET_CAUSE, f"{file}:{each.lineno}"


def is_overload(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list)


def parameter_defaults(function: ast.FunctionDef) -> dict[str, str]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    with_default += [
        (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    ]
    return {name.arg: ast.unparse(value) for name, value in with_default}


def overloads_with_implementations(tree: ast.AST) -> list[tuple[ast.FunctionDef, ast.FunctionDef]]:
    pairs = []
    for node in ast.walk(tree):
        overloads: list[ast.FunctionDef] = []
        for each in getattr(node, "body", ()) if isinstance(node, (ast.Module, ast.ClassDef)) else ():
            if isinstance(each, ast.FunctionDef) and is_overload(each):
                overloads.append(each)
            elif overloads and isinstance(each, ast.FunctionDef):
                pairs += [(overload, each) for overload in overloads]
                overloads = []
    return pairs


def test_overloads_have_parameter_defaults_of_implementation() -> None:
    for path, text in sources().items():
        for overload, function in overloads_with_implementations(ast.parse(text)) if "@overload" in text else ():
            assert overload.name == function.name
            wrong_defaults = parameter_defaults(overload).items() - parameter_defaults(function).items()
            wrong_defaults = {each for each in wrong_defaults if each[1] != "..."}
            assert not wrong_defaults, f"{path}:{overload.lineno} has the wrong defaults {wrong_defaults}"
