"""The driver creates errors from failed replies, and ProtocolError from unreadable replies."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

import pytest
from bson import Int64, ObjectId
from bson.codec_options import CodecOptions, TypeCodec, TypeRegistry

from gmongo.errors import (
    NotPrimaryError,
    OperationFailure,
    ProtocolError,
    PyMongoError,
    WriteConcernError,
    WriteError,
)
from gmongo.execution import reply_errors
from gmongo.execution.operation import OperationContext
from gmongo.execution.retry import label_write_error
from gmongo.sdam.server_description import find_topology_version
from tests.support.cases import with_cases


@with_cases
def test_failed_reply_raises_error_class_of_its_code(
    reply: dict[str, Any], error_class: type[OperationFailure] | None, message: str, code: int | None
) -> None:
    error = reply_errors.error_of(reply, 21)
    if error_class is None:
        assert error is None
        reply_errors.raise_error_of(reply, 21, concern_first=False)
        return
    assert type(error) is error_class
    assert str(error).startswith(message) and error.code == code  # type: ignore[union-attr]
    assert error_class is WriteConcernError or error.details == reply  # type: ignore[union-attr]
    with pytest.raises(error_class) as caught:
        reply_errors.raise_error_of(reply, 21, concern_first=False)
    assert str(caught.value) == str(error)


CONCERN = {"code": 100, "errmsg": "few"}
TOPOLOGY_VERSION = {"processId": ObjectId(), "counter": Int64(1)}


@pytest.mark.parametrize(
    ("code", "takes_precedence", "error_class"),
    [(26, True, WriteConcernError), (26, False, OperationFailure), (10107, True, NotPrimaryError)],
)
def test_write_concern_error_is_raised_if_it_takes_precedence(
    code: int, takes_precedence: bool, error_class: type[PyMongoError]
) -> None:
    reply = {"ok": 0, "errmsg": "no", "code": code, "writeConcernError": CONCERN, "topologyVersion": TOPOLOGY_VERSION}
    error: Any = reply_errors.error_of(reply, 21, takes_precedence)
    assert type(error) is error_class
    assert find_topology_version(error) == TOPOLOGY_VERSION
    assert (error.details == CONCERN) is (error_class is WriteConcernError)
    with pytest.raises(error_class):
        reply_errors.raise_error_of(reply, 21, takes_precedence)


class IdentityCodec(TypeCodec):
    python_type, bson_type = complex, str  # type: ignore[assignment]

    def transform_python(self, value: Any) -> Any:
        return value

    def transform_bson(self, value: Any) -> Any:
        return value


CUSTOM_CODEC = CodecOptions(type_registry=TypeRegistry([IdentityCodec()]))


def error_raised_in(module: str) -> Exception:
    """Return an error that a function of the given module has raised."""
    namespace: dict[str, Any] = {"__name__": module}
    exec("def failing(): raise KeyError('x')", namespace)
    try:
        namespace["failing"]()
    except KeyError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("module", "options", "is_unchanged"),
    [
        ("gmongo.operations.find", None, False),
        ("gmongo.operations.find", CUSTOM_CODEC, False),
        ("somewhere", None, False),
        ("somewhere", CUSTOM_CODEC, True),
        ("gmongoesque", CUSTOM_CODEC, True),
    ],
)
def test_unreadable_reply_raises_protocol_error_except_codec_error(
    module: str, options: Any, is_unchanged: bool
) -> None:
    failure = error_raised_in(module)
    context = OperationContext("db", "c", **({} if options is None else {"codec_options": options}))
    raised_error = reply_errors.malformed_reply_error(failure, SimpleNamespace(name="find", context=context))  # type: ignore[arg-type]
    if is_unchanged:
        assert raised_error is failure
    else:
        assert type(raised_error) is ProtocolError and raised_error.__cause__ is failure
        assert str(raised_error) == "the reply to find cannot be read: KeyError: 'x'"


@pytest.mark.parametrize(
    ("code", "message", "is_missing"),
    [(26, "gone", True), (5, "ns not found", True), (5, "other", False), (None, "other", False)],
)
def test_missing_namespace_is_recognized_by_code_or_message(code: int | None, message: str, is_missing: bool) -> None:
    assert reply_errors.is_namespace_missing(OperationFailure(message, code)) is is_missing


@with_cases
def test_write_error_code_determines_error_class(
    error: dict[str, Any], error_class: type[WriteError], message: str, code: int | None
) -> None:
    with pytest.raises(WriteError) as caught:
        reply_errors.raise_write_error(error)
    assert type(caught.value) is error_class and caught.value.code == code and caught.value.details == error
    assert str(caught.value).startswith(message)


@with_cases
def test_write_concern_error_has_fields_of_reply(
    write_concern_error: dict[str, Any], error_class: type[WriteConcernError], message: str
) -> None:
    reply_fields = {"errorLabels": ["L"], "topologyVersion": {"counter": 1}}
    with pytest.raises(WriteConcernError) as caught:
        reply_errors.raise_write_concern_error(
            {"ok": 1, "writeConcernError": write_concern_error, **reply_fields, "other": 1}
        )
    assert type(caught.value) is error_class and caught.value.code == write_concern_error["code"]
    assert caught.value.details == {**write_concern_error, "errorLabels": ["L"]}
    assert find_topology_version(caught.value) == {"counter": 1}
    assert str(caught.value).startswith(message) and caught.value.has_error_label("L")
    assert reply_errors.labelled_concern_error({"writeConcernError": write_concern_error, **reply_fields}) == {
        **write_concern_error,
        "errorLabels": ["L"],
    }
    assert reply_errors.labelled_concern_error({"writeConcernError": write_concern_error}) == write_concern_error
    reply_errors.raise_write_concern_error({"ok": 1, "other": 1})


def test_bulk_error_has_labels_of_all_write_concern_errors() -> None:
    error = PyMongoError("bulk")
    concern_errors = [{"errorLabels": ["A", "B"]}, {}, {"errorLabels": ["C"]}]
    assert reply_errors.with_labels(error, {"writeConcernErrors": concern_errors}) is error
    assert [error.has_error_label(label) for label in "ABCD"] == [True, True, True, False]


@with_cases
@pytest.mark.parametrize("ok", [0, 1])
def test_malformed_write_concern_error_raises_protocol_error(
    write_concern_error: dict[str, Any], message: str, ok: int
) -> None:
    with pytest.raises(ProtocolError) as caught:
        reply_errors.error_of({"ok": ok, "writeConcernError": write_concern_error})
    assert str(caught.value) == message


@with_cases
def test_retryable_write_error_of_old_server_is_labelled(
    error: PyMongoError, labelled_for_member: bool, labelled_for_mongos: bool
) -> None:
    for is_mongos, expected in ((False, labelled_for_member), (True, labelled_for_mongos)):
        for wire_version, is_labelled in ((8, expected), (9, False)):
            new_error = copy(error)
            new_error._error_labels = set()
            label_write_error(new_error, wire_version, is_mongos)
            assert new_error.has_error_label("RetryableWriteError") is is_labelled
