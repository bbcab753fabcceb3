"""What type checkers are told of a function, by its overloads, is what it does without an argument."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gmongo

ROOT = Path(gmongo.__file__).parent
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def is_overload(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list)


def defaults(function: ast.FunctionDef) -> dict[str, str]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    with_one = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    with_one += [
        (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    ]
    return {name.arg: ast.unparse(value) for name, value in with_one}


def overloaded(tree: ast.AST) -> list[tuple[ast.FunctionDef, ast.FunctionDef]]:
    """Each overload, with the function that it stands for."""
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


@pytest.mark.parametrize("file", [file for file, tree in TREES.items() if overloaded(tree)])
def test_it_has_the_defaults_of_the_function(file: str) -> None:
    for overload, function in overloaded(TREES[file]):
        assert overload.name == function.name
        wrong = defaults(overload).items() - defaults(function).items()
        assert not wrong, f"{file}:{overload.lineno} says that {wrong} is the default"
