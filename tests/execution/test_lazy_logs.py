"""gmongo formats all lazy values of a structured log message at the first read of any value."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gmongo.events import log as logs
from gmongo.events.log import MessageText, Structured


def structured_message(format_calls: list[str] | None = None) -> Structured:
    def format_value(value: int) -> str:
        if format_calls is not None:
            format_calls.append("formatted")
        return f"text {value}"

    return Structured({"message": "Hello", "a": 1}, {"lazy": (format_value, 2)})


FORMATTED_FIELDS = {"message": "Hello", "a": 1, "lazy": "text 2"}
ACCESS_FUNCTIONS: dict[str, Callable[[Structured], Any]] = {
    "dict": dict,
    "unpacking": lambda fields: {**fields},
    "update": lambda fields: (result := {}, result.update(fields))[0],
    "union": lambda fields: fields | {},
    "copy": lambda fields: fields.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda fields: pickle.loads(pickle.dumps(fields)),
    "json": lambda fields: json.loads(json.dumps(fields)),
    "items": lambda fields: dict(fields.items()),
    "keys and values": lambda fields: dict(zip(fields, fields.values(), strict=True)),
    "get": lambda fields: {name: fields.get(name) for name in fields},
    "subscripts": lambda fields: {name: fields[name] for name in ("message", "a", "lazy")},
    "pop": lambda fields: {name: fields.pop(name) for name in ("message", "a", "lazy")},
}


@pytest.mark.parametrize("access", ACCESS_FUNCTIONS)
def test_every_access_to_structured_message_returns_formatted_values(access: str) -> None:
    assert ACCESS_FUNCTIONS[access](structured_message()) == FORMATTED_FIELDS


def test_structured_message_formats_each_value_once_at_first_access() -> None:
    format_calls: list[str] = []
    fields = structured_message(format_calls)
    assert len(fields) == 3 and "lazy" in fields
    assert not format_calls
    assert str(MessageText(fields)) == "Hello: a=1, lazy=text 2"
    assert fields["lazy"] == "text 2"
    assert format_calls == ["formatted"]


def test_log_record_is_formatted_only_when_a_handler_reads_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    format_calls: list[str] = []
    fields = structured_message(format_calls)
    logger = logging.getLogger("gmongo.command")
    null_handler = logging.NullHandler()
    logger.addHandler(null_handler)
    logger.propagate = False
    try:
        logs.log(logger, MessageText(fields), fields, logging.CRITICAL)
        assert not format_calls
    finally:
        logger.propagate = True
        logger.removeHandler(null_handler)
    logs.log(logger, MessageText(fields), fields, logging.CRITICAL)
    assert caplog.messages == ["Hello: a=1, lazy=text 2"]
    assert caplog.records[0].structured == FORMATTED_FIELDS  # type: ignore[attr-defined]
