"""The kinds of random changes. Each change replaces the source code of a node in the syntax tree.

The package cosmic-ray is not suitable: cosmic-ray changes annotations, and cannot remove a
statement, argument, `finally` or `except`.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

Edits = Iterator[tuple[ast.AST, str]]


@dataclass(frozen=True, order=True)
class Change:
    """A change of a file below ``gmongo``: `new` replaces the bytes from `start` to `end`.

    :ivar kind: A name in :data:`EDIT_FUNCTIONS`.
    """

    file: str
    line: int
    kind: str
    start: int
    end: int
    new: str

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",),
    ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.BitOr: "&", ast.BitAnd: "|", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_SWAPPED_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TYPING_FUNCTIONS = {"cast", "TypeVar", "ParamSpec", "NewType"}
# Functions whose calls never change: a changed argument could send a signal to another process.
_SIGNAL_FUNCTIONS = {"kill", "killpg"}


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _edit_comparisons(node: ast.AST) -> Edits:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _text(node.left), _text(node.comparators[0])
        for operator in _COMPARISONS[type(node.ops[0])]:
            yield node, f"({left} {operator} {right})"


def _edit_numbers(node: ast.AST) -> Edits:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, repr(node.value + 1 if isinstance(node.value, int) else node.value * 2)
        if node.value:
            yield node, repr(node.value - 1 if isinstance(node.value, int) else 0.0)


def _edit_flags(node: ast.AST) -> Edits:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value)


def _edit_names(node: ast.AST) -> Edits:
    """Change string constants that are names, such as the names of command fields."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lstrip("$").isidentifier():
        yield node, repr(node.value + "X")


def _edit_conditions(node: ast.AST) -> Edits:
    if isinstance(node, (ast.If, ast.IfExp)):
        yield node.test, f"(not ({_text(node.test)}))"
        yield node.test, "True"
        yield node.test, "False"
    if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        yield node.test, "False"
    for each in getattr(node, "ifs", ()):  # the conditions in a comprehension
        yield each, "True"


def _edit_and_or(node: ast.AST) -> Edits:
    if isinstance(node, ast.BoolOp):
        texts = [f"({_text(value)})" for value in node.values]
        yield node, f"({(' or ' if isinstance(node.op, ast.And) else ' and ').join(texts)})"
        for left_out in range(len(texts)):
            rest = texts[:left_out] + texts[left_out + 1 :]
            yield node, f"({(' and ' if isinstance(node.op, ast.And) else ' or ').join(rest)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node, f"({_text(node.operand)})"


def _edit_arithmetic(node: ast.AST) -> Edits:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _text(node.left), _text(node.right)
        if not _is_text(node.left) and not _is_text(node.right):
            yield node, f"({left} {_ARITHMETIC[type(node.op)]} {right})"
        yield node, f"({left})"
        yield node, f"({right})"
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield node, f"{_text(node.target)} {_ARITHMETIC[type(node.op)]}= {_text(node.value)}"
        yield node, f"{_text(node.target)} = {_text(node.value)}"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _edit_statements(node: ast.AST) -> Edits:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"
    if isinstance(node, ast.Assign) and not any(isinstance(target, (ast.Name, ast.Tuple)) for target in node.targets):
        yield node, "pass"
    if isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise)) or (isinstance(node, ast.Return) and not node.value):
        yield node, "pass"
    if isinstance(node, ast.Continue):
        yield node, "break"
        yield node, "pass"
    if isinstance(node, ast.Break):
        yield node, "pass"


def _edit_results(node: ast.AST) -> Edits:
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield node, "return None"


def _edit_loops(node: ast.AST) -> Edits:
    if isinstance(node, ast.For):
        yield node.iter, "()"
        yield node.iter, f"list({_text(node.iter)})[:1]"
        yield node.iter, f"list({_text(node.iter)})[1:]"


def _edit_cleanups(node: ast.AST) -> Edits:
    if isinstance(node, ast.Try):
        if node.finalbody:
            yield _Span(node.finalbody), "pass"
        for handler in node.handlers:
            if not (len(handler.body) == 1 and isinstance(handler.body[0], (ast.Pass, ast.Raise))):
                yield _Span(handler.body), "raise"
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        if isinstance(node.type, ast.Tuple):
            for left_out in node.type.elts:
                yield (
                    node.type,
                    f"({', '.join(_text(each) for each in node.type.elts if each is not left_out)},)",
                )
        elif _text(node.type) == "BaseException":
            yield node.type, "Exception"
        else:
            yield node.type, "()"


