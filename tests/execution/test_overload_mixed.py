"""Errors of overload and others, one after the other, and the numbers of writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.errors import OperationFailure
from gmongo.execution.retry import RetryPolicy, with_retry_writes_hint
from gmongo.sdam.server_description import ServerDescription
from tests.execution.harness import error, in_turn, rejected
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cut

RETRYABLE_WRITE = "RetryableWriteError"


# Errors of several kinds, one after the other


# Numbers of writes


@pytest.mark.requirement("BP-40")
def test_a_write_keeps_its_number(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "insert", rejected(), error(6, RETRYABLE_WRITE), rejected())
    scripted.db.c.insert_one({})
    scripted.db.c.insert_one({})
    assert [command["txnNumber"] for command in server.commands("insert")] == [1, 1, 1, 1, 2]
    assert len({bytes(command["lsid"]["id"]) for command in server.commands("insert")}) == 1


@pytest.mark.requirement("BP-51")
def test_a_rejected_write_may_go_on_without_its_number(
    server: ScriptedServer, scripted: Client, sleeps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the second server is made on regular retries only (BP-A16): this one was not executed."""
    scripted.db.c.find_one()
    numbers = iter([True, False])
    monkeypatch.setattr(RetryPolicy, "retry_writes", property(lambda self: next(numbers)))
    in_turn(server, "insert", rejected())
    scripted.db.c.insert_one({})
    assert ["txnNumber" in command for command in server.commands("insert")] == [True, False]


def test_an_error_without_a_reply_is_put_in_other_words_too() -> None:
    error = OperationFailure("Transaction numbers are only allowed on a replica set", 20)
    better = with_retry_writes_hint(error)
    assert isinstance(better, OperationFailure) and better.code == 20 and better.__cause__ is error
    (text,) = (better.details or {}).values()
    assert str(better).startswith(text) and "retryWrites=false" in text


@pytest.mark.parametrize("how", ["another reason", "another code", "a write without a number"])
def test_only_that_error_of_retryable_writes_has_the_text(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float], how: str
) -> None:
    message = "not allowed" if how == "another reason" else "Transaction numbers are only allowed on a replica set"
    code = 72 if how == "another code" else 20
    server.replies["insert"] = {"ok": 0, "code": code, "errmsg": message}
    client = connect(f"mongodb://{server.name}", retryWrites=how != "a write without a number")
    with pytest.raises(OperationFailure) as raised:
        client.db.c.insert_one({})
    assert str(raised.value).startswith(message)


@pytest.mark.requirement("BP-51")
def test_a_write_that_may_have_been_executed_is_not_sent_without_its_number_whatever_came_after(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float]
) -> None:
    def turn_away(_command: Any) -> dict[str, Any]:
        asked.append(1)
        if len(asked) == 2:  # and next, it has no sessions any more
            known = client._topology.description.get(server.address)
            client._topology.server_checked(
                ServerDescription(server.address, {**known._hello, "logicalSessionTimeoutMinutes": None}, 0.001)
            )
        return rejected()

    asked: list[int] = []
    client = connect(f"mongodb://{server.name}")
    client.db.c.find_one()
    server.fail("insert", cut(0))
    server.replies["insert"] = turn_away
    with pytest.raises(OperationFailure, match="Selected server does not support retryable writes"):
        client.db.c.insert_one({})
    assert ["txnNumber" in command for command in server.commands("insert")] == [True, True]
