"""Schema of the state of a process: the fields of the JSON document, and their types.

:func:`select_fields` copies only the fields of the schema from a state, and rejects a malformed state. Therefore pages
and terminals show only fields of the schema, and no malformed data of other processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from gmongo._documents import Document, DocumentDict
from gmongo._safe_log import printable

_MAX_INT = 2**53  # JavaScript represents all integers up to this number exactly

NUMBER = (int, float)
OPTIONAL_NUMBER = (int, float, None)

_POOL = {
    "state": str,
    "inUseBy": {str: NUMBER},
    "maxPoolSize": OPTIONAL_NUMBER,
    "oldestWaitMS": OPTIONAL_NUMBER,
    **dict.fromkeys(("generation", "total", "available", "pending", "waiting", "inUse", "minPoolSize"), NUMBER),
}
_SERVER = {
    "address": str,
    "type": str,
    "roundTripMS": OPTIONAL_NUMBER,
    "minRoundTripMS": NUMBER,
    "error": str,
    "pool": (_POOL, None),
}
_OPERATION = {
    **dict.fromkeys(("phase", "operation", "server", "greenlet"), str),
    "sinceMS": NUMBER,
    "connection": OPTIONAL_NUMBER,
}
_PHASES = ("selection", "checkOut", "connecting", "server", "network", "decoding", "backOff", "driver", "duration")
_SLOW_OPERATION = {
    "operation": str,
    **dict.fromkeys((f"{phase}MS" for phase in _PHASES), NUMBER),
    **dict.fromkeys(("tries", "commands", "agoMS"), NUMBER),
    "server?": str,
    "error?": str,
}
_EVENT = {**dict.fromkeys(("what", "server", "error"), str), **dict.fromkeys(("times", "agoMS", "sinceMS"), NUMBER)}
_CLIENT = {
    "number": NUMBER,
    **dict.fromkeys(("application", "topology", "replicaSet"), str),
    "servers": [_SERVER],
    "operations": [_OPERATION],
    "slow": [_SLOW_OPERATION],
    "history": [_EVENT],
    "retries": dict.fromkeys(("tokens", "retries", "slept", "exhausted", "others", "errors"), NUMBER),
}
_STATE = {"process": NUMBER, "version": str, "requests": NUMBER, "clients": [_CLIENT]}
_STATE_WITH_TEXT = {**_STATE, "clients": [{**_CLIENT, "slow": [{**_SLOW_OPERATION, "text?": str}]}]}


def select_fields(state: object, query_text: bool) -> DocumentDict:
    """Copy the fields of the schema from a state. Raise ValueError if the state is malformed.

    If `query_text` is True, the copy includes the text of slow operations.
    """
    fields: DocumentDict = _select_fields(state, _STATE_WITH_TEXT if query_text else _STATE, "the state")
    return fields


def _select_fields(value: object, shape: Any, path: str) -> Any:
    if isinstance(shape, tuple) and not isinstance(shape[0], type):  # (schema, None) allows None
        return None if value is None else _select_fields(value, shape[0], path)
    if isinstance(shape, list):
        elements = enumerate(_checked_type(list, value, path))
        return [_select_fields(each, shape[0], f"{path}[{index}]") for index, each in elements]
    if isinstance(shape, dict):
        return _select_mapping(_checked_type(dict, value, path), shape, path)
    if shape is str:
        return printable(_checked_type(str, value, path))
    if value is None and None in shape:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or abs(value) > _MAX_INT:
        raise ValueError(f"{path} must be a number")
    return value


def _select_mapping(value: Document, shape: Mapping[Any, Any], path: str) -> DocumentDict:
    if str in shape:  # the schema allows any field names
        return {printable(name): _select_fields(each, shape[str], f"a field of {path}") for name, each in value.items()}
    fields = {}
    for key, field_shape in shape.items():
        name = key.removesuffix("?")  # a question mark in the schema marks an optional field
        if name in value:
            fields[name] = _select_fields(value[name], field_shape, f"{name} of {path}")
        elif name == key:
            raise ValueError(f"{path} has no {name}")
    return fields


def _checked_type(kind: type, value: object, path: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{path} must be {_TYPE_NAMES[kind]}")
    return value


_TYPE_NAMES: dict[type, str] = {list: "a list", dict: "an object", str: "a string"}
