"""Apply updates to documents: replacements, update operators and pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gmongo._object_ids import new_object_id
from gmongo.testing import unsupported
from gmongo.testing.command import CommandError, error
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import bad_value, failed_to_parse, immutable_field, malformed
from gmongo.testing.store.matching import Match, compile_filter
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.paths import find_value
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.positions import find_matched_index
from gmongo.testing.store.stages import compile_update_pipeline
from gmongo.testing.store.update_operators import UPDATE_OPERATORS, Edit, check_operand
from gmongo.testing.store.values import MISSING, are_equal, are_identical, copy_value
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# The operators after which change streams show the new array instead of changed elements. A `$push`
# with one of the modifiers in `_MOVING_MODIFIERS` has the same effect.
_WHOLE_ARRAY_OPERATORS = frozenset({"$addToSet", "$pop", "$pull", "$pullAll"})
_MOVING_MODIFIERS = frozenset({"$position", "$slice", "$sort"})
_IDENTIFIER_PATTERN = re.compile(r"^[a-z][A-Za-z0-9]*$")


@dataclass
class Update:
    """A compiled update, which can be applied to any number of documents."""

    spec: Any  # the replacement document, the document with update operators, or the list of stages
    query: Mapping[str, Any]  # the filter of the update
    variables: Mapping[str, Any] = field(default_factory=dict)  # the values of variables by name
    array_filters: Sequence[Mapping[str, Any]] | None = None  # the option `arrayFilters`
    collation: Collation = BINARY  # the collation with which strings are compared

    def __post_init__(self) -> None:
        self.is_pipeline = isinstance(self.spec, list)
        self.has_operators = isinstance(self.spec, dict) and next(iter(self.spec), "").startswith("$")
        if not self.is_pipeline and not isinstance(self.spec, dict):
            raise failed_to_parse("Update argument must be either an object or an array")
        if self.is_pipeline and self.array_filters is not None:
            raise failed_to_parse("arrayFilters may not be specified for pipeline-style updates")
        self._compiled_array_filters = _compile_array_filters(self.array_filters or (), self.variables, self.collation)
        if self.is_pipeline:
            self._pipeline = compile_update_pipeline(self.spec, self.variables, self.collation)
        elif self.has_operators:
            self._edits = _compile_edits(self.spec, self._compiled_array_filters, self.collation)

    @property
    def is_replacement(self) -> bool:
        return not self.is_pipeline and not self.has_operators

    def writes_always(self, document: Document) -> bool:
        """Return True if the server counts the document as modified even if the document does not change."""
        if self.is_replacement:
            return "_id" not in self.spec
        operands_by_path = {} if self.is_pipeline else self.spec.get("$push", {})
        return any(
            isinstance(operand, dict)
            and "$each" in operand
            and ("$sort" in operand or ("$slice" in operand and operand["$each"]))
            and any(self._find_paths(document, path.split(".")))
            for path, operand in operands_by_path.items()
        )

    def apply(self, document: Document, is_insert: bool = False) -> Document:
        if self.is_pipeline:
            updated = self._pipeline(copy_value(document))
        elif self.has_operators:
            updated = self._apply_operators(copy_value(document), is_insert)
        else:
            if not is_insert:
                _check_replacement(self.spec)
            updated = copy_value(self.spec)
        if self.has_operators and "_id" in document and "_id" not in updated:
            raise immutable_field("Performing an update on the path '_id' would modify the immutable field '_id'")
        return _add_id(updated, document, is_insert)

    def find_whole_paths(self, document: Document, updated: Document) -> frozenset[str] | None:
        """Return the paths of the values that change streams show completely.

        For an update with operators, the paths include the empty path. For an update whose paths contain ``$[]`` or
        ``$[name]``, return None. The simulation does not support change events of these updates.
        """
        if not self.has_operators:
            return frozenset()
        if any(_is_array_operator(part) for parts, _, _ in self._edits for part in parts):
            return None
        whole_paths = {""}
        for parts, name, _ in self._edits:
            if name == "$push" and not self._has_moving_modifiers(parts):
                continue
            for path in self._find_paths(document, parts):
                new = find_value(updated, path)
                old = find_value(document, path)
                is_container = new is None or isinstance(new, (dict, list))
                is_forced = name in _WHOLE_ARRAY_OPERATORS or name == "$push"
                if is_forced or (is_container and (old is MISSING or not are_identical(old, new))):
                    whole_paths.add(".".join(path))
        return frozenset(whole_paths)

    def _has_moving_modifiers(self, parts: Sequence[str]) -> bool:
        """Return True if the ``$push`` to a path has a modifier that can move or remove elements."""
        operand = self.spec["$push"][".".join(parts)]
        return isinstance(operand, dict) and not _MOVING_MODIFIERS.isdisjoint(operand)

    def create_upserted_document(self) -> Document:
        document = self.apply(_find_equalities(self.query, self.is_replacement), is_insert=True)
        if "_id" not in document:
            document["_id"] = new_object_id()
        return {"_id": document["_id"], **document}

    def _apply_operators(self, document: Document, is_insert: bool) -> Document:
        original = copy_value(document)
        targets = [(self._find_paths_or_error(original, parts), name, edit) for parts, name, edit in self._edits]
        for paths, name, edit in targets:
            if isinstance(paths, CommandError):
                raise paths
            for path in paths if name != "$setOnInsert" or is_insert else ():
                edit(document, path)
                if path[0][:1] == "$" and not is_insert and path[0] in document and path[0] not in original:
                    raise error(52, f"The dollar ($) prefixed field '{path[0]}' is not valid for storage.")
                if path[0] == "_id" in original and not are_equal(document.get("_id", MISSING), original["_id"]):
                    raise immutable_field(f"Performing an update on the path '{'.'.join(path)}' would modify the "
                                          "immutable field '_id'")  # fmt: skip
        return document

    def _find_paths_or_error(self, document: Document, parts: Sequence[str]) -> list[list[str]] | CommandError:
        """Return the paths that a path with positional operators matches, or the error."""
        if "$" not in "".join(parts):
            return [list(parts)]
        try:
            return list(self._find_paths(document, parts))
        except CommandError as error:
            return error

    def _find_paths(self, document: Document, parts: Sequence[str]) -> Iterator[list[str]]:
        """Yield the paths that a path with ``$``, ``$[]`` or ``$[name]`` matches in a document."""
        position = next((number for number, part in enumerate(parts) if _is_positional(part)), None)
        if position is None:
            yield list(parts)
            return
        part = parts[position]
        prefix, suffix = list(parts[:position]), parts[position + 1 :]
        for index in self._find_indexes(document, prefix, part):
            yield from self._find_paths(document, [*prefix, str(index), *suffix])

    def _find_indexes(self, document: Document, path: Sequence[str], part: str) -> list[int]:
        if part == "$":
            index = find_matched_index(document, path, self.query, self.variables, self.collation)
            if index is None:
                raise bad_value("The positional operator did not find the match needed from the query.")
            return [index]
        array = find_value(document, path)
        if not isinstance(array, list):
            raise bad_value(f"The path '{'.'.join(path)}' must exist in the document in order to apply array updates.")
        if part == "$[]":
            return list(range(len(array)))
        match = self._compiled_array_filters[part[2:-1]]
        return [index for index, element in enumerate(array) if match(element)]


def _add_id(updated: Document, document: Document, is_insert: bool) -> Document:
    if "_id" not in document:
        return updated
    new_id = updated.get("_id", MISSING)
    if new_id is MISSING:
        return {"_id": document["_id"], **updated}
    if not are_equal(new_id, document["_id"]):
        if is_insert:
            raise immutable_field("Performing an update on the path '_id' would modify the immutable field '_id'")
        raise immutable_field("After applying the update, the (immutable) field '_id' was found to have been altered "
                              f"to _id: {new_id!r}")  # fmt: skip
    return {"_id": new_id, **updated}


def _check_replacement(spec: Document) -> None:
    for name in spec:
        if name.startswith("$"):
            raise error(
                52,
                f"The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's "
                "replacement document. Consider using an aggregation pipeline with $replaceWith.",
            )


def _compile_edits(
    spec: Mapping[str, Any], filters: Mapping[str, Match], collation: Collation
) -> list[tuple[list[str], str, Callable[[Document, list[str]], None]]]:
    edits: list[tuple[list[str], str, Edit]] = []
    used_names: set[str] = set()
    for name, fields in spec.items():
        if name in unsupported.UPDATE_OPERATORS:
            raise not_supported(name)
        if name not in UPDATE_OPERATORS:
            raise failed_to_parse(f"Unknown modifier: {name}. Expected a valid update modifier or pipeline-style "
                                  "update specified as an array")  # fmt: skip
        if not isinstance(fields, dict):
            raise failed_to_parse(f"Modifiers operate on fields but we found type {type(fields).__name__} instead.")
        for path, operand in fields.items():
            parts = _check_path(path)
            check_operand(name, path, operand)
            for target, edit in UPDATE_OPERATORS[name](path, operand, collation):
                parts = _check_path(target)
                for other_parts, _, _ in edits:
                    _check_conflict(other_parts, parts)
                used_names |= _find_used_filters(parts, filters)
                edits.append((parts, name, edit))
    for unused_name in set(filters) - used_names:
        raise failed_to_parse(f"The array filter for identifier '{unused_name}' was not used in the update")
    return sorted(edits, key=lambda item: create_path_key(".".join(item[0])))


def create_path_key(path: str) -> list[tuple[int, int, str]]:
    """Return the sort key of a path. An update writes the paths in the order of the sort keys."""
    parts = [part if part != "$" else "" for part in path.split(".")]
    return [(0, int(part), "") if part.isdigit() else (int(bool(part)), -1, part) for part in parts]


def _check_path(path: str) -> list[str]:
    """Check that an update can write a path. Return the parts of the path."""
    parts = path.split(".")
    if "" in parts:
        raise error(56, f"The update path '{path}' contains an empty field name.")
    if parts[0][0] == "$" and _is_positional(parts[0]):
        raise bad_value(f"Cannot have positional (i.e. '$') element in the first position in path '{path}'")
    if parts.count("$") > 1:
        raise bad_value(f"Too many positional (i.e. '$') elements found in path '{path}'")
    return parts


def _find_used_filters(parts: Sequence[str], filters: Mapping[str, Match]) -> set[str]:
    if "$[" not in "".join(parts):
        return set()
    used_names = {part[2:-1] for part in parts if part.startswith("$[") and _is_positional(part) and part != "$[]"}
    for name in used_names - set(filters):
        raise bad_value(f"No array filter found for identifier '{name}' in the update")
    return used_names


def _is_positional(part: str) -> bool:
    return part == "$" or _is_array_operator(part)


def _is_array_operator(part: str) -> bool:
    return part.startswith("$[") and part.endswith("]")


def _are_overlapping(first: list[str], second: list[str]) -> bool:
    """Return True if one path begins with the other, or only one path has an array operator where they differ."""
    for first_part, second_part in zip(first, second, strict=False):
        if first_part != second_part:
            if _is_array_operator(first_part) and _is_array_operator(second_part):
                raise malformed("an update with two array operators for one array")
            return _is_array_operator(first_part) != _is_array_operator(second_part)
    return True


def _check_conflict(first: list[str], second: list[str]) -> None:
    if _are_overlapping(first, second):
        path, conflict = ".".join(first if len(first) > len(second) else second), ".".join(first[: len(second)])
        raise error(40, f"Updating the path '{path}' would create a conflict at '{conflict}'")


def _compile_array_filters(
    filters: Sequence[Any], variables: Mapping[str, Any], collation: Collation
) -> dict[str, Match]:
    compiled: dict[str, Match] = {}
    for array_filter in filters:
        match = compile_filter(array_filter, variables, collation)
        name = _find_identifier(array_filter)
        if name in compiled:
            raise malformed("an array filter")
        compiled[name] = _create_element_filter(name, match)
    return compiled


def _create_element_filter(name: str, match: Match) -> Match:
    return lambda element: match({name: element})


def _find_identifier(array_filter: Any) -> str:
    names = set(_find_top_level_names(array_filter) if isinstance(array_filter, dict) else ())
    if len(names) != 1 or not all(map(_IDENTIFIER_PATTERN.match, names)):
        raise malformed("an array filter")
    return names.pop()


def _find_top_level_names(query: Any) -> Iterator[str]:
    for path, condition in query.items():
        if path in ("$and", "$or", "$nor"):
            for clause in condition:
                yield from _find_top_level_names(clause)
        elif path == "$expr":
            raise malformed("an array filter")
        elif condition != {"$all": []}:
            yield path.split(".")[0]


def _find_equalities(query: Mapping[str, Any], is_replacement: bool) -> Document:
    """Return the fields whose values the query determines. An upsert inserts these fields."""
    document: Document = {}
    all_parts: list[list[str]] = []
    for path, expected in sorted(_find_equal_paths(query), key=lambda item: item[0]):
        parts = path.split(".")
        if is_replacement and parts[0] != "_id":
            continue
        if is_replacement and path != "_id":
            raise error(111, f"field at '_id' must be exactly specified, field at sub-path '{path}' found")
        for other in all_parts:
            if all(map(str.__eq__, parts, other)):
                raise error(54, f"cannot infer query fields to set, '{path}' and '{'.'.join(other)}' are both matched")
        all_parts.append(parts)
        parent = document
        for part in parts[:-1]:
            parent = parent.setdefault(part, {})
        parent[parts[-1]] = copy_value(expected)
    return document


def _find_equal_paths(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, condition in query.items():
        if name == "$and" or (name == "$or" and len(condition) == 1):
            for clause in condition:
                yield from _find_equal_paths(clause)
        elif not name.startswith("$"):
            yield from ((name, value) for value in _find_required_values(condition))


def _find_required_values(condition: Any) -> Iterator[Any]:
    """Yield the values that a condition requires. A regular expression is a value only in ``$eq``."""
    if not has_operators(condition):
        alternatives, all_values = [condition], []
    else:
        alternatives = condition.get("$in", ())
        alternatives, all_values = (alternatives if len(alternatives) == 1 else []), condition.get("$all", [])
        if "$eq" in condition:
            yield condition["$eq"]
    yield from (value for value in (*alternatives, *all_values) if not is_pattern(value) and not has_operators(value))
