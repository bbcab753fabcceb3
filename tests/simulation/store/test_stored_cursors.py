"""Tests of cursors in a simulated store: batches, the end of a cursor, and use by a second client or
session.
"""

from __future__ import annotations

import gevent
import pytest
from bson import Int64

from gmongo.testing.command import CommandError

from .shell import Shell, replica_set, standalone


def error_code_of(call, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    return caught.value.code


@pytest.fixture
def shell():
    shell = replica_set()
    shell.insert(*({"_id": number} for number in range(6)))
    return shell


def open_cursor(shell, **fields):
    return shell("find", "c", **fields)["cursor"]


def get_more(shell, cursor, **fields):
    database, _, collection = cursor["ns"].partition(".")
    return shell("getMore", cursor["id"], database, collection=collection, **fields)["cursor"]


def test_default_batch_has_101_documents():
    shell = standalone()
    shell.insert(*({"_id": number} for number in range(150)))
    cursor = open_cursor(shell)
    assert len(cursor["firstBatch"]) == 101
    assert isinstance(cursor["id"], Int64)
    assert len(get_more(shell, cursor)["nextBatch"]) == 49


def test_batch_is_limited_by_message_size():
    shell = standalone()
    shell.insert(*({"_id": number, "x": "x" * 6_000_000} for number in range(5)))
    cursor = open_cursor(shell)
    assert len(cursor["firstBatch"]) == 2
    assert len(get_more(shell, cursor)["nextBatch"]) == 2


def test_kill_cursors_command_closes_cursor(shell):
    cursor = open_cursor(shell, batchSize=1)
    reply = shell("killCursors", "c", cursors=[cursor["id"], Int64(5)])
    assert (reply["cursorsKilled"], reply["cursorsNotFound"]) == ([cursor["id"]], [5])
    assert error_code_of(get_more, shell, cursor) == 43


def test_get_more_with_wrong_collection_member_or_session_is_refused(shell):
    cursor = open_cursor(shell, batchSize=1)
    assert error_code_of(shell, "getMore", cursor["id"], collection="d") == 13
    assert error_code_of(get_more, Shell(shell.store, "b:1"), cursor) == 43
    assert error_code_of(get_more, shell.with_session(), cursor) == 50738
    assert error_code_of(shell, "getMore", cursor["id"], collection="c", batchSize=-1) == 115
    assert error_code_of(shell, "getMore", cursor["id"], collection="c", maxTimeMS=5) == 2
    assert get_more(shell, cursor)["id"] == 0


@pytest.mark.parametrize("end", ["member", "session", "end", "time"])
def test_cursor_ends_at_loss_of_member_end_of_session_or_expiry(shell, end):
    session = shell.with_session()
    cursor = open_cursor(session, batchSize=1)
    lsid = bytes(session.fields["lsid"]["id"])
    {
        "member": lambda: shell.store.handle_member_loss("a:1"),
        "session": lambda: shell.store.kill_session(lsid),
        "end": lambda: shell("endSessions", [session.fields["lsid"]], "admin"),
        "time": shell.store.expire,
    }[end]()
    assert error_code_of(get_more, session, cursor) == 43


def test_cursor_without_timeout_does_not_expire(shell):
    cursor = open_cursor(shell, batchSize=1, noCursorTimeout=True)
    shell.store.expire()
    shell.store.handle_member_loss("b:1")
    assert len(get_more(shell, cursor)["nextBatch"]) == 5


def shell_with_capped_collection():
    shell = standalone()
    shell("create", "c", capped=True, size=4096, max=3)
    shell.insert({"_id": 1}, {"_id": 2})
    return shell


def test_get_more_of_awaiting_cursor_waits_for_insert():
    shell = shell_with_capped_collection()
    cursor = open_cursor(shell, tailable=True, awaitData=True)
    waiting = gevent.spawn(get_more, shell, cursor, maxTimeMS=5000)
    gevent.sleep(0)
    assert not waiting.ready()
    shell.insert({"_id": 3})
    assert waiting.get(timeout=2)["nextBatch"] == [{"_id": 3}]
    assert get_more(shell, cursor, maxTimeMS=1)["nextBatch"] == []


def test_waiting_get_more_fails_after_kill_of_cursor():
    shell = shell_with_capped_collection()
    cursor = open_cursor(shell, tailable=True, awaitData=True)
    waiting = gevent.spawn(error_code_of, get_more, shell, cursor, maxTimeMS=5000)
    gevent.sleep(0)
    shell("killCursors", "c", cursors=[cursor["id"]])
    assert waiting.get(timeout=2) == 43