def _edit_exceptions(node: ast.AST) -> Edits:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield node.exc, f"ArithmeticError({_text(node.exc)})"
    if isinstance(node, ast.Raise) and node.cause:
        yield node, f"raise {_text(node.exc) if node.exc else ''}"


def _edit_arguments(node: ast.AST) -> Edits:
    if isinstance(node, ast.Call):
        arguments = [_text(each) for each in [*node.args, *node.keywords]]
        first = len(node.args) - 1 if node.args and not isinstance(node.args[-1], ast.GeneratorExp) else len(node.args)
        for left_out in range(max(first, 0), len(arguments)):
            rest = ", ".join(arguments[:left_out] + arguments[left_out + 1 :])
            yield node, f"{_text(node.func)}({rest})"
        if isinstance(node.func, ast.Name) and node.func.id in _SWAPPED_FUNCTIONS:
            yield node.func, _SWAPPED_FUNCTIONS[node.func.id]


def _edit_slices(node: ast.AST) -> Edits:
    if isinstance(node, ast.Slice):
        lower, upper = (_text(bound) if bound else "" for bound in (node.lower, node.upper))
        if lower:
            yield node, f":{upper}"
        if upper:
            yield node, f"{lower}:"


EDIT_FUNCTIONS: dict[str, Callable[[ast.AST], Edits]] = {
    "comparison": _edit_comparisons, "number": _edit_numbers, "flag": _edit_flags,
    "name": _edit_names, "condition": _edit_conditions, "and, or": _edit_and_or,
    "arithmetic": _edit_arithmetic, "statement": _edit_statements, "result": _edit_results,
    "loop": _edit_loops, "cleanup": _edit_cleanups, "exception": _edit_exceptions,
    "argument": _edit_arguments, "slice": _edit_slices,
}  # fmt: skip


class _Span(ast.AST):
    """Consecutive statements, as the range of one edit."""

    def __init__(self, body: list[ast.stmt]) -> None:
        super().__init__()
        self.lineno, self.col_offset = body[0].lineno, body[0].col_offset
        self.end_lineno, self.end_col_offset = body[-1].end_lineno, body[-1].end_col_offset


def list_changes(file: str, source: str) -> list[Change]:
    line_offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        line_offsets.append(line_offsets[-1] + len(line))
    changes = set()
    for node in _editable_nodes(ast.parse(source)):
        for kind, edits in EDIT_FUNCTIONS.items():
            for place, new in edits(node):
                start, end = (
                    line_offsets[place.lineno - 1] + place.col_offset,
                    line_offsets[place.end_lineno - 1] + place.end_col_offset,
                )
                changes.add(Change(file, place.lineno, kind, start, end, new))
    return sorted(changes)


def changes_behaviour(change: Change, source: str) -> bool:
    """Return True if the changed file compiles and behaves differently from the unchanged file."""
    try:
        changed = compile(change.apply(source), change.file, "exec", dont_inherit=True)
    # The change may remove the only binding of a variable that a `nonlocal` statement names.
    except SyntaxError:
        return False
    return behaviour_of(changed) != behaviour_of(compile(source, change.file, "exec", dont_inherit=True))


def _editable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and the nodes below this node. Exclude nodes that a change must not edit, such as
    annotations, docstrings, imports and f-strings.
    """
    if isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.If) and _text(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.AnnAssign) and _text(node.annotation) == "TypeAlias":
        return
    if isinstance(node, ast.Assign) and _text(node.targets[0]) in ("__all__", "__slots__"):
        return
    if isinstance(node, ast.Call) and _text(node.func).rpartition(".")[2] in _SIGNAL_FUNCTIONS | _TYPING_FUNCTIONS:
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _editable_nodes(child)


def behaviour_of(code: CodeType) -> object:
    """Return a value that represents the behaviour of a code object.

    If the values of two code objects are equal, the code objects behave in the same way.

    The value omits source positions and unused constants, which a code object may contain. For
    example, Python 3.14 keeps the constant of `while 1`.
    """
    instructions = [
        (each.opcode, each.arg if each.opcode not in dis.hasconst else _constant(each.argval))
        for each in dis.get_instructions(code)
    ]
    return (
        instructions, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_flags, getattr(code, "co_exceptiontable", b""),
    )  # fmt: skip


def _constant(value: object) -> object:
    return behaviour_of(value) if isinstance(value, CodeType) else (type(value), repr(value))
