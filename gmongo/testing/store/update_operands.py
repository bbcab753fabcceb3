"""Check the operands of update operators. A server checks the operands even if no document matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.store.errors import malformed
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import is_number, is_whole

_PUSH = frozenset({"$each", "$slice", "$sort", "$position"})


def check_operand(name: str, path: str, operand: Any) -> None:
    """Check the operand of an update operator."""
    if not _CHECKS.get(name, lambda operand: True)(operand) or (name == "$rename" and not _may_rename(path, operand)):
        raise malformed(f"{name} of {path}")


def _bit(operand: Any) -> bool:
    return (
        isinstance(operand, dict)
        and bool(operand)
        and set(operand) <= {"and", "or", "xor"}
        and all(isinstance(mask, int) and not isinstance(mask, bool) for mask in operand.values())
    )


def _may_rename(path: str, target: Any) -> bool:
    return (
        type(target) is str
        and "\0" not in target
        and "" not in target.split(".")
        and not f"{path}.".startswith(f"{target}.")
        and not f"{target}.".startswith(f"{path}.")
        and not any(part == "$" or part.startswith("$[") for part in f"{path}.{target}".split("."))
    )


def _push(operand: Any) -> bool:
    if not isinstance(operand, dict) or "$each" not in operand:
        return True
    numbers = [operand[name] for name in ("$slice", "$position") if name in operand]
    return (
        set(operand) <= _PUSH
        and isinstance(operand["$each"], list)
        and all(is_number(number) and is_whole(number) for number in numbers)
        and _is_order(operand.get("$sort", 1))
    )


def _is_order(order: Any) -> bool:
    if isinstance(order, dict):
        return bool(order) and all("" not in path.split(".") and _is_direction(one) for path, one in order.items())
    return _is_direction(order)


def _is_direction(value: Any) -> bool:
    return is_number(value) and float(str(value)) in (1, -1)


def _add_to_set(operand: Any) -> bool:
    if not isinstance(operand, dict) or next(iter(operand), "") != "$each":
        return True
    return isinstance(operand["$each"], list) and len(operand) == 1


def _pull(operand: Any) -> bool:
    if isinstance(operand, dict):
        if not {"$expr", "$not", "$where"}.isdisjoint(operand):
            return False
        compile_filter({"v": {"$elemMatch": operand}} if is_operators(operand) else operand)
    return True


def _current_date(operand: Any) -> bool:
    return isinstance(operand, bool) or operand in ({"$type": "date"}, {"$type": "timestamp"})


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "$addToSet": _add_to_set,
    "$bit": _bit,
    "$currentDate": _current_date,
    "$inc": is_number,
    "$mul": is_number,
    "$pop": _is_direction,
    "$pull": _pull,
    "$pullAll": lambda operand: isinstance(operand, list),
    "$push": _push,
}
