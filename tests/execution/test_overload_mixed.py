"""Errors of overload and others, one after the other, and the numbers of writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo.errors import AutoReconnect, OperationFailure
from gmongo.execution.retry import RetryPolicy, with_retry_writes_hint
from gmongo.sdam.server_description import ServerDescription
from tests.execution.harness import BOTH, NO_WRITES, RETRYABLE, error, in_turn, rejected
from tests.support.clients import Client
from tests.support.server import ScriptedServer, cut

RETRYABLE_WRITE = "RetryableWriteError"


# Errors of several kinds, one after the other


@pytest.mark.requirement("BP-41")
def test_a_regular_error_is_answered_once(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    server.fail("find", cut(0), cut(0), cut(0))
    with pytest.raises(AutoReconnect):
        scripted.db.c.find_one()
    assert len(server.commands("find")) == 2
    server.received.clear()
    server.faults["find"].clear()
    in_turn(server, "ping", error(6))
    with pytest.raises(OperationFailure):
        scripted.db.command("ping")
    assert len(server.commands("ping")) == 1, "what is no read and no write has no regular retries"


@pytest.mark.requirement("BP-19", "BP-41")
def test_from_the_first_labelled_error_on_there_are_five(
    server: ScriptedServer, scripted: Client, sleeps: list[float]
) -> None:
    in_turn(server, "find", error(6), *[rejected()] * 9)
    with pytest.raises(OperationFailure):
        scripted.db.c.find_one()
    assert len(server.commands("find")) == 6, "regular retries are counted too (BP-A10)"
    server.received.clear()
    in_turn(server, "find", rejected(), *[error(6)] * 9)
    with pytest.raises(OperationFailure):
        scripted.db.c.find_one()
    assert len(server.commands("find")) == 6


@pytest.mark.requirement("BP-36", "BP-54")
@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (["", "", ""], 103),
        ([NO_WRITES, NO_WRITES, NO_WRITES], 101),
        (["", NO_WRITES, NO_WRITES], 101),
        (["", "", NO_WRITES], 102),
        ([NO_WRITES, "", NO_WRITES], 102),
        ([NO_WRITES, NO_WRITES, ""], 103),
    ],
)
def test_the_error_that_may_have_written_is_raised(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float], labels: list[str], code: int
) -> None:
    """The newest one without the label, or the first of all (BP-A12)."""
    client = connect(f"mongodb://{server.name}", maxAdaptiveRetries=2)
    in_turn(server, "insert", *[error(101 + turn, *BOTH, label) for turn, label in enumerate(labels)])
    with pytest.raises(OperationFailure, match=f"scripted {code}"):
        client.db.c.insert_one({})
    assert len(server.commands("insert")) == 3, "the label does not end the retries"


# Numbers of writes


@pytest.mark.requirement("BP-40")
def test_a_write_keeps_its_number(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "insert", rejected(), error(6, RETRYABLE_WRITE), rejected())
    scripted.db.c.insert_one({})
    scripted.db.c.insert_one({})
    assert [command["txnNumber"] for command in server.commands("insert")] == [1, 1, 1, 1, 2]
    assert len({bytes(command["lsid"]["id"]) for command in server.commands("insert")}) == 1


@pytest.mark.requirement("BP-01", "BP-40")
def test_other_writes_get_none(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "update", rejected(), {"ok": 1, "n": 1, "nModified": 1})
    scripted.db.c.update_many({}, {"$set": {"x": 1}})
    assert ["txnNumber" in command for command in server.commands("update")] == [False, False]


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


@pytest.mark.requirement("BP-13", "BP-39")
@pytest.mark.parametrize(("retry", "sent"), [(True, 2), (False, 1)])
def test_regular_retries_by_option(
    server: ScriptedServer, connect: Callable[..., Client], sleeps: list[float], retry: bool, sent: int
) -> None:
    client = connect(f"mongodb://{server.name}", retryReads=retry, retryWrites=retry)
    in_turn(server, "find", *[error(6)] * 3)
    in_turn(server, "insert", *[error(6, RETRYABLE_WRITE)] * 3)
    in_turn(server, "update", *[error(6, RETRYABLE_WRITE)] * 3)
    runs: list[Callable[[], Any]] = [
        client.db.c.find_one,
        lambda: client.db.c.insert_one({}),
        lambda: client.db.c.update_many({}, {"$set": {"y": 1}}),
    ]
    for run in runs:
        with pytest.raises(OperationFailure):
            run()
    assert [len(server.commands(name)) for name in ("find", "insert", "update")] == [sent, sent, 1]
    assert ["txnNumber" in command for command in server.commands("insert")] == [retry] * sent


@pytest.mark.requirement("BP-49")
def test_a_storage_engine_without_retryable_writes(
    server: ScriptedServer, scripted: Client, sleeps: list[float]
) -> None:
    message = "Transaction numbers are only allowed on a replica set member or mongos"
    server.replies["insert"] = {"ok": 0, "code": 20, "errmsg": message}
    with pytest.raises(OperationFailure) as raised:
        scripted.db.c.insert_one({})
    assert raised.value.code == 20
    expected = (
        "This MongoDB deployment does not support retryable writes. "
        "Please add retryWrites=false to your connection string."
    )
    assert str(raised.value).startswith(expected)

    assert raised.value.details["errmsg"] == expected
    assert isinstance(raised.value.__cause__, OperationFailure)
    assert message in str(raised.value.__cause__)
    with pytest.raises(OperationFailure, match="Transaction numbers"):
        scripted.db.command("insert", "c", documents=[{}])


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


@pytest.mark.requirement("BP-43", "BP-01")
def test_labels_count_whatever_the_code(server: ScriptedServer, scripted: Client, sleeps: list[float]) -> None:
    in_turn(server, "ping", error(2, *BOTH), error(89, *BOTH), error(462, RETRYABLE))
    scripted.db.command("ping")
    assert sleeps == [0.1, 0.2]
