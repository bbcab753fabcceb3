"""Tests of transactions, retryable writes, snapshot reads and sessions in a simulated store."""

from __future__ import annotations

import gevent
import pytest
from bson import Timestamp

from gmongo.testing.command import CommandError

from .shell import Shell, replica_set, sharded, standalone

TRANSIENT_LABEL = "TransientTransactionError"


def error_of(call, *args, **kwargs):
    with pytest.raises(CommandError) as caught:
        call(*args, **kwargs)
    return caught.value


def start_transaction(session, number=1):
    """Start a transaction with a find. Return a shell for the further commands of the transaction."""
    session.transaction(number, startTransaction=True).find()
    return session.transaction(number)


@pytest.fixture
def shell():
    shell = replica_set()
    shell.insert({"_id": 1, "x": 1}, {"_id": 2, "x": 2})
    return shell


def test_transaction_reads_snapshot_and_own_writes(shell):
    session = shell.with_session()
    transaction = start_transaction(session)
    shell.update({"_id": 2}, {"$set": {"x": 20}})
    transaction.update({"_id": 1}, {"$inc": {"x": 5}})
    transaction.insert({"_id": 3})
    assert transaction.find() == [{"_id": 1, "x": 6}, {"_id": 2, "x": 2}, {"_id": 3}]
    assert shell.find() == [{"_id": 1, "x": 1}, {"_id": 2, "x": 20}]
    assert transaction.aggregate({"$group": {"_id": None, "s": {"$sum": "$x"}}}) == [{"_id": None, "s": 8}]
    assert transaction.end_transaction("commitTransaction") == {}
    assert shell.find() == [{"_id": 1, "x": 6}, {"_id": 2, "x": 20}, {"_id": 3}]


def test_abort_discards_all_writes(shell):
    transaction = start_transaction(shell.with_session())
    transaction("delete", "c", deletes=[{"q": {}, "limit": 0}])
    transaction.insert({"_id": 1}, collection="new")
    assert transaction.find() == []
    transaction.end_transaction("abortTransaction")
    assert len(shell.find()) == 2
    assert shell("listCollections", 1, nameOnly=True)["cursor"]["firstBatch"] == [{"name": "c", "type": "collection"}]
    assert error_of(transaction.end_transaction, "abortTransaction").code == 251


def test_conflicting_write_in_transaction_returns_write_conflict(shell):
    first, second = (start_transaction(shell.with_session()) for _ in range(2))
    first.update({"_id": 1}, {"$set": {"x": 5}})
    error = error_of(second.update, {"_id": 1}, {"$set": {"x": 6}})
    assert (error.code, error.name, error.labels) == (112, "WriteConflict", [TRANSIENT_LABEL])
    assert error_of(second.find).code == 251
    first.end_transaction("commitTransaction")
    assert shell.update({"_id": 1}, {"$set": {"x": 7}})["nModified"] == 1


