"""Log messages are formatted when they are read, and then read like any dictionary."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gmongo.events import log as logs
from gmongo.events.log import Details, Structured


def structured(made: list[str] | None = None) -> Structured:
    def make(value: int) -> str:
        if made is not None:
            made.append("made")
        return f"text {value}"

    return Structured({"message": "Hello", "a": 1}, {"later": (make, 2)})


WHOLE = {"message": "Hello", "a": 1, "later": "text 2"}
READINGS: dict[str, Callable[[Structured], Any]] = {
    "dict": dict,
    "unpacking": lambda fields: {**fields},
    "update": lambda fields: (found := {}, found.update(fields))[0],
    "a union": lambda fields: fields | {},
    "copy": lambda fields: fields.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda fields: pickle.loads(pickle.dumps(fields)),
    "json": lambda fields: json.loads(json.dumps(fields)),
    "items": lambda fields: dict(fields.items()),
    "keys and values": lambda fields: dict(zip(fields, fields.values(), strict=True)),
    "get": lambda fields: {name: fields.get(name) for name in fields},
    "subscripts": lambda fields: {name: fields[name] for name in ("message", "a", "later")},
    "pop": lambda fields: {name: fields.pop(name) for name in ("message", "a", "later")},
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_reader_of_a_structured_message_sees_what_was_made(reading: str) -> None:
    assert READINGS[reading](structured()) == WHOLE


def test_a_structured_message_is_equal_to_its_dictionary() -> None:
    assert structured() == WHOLE
    assert structured() != {**WHOLE, "later": (len, 2)}
    assert repr(structured()) == repr(WHOLE)


def test_nothing_is_made_before_that_and_nothing_twice() -> None:
    made: list[str] = []
    fields = structured(made)
    assert len(fields) == 3 and "later" in fields
    assert not made
    assert str(Details(fields)) == "Hello: a=1, later=text 2"
    assert fields["later"] == "text 2"
    assert made == ["made"]


def test_a_record_is_formatted_once_a_handler_asks(caplog: pytest.LogCaptureFixture) -> None:
    made: list[str] = []
    fields = structured(made)
    logger = logging.getLogger("gmongo.command")
    quiet = logging.NullHandler()
    logger.addHandler(quiet)
    logger.propagate = False
    try:
        logs.log(logger, Details(fields), fields, logging.CRITICAL)
        assert not made
    finally:
        logger.propagate = True
        logger.removeHandler(quiet)
    logs.log(logger, Details(fields), fields, logging.CRITICAL)
    assert caplog.messages == ["Hello: a=1, later=text 2"]
    assert caplog.records[0].structured == WHOLE  # type: ignore[attr-defined]


def test_records_are_made_by_the_factory_of_the_application(caplog: pytest.LogCaptureFixture) -> None:
    factory = logging.getLogRecordFactory()

    class Record(logging.LogRecord):
        pass

    logging.setLogRecordFactory(Record)
    try:
        logs.log(logging.getLogger("gmongo.command"), "text", {"message": "text"}, logging.CRITICAL)
    finally:
        logging.setLogRecordFactory(factory)
    assert type(caplog.records[0]) is Record
