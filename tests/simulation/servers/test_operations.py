"""Tests of the commands ``currentOp``, ``killOp`` and ``serverStatus`` on simulated members."""

from __future__ import annotations

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from gmongo.testing.store import pacing
from tests.support.wait import eventually


@pytest.fixture
def deployment():
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def client(deployment):
    with MongoClient(deployment.uri, appname="tests") as client:
        client.shop.orders.insert_many([{"_id": number} for number in range(5)])
        yield client


def current_operations(client, **conditions):
    return client.admin.command("currentOp", **conditions)["inprog"]


def current_operations_of_stage(client, *stages):
    return client.admin.aggregate([{"$currentOp": {}}, *stages]).to_list()


def start_sleeping_find(client):
    def find():
        try:
            return client.shop.orders.find_one({"$where": "sleep(60000) || true"})
        except OperationFailure as error:
            return error.code

    return gevent.spawn(find)


FIND_CONDITIONS = {"op": "query", "ns": "shop.orders"}


def test_current_op_lists_running_operation(client):
    find = start_sleeping_find(client)
    eventually(lambda: current_operations(client, **FIND_CONDITIONS))
    (operation,) = current_operations(client, **FIND_CONDITIONS)
    assert operation["active"] is True and operation["type"] == "op" and operation["appName"] == "tests"
    assert operation["command"]["find"] == "orders" and operation["lsid"] == operation["command"]["lsid"]
    described_fields = {"host", "desc", "connectionId", "client", "secs_running", "microsecs_running", "waitingForLock"}
    assert described_fields <= set(operation)
    (by_stage,) = current_operations_of_stage(client, {"$match": FIND_CONDITIONS})
    assert by_stage["opid"] == operation["opid"] and by_stage["connectionId"] == operation["connectionId"]
    client.admin.command("killOp", op=operation["opid"])
    assert find.get(timeout=5) == 11601
    assert current_operations(client, **FIND_CONDITIONS) == []


def test_current_op_lists_its_own_command(client):
    (operation,) = current_operations(client, **{"command.currentOp": {"$exists": True}})
    assert operation["op"] == "command" and operation["ns"] == "admin.$cmd"
    assert any("aggregate" in one["command"] for one in current_operations_of_stage(client))


def test_current_op_lists_idle_connections_only_on_request(client):
    assert all(one["active"] for one in current_operations(client))
    assert not all(one["active"] for one in current_operations(client, **{"$all": True}))
    idle = client.admin.aggregate([{"$currentOp": {"idleConnections": True}}, {"$match": {"active": False}}]).to_list()
    assert idle and all("opid" not in one for one in idle)


def test_current_op_accepts_query_conditions(client):
    conditions = {"$or": [{"op": "command"}, {"op": "x"}], "secs_running": {"$lt": 1000}}
    assert current_operations(client, **conditions)
    assert current_operations(client, op="none") == []


@pytest.mark.parametrize("options", [{"nope": True}, {"idleConnections": 1}])
def test_invalid_option_of_current_op_stage_is_refused(client, options):
    with pytest.raises(OperationFailure) as caught:
        client.admin.aggregate([{"$currentOp": options}])
    assert caught.value.code in (9, 40415)


@pytest.mark.parametrize("command", [{"currentOp": 1}, {"killOp": 1, "op": 1}])
def test_current_op_and_kill_op_need_admin_database(client, command):
    with pytest.raises(OperationFailure) as caught:
        client.shop.command(command)
    assert caught.value.code == 13
    with pytest.raises(OperationFailure):
        client.shop.aggregate([{"$currentOp": {}}])


def test_kill_op_of_unknown_operation_succeeds(client):
    assert client.admin.command("killOp", op=3478)["info"] == "attempting to kill op"
    with pytest.raises(OperationFailure):
        client.admin.command("killOp")
    with pytest.raises(OperationFailure):
        client.admin.command("killOp", op="x")


def kill_operations(client, **conditions):
    eventually(lambda: current_operations(client, **conditions))
    for one in current_operations(client, **conditions):
        client.admin.command("killOp", op=one["opid"])


def error_code_of(call):
    try:
        call()
    except OperationFailure as error:
        return error.code
    return None


def test_kill_op_interrupts_command_between_documents(client, monkeypatch):
    monkeypatch.setattr(pacing, "_LONGEST_SLICE", -1.0)
    client.shop.orders.insert_many([{"_id": number} for number in range(5, 20_000)])
    update = gevent.spawn(error_code_of, lambda: client.shop.orders.update_many({}, {"$set": {"v": 1}}))
    kill_operations(client, op="update")
    assert update.get(timeout=20) == 11601
    assert client.shop.orders.count_documents({"v": 1}) < 20_000


def test_kill_op_interrupts_write_that_waits_for_transaction(client):
    with client.start_session() as session, session.start_transaction():
        client.shop.orders.update_one({"_id": 1}, {"$set": {"v": 1}}, session=session)
        update = gevent.spawn(error_code_of, lambda: client.shop.orders.update_one({"_id": 1}, {"$set": {"v": 2}}))
        kill_operations(client, op="update")
        assert update.get(timeout=5) == 11601
    assert client.shop.orders.find_one({"_id": 1}) == {"_id": 1, "v": 1}


def test_kill_op_interrupts_get_more_that_awaits_change_event(client):
    with client.shop.orders.watch(max_await_time_ms=60_000) as stream:
        waiting = gevent.spawn(error_code_of, stream.next)
        kill_operations(client, op="getmore")
        assert waiting.get(timeout=5) == 11601


def test_server_status_has_sections(client):
    status = client.admin.command("serverStatus")
    assert {"connections", "metrics", "repl", "storageEngine", "uptime", "uptimeMillis"} <= set(status)
    assert status["repl"]["setName"] and status["repl"]["isWritablePrimary"] is True
    assert {"current", "available", "totalCreated", "active"} <= set(status["connections"])
    assert status["metrics"]["cursor"]["open"]["total"] == 0


def test_server_status_omits_excluded_sections(client):
    status = client.admin.command("serverStatus", metrics=0, repl=0)
    assert not {"metrics", "repl"} & set(status) and "connections" in status


def test_server_status_of_standalone_has_no_replication():
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as client:
        assert "repl" not in client.admin.command("serverStatus")