PARAMETERS = {"transactionLifetimeLimitSeconds": 60, "ttlMonitorEnabled": True, "ttlMonitorSleepSecs": 0}
WRITES_OUTSIDE_TRANSACTION = {
    "update": {"updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]},
    "delete": {"deletes": [{"q": {"_id": 1}, "limit": 1}]},
    "findAndModify": {"query": {}, "sort": {"_id": 1}, "update": {"$inc": {"n": 1}}},
    "insert": {"documents": [{"_id": 9}]},
}


@pytest.mark.parametrize("name", WRITES_OUTSIDE_TRANSACTION)
def test_write_outside_transaction_waits_for_transaction(shell, name):
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    transaction.insert({"_id": 9})
    write = gevent.spawn(shell, name, "c", **WRITES_OUTSIDE_TRANSACTION[name])
    gevent.sleep(0)
    assert not write.ready()
    transaction.end_transaction("abortTransaction")
    assert write.get(timeout=5)
    assert shell.find(filter={"x": 5}) == []


@pytest.mark.parametrize("name", WRITES_OUTSIDE_TRANSACTION)
def test_write_that_waits_for_transaction_times_out(shell, name):
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    transaction.insert({"_id": 9})
    assert error_of(shell, name, "c", **WRITES_OUTSIDE_TRANSACTION[name], maxTimeMS=10).code == 50


@pytest.mark.parametrize("name", WRITES_OUTSIDE_TRANSACTION)
def test_write_that_waits_for_transaction_fails_at_step_down(shell, name):
    transaction = start_transaction(shell.with_session("b:1"))
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    transaction.insert({"_id": 9})
    write = gevent.spawn(error_of, shell, name, "c", **WRITES_OUTSIDE_TRANSACTION[name])
    gevent.sleep(0)
    shell.store.handle_member_loss(shell.member)
    assert write.get(timeout=5).code == 11602


def test_write_that_waits_for_transaction_matches_document_again_after_commit(shell):
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    write = gevent.spawn(shell.update, {"x": {"$ne": 5}, "_id": 1}, {"$set": {"y": 1}})
    gevent.sleep(0)
    transaction.end_transaction("commitTransaction")
    assert write.get(timeout=5) == {"n": 0, "nModified": 0}


def test_write_outside_transaction_aborts_expired_transaction(shell):
    shell.store.run_due_work({**PARAMETERS, "transactionLifetimeLimitSeconds": 0.01})
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    assert shell.update({"_id": 1}, {"$set": {"x": 7}})["nModified"] == 1
    assert error_of(transaction.end_transaction, "commitTransaction").code == 251


def test_commands_of_a_session_run_in_order(shell):
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"n": 5}})
    session = shell.with_session()
    update = {"updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "txnNumber": 1}
    first, second = (gevent.spawn(session, "update", "c", **update) for _ in range(2))
    gevent.sleep(0)
    transaction.end_transaction("commitTransaction")
    assert first.get(timeout=5) == {"n": 1, "nModified": 1}
    assert second.get(timeout=5) == {"n": 1, "nModified": 1, "retriedStmtIds": [0]}
    assert shell.find(filter={"_id": 1})[0]["n"] == 6


def test_transaction_write_to_document_changed_after_snapshot_raises_write_conflict(shell):
    transaction = start_transaction(shell.with_session())
    shell.update({"_id": 1}, {"$set": {"x": 5}})
    assert error_of(transaction.update, {"_id": 1}, {"$set": {"x": 6}}).code == 112
    transaction = start_transaction(shell.with_session())
    shell("delete", "c", deletes=[{"q": {"_id": 2}, "limit": 1}])
    assert error_of(transaction.update, {"_id": 2}, {"$set": {"x": 6}}).code == 112


WRITES_OF_3 = {
    "insert": lambda shell: shell.insert({"_id": 4, "x": 3}),
    "update": lambda shell: shell.update({"_id": 2}, {"$set": {"x": 3}}),
    "replace": lambda shell: shell.update({"_id": 2}, {"x": 3}),
    "upsert": lambda shell: shell.update({"_id": 4}, {"$set": {"x": 3}}, upsert=True),
    "findAndModify": lambda shell: shell("findAndModify", "c", query={"_id": 2}, update={"$set": {"x": 3}}),
}
for_each_write = pytest.mark.parametrize("write", WRITES_OF_3.values(), ids=WRITES_OF_3)


@pytest.fixture
def shell_with_unique_index(shell):
    shell("createIndexes", "c", indexes=[{"key": {"x": 1}, "name": "x", "unique": True}])
    return shell


def error_code_of(write, shell):
    """Return the error code of a write, or 0 if the write succeeds."""
    try:
        reply = write(shell)
    except CommandError as error:
        return error.code
    return reply["writeErrors"][0]["code"] if "writeErrors" in reply else 0


@for_each_write
@pytest.mark.parametrize(("end", "code"), [("commitTransaction", 11000), ("abortTransaction", 0)])
def test_write_waits_for_transaction_with_same_unique_value(shell_with_unique_index, write, end, code):
    transaction = start_transaction(shell_with_unique_index.with_session())
    transaction.insert({"_id": 3, "x": 3})
    waiting = gevent.spawn(error_code_of, write, shell_with_unique_index)
    gevent.sleep(0.01)
    assert not waiting.ready()
    transaction.end_transaction(end)
    assert waiting.get(timeout=5) == code


@for_each_write
def test_transactions_with_same_unique_value_conflict(shell_with_unique_index, write):
    first, second = (start_transaction(shell_with_unique_index.with_session()) for _ in range(2))
    first.update({"_id": 1}, {"$set": {"x": 3}})
    assert error_code_of(write, second) == 112
    assert first.end_transaction("commitTransaction") == {}
    assert [one["_id"] for one in shell_with_unique_index.find(filter={"x": 3})] == [1]


@for_each_write
def test_write_of_unique_value_stored_after_snapshot_conflicts(shell_with_unique_index, write):
    transaction = start_transaction(shell_with_unique_index.with_session())
    shell_with_unique_index.insert({"_id": 5, "x": 3})
    assert error_code_of(write, transaction) == 112


@for_each_write
def test_write_of_unique_value_in_snapshot_returns_duplicate_key_error(shell_with_unique_index, write):
    shell_with_unique_index.insert({"_id": 5, "x": 3})
    transaction = start_transaction(shell_with_unique_index.with_session())
    shell_with_unique_index("delete", "c", deletes=[{"q": {"_id": 5}, "limit": 1}])
    assert error_code_of(write, transaction) == 11000


def test_write_of_other_unique_value_does_not_wait_for_transaction(shell_with_unique_index):
    transaction = start_transaction(shell_with_unique_index.with_session())
    transaction.insert({"_id": 3, "x": 3})
    assert shell_with_unique_index.update({"_id": 1}, {"$set": {"y": 1}})["nModified"] == 1
    assert shell_with_unique_index.insert({"_id": 4, "x": 4}) == {"n": 1}
    assert transaction.end_transaction("commitTransaction") == {}


def test_write_that_waits_for_unique_value_times_out(shell_with_unique_index):
    transaction = start_transaction(shell_with_unique_index.with_session())
    transaction.insert({"_id": 3, "x": 3})
    assert error_of(shell_with_unique_index.insert, {"_id": 4, "x": 3}, maxTimeMS=20).code == 50


def test_transaction_inserts_unique_value_that_it_has_replaced(shell):
    shell("createIndexes", "c", indexes=[{"key": {"x": 1}, "name": "x", "unique": True}])
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 9}})
    transaction.update({"_id": 2}, {"$set": {"x": 1}})
    transaction.end_transaction("commitTransaction")
    assert [one["x"] for one in shell.find()] == [9, 1]


