"""Tests of the command configureFailPoint in simulated deployments."""

from __future__ import annotations

import re
from time import monotonic

import bson
import pytest
from bson import Binary, Int64

from gmongo.testing import CommandError, Deployment, DeploymentThread
from tests.simulation.servers.wire_client import WireClient
from tests.support.cases import with_cases

LSID = {"id": Binary(bytes(16), 4)}
INSERT = {"insert": "c", "documents": [{"x": 1}]}
RETRYABLE_INSERT = {**INSERT, "lsid": LSID, "txnNumber": Int64(1)}


@pytest.fixture
def deployment():
    with Deployment.replica_set(members=2) as deployment:
        yield deployment


@pytest.fixture
def client(deployment):
    with WireClient(deployment.members[0].address) as client:
        yield client


def configure(client, mode, name="failCommand", **data):
    reply = client.run({"configureFailPoint": name, "mode": mode, "data": data})
    assert reply["ok"] == 1, reply
    return reply


def error_codes(client, command, run_count):
    return [client.run(command, "db").get("code") for _ in range(run_count)]


def test_mode_times_counts_only_matching_commands(client):
    configure(client, {"times": 2}, failCommands=["find", "count"], errorCode=91)
    assert client.run({"ping": 1})["ok"] == 1
    assert error_codes(client, {"find": "c"}, 3) == [91, 91, None]


def test_mode_skip_lets_first_commands_succeed(client):
    configure(client, {"skip": 2}, failCommands=["find"], errorCode=91)
    assert error_codes(client, {"find": "c"}, 4) == [None, None, 91, 91]


def test_configure_fail_point_returns_count_of_previous_fail_point(client):
    configure(client, "alwaysOn", failCommands=["find"], errorCode=2)
    assert error_codes(client, {"find": "c"}, 3) == [2, 2, 2]
    assert configure(client, "off")["count"] == 3
    assert error_codes(client, {"find": "c"}, 1) == [None]


@pytest.mark.parametrize("data", ["errorCode", "writeConcernError"])
@pytest.mark.parametrize(
    ("code", "has_version"), [(189, True), (10107, True), (11602, True), (91, False), (11600, False)]
)
def test_only_state_change_errors_contain_topology_version(client, data, code, has_version):
    configure(client, {"times": 1}, failCommands=["insert"], **{data: code if data == "errorCode" else {"code": code}})
    version = client.run(INSERT, "db").get("topologyVersion")
    assert version == (client.run({"hello": 1})["topologyVersion"] if has_version else None)


def test_reply_to_read_has_no_write_concern_error_of_fail_point(client):
    configure(client, "alwaysOn", failCommands=["find"], writeConcernError={"code": 64})
    assert "writeConcernError" not in client.run({"find": "c"}, "db")


@pytest.mark.parametrize(("probability", "outcomes"), [(0, {None}), (1, {91}), (0.5, {None, 91})])
def test_activation_probability_determines_outcomes_of_commands(client, probability, outcomes):
    configure(client, {"activationProbability": probability}, failCommands=["find"], errorCode=91)
    assert set(error_codes(client, {"find": "c"}, 60)) == outcomes


def test_error_of_fail_point_has_name_of_error_code(client):
    configure(client, {"times": 1}, failCommands=["find"], errorCode=10107)
    reply = client.run({"find": "c"}, "db")
    assert reply["codeName"] == "NotWritablePrimary"


def test_fail_point_close_connection_sends_no_reply(client):
    configure(client, {"times": 1}, failCommands=["find"], closeConnection=True)
    client.send({"find": "c"}, "db")
    assert client.server_closes_connection()


