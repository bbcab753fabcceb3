"""``$fill``, which stands for a ``$setWindowFields`` and an ``$addFields``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.errors import failed_to_parse, location

_OPTIONS = frozenset({"partitionBy", "partitionByFields", "sortBy", "output"})
_METHODS = {"linear": "$linearFill", "locf": "$locf"}


def fill(spec: Any) -> list[Any]:
    """``$fill``.

    :raises CommandError: if it is malformed.
    """
    if not isinstance(spec, dict):
        raise failed_to_parse(f"the $fill stage specification must be an object, found {spec!r}")
    for name in sorted(set(spec) - _OPTIONS):
        raise location(40415, f"BSON field '$fill.{name}' is an unknown field.")
    output = spec.get("output")
    if not isinstance(output, dict):
        raise location(40414, "BSON field '$fill.output' is missing but a required field, an object")
    if not output:
        raise location(6050203, "a non-empty '$fill.output' is required")
    methods: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, one in output.items():
        _check_output(name, one)
        if "value" in one:
            values[name] = {"$ifNull": [f"${name}", one["value"]]}
        elif one["method"] in _METHODS:
            methods[name] = {_METHODS[one["method"]]: f"${name}"}
        else:
            raise location(6050202, f"Method must be either 'locf' or 'linear', found {one['method']!r}")
    if methods and not spec.get("sortBy"):
        raise location(6050203, "'sortBy' required with 'method'")
    stages: list[Any] = []
    partition = _partition(spec)
    if methods:
        stages.append({"$setWindowFields": {**partition, "sortBy": spec["sortBy"], "output": methods}})
    return [*stages, {"$addFields": values}] if values else stages


def _check_output(name: str, one: Any) -> None:
    if not isinstance(one, dict):
        raise location(6050200, f"'{name}' must be filled as an object says, found {one!r}")
    for option in sorted(set(one) - {"method", "value"}):
        raise location(40415, f"BSON field '$fill.output.{name}.{option}' is an unknown field.")
    if len(one) != 1:
        raise location(6050202, f"'{name}' must be filled with one of 'value' and 'method', found {one!r}")


def _partition(spec: Any) -> dict[str, Any]:
    if "partitionByFields" not in spec:
        return {"partitionBy": spec["partitionBy"]} if "partitionBy" in spec else {}
    if "partitionBy" in spec:
        raise location(6050204, "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'")
    return {"partitionBy": {name: f"${name}" for name in partition_fields("$fill", spec["partitionByFields"])}}


def partition_fields(name: str, fields: Any) -> list[str]:
    """The fields that documents of a partition share.

    :raises CommandError: if they are no names of fields.
    """
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        raise failed_to_parse(f"'partitionByFields' of {name} must be an array of strings, found {fields!r}")
    for field in fields:
        if field.startswith("$"):
            raise location(16410, f"FieldPath field names may not start with '$', given '{field}'.")
    return fields