def test_failed_write_in_transaction_aborts_transaction(shell):
    transaction = start_transaction(shell.with_session())
    reply = transaction.insert({"_id": 1}, {"_id": 9}, ordered=False)
    assert [error["code"] for error in reply["writeErrors"]] == [11000]
    error = error_of(transaction.end_transaction, "commitTransaction")
    assert (error.code, error.labels) == (251, [TRANSIENT_LABEL])


def test_commit_is_idempotent_and_ends_transaction(shell):
    session = shell.with_session()
    transaction = start_transaction(session)
    transaction.insert({"_id": 3})
    for _ in range(2):
        assert transaction.end_transaction("commitTransaction") == {}
    assert error_of(transaction.end_transaction, "abortTransaction").code == 256
    assert error_of(transaction.find).code == 256
    assert len(shell.find()) == 3


def test_wrong_transaction_number_is_refused(shell):
    session = shell.with_session()
    error = error_of(session.transaction(5).find)
    assert (error.code, error.labels) == (251, [TRANSIENT_LABEL])
    start_transaction(session, 5).insert({"_id": 3})
    assert error_of(session.transaction(5, startTransaction=True).find).code == 117
    assert error_of(session.transaction(4).find).code == 225
    start_transaction(session, 6)
    assert len(shell.find()) == 2
    assert error_of(session.transaction(5).end_transaction, "commitTransaction").code == 225


@pytest.mark.parametrize("command", ["count", "listCollections", "drop", "listIndexes", "explain"])
def test_unsupported_command_in_transaction_is_refused(shell, command):
    value = {"find": "c"} if command == "explain" else "c"
    error = error_of(shell.with_session().transaction(1, startTransaction=True), command, value)
    assert (error.code, error.name) == (263, "OperationNotSupportedInTransaction")


