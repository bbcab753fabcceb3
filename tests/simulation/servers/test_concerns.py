"""Tests of write concerns, server parameters, rate limits, and diagnostic commands in simulated
deployments.
"""

from __future__ import annotations

from time import monotonic

import gevent
import pytest

from gmongo.testing import Deployment
from gmongo.wire.message import EXHAUST_ALLOWED
from tests.simulation.servers.wire_client import WireClient, standalone_client
from tests.support.cases import with_cases


def insert_command(**concern):
    return {"insert": "c", "documents": [{}], "writeConcern": concern}


@pytest.fixture
def replica_set():
    with Deployment.replica_set(write_concern_modes=["twoCentres"]) as deployment:
        yield deployment


@pytest.fixture
def primary(replica_set):
    with WireClient(replica_set.members[0].address) as client:
        yield client


@pytest.fixture
def standalone():
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def virtual_standalone(virtual_time):
    """Yield a standalone in virtual time, for tests of rate limits.

    In real time, a busy machine would be slower, and the rate limits would reject fewer requests.
    """
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def client(standalone):
    with WireClient(standalone.members[0].address) as client:
        yield client


@pytest.mark.parametrize("w", [1, 2, 3, "majority", "twoCentres"])
def test_write_with_satisfiable_write_concern_succeeds(primary, w):
    reply = primary.run(insert_command(w=w), "db")
    assert reply["n"] == 1 and "writeConcernError" not in reply


@pytest.mark.parametrize(
    ("w", "code", "name"),
    [(4, 100, "UnsatisfiableWriteConcern"), ("none", 79, "UnknownReplWriteConcern")],
)
def test_write_with_unsatisfiable_write_concern_returns_error(primary, w, code, name):
    reply = primary.run(insert_command(w=w), "db")
    assert (reply["ok"], reply["n"]) == (1, 1)
    assert (reply["writeConcernError"]["code"], reply["writeConcernError"]["codeName"]) == (
        code,
        name,
    )


def test_write_concern_waits_for_member_that_is_down(replica_set, primary):
    replica_set.members[2].kill()
    error = primary.run(insert_command(w=3, wtimeout=20), "db")["writeConcernError"]
    assert (error["code"], error["errInfo"]["wtimeout"]) == (64, True)
    primary.send(insert_command(w=3), "db")
    with gevent.Timeout(0.03, False):
        primary.receive()
        pytest.fail("the server replied without a wait")
    replica_set.members[2].restart()
    assert primary.receive()[0]["n"] == 1


@pytest.mark.parametrize("w", [2, "twoCentres"])
def test_standalone_refuses_write_concern_of_replica_set(client, w):
    reply = client.run(insert_command(w=w), "db")
    assert (reply["ok"], reply["code"]) == (0, 2)


@pytest.mark.parametrize(("w", "code"), [(-1, 115), (51, 9), (True, 115), ({}, 9)])
def test_malformed_write_concern_is_refused(client, w, code):
    assert client.run(insert_command(w=w), "db")["code"] == code


def test_set_parameter_changes_reply_to_get_parameter(client):
    parameters = client.run({"getParameter": "*"})
    assert parameters["enableTestCommands"] is True and parameters["requireApiVersion"] is False
    assert client.run({"getParameter": 1, "featureCompatibilityVersion": 1})["featureCompatibilityVersion"] == {
        "version": "8.0"
    }
    assert client.run({"setParameter": 1, "logLevel": 2})["was"] == 0
    assert client.run({"getParameter": 1, "logLevel": 1})["logLevel"] == 2
    for name in ("getParameter", "setParameter"):
        reply = client.run({name: 1, "noSuch": 1})
        assert reply["ok"] == 0 and "code" not in reply


def test_unknown_parameter_is_refused():
    with pytest.raises(ValueError, match="noSuch"):
        Deployment.standalone(parameters={"noSuch": 1})


