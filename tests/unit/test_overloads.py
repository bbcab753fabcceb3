"""The overloads of a function have the parameter defaults of the implementation."""

from __future__ import annotations

import ast
from pathlib import Path

import gmongo


def is_overload(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list)


def parameter_defaults(function: ast.FunctionDef) -> dict[str, str]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_one = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    with_one += [
        (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    ]
    return {name.arg: ast.unparse(value) for name, value in with_one}


def overloads_with_implementations(tree: ast.AST) -> list[tuple[ast.FunctionDef, ast.FunctionDef]]:
    pairs = []
    for node in ast.walk(tree):
        waiting: list[ast.FunctionDef] = []
        for each in getattr(node, "body", ()) if isinstance(node, (ast.Module, ast.ClassDef)) else ():
            if isinstance(each, ast.FunctionDef) and is_overload(each):
                waiting.append(each)
            elif waiting and isinstance(each, ast.FunctionDef):
                pairs += [(overload, each) for overload in waiting]
                waiting = []
    return pairs


def test_overloads_have_parameter_defaults_of_implementation() -> None:
    sources = {path: path.read_text("utf-8") for path in Path(gmongo.__file__).parent.rglob("*.py")}
    for path, text in sources.items():
        for overload, function in overloads_with_implementations(ast.parse(text)) if "@overload" in text else ():
            assert overload.name == function.name
            wrong = parameter_defaults(overload).items() - parameter_defaults(function).items()
            assert not wrong, f"{path}:{overload.lineno} has the wrong defaults {wrong}"