def test_transaction_creates_collections_and_indexes(shell):
    transaction = start_transaction(shell.with_session())
    transaction("create", "new")
    transaction("createIndexes", "other", indexes=[{"key": {"x": 1}, "name": "x"}])
    transaction.insert({"_id": 1}, collection="new")
    assert shell.find("new") == []
    transaction.end_transaction("commitTransaction")
    assert shell.find("new") == [{"_id": 1}]
    assert len(shell("listIndexes", "other")["cursor"]["firstBatch"]) == 2


def test_cursor_of_transaction_ends_with_transaction(shell):
    session = shell.with_session()
    transaction = session.transaction(1, startTransaction=True)
    cursor = transaction("find", "c", batchSize=1)["cursor"]
    assert error_of(session, "getMore", cursor["id"], collection="c").code == 50740
    session.transaction(1).end_transaction("commitTransaction")
    assert error_of(session, "getMore", cursor["id"], collection="c").code == 43


def test_loss_of_member_aborts_transactions_of_member(shell):
    for lose in (lambda: shell.store.handle_member_loss("a:1"), shell.store.abort_transactions):
        transaction = start_transaction(shell.with_session())
        transaction.update({"_id": 1}, {"$set": {"x": 5}})
        lose()
        assert error_of(transaction.end_transaction, "commitTransaction").code == 251
        assert shell.update({"_id": 1}, {"$set": {"x": 1}})["n"] == 1


def test_kill_all_sessions_command_aborts_transaction(shell):
    transaction = start_transaction(shell.with_session())
    shell("killAllSessions", [], "admin")
    assert error_of(transaction.find).code == 251


def test_mongos_refuses_command_in_transaction_of_other_mongos():
    shell = sharded()
    session = shell.with_session()
    reply = session.transaction(1, startTransaction=True).insert({"_id": 1})
    assert reply["recoveryToken"] == {"recoveryShardId": "shard0"}
    other = Shell(shell.store, "b:1", **session.fields).transaction(1)
    error = error_of(other.find)
    assert (error.code, error.labels) == (251, [TRANSIENT_LABEL])
    assert error_of(other.end_transaction, "commitTransaction").code == 251
    token = session.transaction(1).end_transaction("commitTransaction")["recoveryToken"]
    assert other.end_transaction("commitTransaction", recoveryToken=token)["recoveryToken"] == token
    assert shell.find() == [{"_id": 1}]


def test_commit_on_other_mongos_with_recovery_token_aborts_uncommitted_transaction():
    shell = sharded()
    session = shell.with_session()
    token = session.transaction(1, startTransaction=True).insert({"_id": 1})["recoveryToken"]
    other = Shell(shell.store, "b:1", **session.fields).transaction(1)
    assert error_of(other.end_transaction, "commitTransaction", recoveryToken=token).code == 251
    assert error_of(session.transaction(1).end_transaction, "commitTransaction").code == 251


def test_standalone_refuses_transactions_and_retryable_writes():
    session = standalone().with_session()
    error = error_of(session.transaction(1, startTransaction=True).find)
    assert (error.code, error.message) == (
        20, "Transaction numbers are only allowed on a replica set member or mongos"
    )  # fmt: skip
    assert error_of(session.insert, {"_id": 1}, txnNumber=1).code == 20