def test_requests_above_rate_limit_fail(virtual_standalone):
    virtual_standalone.rate_limit(requests=5)
    with WireClient(virtual_standalone.members[0].address) as client:
        replies = [client.run({"ping": 1}) for _ in range(8)]
        assert [each["ok"] for each in replies] == [1] * 5 + [0] * 3
        assert (replies[-1]["code"], replies[-1]["codeName"]) == (
            462,
            "IngressRequestRateLimitExceeded",
        )
        assert set(replies[-1]["errorLabels"]) == {"SystemOverloadedError", "RetryableError"}
        assert client.run({"hello": 1})["ok"] == 1, "a handshake is never refused"
        virtual_standalone.rate_limit()
        assert client.run({"ping": 1})["ok"] == 1


def test_rate_limit_of_zero_refuses_first_request(virtual_standalone):
    virtual_standalone.rate_limit(requests=0)
    with WireClient(virtual_standalone.members[0].address) as client:
        assert client.run({"ping": 1})["ok"] == 0


def test_requests_succeed_after_end_of_rate_limit_interval(virtual_standalone):
    virtual_standalone.rate_limit(requests=100, burst=0.01)
    with WireClient(virtual_standalone.members[0].address) as client:
        assert [client.run({"ping": 1})["ok"] for _ in range(2)] == [1, 0]
        gevent.sleep(0.015)
        assert client.run({"ping": 1})["ok"] == 1


def test_connections_above_rate_limit_are_closed(virtual_standalone):
    virtual_standalone.rate_limit(connections=2)
    address = virtual_standalone.members[0].address
    with WireClient(address) as first, WireClient(address) as second, WireClient(address) as third:
        assert first.run({"ping": 1})["ok"] == second.run({"ping": 1})["ok"] == 1
        assert third.server_closes_connection()


@with_cases
def test_diagnostic_commands_succeed(client, command):
    assert client.run({command: 1})["ok"] == 1


def test_where_operator_supports_only_sleep(client):
    client.run({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}, "db")
    for condition in ("sleep(20) || true", "function() { sleep(20); return true; }"):
        began = monotonic()
        reply = client.run({"find": "c", "filter": {"_id": 1, "$where": condition}}, "db")
        assert reply["cursor"]["firstBatch"] == [{"_id": 1}] and monotonic() - began >= 0.02
    slow = {"find": "c", "filter": {"$where": "sleep(60000) || true"}, "maxTimeMS": 10}
    assert client.run(slow, "db")["code"] == 50
    assert client.run({"find": "c", "filter": {"$where": "this.x"}}, "db")["code"] == 115


@pytest.mark.parametrize(("version", "code"), [("4.4", 14), ("4.4.14", None), ("8.0", None)])
def test_only_old_server_version_refuses_comment_that_is_not_string(version, code):
    with standalone_client(version=version) as client:
        reply = client.run({"distinct": "c", "key": "x", "comment": {"a": 1}}, "db")
    assert reply.get("code") == code


def test_exhaust_cursor_streams_batches(client):
    client.run({"insert": "c", "documents": [{"_id": number} for number in range(5)]}, "db")
    cursor = client.run({"find": "c", "batchSize": 2}, "db")["cursor"]
    client.send({"getMore": cursor["id"], "collection": "c", "batchSize": 2}, "db", flags=EXHAUST_ALLOWED)
    replies = [client.receive() for _ in range(2)]
    assert [[each["_id"] for each in reply["cursor"]["nextBatch"]] for reply, _ in replies] == [
        [2, 3],
        [4],
    ]
    assert [more for _, more in replies] == [True, False]


def test_server_status_counts_connections(standalone, client):
    with WireClient(standalone.members[0].address) as other:
        assert other.run({"ping": 1})["ok"] == 1
        status = client.run({"serverStatus": 1})
    assert status["connections"]["current"] == 2


def test_whatsmyuri_command_returns_address_of_client(client):
    host, port = client.socket.getsockname()
    assert client.run({"whatsmyuri": 1})["you"] == f"{host}:{port}"


def test_get_cmd_line_opts_returns_parameters(client):
    assert client.run({"getCmdLineOpts": 1})["parsed"]["setParameter"]["enableTestCommands"] == 1