def test_fail_point_block_connection_delays_reply(client):
    configure(client, {"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=50)
    began = monotonic()
    assert client.run({"find": "c"}, "db")["ok"] == 1
    assert monotonic() - began >= 0.05


def test_max_time_ms_interrupts_blocked_command(client):
    configure(client, {"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=60_000)
    reply = client.run({"find": "c", "maxTimeMS": 20}, "db")
    assert (reply["code"], reply["codeName"]) == (50, "MaxTimeMSExpired")


def test_command_with_block_and_error_code_fails_after_block(client):
    configure(client, {"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=10, errorCode=6)
    assert client.run({"find": "c"}, "db")["code"] == 6


def test_retryable_write_error_has_label(client):
    configure(client, {"times": 2}, failCommands=["insert"], errorCode=91)
    assert client.run(RETRYABLE_INSERT, "db")["errorLabels"] == ["RetryableWriteError"]
    assert "errorLabels" not in client.run(INSERT, "db")


def test_transaction_error_has_label(client):
    configure(client, {"times": 1}, failCommands=["insert"], errorCode=112)
    reply = client.run({**RETRYABLE_INSERT, "autocommit": False, "startTransaction": True}, "db")
    assert reply["errorLabels"] == ["TransientTransactionError"]


@pytest.mark.parametrize("labels", [[], ["One", "Two"]])
def test_error_labels_replace_labels_of_server(client, labels):
    configure(client, {"times": 1}, failCommands=["insert"], errorCode=91, errorLabels=labels)
    assert client.run(RETRYABLE_INSERT, "db")["errorLabels"] == labels


def test_fail_point_returns_write_concern_error_after_write(client):
    configure(client, {"times": 1}, failCommands=["insert"], writeConcernError={"code": 91, "errmsg": "shutting down"})
    reply = client.run(RETRYABLE_INSERT, "db")
    assert (reply["ok"], reply["n"]) == (1, 1)
    assert reply["writeConcernError"] == {"code": 91, "errmsg": "shutting down"}
    assert reply["errorLabels"] == ["RetryableWriteError"]
    assert len(client.run({"find": "c"}, "db")["cursor"]["firstBatch"]) == 1


def test_fail_point_with_app_name_affects_only_named_application(deployment, client):
    configure(client, "alwaysOn", failCommands=["ping"], errorCode=2, appName="victim")
    metadata = {"application": {"name": "victim"}}
    with WireClient(deployment.members[0].address) as victim:
        assert victim.run({"hello": 1, "client": metadata})["ok"] == 1
        assert victim.run({"ping": 1})["code"] == 2
    assert client.run({"ping": 1})["ok"] == 1


@pytest.mark.parametrize("name", ["hello", "isMaster"])
def test_fail_point_with_app_name_affects_first_hello_of_application(deployment, client, name):
    configure(client, "alwaysOn", failCommands=[name], closeConnection=True, appName="victim")
    with WireClient(deployment.members[0].address) as victim:
        victim.send({name: 1, "client": {"application": {"name": "victim"}}})
        assert victim.server_closes_connection()
    assert client.run({name: 1, "client": {"application": {"name": "other"}}})["ok"] == 1


def test_failed_get_more_has_resumable_label_only_for_change_stream(client):
    assert client.run(INSERT, "db")["ok"] == 1
    stream = client.run({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}, "db")["cursor"]
    query = client.run({"find": "c", "batchSize": 0}, "db")["cursor"]
    for cursor, labels in ((stream, ["ResumableChangeStreamError"]), (query, None)):
        configure(client, {"times": 1}, name="failGetMoreAfterCursorCheckout", errorCode=6)
        reply = client.run({"getMore": cursor["id"], "collection": "c"}, "db")
        assert (reply["code"], reply.get("errorLabels")) == (6, labels)


def test_fail_point_with_namespace_affects_only_named_collection(client):
    configure(client, "alwaysOn", failCommands=["find"], errorCode=2, namespace="db.c")
    assert error_codes(client, {"find": "c"}, 1) == [2]
    assert error_codes(client, {"find": "other"}, 1) == [None]


def test_fail_point_error_extra_info_adds_fields_to_error(client):
    configure(client, {"times": 1}, failCommands=["find"], errorCode=2, errorExtraInfo={"more": 1})
    assert client.run({"find": "c"}, "db")["more"] == 1


def test_fail_point_for_ismaster_does_not_affect_hello(client):
    configure(client, {"times": 1}, failCommands=["ismaster"], errorCode=91)
    assert client.run({"hello": 1})["ok"] == 1
    assert client.run({"isMaster": 1})["code"] == 91


def test_fail_point_fails_streamed_hello(client):
    known_version = client.run({"hello": 1})["topologyVersion"]
    client.stream({"hello": 1, "topologyVersion": known_version, "maxAwaitTimeMS": 10})
    assert client.receive()[1] is True
    with WireClient("127.0.0.1:" + str(client.socket.getpeername()[1])) as other:
        configure(other, {"times": 1}, failCommands=["hello"], errorCode=91)
    while (reply := client.receive())[0]["ok"]:
        pass
    assert reply[0]["code"] == 91 and reply[1] is False


def test_on_primary_transactional_write_executes_write_and_closes_connection(deployment, client):
    configure(client, {"times": 1}, name="onPrimaryTransactionalWrite")
    assert client.run(INSERT, "db")["ok"] == 1
    client.send(RETRYABLE_INSERT, "db")
    assert client.server_closes_connection()
    with WireClient(deployment.members[0].address) as again:
        assert again.run(RETRYABLE_INSERT, "db")["n"] == 1
        assert len(again.run({"find": "c"}, "db")["cursor"]["firstBatch"]) == 2


def test_fail_point_on_one_member_does_not_affect_other_members(deployment, client):
    configure(client, "alwaysOn", failCommands=["ping"], errorCode=2)
    with WireClient(deployment.members[1].address) as other:
        assert other.run({"ping": 1})["ok"] == 1


def test_set_fail_point_configures_members(deployment, client):
    deployment.set_fail_point(mode={"times": 1}, data={"failCommands": ["ping"], "errorCode": 2})
    assert client.run({"ping": 1})["code"] == 2
    with pytest.raises(CommandError, match="noSuchFailPoint"):
        deployment.set_fail_point("noSuchFailPoint")


@with_cases
def test_invalid_fail_point_is_refused(client, command, code):
    assert client.run(command)["code"] == code


def test_fail_point_without_test_commands_is_refused():
    with (
        Deployment.standalone(parameters={"enableTestCommands": False}) as deployment,
        WireClient(deployment.members[0].address) as client,
    ):
        assert client.run({"configureFailPoint": "failCommand", "mode": "off"})["code"] == 59


def test_hello_reply_can_be_encoded_as_bson(client):
    assert bson.encode(client.run({"hello": 1}))


def test_fail_command_without_command_names_fails_no_command(client):
    assert client.run({"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {"errorCode": 2}})["ok"] == 1
    assert client.run({"ping": 1})["ok"] == 1


def test_max_time_always_time_out_fails_only_commands_with_max_time_ms(client):
    assert client.run({"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn"})["ok"] == 1
    assert client.run({"ping": 1, "maxTimeMS": 10_000})["code"] == 50
    assert client.run({"ping": 1})["ok"] == 1


@with_cases
def test_error_of_wrong_fail_point_contains_nearest_valid_name(arguments, message):
    with Deployment.standalone() as deployment, pytest.raises(CommandError, match=re.escape(message)):
        deployment.set_fail_point(*arguments)


@pytest.mark.parametrize("name", ["ismaster", "findandmodify", "deleteIndexes", "bulkWrite", "replSetStepDown"])
def test_fail_point_accepts_names_of_commands(deployment, name):
    assert deployment.set_fail_point(data={"failCommands": [name], "errorCode": 91}).count == 0


@pytest.mark.parametrize("kind", [Deployment, DeploymentThread])
def test_fail_point_handle_counts_failed_commands_of_all_members(kind):
    with kind.replica_set(members=2) as deployment:
        handle = deployment.set_fail_point("failCommand", {"times": 2}, {"failCommands": ["ping"], "errorCode": 91})
        other = deployment.set_fail_point("maxTimeAlwaysTimeOut")
        for member in (*deployment.members, *deployment.members, deployment.members[0]):
            with WireClient(member.address) as client:
                client.run({"ping": 1})
        deployment.set_fail_point("failCommand", "off")
        assert (handle.count, other.count) == (4, 0)