def test_retry_of_successful_write_returns_first_reply(shell):
    session = shell.with_session()
    update = {"updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 1}}}], "txnNumber": 1}
    assert session("update", "c", **update) == {"n": 1, "nModified": 1}
    assert session("update", "c", **update) == {"n": 1, "nModified": 1, "retriedStmtIds": [0]}
    modify = {"query": {"_id": 1}, "update": {"$inc": {"x": 1}}, "txnNumber": 2}
    first = session("findAndModify", "c", **modify)
    assert session("findAndModify", "c", **modify) == {**first, "retriedStmtId": 0}
    assert shell.find(filter={"_id": 1}) == [{"_id": 1, "x": 3}]
    assert error_of(session, "update", "c", **update).code == 225


def test_retry_of_failed_write_executes_write(shell):
    session = shell.with_session()
    transaction = start_transaction(shell.with_session())
    transaction.update({"_id": 1}, {"$set": {"x": 5}})
    delete = {"deletes": [{"q": {"_id": 1}, "limit": 1}], "txnNumber": 1}
    assert error_of(session, "delete", "c", **delete, maxTimeMS=10).code == 50
    transaction.end_transaction("abortTransaction")
    assert session("delete", "c", **delete) == {"n": 1}


def test_transaction_number_on_unsupported_command_is_refused(shell):
    session = shell.with_session()
    assert error_of(session.find, txnNumber=1).code == 50768
    many = {"updates": [{"q": {}, "u": {"$set": {"x": 1}}, "multi": True}], "txnNumber": 1}
    assert error_of(session, "update", "c", **many).code == 72
    assert error_of(session, "delete", "c", deletes=[{"q": {}, "limit": 0}], txnNumber=1).code == 72
    assert error_of(shell.insert, {"_id": 5}, txnNumber=1).code == 72


def test_snapshot_read_at_cluster_time_returns_documents_of_that_time(shell):
    reply = shell("find", "c", readConcern={"level": "snapshot"}, filter={})
    time = reply["cursor"]["atClusterTime"]
    assert time == shell.store.now()
    shell.update({"_id": 1}, {"$set": {"x": 10}})
    shell("delete", "c", deletes=[{"q": {"_id": 2}, "limit": 1}])
    shell.insert({"_id": 3, "x": 3}, {"_id": 2, "x": 22})
    concern = {"level": "snapshot", "atClusterTime": time}
    assert shell.find(readConcern=concern) == [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}]
    assert shell("distinct", "c", key="x", readConcern=concern) == {"values": [1, 2], "atClusterTime": time}
    assert shell.aggregate({"$count": "n"}, readConcern=concern) == [{"n": 2}]
    assert [one["_id"] for one in shell.find()] == [1, 3, 2]


def test_unsupported_snapshot_read_is_refused(shell):
    snapshot = {"level": "snapshot"}
    assert error_of(standalone().find, readConcern=snapshot).code == 123
    assert error_of(replica_set(version=(4, 4)).find, readConcern=snapshot).code == 72
    assert error_of(shell, "count", "c", readConcern=snapshot).code == 72
    assert error_of(shell.insert, {"_id": 3}, readConcern=snapshot).code == 72
    assert error_of(shell.aggregate, {"$out": "d"}, readConcern=snapshot).code == 72
    old = {"level": "snapshot", "atClusterTime": Timestamp(1, 1)}
    assert error_of(shell.find, readConcern=old).code == 246


def test_write_advances_cluster_time(shell):
    before = shell.store.now()
    shell.find()
    assert shell.store.now() == before
    shell.insert({"_id": 3})
    assert shell.store.now() > before


def test_session_commands_succeed(shell):
    lsid = shell("startSession", 1, "admin")["id"]
    assert lsid["id"].subtype == 4
    shell("refreshSessions", [lsid], "admin")
    shell("killSessions", [lsid], "admin")
    shell("endSessions", [lsid], "admin")
    reply = shell("aggregate", 1, "admin", pipeline=[{"$listLocalSessions": {}}], cursor={})
    assert reply["cursor"]["firstBatch"] == []


def test_read_concern_of_later_statement_is_checked_before_the_transaction(shell):
    session = shell.with_session()
    concern = {"level": "local"}
    assert error_of(session.transaction(1).find, readConcern=concern).code == 72
    start_transaction(session)
    assert error_of(session.transaction(1).find, readConcern=concern).code == 72
    linearizable = {"level": "linearizable"}
    assert error_of(session.transaction(1, startTransaction=True).find, readConcern=linearizable).code == 72


def test_retryable_write_with_number_of_transaction_fails(shell):
    session = shell.with_session()
    start_transaction(session)
    error = error_of(session.insert, {"_id": 3}, txnNumber=1)
    assert (error.code, error.name) == (217, "IncompleteTransactionHistory")


@pytest.mark.parametrize("name", ["commitTransaction", "abortTransaction"])
def test_transaction_that_starts_with_commit_or_abort_is_refused(shell, name):
    session = shell.with_session()
    assert error_of(session.transaction(1, startTransaction=True).end_transaction, name).code == 263


def test_command_not_allowed_in_transaction_is_refused_before_check_of_write_concern(shell):
    transaction = shell.with_session().transaction(1, startTransaction=True)
    assert error_of(transaction, "listIndexes", "c", writeConcern={"w": 1}).code == 263
    assert error_of(transaction, "find", "c", writeConcern={"w": 1}).code == 72
