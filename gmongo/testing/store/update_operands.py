"""Check the operands of update operators. A server checks the operands even if no document matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.errors import bad_value, failed_to_parse, query_feature_not_allowed, type_mismatch
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import is_number, is_whole, type_name

_BITWISE = frozenset({"and", "or", "xor"})
_PUSH = frozenset({"$each", "$slice", "$sort", "$position"})


def check_operand(name: str, path: str, operand: Any) -> None:
    """Check the operand of an update operator.

    :param name: the name of the operator.
    :param path: the path of the field.
    :param operand: the operand of the update operator.
    :raises CommandError: the operand is invalid.
    """
    if name in _CHECKS:
        _CHECKS[name](path, operand)


def _number(verb: str) -> Callable[[str, Any], None]:
    def check(path: str, operand: Any) -> None:
        if not is_number(operand):
            raise type_mismatch(f"Cannot {verb} with non-numeric argument: {{{path}: {operand!r}}}")

    return check


def _bit(_path: str, operand: Any) -> None:
    if not isinstance(operand, dict):
        raise bad_value(f"The $bit modifier is not compatible with a {type_name(operand)}. You must pass in an "
                        "embedded document: {$bit: {field: {and/or/xor: #}}")  # fmt: skip
    if not operand:
        raise bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}"
        )
    for name, mask in operand.items():
        if name not in _BITWISE:
            raise bad_value(f"The $bit modifier only supports 'and', 'or', and 'xor', not '{name}'")
        if isinstance(mask, bool) or not isinstance(mask, int):
            raise bad_value(f"The $bit modifier field must be an Integer(32/64 bit); a '{type_name(mask)}' is not "
                            "supported here")  # fmt: skip


def _rename(path: str, operand: Any) -> None:
    if type(operand) is not str:
        raise bad_value(f"The 'to' field for $rename must be a string: {path}: {operand!r}")
    if "\0" in operand:
        raise bad_value(f"The 'to' field for $rename cannot contain an embedded null byte: {operand!r}")


def check_renamed(path: str, operand: str) -> None:
    """Check the old and the new path of a ``$rename``.

    :raises CommandError: a path is invalid, or one path contains the other path.
    """
    if "" in operand.split("."):
        raise CommandError(56, "EmptyFieldName", f"The update path '{operand}' contains an empty field name.")
    if operand == path:
        raise bad_value(f"The source and target field for $rename must differ: {path}: {operand!r}")
    if f"{path}.".startswith(f"{operand}.") or f"{operand}.".startswith(f"{path}."):
        raise bad_value(f"The source and target field for $rename must not be on the same path: {path}: {operand!r}")
    for name, one in (("source", path), ("destination", operand)):
        if any(part == "$" or part.startswith("$[") for part in one.split(".")):
            raise bad_value(f"The {name} field for $rename may not be dynamic: {one}")


def _push(_path: str, operand: Any) -> None:
    if not isinstance(operand, dict) or "$each" not in operand:
        return
    unknown = set(operand) - _PUSH
    if unknown:
        raise bad_value(f"Unrecognized clause in $push: {sorted(unknown)[0]}")
    if not isinstance(operand["$each"], list):
        raise bad_value(f"The argument to $each in $push must be an array but it was of type: "
                        f"{type_name(operand['$each'])}")  # fmt: skip
    for name in ("$slice", "$position"):
        if name in operand and not (is_number(operand[name]) and is_whole(operand[name])):
            raise bad_value(f"The value for {name} must be an integer value but was given type: "
                            f"{type_name(operand[name])}")  # fmt: skip
    if "$sort" in operand:
        _check_order(operand["$sort"])


def _check_order(order: Any) -> None:
    if isinstance(order, dict):
        if not order:
            raise bad_value("The $sort pattern is empty when it should be a set of fields.")
        for path, direction in order.items():
            if "" in path.split(".") or not is_number(direction) or float(str(direction)) not in (1, -1):
                raise bad_value(f"The $sort element {path} must be a path with 1 or -1")
    elif not is_number(order) or float(str(order)) not in (1, -1):
        raise bad_value(
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields"
        )


def _add_to_set(_path: str, operand: Any) -> None:
    if not isinstance(operand, dict) or next(iter(operand), "") != "$each":
        return
    if not isinstance(operand["$each"], list):
        raise type_mismatch(f"The argument to $each in $addToSet must be an array but it was of type "
                            f"{type_name(operand['$each'])}")  # fmt: skip
    if len(operand) > 1:
        raise bad_value(f"Found unexpected fields after $each in $addToSet: {operand!r}")


def _pop(path: str, operand: Any) -> None:
    if not is_number(operand) or float(str(operand)) not in (1, -1):
        raise failed_to_parse(f"$pop expects 1 or -1, found: {operand!r} in {path}")


def _pull(_path: str, operand: Any) -> None:
    if is_operators(operand) and "$not" in operand:
        raise bad_value("unknown top level operator: $not")
    if isinstance(operand, dict):
        if "$expr" in operand:
            raise query_feature_not_allowed("$expr is not allowed in this context")
        if "$where" in operand:
            raise bad_value("$where can only be applied to the top-level document")
        compile_filter({"v": {"$elemMatch": operand}} if is_operators(operand) else operand)


def _pull_all(_path: str, operand: Any) -> None:
    if not isinstance(operand, list):
        raise bad_value(f"$pullAll requires an array argument but was given a {type_name(operand)}")


def _current_date(_path: str, operand: Any) -> None:
    if isinstance(operand, bool) or operand in ({"$type": "date"}, {"$type": "timestamp"}):
        return
    if isinstance(operand, dict):
        raise bad_value("The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : "
                        "{$type: 'date'}}}")  # fmt: skip
    raise bad_value(f"{type_name(operand)} is not valid type for $currentDate. Please use a boolean ('true') or a "
                    "$type expression ({$type: 'timestamp/date'}).")  # fmt: skip


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "$addToSet": _add_to_set,
    "$bit": _bit,
    "$currentDate": _current_date,
    "$inc": _number("increment"),
    "$mul": _number("multiply"),
    "$pop": _pop,
    "$pull": _pull,
    "$pullAll": _pull_all,
    "$push": _push,
    "$rename": _rename,
}
