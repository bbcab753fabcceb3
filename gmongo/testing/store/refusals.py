"""The details of validation errors, which list the conditions of a validator that a document does not match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing.store.data import Document
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.paths import split, values_at
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.schema import titles, violations
from gmongo.testing.store.values import MISSING, type_name
from gmongo.testing.unsupported import not_supported

# The reason that the details contain if a field exists and does not match, by operator.
_REASONS: Mapping[str, str] = {
    "$bits": "bitwise operator failed to match",
    "$all": "array did not contain all specified values",
    "$elemMatch": "array did not satisfy the child predicate",
    "$in": "no matching value found in array",
    "$ne": "comparison succeeded",
    "$mod": "$mod did not evaluate to expected remainder",
    "$nin": "matching value found in array",
    "$regex": "regular expression did not match",
    "$size": "array length was not equal to given size",
    "$type": "type did not match",
}


_TYPES: Mapping[str, list[str]] = {
    "$bits": ["binData", "decimal", "double", "int", "long"],
    "$elemMatch": ["array"],
    "$mod": ["decimal", "double", "int", "long"],
    "$regex": ["regex", "string", "symbol"],
    "$size": ["array"],
}


def details(validator: Document, document: Document) -> Document:
    """Return the field ``errInfo.details`` of error code 121 (DocumentValidationFailure)."""
    clauses = [
        (index, clause)
        for index, (name, condition) in enumerate(_clauses(validator))
        if (clause := _clause(name, condition, document))
    ]
    if len(clauses) == 1 and len(list(_clauses(validator))) == 1:
        return clauses[0][1]
    return {"operatorName": "$and", "clausesNotSatisfied": _with_indexes(clauses)}


def _with_indexes(clauses: list[tuple[int, Document]]) -> list[Document]:
    return [{"index": index, "details": clause} for index, clause in clauses]


def _clauses(query: Document) -> list[tuple[str, Any]]:
    """Return the conditions of a query. A condition with several operators becomes several conditions."""
    found: list[tuple[str, Any]] = []
    for name, condition in query.items():
        if not name.startswith("$") and is_operators(condition) and "$regex" not in condition:
            found += [(name, {operator: operand}) for operator, operand in condition.items()]
        else:
            found.append((name, condition))
    return found


def _clause(name: str, condition: Any, document: Document) -> Document | None:
    """Return the details of a condition that the document does not match. Return None if the document matches."""
    if compile_filter({name: condition})(document):
        return None
    if name == "$jsonSchema":
        rules = violations(condition, document)
        return {"operatorName": name, **titles(condition), "schemaRulesNotSatisfied": rules}
    if name in ("$and", "$or"):
        clauses = [(index, details(part, document)) for index, part in enumerate(condition)
                   if not compile_filter(part)(document)]  # fmt: skip
        return {"operatorName": name, "clausesNotSatisfied": _with_indexes(clauses)}
    if name == "$expr":
        result = evaluate(condition, document, {})
        shown = {} if result is MISSING else {"expressionResult": result}
        return {"operatorName": name, "specifiedAs": {name: condition}, "reason": "expression did not match", **shown}
    if name.startswith("$"):
        raise not_supported("the details of $nor and $not", name)
    return _field_details(name, condition, document)


def _field_details(path: str, condition: Any, document: Document) -> Document:
    operator = next(iter(condition)) if is_operators(condition) else "$regex" if is_pattern(condition) else "$eq"
    if operator == "$not":
        raise not_supported("the details of $nor and $not")
    found = [value for value in values_at(document, split(path)) if value is not MISSING]
    details: Document = {"operatorName": operator, "specifiedAs": {path: condition}}
    if operator == "$exists":
        return {**details, "reason": "path does exist" if found else "path does not exist"}
    if not found:
        return {**details, "reason": "field was missing"}
    if len(found) == 1 and isinstance(found[0], list) and operator not in ("$all", "$elemMatch", "$size"):
        found = found[0]
    kind = "$bits" if operator.startswith("$bits") else operator
    details["reason"] = _REASONS.get(kind, "comparison failed")
    expected = _TYPES.get(kind, [])
    types = sorted(set(map(type_name, found)))
    is_wrong = bool(expected) and expected[0] not in types and set(types).isdisjoint(expected)
    if is_wrong:
        details["reason"] = _REASONS["$type"]
        details.update({"consideredType": types[0]} if len(found) == 1 else {"consideredTypes": types})
        details.update({"expectedType": expected[0]} if len(expected) == 1 else {"expectedTypes": expected})
    details.update({"consideredValue": found[0]} if len(found) == 1 else {"consideredValues": found})
    if operator == "$type":
        details.update({"consideredType": types[0]} if len(found) == 1 else {"consideredTypes": types})
    return details
