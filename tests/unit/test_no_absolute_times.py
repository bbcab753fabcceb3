"""No test asserts an upper limit in seconds, because such a limit depends on the machine."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

from tests.support.cases import with_cases

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "monotonic_ns", "perf_counter_ns"}
MODULES = {"time", "_clock"}


def test_no_test_asserts_upper_limit_in_seconds() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in lines_with_upper_limits(path.read_text("utf-8"))
    ]
    assert not found


@with_cases
def test_asserted_upper_limit_in_seconds_is_detected(code: str) -> None:
    assert list(lines_with_upper_limits(code))


@with_cases
def test_time_comparison_that_is_independent_of_machine_is_accepted(code: str) -> None:
    assert not list(lines_with_upper_limits(code))


def lines_with_upper_limits(code: str) -> Iterator[int]:
    """Yield the lines of assertions that compare a measured time with an upper limit in seconds."""
    if not any(name in code for name in (*CLOCKS, "duration")):
        return
    module = ast.parse(code)
    functions = [each for each in ast.walk(module) if isinstance(each, ast.FunctionDef)]
    inner = {id(each) for function in functions for each in ast.walk(function) if each is not function}
    outermost = [each for each in functions if id(each) not in inner]
    for scope in outermost or [module]:
        measured = _MeasuredTimes(scope)
        for assertion in ast.walk(scope):
            if isinstance(assertion, ast.Assert) and any(
                measured.has_upper_limit(each) for each in ast.walk(assertion.test)
            ):
                yield assertion.lineno


class _MeasuredTimes:
    """The variables and expressions of a function whose values are times of the machine's clock."""

    def __init__(self, scope: ast.AST) -> None:
        self._own_clocks = {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)} | {
            each.optional_vars.id
            for each in ast.walk(scope)
            if isinstance(each, ast.withitem) and isinstance(each.optional_vars, ast.Name)
        }
        self._names: set[str] = set()
        # Repeat, because in a loop a variable may be assigned after the statement that uses the
        # variable.
        for _ in range(3):
            for each in ast.walk(scope):
                self._add_assigned_names(each)

    def _add_assigned_names(self, node: ast.AST) -> None:
        value, targets = _assignment(node)
        if value is not None and self.is_measured(value):
            self._names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}

    def is_measured(self, expression: ast.AST) -> bool:
        return any(self._reads_clock(each) for each in ast.walk(expression))

    def _reads_clock(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute):
            return node.attr == "duration"
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name):
            return node.func.id in CLOCKS
        called = node.func
        return (
            isinstance(called, ast.Attribute)
            and called.attr in CLOCKS
            and isinstance(called.value, ast.Name)
            and called.value.id in MODULES - self._own_clocks
        )

    def has_upper_limit(self, node: ast.AST) -> bool:
        """Return True if a node is a comparison that is true only if a measured time is below a
        limit in seconds.
        """
        if not isinstance(node, ast.Compare):
            return False
        sides = [node.left, *node.comparators]
        for (lower, upper), operator in zip(itertools.pairwise(sides), node.ops, strict=True):
            if isinstance(operator, ast.Gt | ast.GtE):
                lower, upper = upper, lower
            elif not isinstance(operator, ast.Lt | ast.LtE):
                continue
            if self.is_measured(lower) and self._is_limit(upper):
                return True
        return False

    def _is_limit(self, expression: ast.expr) -> bool:
        """Return True if an expression is a number of seconds, or the sum of any value and a number
        of seconds.
        """
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
            return self._is_limit(expression.left) or self._is_limit(expression.right)
        names = [each for each in ast.walk(expression) if isinstance(each, ast.Name | ast.Call | ast.Attribute)]
        return all(isinstance(each, ast.Name) and each.id.isupper() for each in names)


def _assignment(node: ast.AST) -> tuple[ast.expr | None, list[ast.expr]]:
    if isinstance(node, ast.Assign):
        return node.value, node.targets
    if isinstance(node, ast.NamedExpr | ast.AnnAssign):
        return node.value, [node.target]
    if isinstance(node, ast.comprehension | ast.For):
        return node.iter, [node.target]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        return node.args[0], [node.func.value]
    return None, []
