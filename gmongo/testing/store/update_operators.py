"""The update operators. Each operator returns pairs: a path, and a function that edits a document at this path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bson.timestamp import Timestamp

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.store import arithmetic
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import bad_value, malformed, type_mismatch
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.paths import find_value, select_child
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import (
    MISSING,
    are_equal,
    compare,
    copy_value,
    is_integral,
    is_number,
    make_key,
    trunc,
    type_name,
)

Edit = Callable[[dict[str, Any], list[str]], None]
Edits = Iterable[tuple[str, Edit]]
ValueFunction = Callable[[Any, Any, Collation], Any]
Compiler = Callable[[str, Any, Collation], Edits]


def set_path(document: Any, parts: list[str], value: Any) -> None:
    """Set the value at a path of a document. Create the missing parent documents of the path."""
    for position, part in enumerate(parts[:-1]):
        if select_child(document, part) is MISSING:
            _set_child_value(document, part, {}, parts[position - 1 : position])
        document = select_child(document, part)
    _set_child_value(document, parts[-1], value, parts[-2:-1])


def _set_child_value(container: Any, part: str, value: Any, parent_names: list[str]) -> None:
    if isinstance(container, dict):
        container[part] = value
    elif isinstance(container, list) and part.isdigit():
        container.extend([None] * (int(part) + 1 - len(container)))
        container[int(part)] = value
    else:
        parent_name = parent_names[0] if parent_names else "the document"
        raise error(28, f"Cannot create field '{part}' in element {{{parent_name}: {container!r}}}")


def _remove_path(document: Any, parts: list[str]) -> None:
    container = find_value(document, parts[:-1])
    if isinstance(container, dict):
        container.pop(parts[-1], None)
    elif isinstance(container, list) and find_value(container, parts[-1:]) is not MISSING:
        container[int(parts[-1])] = None


def _create_removal(change: ValueFunction) -> Compiler:
    """Return an operator that removes elements of an existing array."""

    def create_edits(path: str, operand: Any, collation: Collation) -> Edits:
        def edit(document: dict[str, Any], parts: list[str]) -> None:
            current = find_value(document, parts)
            if current is MISSING:
                _check_can_exist(document, parts)
            else:
                set_path(document, parts, change(current, operand, collation))

        return [(path, edit)]

    return create_edits


def _create_change(change: ValueFunction) -> Compiler:
    """Return an operator that sets a field to the result of `change`. The result MISSING means no change."""

    def create_edits(path: str, operand: Any, collation: Collation) -> Edits:
        def edit(document: dict[str, Any], parts: list[str]) -> None:
            value = change(find_value(document, parts), operand, collation)
            if value is not MISSING:
                set_path(document, parts, value)

        return [(path, edit)]

    return create_edits


def _compute_set(_current: Any, operand: Any, _collation: Collation) -> Any:
    return copy_value(operand)


def _create_arithmetic(name: str, function: Callable[[Any, Any], Any], neutral_element: int) -> Compiler:
    def change(current: Any, operand: Any, _collation: Collation) -> Any:
        if current is MISSING:
            return operand if neutral_element == 0 else arithmetic.multiply(operand, 0)
        if not is_number(current):
            raise type_mismatch(f"Cannot apply {name} to a value of non-numeric type {type_name(current)}")
        return arithmetic.compute_update(name, function, current, operand)

    return _create_change(change)


def _create_min_or_max(direction: int) -> Compiler:
    def change(current: Any, operand: Any, collation: Collation) -> Any:
        if current is not MISSING and compare(collation.apply(operand), collation.apply(current)) * direction >= 0:
            return MISSING
        return copy_value(operand)

    return _create_change(change)


def _compute_current_date(_current: Any, operand: Any, _collation: Collation) -> Any:
    now = clock.utc_now().replace(tzinfo=None)
    if operand == {"$type": "timestamp"}:
        return Timestamp(int(clock.utc_now().timestamp()), 1)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _compile_rename(path: str, operand: Any, _collation: Collation) -> Edits:
    def edit(document: dict[str, Any], target: list[str]) -> None:
        parts = path.split(".")
        value = find_value(document, parts)
        if value is MISSING:
            _check_can_exist(document, parts)
            return
        for role, path_parts in (("source", parts), ("destination", target)):
            _check_no_array(document, path_parts, role)
        _remove_path(document, parts)
        set_path(document, target, value)

    def keep_document(_document: dict[str, Any], _parts: list[str]) -> None:
        """Do nothing, because the edit of the new path removes the old path.

        Because of this function, the check for conflicting paths sees the old path.
        """

    return [(path, keep_document), (operand, edit)]


def _check_can_exist(document: Any, parts: list[str]) -> None:
    for length, part in enumerate(parts):
        current = find_value(document, parts[:length])
        if current is MISSING:
            return
        if not isinstance(current, dict) and not (isinstance(current, list) and part.isdigit()):
            raise error(28, f"cannot use the part ({part}) of ({'.'.join(parts)}) to traverse "
                               f"the element ({parts[length - 1]}: {current!r})")  # fmt: skip


def _check_no_array(document: Any, parts: list[str], role: str) -> None:
    for length in range(1, len(parts)):
        if isinstance(find_value(document, parts[:length]), list):
            raise bad_value(f"The {role} field cannot be an array element, '{'.'.join(parts)}' in doc with _id: "
                            f"{document.get('_id')!r} has an array field called '{parts[length - 1]}'")  # fmt: skip


def _require_array(current: Any, name: str) -> list[Any]:
    if current is MISSING:
        return []
    if not isinstance(current, list):
        raise bad_value(f"The field of a {name} must be an array but is of type {type_name(current)}")
    return current


def _compute_push(current: Any, operand: Any, collation: Collation) -> Any:
    array = list(_require_array(current, "$push"))
    if not isinstance(operand, dict) or "$each" not in operand:
        return [*array, copy_value(operand)]
    position = trunc(operand.get("$position", len(array)))
    array[position:position] = copy_value(operand["$each"])
    return _slice_array(_sort_array(array, operand.get("$sort"), collation), operand.get("$slice"))


def _sort_array(array: list[Any], order: Any, collation: Collation) -> list[Any]:
    if order is None:
        return array
    if isinstance(order, dict):
        return list(compile_sort(order, collation)(array, lambda element: element))
    return sorted(array, key=lambda element: make_key(collation.apply(element)), reverse=trunc(order) < 0)


def _slice_array(array: list[Any], limit: Any) -> list[Any]:
    if limit is None:
        return array
    return array[: trunc(limit)] if limit >= 0 else array[trunc(limit) :]


def _compute_add_to_set(current: Any, operand: Any, collation: Collation) -> Any:
    array = list(_require_array(current, "$addToSet"))
    has_each = isinstance(operand, dict) and next(iter(operand), "") == "$each"
    for value in operand["$each"] if has_each else [operand]:
        if not _contains_value(array, value, collation):
            array.append(copy_value(value))
    return array


def _compute_pop(current: Any, operand: Any, _collation: Collation) -> Any:
    if not isinstance(current, list):
        raise type_mismatch(f"$pop: the path contains an element of non-array type '{type_name(current)}'")
    return current[:-1] if trunc(operand) == 1 else current[1:]


def _compute_pull(current: Any, operand: Any, collation: Collation) -> Any:
    match = _compile_pull_condition(operand, collation)
    return [element for element in _require_array(current, "$pull") if not match(element)]


def _compile_pull_condition(operand: Any, collation: Collation) -> Callable[[Any], bool]:
    if isinstance(operand, dict) and not has_operators(operand):
        match_document = compile_filter(operand, collation=collation)
        return lambda element: isinstance(element, dict) and match_document(element)
    if has_operators(operand) or is_pattern(operand):
        # An element matches like a field value: a nested array also matches if one of its elements matches.
        match_value = compile_filter({"v": operand}, collation=collation)
        return lambda element: match_value({"v": element})
    return lambda element: _contains_value([element], operand, collation)


def _compute_pull_all(current: Any, operand: Any, collation: Collation) -> Any:
    array = _require_array(current, "$pullAll")
    return [element for element in array if not _contains_value(operand, element, collation)]


def _contains_value(values: Iterable[Any], searched_value: Any, collation: Collation) -> bool:
    folded_value = collation.apply(searched_value)
    return any(are_equal(collation.apply(value), folded_value) for value in values)


UPDATE_OPERATORS: Mapping[str, Compiler] = {
    "$set": _create_change(_compute_set),
    "$setOnInsert": _create_change(_compute_set),
    "$unset": lambda path, _operand, _collation: [(path, _remove_path)],
    "$inc": _create_arithmetic("$inc", arithmetic.add, 0),
    "$mul": _create_arithmetic("$mul", arithmetic.multiply, 1),
    "$min": _create_min_or_max(1),
    "$max": _create_min_or_max(-1),
    "$currentDate": _create_change(_compute_current_date),
    "$rename": _compile_rename,
    "$push": _create_change(_compute_push),
    "$addToSet": _create_change(_compute_add_to_set),
    "$pop": _create_removal(_compute_pop),
    "$pull": _create_removal(_compute_pull),
    "$pullAll": _create_removal(_compute_pull_all),
}

_PUSH_MODIFIERS = frozenset({"$each", "$slice", "$sort", "$position"})


def check_operand(name: str, path: str, operand: Any) -> None:
    """Check the operand of an update operator."""
    if not _CHECKS.get(name, lambda operand: True)(operand) or (name == "$rename" and not _may_rename(path, operand)):
        raise malformed(f"{name} of {path}")


def _may_rename(path: str, target: Any) -> bool:
    return (
        type(target) is str
        and "\0" not in target
        and "" not in target.split(".")
        and not f"{path}.".startswith(f"{target}.")
        and not f"{target}.".startswith(f"{path}.")
        and not any(part == "$" or part.startswith("$[") for part in f"{path}.{target}".split("."))
    )


def _is_push_operand(operand: Any) -> bool:
    if not isinstance(operand, dict) or "$each" not in operand:
        return True
    numbers = [operand[name] for name in ("$slice", "$position") if name in operand]
    return (
        set(operand) <= _PUSH_MODIFIERS
        and isinstance(operand["$each"], list)
        and all(is_number(number) and is_integral(number) for number in numbers)
        and _is_order(operand.get("$sort", 1))
    )


def _is_order(order: Any) -> bool:
    if isinstance(order, dict):
        return bool(order) and all("" not in path.split(".") and _is_direction(item) for path, item in order.items())
    return _is_direction(order)


def _is_direction(value: Any) -> bool:
    return is_number(value) and float(str(value)) in (1, -1)


def _is_add_to_set_operand(operand: Any) -> bool:
    if not isinstance(operand, dict) or next(iter(operand), "") != "$each":
        return True
    return isinstance(operand["$each"], list) and len(operand) == 1


def _is_pull_operand(operand: Any) -> bool:
    if isinstance(operand, dict):
        if not {"$expr", "$not", "$where"}.isdisjoint(operand):
            return False
        compile_filter({"v": {"$elemMatch": operand}} if has_operators(operand) else operand)
    return True


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "$addToSet": _is_add_to_set_operand,
    "$currentDate": lambda operand: isinstance(operand, bool) or operand in ({"$type": "date"}, {"$type": "timestamp"}),
    "$inc": is_number,
    "$mul": is_number,
    "$pop": _is_direction,
    "$pull": _is_pull_operand,
    "$pullAll": lambda operand: isinstance(operand, list),
    "$push": _is_push_operand,
}
