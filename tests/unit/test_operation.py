"""Each operation class overrides exactly the listed defaults. The driver decrypts the results of
encrypted operations.
"""

from __future__ import annotations

import importlib
from inspect import isdatadescriptor
from pkgutil import iter_modules
from typing import Any
from unittest.mock import Mock

import pytest
from bson import Int64

from gmongo import MongoClient, operations
from gmongo.execution.operation import Operation, OperationContext
from gmongo.operations.end_sessions import ANY_SERVER, EndSessions
from gmongo.operations.find import Find
from gmongo.testing import Deployment
from tests.support.cases import rows, with_cases

CONTEXT = OperationContext("db", "c")


class PlainOperation(Operation):
    name = "plain"


@with_cases
def test_collection_name_is_empty_only_for_database_command(namespace: str, collection: str) -> None:
    assert PlainOperation(OperationContext(*namespace.split(".", 1))).collection == collection


@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("takes_read_concern", [False, True])
def test_write_or_operation_with_read_concern_is_causally_consistent(is_write: bool, takes_read_concern: bool) -> None:
    kind = type("Kind", (PlainOperation,), {"is_write": is_write, "takes_read_concern": takes_read_concern})
    operation: Operation = kind(CONTEXT)
    assert operation.is_causally_consistent is (is_write or takes_read_concern)
    assert operation.needs_retry_writes is is_write


# Encrypted operations


def encrypted_operation(inner: Any) -> Any:
    pytest.importorskip("pymongocrypt")
    from gmongo._encryption.operation import EncryptedOperation

    return EncryptedOperation(inner, Mock(), None)


def inner_operation() -> Any:
    inner = Mock(spec=PlainOperation(CONTEXT), context=CONTEXT)
    return inner


def test_encrypted_operation_has_attributes_of_inner_operation() -> None:
    inner = inner_operation()
    operation = encrypted_operation(inner)
    names = "title collection is_causally_consistent needs_retry_writes reply_for_monitoring unacknowledged_result"
    names += " keeps_cursor_open orphaned_cursor late_cursor selector_in_transaction notify_transaction"
    for name in names.split():
        assert getattr(operation, name) is getattr(inner, name)


@pytest.mark.parametrize("has_encrypted_fields", [False, True])
@pytest.mark.parametrize("is_pinned", [False, True])
def test_decrypted_result_is_computed_from_decrypted_reply(has_encrypted_fields: bool, is_pinned: bool) -> None:
    inner = inner_operation()
    operation = encrypted_operation(inner)
    body, decrypted_body, pin = b"encrypted", b"plain", object()
    operation._encrypter.decrypt.return_value = decrypted_body if has_encrypted_fields else None
    result = operation.result(operation.decode(body), ("h", 1))
    assert result is inner.result.return_value
    if is_pinned:
        assert operation.store_pin(result, pin) is inner.store_pin.return_value
    inner.reset_mock()
    inner.decode.side_effect, inner.result.side_effect = (
        lambda body: (body,),
        lambda reply, address: (reply, address),
    )
    inner.store_pin.side_effect = lambda result, pin: (result, pin)
    decrypted_result = operation.decrypt_result(result)
    operation._encrypter.decrypt.assert_called_once_with(body, None)
    if not has_encrypted_fields:
        assert decrypted_result is result
    else:
        expected: Any = ((decrypted_body,), ("h", 1))
        assert decrypted_result == ((expected, pin) if is_pinned else expected)


def test_result_without_reply_is_not_decrypted() -> None:
    operation, result = encrypted_operation(inner_operation()), object()
    assert operation.decrypt_result(result) is result
    operation._encrypter.decrypt.assert_not_called()


@pytest.mark.parametrize("cursor_id", [7, Int64(7), 7.0])
def test_cursor_id_of_any_integral_type_is_kept(cursor_id: float) -> None:
    reply = {"cursor": {"id": cursor_id, "ns": "db.c", "firstBatch": []}, "ok": 1}
    assert Find(CONTEXT, {}, {}).result(reply, ("h", 1)).cursor_id == 7


def test_operation_without_cursor_returns_result_and_stores_no_pin() -> None:
    result, pin = object(), Mock()
    assert PlainOperation(CONTEXT).store_pin(result, pin) is result and pin.mock_calls == []


def test_end_sessions_ends_10000_sessions_per_command_on_any_server() -> None:
    operations = list(EndSessions.batches([{"id": number} for number in range(20_001)]))
    assert [len(each.command(Mock())["endSessions"]) for each in operations] == [10_000, 10_000, 1]
    assert all(each.context.selector is ANY_SERVER and each.context.database == "admin" for each in operations)


(DEFAULTS,) = rows(__file__, "defaults")
# Operation class -> class attributes whose values differ from the defaults, except properties.
OVERRIDES = {row["operation"]: set(row["attributes"]) for row in rows(__file__, "overrides")}


def operation_classes() -> dict[str, type[Operation]]:
    modules = [importlib.import_module(f"gmongo.operations.{each.name}") for each in iter_modules(operations.__path__)]
    return {
        name: each
        for module in modules
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, Operation) and each.__module__ == module.__name__
    }


def test_operations_have_names_of_server_commands() -> None:
    with Deployment.sharded(1) as deployment, MongoClient[Any](deployment.uri) as client:
        commands = client.admin.command("listCommands")["commands"].keys() | {
            "createSearchIndexes",
            "updateSearchIndex",
        }
    assert {
        kind.name for kind in operation_classes().values() if isinstance(getattr(kind, "name", None), str)
    } <= commands


def test_operation_classes_override_exactly_listed_defaults() -> None:
    assert {
        name: getattr(Operation, name) for name in Operation.__annotations__ if hasattr(Operation, name)
    } == DEFAULTS
    actual = {
        name: {
            each
            for each in DEFAULTS
            if (value := getattr(kind, each)) != DEFAULTS[each] and not isdatadescriptor(value)
        }
        for name, kind in operation_classes().items()
        if not name.startswith("_")
    }
    assert actual == OVERRIDES
