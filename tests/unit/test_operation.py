"""What an operation does that says nothing else, and that one which encrypts passes everything on to the other."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import Mock, PropertyMock

import bson
import pytest

from gmongo.execution.context import OperationContext
from gmongo.execution.operation import CollectionOperation, Operation
from gmongo.wire.message import encode_op_msg

CONTEXT = OperationContext("db", "c")


class Plain(Operation):
    name = "plain"


def test_what_holds_unless_an_operation_says_otherwise() -> None:
    operation = Plain(CONTEXT)
    with pytest.raises(NotImplementedError):
        operation.command(Mock())
    document: dict[str, Any] = {"ok": 1}
    body = bson.encode(document)
    assert operation.title == "plain"
    assert operation.message(7, 2, body, Mock()) == encode_op_msg(7, 2, body)
    assert operation.for_monitoring(document) is document
    assert operation.reply_for_monitoring(document) is document
    assert operation.decode(body) == document
    assert operation.result(document, ("h", 1)) is document
    assert operation.unacknowledged_result() is None
    assert operation.keeps_cursor_open(document) is False
    assert operation.orphaned_cursor(document, ("h", 1)) is None
    assert operation.late_cursor(body, ("h", 1)) is None
    assert operation.pinned(document, Mock()) is document
    assert CollectionOperation(CONTEXT, {"x": 1}).fields == {"x": 1}


@pytest.mark.parametrize(
    ("namespace", "collection"),
    [
        ("db.c", "c"),
        ("db.$cmd", ""),
        ("db.$cmd.aggregate", ""),
        ("admin.c", ""),
        ("administration.c", "c"),
        ("db.a$cmd", "a$cmd"),
    ],
)
def test_the_collection_is_that_of_no_command_of_a_database(namespace: str, collection: str) -> None:
    assert Plain(OperationContext(*namespace.split(".", 1))).collection == collection


@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("takes_read_concern", [False, True])
def test_what_is_causally_consistent(is_write: bool, takes_read_concern: bool) -> None:
    kind = type("Kind", (Plain,), {"is_write": is_write, "takes_read_concern": takes_read_concern})
    operation: Operation = kind(CONTEXT)
    assert operation.is_causally_consistent is (is_write or takes_read_concern)
    assert operation.needs_retry_writes is is_write


# Of encryption

OWN = {"command", "for_monitoring", "decode", "result", "pinned", "message"}  # which do more, or are never asked for


def encrypted(inner: Any) -> Any:
    pytest.importorskip("pymongocrypt")
    from gmongo._encryption.operation import EncryptedOperation

    return EncryptedOperation(inner, Mock(), None)


def inner_operation() -> Any:
    inner = Mock(spec=Plain(CONTEXT), context=CONTEXT)
    return inner


PROPERTIES = [name for name, value in inspect.getmembers(Operation) if isinstance(value, property)]
METHODS = [
    name
    for name, value in inspect.getmembers(Operation, inspect.isfunction)
    if not name.startswith("_") and name not in OWN
]


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_those_of_the_other(name: str) -> None:
    inner = inner_operation()
    value = object()
    setattr(type(inner), name, PropertyMock(return_value=value))
    assert getattr(encrypted(inner), name) is value


@pytest.mark.parametrize("name", METHODS)
def test_calls_go_to_the_other(name: str) -> None:
    inner = inner_operation()
    arguments = [object() for _ in inspect.signature(getattr(Operation, name)).parameters][1:]
    inner.failed_in.return_value = None
    assert getattr(encrypted(inner), name)(*arguments) is getattr(inner, name).return_value
    getattr(inner, name).assert_called_once_with(*arguments)


@pytest.mark.parametrize("name", sorted(Operation.__annotations__))
def test_what_the_other_says_of_itself_is_said(name: str) -> None:
    inner = inner_operation()
    value = object()
    setattr(inner, name, value)
    assert getattr(encrypted(inner), name) is value


@pytest.mark.parametrize("decrypts", [False, True])
@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_result_is_that_of_the_decrypted_reply(decrypts: bool, is_pinned: bool) -> None:
    inner = inner_operation()
    operation = encrypted(inner)
    body, plain, pin = b"encrypted", b"plain", object()
    operation._encrypter.decrypt.return_value = plain if decrypts else None
    first = operation.result(operation.decode(body), ("h", 1))
    assert first is inner.result.return_value
    if is_pinned:
        assert operation.pinned(first, pin) is inner.pinned.return_value
    inner.reset_mock()
    inner.decode.side_effect, inner.result.side_effect = lambda body: (body,), lambda reply, address: (reply, address)
    inner.pinned.side_effect = lambda result, pin: (result, pin)
    found = operation.decrypted(first)
    operation._encrypter.decrypt.assert_called_once_with(body, None)
    if not decrypts:
        assert found is first
    else:
        expected: Any = ((plain,), ("h", 1))
        assert found == ((expected, pin) if is_pinned else expected)


def test_without_a_reply_nothing_is_decrypted() -> None:
    operation, result = encrypted(inner_operation()), object()
    assert operation.decrypted(result) is result
    operation._encrypter.decrypt.assert_not_called()
