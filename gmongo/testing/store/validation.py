"""Check a document before a write, with the validator of the collection and with general rules."""

from __future__ import annotations

from typing import Any

import bson

from gmongo.testing.command import error
from gmongo.testing.store.data import Collection, Document
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.paths import find_values
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.values import DBREF_FIELDS, MISSING, type_name
from gmongo.testing.unsupported import not_supported

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_MAX_DEPTH = 180
# The reasons in validation errors about an existing field, by operator.
_REASONS = {
    **dict.fromkeys(("$eq", "$exists", "$gt", "$gte", "$lt", "$lte"), "comparison failed"),
    "$in": "no matching value found in array",
    "$ne": "comparison succeeded",
    "$nin": "matching value found in array",
    "$type": "type did not match",
}


def check_document(collection: Collection, document: Document, is_bypassed: bool, old: Document | None = None) -> None:
    """Check that a document matches the validator of its collection."""
    options = collection.options
    validator, level = options.get("validator"), options.get("validationLevel")
    if is_bypassed or not validator or level == "off" or options.get("validationAction") == "warn":
        return
    match = compile_filter(validator, collation=collection.collation)
    if old is not None and level == "moderate" and not match(old):
        return
    if not match(document):
        raise error(
            121,
            "Document failed validation",
            errInfo={"failingDocumentId": document["_id"], "details": _create_validation_details(validator, document)},
        )


def _create_validation_details(validator: Document, document: Document) -> Document:
    """Return ``errInfo.details`` of a validation error. Support only validators with one condition on one value."""
    path, condition = next(iter(validator.items()))
    operator = next(iter(condition)) if has_operators(condition) else "$eq"
    is_simple = len(validator) == 1 and operator in _REASONS and (not has_operators(condition) or len(condition) == 1)
    values = (
        [] if path.startswith("$") else [item for item in find_values(document, path.split(".")) if item is not MISSING]
    )
    if (
        not is_simple
        or path.startswith("$")
        or is_pattern(condition)
        or len(values) > 1
        or any(isinstance(item, list) for item in values)
    ):
        raise not_supported("a validation error beyond one condition on one value")
    details: Document = {"operatorName": operator, "specifiedAs": {path: condition}}
    if operator == "$exists":
        return {**details, "reason": "path does exist" if values else "path does not exist"}
    if not values:
        return {**details, "reason": "field was missing"}
    details = {**details, "reason": _REASONS[operator], "consideredValue": values[0]}
    return {**details, "consideredType": type_name(values[0])} if operator == "$type" else details


def check_document_rules(document: Any, version: tuple[int, int]) -> None:
    """Check that a document is valid for storage: its depth, its ``_id`` and its field names."""
    if not isinstance(document, dict):
        raise bad_value(f"a document must be an object, not {document!r}")
    _check_depth(document)
    id_value = document.get("_id")
    if isinstance(id_value, list):
        raise error(53, "The '_id' value cannot be of type array")
    if hasattr(id_value, "pattern"):
        raise error(53, "The '_id' value cannot be of type regex")
    if isinstance(id_value, dict):
        _check_id_names(id_value)
    if version < (5, 0):
        for name in document:
            if name.startswith("$"):
                raise bad_value(f"Document can't have $ prefixed field names: {name}")


def _check_depth(document: Document) -> None:
    depth = 0
    containers: list[Any] = [document]
    while containers:
        depth, parents, containers = depth + 1, containers, []
        if depth > _MAX_DEPTH:
            raise error(15, f"cannot insert document because it exceeds {_MAX_DEPTH} levels of nesting")
        for parent in parents:
            for child in parent.values() if parent.__class__ is dict else parent:
                if child.__class__ is dict or child.__class__ is list:
                    containers.append(child)


def check_updated_names(value: Any, version: tuple[int, int]) -> None:
    """Check the field names of an updated document, for server versions before 5.0."""
    if version >= (5, 0):
        return
    for name, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(name, str) and name.startswith("$") and name not in DBREF_FIELDS:
            raise error(52, f"The dollar ($) prefixed field '{name}' is not valid for storage.")
        if isinstance(child, (dict, list)):
            check_updated_names(child, version)


def _check_id_names(id_value: Document) -> None:
    for name, child in id_value.items():
        if isinstance(child, dict):
            _check_id_names(child)
        if name.startswith("$"):
            raise error(52, f"_id fields may not contain '$'-prefixed fields: {name} is not valid for storage.")


def check_size(document: Document) -> None:
    """Check that a document is not larger than 16 MiB."""
    size = len(bson.encode(document))
    if size > MAX_DOCUMENT_BYTES:
        raise error(10334, f"object to insert too large. size in bytes: {size}, max size: {MAX_DOCUMENT_BYTES}")
