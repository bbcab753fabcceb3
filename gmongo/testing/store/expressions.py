"""Aggregation expressions: mongomock's evaluator, with what it lacks or answers differently from a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.errors import BSONError
from mongomock import OperationFailure
from mongomock import aggregate as of_mongomock

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store import expression_numbers, expression_operators
from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.values import MISSING, copy_value

_UNDEFINED = object()
# What mongomock, and the operators here, run into when an expression is malformed.
_MALFORMED = (
    OperationFailure,
    BSONError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    TypeError,
    UnboundLocalError,
    ValueError,
)


def evaluate(expression: Any, document: Any, variables: Mapping[str, Any] | None = None) -> Any:
    """The value of the expression for the document; MISSING if it has none.

    :raises CommandError: as a server would, or if the expression is not supported.
    """
    try:
        return copy_value(Evaluator(document, variables or {}).parse(expression))
    except KeyError:
        return MISSING
    except CommandError:
        raise
    except NotImplementedError as error:
        raise not_supported(str(error)) from None
    except _MALFORMED as error:
        raise bad_value(str(error)) from None


class Evaluator(of_mongomock._Parser):
    """Evaluates an expression for one document. A missing value is a KeyError."""

    def __init__(self, document: Any, variables: Mapping[str, Any]) -> None:
        super().__init__(document, dict(variables), ignore_missing_keys=True)
        self.document = document
        self.variables = variables

    def parse(self, expression: Any) -> Any:
        """The value of the expression."""
        if isinstance(expression, list):
            return [self.or_none(part) for part in expression]
        if isinstance(expression, dict) and len(expression) == 1:
            (name,) = expression
            if name in _OPERATORS:
                return _present(_OPERATORS[name](self, expression[name]))
            if name.startswith("$") and name not in _OF_MONGOMOCK:
                raise _refused(name)
        return super().parse(expression)

    def or_none(self, expression: Any) -> Any:
        """The value, None if it is missing."""
        try:
            return self.parse(expression)
        except KeyError:
            return None

    def or_missing(self, expression: Any) -> Any:
        """The value, MISSING if it is missing."""
        try:
            return self.parse(expression)
        except KeyError:
            return MISSING

    def arguments(self, value: Any) -> list[Any]:
        """The values of an operator's arguments; a single one may come without brackets."""
        return [self.or_none(part) for part in (value if isinstance(value, list) else [value])]

    def within(self, variables: Mapping[str, Any]) -> Evaluator:
        """An evaluator that knows more variables."""
        return Evaluator(self.document, {**self.variables, **variables})

    def _parse_basic_expression(self, expression: Any) -> Any:
        if not isinstance(expression, str) or not expression.startswith("$"):
            return expression
        if not expression.startswith("$$"):
            return _present(_follow(self.document, expression[1:].split(".")))
        name, *path = expression[2:].split(".")
        return _present(_follow(self._variable(name), path))

    def _variable(self, name: str) -> Any:
        if name in ("ROOT", "CURRENT"):
            return self.variables.get(name, self.document)
        if name == "REMOVE":
            return MISSING
        value = self.variables.get(name, _UNDEFINED)
        if value is _UNDEFINED:
            raise location(17276, f"Use of undefined variable: {name}")
        return value


def _present(value: Any) -> Any:
    """The value itself.

    :raises KeyError: if it is missing.
    """
    if value is MISSING:
        raise KeyError("missing")
    return value


def _follow(value: Any, parts: list[str]) -> Any:
    for number, part in enumerate(parts):
        if isinstance(value, list):
            found = (_follow(element, parts[number:]) for element in value)
            return [element for element in found if element is not MISSING]
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    return value


def _refused(name: str) -> CommandError:
    if name in _LACKING:
        return not_supported(f"the expression {name}")
    return CommandError(168, "InvalidPipelineOperator", f"Unrecognized expression '{name}'")


_OPERATORS = {**expression_operators.OPERATORS, **expression_numbers.OPERATORS}
_OF_MONGOMOCK = frozenset().union(
    of_mongomock.array_operators,
    of_mongomock.boolean_operators,
    of_mongomock.comparison_operators,
    of_mongomock.conditional_operators,
    of_mongomock.control_flow_operators,
    of_mongomock.date_operators,
    of_mongomock.object_operators,
    of_mongomock.project_operators,
    of_mongomock.projection_operators,
    of_mongomock.set_operators,
    of_mongomock.string_operators,
    of_mongomock.text_search_operators,
    of_mongomock.type_convertion_operators,
    of_mongomock.type_operators,
)
# What a server has and neither mongomock nor the store does.
_LACKING = frozenset(
    [
        "$accumulator",
        "$acos",
        "$acosh",
        "$asin",
        "$asinh",
        "$atan",
        "$atan2",
        "$atanh",
        "$binarySize",
        "$bitAnd",
        "$bitNot",
        "$bitOr",
        "$bitXor",
        "$bottom",
        "$bottomN",
        "$bsonSize",
        "$convert",
        "$cos",
        "$cosh",
        "$covariancePop",
        "$covarianceSamp",
        "$dateAdd",
        "$dateDiff",
        "$dateSubtract",
        "$dateToParts",
        "$dateTrunc",
        "$degreesToRadians",
        "$denseRank",
        "$derivative",
        "$documentNumber",
        "$encStrContains",
        "$expMovingAvg",
        "$firstN",
        "$function",
        "$hash",
        "$indexStats",
        "$integral",
        "$lastN",
        "$linearFill",
        "$locf",
        "$ltrim",
        "$maxN",
        "$median",
        "$meta",
        "$minN",
        "$minMaxScaler",
        "$percentile",
        "$radiansToDegrees",
        "$rank",
        "$regexFind",
        "$regexFindAll",
        "$replaceAll",
        "$replaceOne",
        "$rtrim",
        "$sampleRate",
        "$shift",
        "$similarityCosine",
        "$sin",
        "$sinh",
        "$sortArray",
        "$tan",
        "$tanh",
        "$toDate",
        "$toHashedIndexKey",
        "$toUUID",
        "$top",
        "$topN",
        "$tsIncrement",
        "$tsSecond",
    ]
)
