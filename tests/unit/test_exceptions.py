"""Each exception has the expected attributes, error labels and `timeout` property.

A copied or unpickled exception has the attributes of the original.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gmongo import errors
from gmongo.errors import (
    EncryptedCollectionError,
    EncryptionError,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WaitQueueTimeoutError,
)
from tests.support.cases import rows, with_cases

ADDRESS = ("h", 1)
REPLY = {"ok": 0, "code": 50, "errmsg": "no luck", "errorLabels": ["Label"]}
PLAIN_REPLY = {"ok": 0, "code": 5, "errmsg": "no luck"}
CHECKED_OUT_CONNECTION = {"connection": 7, "seconds": 1.5, "greenlet": "<G>", "purpose": "a find", "operation": "find"}


def copies_of(error: Exception) -> list[Any]:
    return [copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))]


@with_cases
def test_exception_and_its_copies_have_timeout_labels_and_attributes(
    name: str, arguments: list[Any], is_timeout: bool, labels: list[str], attributes: dict[str, Any]
) -> None:
    error = getattr(errors, name)(*arguments)
    for each in (error, *copies_of(error)):
        assert type(each) is type(error) and each.timeout is is_timeout
        assert {*vars(each)} == {*vars(error)} and str(each) == str(error)
        assert [label for label in ("A", "B", "Label", "Other") if each.has_error_label(label)] == labels
        assert {attribute: getattr(each, attribute) for attribute in attributes} == attributes


def test_cases_cover_every_exception() -> None:
    exception_names = {name for name in errors.__all__ if issubclass(getattr(errors, name), PyMongoError)}
    test = test_exception_and_its_copies_have_timeout_labels_and_attributes
    assert {case["name"] for case in rows(__file__, test.__name__)} == exception_names


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
    "make_error",
    [lambda text: OperationFailure(text, 5, PLAIN_REPLY), lambda text: errors.NotPrimaryError(text, PLAIN_REPLY)],
)
def test_error_text_contains_reply_and_escapes_newlines(make_error: Callable[[str], Exception]) -> None:
    assert str(make_error("no\nluck")) == f"no\\nluck, full error: {PLAIN_REPLY}"


def test_notes_of_wait_queue_timeout_list_checked_out_connections() -> None:
    error = WaitQueueTimeoutError("m", ADDRESS, [CHECKED_OUT_CONNECTION, CHECKED_OUT_CONNECTION])
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
