"""Each exception has the expected attributes, error labels and `timeout` property.

A copied or unpickled exception equals the original.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gmongo import errors
from gmongo.errors import (
    BulkWriteError,
    ClientBulkWriteException,
    EncryptedCollectionError,
    EncryptionError,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    WaitQueueTimeoutError,
)

ADDRESS = ("h", 1)
REPLY = {"ok": 0, "code": 50, "errmsg": "no luck", "errorLabels": ["Label"]}
PLAIN = {"ok": 0, "code": 5, "errmsg": "no luck"}
CHECKED_OUT = {"connection": 7, "seconds": 1.5, "greenlet": "<G>", "purpose": "a find", "operation": "find"}
_CONCERN_TIMED_OUT = {"writeConcernErrors": [{"code": 64}]}
_WTIMEOUT = {"writeConcernErrors": [{"code": 1, "errInfo": {"wtimeout": True}}]}
_CONCERN_FAILED = {"writeConcernErrors": [{"code": 100, "errInfo": {}}, {"code": 1, "errInfo": None}]}

# For each case: the exception class, the constructor arguments, the `timeout` property, the labels, the attributes.
EXCEPTION_CASES: list[tuple[str, tuple[Any, ...], bool, set[str], dict[str, Any]]] = [
    ("PyMongoError", (), False, set(), {"args": ("",)}),
    ("PyMongoError", ("m", ["A", "B"]), False, {"A", "B"}, {"args": ("m",)}),
    ("ProtocolError", ("m",), False, set(), {}),
    ("ConnectionFailure", ("m",), False, set(), {}),
    ("AutoReconnect", ("m",), False, set(), {"errors": [], "details": []}),
    ("AutoReconnect", ("m", [1]), False, set(), {"errors": [1], "details": [1]}),
    ("AutoReconnect", ("m", REPLY), False, {"Label"}, {"errors": REPLY, "details": REPLY}),
    ("NetworkTimeout", ("m",), True, set(), {}),
    ("NotPrimaryError", ("m", REPLY), False, {"Label"}, {"code": 50, "details": REPLY}),
    ("NotPrimaryError", (), False, set(), {"code": None, "details": []}),
    ("ServerSelectionTimeoutError", ("m",), True, set(), {}),
    ("PoolClearedError", ("m", ADDRESS), False, set(), {"address": ADDRESS}),
    ("PoolClosedError", (ADDRESS,), False, set(), {"address": ADDRESS}),
    ("WaitQueueTimeoutError", ("m", ADDRESS, [CHECKED_OUT], " and more"), True, set(),
     {"address": ADDRESS, "message": "m", "holders": [CHECKED_OUT], "args": ("m and more",)}),
    ("ConfigurationError", ("m",), False, set(), {}),
    ("InvalidURI", ("m",), False, set(), {}),
    ("InvalidHost", ("m",), False, set(), {}),
    ("InvalidOption", ("m",), False, set(), {}),
    ("InvalidOptionType", ("m",), False, set(), {}),
    ("OperationFailure", ("m",), False, set(), {"code": None, "details": None, "args": ("m",)}),
    ("OperationFailure", ("m", 5, PLAIN, 21), False, set(), {"code": 5, "details": PLAIN, "_max_wire_version": 21}),
    ("OperationFailure", ("m", 50, REPLY), True, {"Label"}, {"code": 50}),
    ("CursorNotFound", ("m", 50), False, set(), {}),
    ("ExecutionTimeout", ("m", 5), True, set(), {}),
    ("WriteConcernError", ("m", 5), False, set(), {}),
    ("WriteError", ("m", 5), False, set(), {}),
    ("WTimeoutError", ("m", 5), True, set(), {}),
    ("DuplicateKeyError", ("m", 5), False, set(), {}),
    ("BulkWriteError", ({"writeErrors": [{"code": 50}]},), True, set(),
     {"code": 65, "details": {"writeErrors": [{"code": 50}]}}),
    ("BulkWriteError", ({"writeErrors": [{"code": 11000}]},), False, set(), {}),
    ("BulkWriteError", (_CONCERN_TIMED_OUT,), True, set(), {}),
    ("BulkWriteError", (_WTIMEOUT,), True, set(), {}),
    ("BulkWriteError", (_CONCERN_FAILED,), False, set(), {}),
    ("BulkWriteError", ({},), False, set(), {}),
    ("ClientBulkWriteException", ({"error": NetworkTimeout("m")}, True, "partial"), True, set(),
     {"code": 65, "verbose": True, "partial_result": "partial"}),
    ("ClientBulkWriteException", ({"error": OperationFailure("m")},), False, set(),
     {"verbose": False, "partial_result": None, "write_errors": [], "write_concern_errors": []}),
    ("ClientBulkWriteException", ({**_WTIMEOUT, "writeErrors": [1]},), True, set(),
     {"error": None, "write_errors": [1], "write_concern_errors": _WTIMEOUT["writeConcernErrors"]}),
    ("ClientBulkWriteException", (_CONCERN_FAILED,), False, set(), {}),
    ("InvalidOperation", ("m",), False, set(), {}),
    ("InvalidName", ("m",), False, set(), {}),
    ("CollectionInvalid", ("m",), False, set(), {}),
    ("EncryptionError", (NetworkTimeout("m"),), True, set(), {"args": ("m",)}),
    ("EncryptionError", (PyMongoError("m"),), False, set(), {}),
    ("EncryptionError", (ValueError("m"),), False, set(), {}),
    ("EncryptedCollectionError", (ValueError("m"), {"fields": []}), False, set(), {"encrypted_fields": {"fields": []}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "is_timeout", "labels", "attributes"), EXCEPTION_CASES)
def test_exception_has_timeout_labels_and_attributes(
    name: str, arguments: tuple[Any, ...], is_timeout: bool, labels: set[str], attributes: dict[str, Any]
) -> None:
    error = getattr(errors, name)(*arguments)
    assert error.timeout is is_timeout
    assert {label for label in ("A", "B", "Label", "Other") if error.has_error_label(label)} == labels
    for attribute, value in attributes.items():
        found = getattr(error, attribute)
        assert found == value, attribute


def test_cases_cover_every_exception() -> None:
    kinds = {name for name in errors.__all__ if issubclass(getattr(errors, name), PyMongoError)}
    assert {name for name, *_ in EXCEPTION_CASES} == kinds


def copies_of(error: Exception) -> list[Any]:
    return [copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))]


@pytest.mark.parametrize(("name", "arguments", "is_timeout"), [case[:3] for case in EXCEPTION_CASES])
def test_copy_equals_original(name: str, arguments: tuple[Any, ...], is_timeout: bool) -> None:
    error = getattr(errors, name)(*arguments)
    error._add_error_label("Added")
    for copied in copies_of(error):
        assert type(copied) is type(error) and copied.timeout is is_timeout
        assert {*vars(copied)} == {*vars(error)} and str(copied) == str(error)
        assert copied.has_error_label("Added")


def test_error_with_deeply_nested_reply_has_printable_text() -> None:
    reply: dict[str, Any] = {}
    innermost = reply
    for _ in range(100_000):
        innermost["x"] = innermost = {}
    error = OperationFailure("m", 5, reply)
    assert str(error) == "m, full error: too deeply nested to be shown"
    assert error.details is reply
    # Free the document level by level, because a deallocation of the whole document recurses too
    # deeply.
    while reply:
        reply = reply.pop("x", {})


def test_operation_failure_without_message_has_a_text() -> None:
    assert str(OperationFailure(None, details={"ok": 0})) == "None, full error: {'ok': 0}"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make_error", [lambda text: OperationFailure(text, 5, PLAIN), lambda text: errors.NotPrimaryError(text, PLAIN)]
)
def test_error_text_contains_reply_and_escapes_newlines(make_error: Callable[[str], Exception]) -> None:
    assert str(make_error("no\nluck")) == f"no\\nluck, full error: {PLAIN}"


def test_notes_of_wait_queue_timeout_list_checked_out_connections() -> None:
    error = WaitQueueTimeoutError("m", ADDRESS, [CHECKED_OUT, CHECKED_OUT])
    assert getattr(error, "__notes__", [error]) in (
        ["Connection 7 has been held for 1.500 s by <G>, for a find; its last command: find"] * 2,
        [error],
    )


@pytest.mark.parametrize("error_class", [EncryptionError, EncryptedCollectionError])
def test_encryption_error_has_cause_and_printable_text(error_class: Any) -> None:
    cause = ExecutionTimeout("m\x1b", 50)
    error = error_class(cause, {}) if error_class is EncryptedCollectionError else error_class(cause)
    assert error.cause is cause and error.timeout
    assert str(error) == r"m\x1b"


def test_copy_of_bulk_write_error_keeps_details() -> None:
    bulk = BulkWriteError({"writeErrors": []})
    client_bulk = ClientBulkWriteException({"writeErrors": []}, True, None)
    for copied in copies_of(bulk):
        assert copied.details == bulk.details
    for copied in copies_of(client_bulk):
        assert (copied.details, copied.verbose) == (client_bulk.details, True)
