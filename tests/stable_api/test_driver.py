"""A client with the option `server_api` sends API parameters, and handles replies and errors of newer
servers.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from gevent import sleep

from gmongo.errors import ConfigurationError, NotPrimaryError, OperationFailure
from gmongo.server_api import ServerApi
from gmongo.stable_api import Audit
from gmongo.testing import Deployment
from gmongo.testing.simulation.member import Member
from tests.stable_api.workload import run_workload
from tests.support.clients import make_client
from tests.support.server import ScriptedServer, cursor_reply

API_FIELDS = ("apiVersion", "apiStrict", "apiDeprecationErrors")
SERVER_APIS = [
    (None, {}),
    (ServerApi("1"), {"apiVersion": "1"}),
    (ServerApi("1", strict=True), {"apiVersion": "1", "apiStrict": True}),
    (ServerApi("1", strict=False), {"apiVersion": "1", "apiStrict": False}),
    (ServerApi("1", deprecation_errors=True), {"apiVersion": "1", "apiDeprecationErrors": True}),
    (ServerApi("1", True, True), {"apiVersion": "1", "apiStrict": True, "apiDeprecationErrors": True}),
]


def api_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Return the API parameters that a command contains."""
    return {name: body[name] for name in API_FIELDS if name in body}


@pytest.mark.requirement("API-44", "API-45", "API-49")
@pytest.mark.parametrize(("server_api", "expected_fields"), SERVER_APIS, ids=repr)
def test_commands_contain_only_api_parameters_of_server_api(
    server_api: Any, expected_fields: Any, server: ScriptedServer, connect: Any
) -> None:
    client = connect(f"mongodb://{server.name}", server_api=server_api)
    client.db.c.find_one()
    server.wait_for("hello")
    assert [api_fields(each.command) for each in server.received] == [expected_fields] * len(server.received)


@pytest.mark.requirement("API-43", "API-44", "API-51", "API-33")
def test_all_commands_have_api_parameters(
    version_requiring_deployment: Deployment, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)
    # Disable speculative authentication in the hello reply, so that the client must send saslStart.
    monkeypatch.setattr("gmongo.testing.simulation.hello._start_authentication", lambda call, body: {})
    api = ServerApi("1", strict=True, deprecation_errors=True)
    client = make_client(
        version_requiring_deployment.uri, recorder, heartbeat_interval=0.02, server_api=api, minPoolSize=2
    )
    run_workload(client)
    sleep(0.1)
    client.close()
    names = {command.name for command in version_requiring_deployment.commands}
    assert names >= {
        "hello",
        "saslStart",
        "saslContinue",
        "getMore",
        "killCursors",
        "commitTransaction",
        "abortTransaction",
        "endSessions",
        "bulkWrite",
        "insert",
        "find",
        "aggregate",
        "update",
        "delete",
        "findAndModify",
        "ping",
        "collMod",
        "create",
        "createIndexes",
    }
    expected = {"apiVersion": "1", "apiStrict": True, "apiDeprecationErrors": True}
    assert [
        command.name for command in version_requiring_deployment.commands if api_fields(command.body) != expected
    ] == []
    hellos = [
        command for command in version_requiring_deployment.commands.named("hello") if "client" not in command.body
    ]
    streaming_connections = {command.connection for command in hellos if "topologyVersion" in command.body}
    rtt_connections = {command.connection for command in hellos} - streaming_connections
    # Check that streaming monitors and round trip time monitors have sent commands.
    assert streaming_connections and rtt_connections
    assert not version_requiring_deployment.commands.named("isMaster", "ismaster")


@pytest.mark.requirement("API-44")
@pytest.mark.parametrize("fields", [{"apiVersion": "2"}, {"apiStrict": False}, {"apiVersion": "1", "apiStrict": True}])
def test_client_replaces_api_parameter_in_command_document(
    fields: dict[str, Any], server: ScriptedServer, connect: Any
) -> None:
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1", strict=True))
    document = {"ping": 1, **fields}
    client.admin.command(document)
    (ping,) = server.commands("ping")
    assert api_fields(ping) == {"apiVersion": "1", "apiStrict": True}
    for each in server.received:
        assert [each.payload.count(name.encode() + b"\0") for name in API_FIELDS] == [1, 1, 0]
    assert document == {"ping": 1, **fields}


@pytest.mark.requirement("API-03", "API-62")
def test_each_client_sends_own_api_parameters(deployment: Deployment, connect: Any) -> None:
    clients = [connect(deployment, server_api=api) for api in (None, ServerApi("1"), ServerApi("1", strict=True))]
    for client in clients:
        client.db.c.find_one()
    finds = [api_fields(command.body) for command in deployment.commands.named("find")]
    assert finds == [{}, {"apiVersion": "1"}, {"apiVersion": "1", "apiStrict": True}]


@pytest.mark.requirement("API-44")
def test_server_api_is_accepted_only_as_client_argument(connect: Any) -> None:
    with pytest.raises(TypeError, match=r"server_api must be an instance of ServerApi, not '1'$"):
        connect("mongodb://a.test", connect=False, server_api="1")
    with pytest.warns(UserWarning, match="(?i)server_?api"):
        client = connect("mongodb://a.test/?serverApi=1", connect=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'server_api'"):
        client.db.get_collection("c", server_api=ServerApi("1"))


@pytest.mark.requirement("API-22", "API-33")
def test_audit_of_driver_commands_finds_no_undocumented_parameter(deployment: Deployment, connect: Any) -> None:
    audit = Audit()
    run_workload(connect(deployment, event_listeners=[audit]))
    assert audit.commands > 40
    assert [finding.remark for finding in audit.findings if finding.hinders] == []


def extend_reply(value: Any, rng: random.Random) -> Any:
    """Return a reply with additional unknown fields, and with its fields in shuffled order.

    Returned documents and the values of some internal fields stay unchanged.
    """
    if not isinstance(value, dict):
        return value
    fixed_fields = ("firstBatch", "nextBatch", "$clusterTime", "value", "topologyVersion", "speculativeAuthenticate")
    fields = {name: each if name in fixed_fields else extend_reply(each, rng) for name, each in value.items()}
    fields["unknownField"] = {"a": [1, {"b": None}]}
    names = list(fields)
    rng.shuffle(names)
    return {name: fields[name] for name in names}


@pytest.mark.requirement("API-01", "API-23", "API-24", "API-27", "API-11")
@pytest.mark.parametrize("seed", [1, 2])
def test_results_do_not_change_if_replies_have_unknown_fields(
    seed: int, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = ServerApi("1", strict=True)
    with Deployment.replica_set(1) as older_deployment:
        expected = run_workload(connect(older_deployment, server_api=api))
    answer, rng = Member.answer, random.Random(seed)
    monkeypatch.setattr(Member, "answer", lambda member, call: extend_reply(answer(member, call), rng))
    with Deployment.replica_set(1, users={"ada": "lovelace"}, version="8.2") as newer_deployment:
        assert run_workload(connect(newer_deployment, server_api=api)) == expected


@pytest.mark.requirement("API-23")
def test_operations_succeed_without_internal_reply_fields(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    internal_fields = ("operationTime", "topologyVersion", "connectionId", "localTime", "electionId", "lastWrite")
    answer = Member.answer

    def without_internal_fields(member: Any, call: Any) -> Any:
        return {name: value for name, value in answer(member, call).items() if name not in internal_fields}

    monkeypatch.setattr(Member, "answer", without_internal_fields)
    with Deployment.replica_set(1) as deployment:
        client = connect(deployment, server_api=ServerApi("1"))
        client.db.c.insert_many([{} for _ in range(5)])
        assert len(client.db.c.find(batch_size=2).to_list()) == 5
        with client.start_session() as session, session.start_transaction():
            client.db.c.insert_one({}, session=session)


@pytest.mark.requirement("API-19", "API-20", "API-21")
def test_unknown_commands_and_parameters_are_sent_unchanged(server: ScriptedServer, connect: Any) -> None:
    server.replies["newCommand"] = {"ok": 1, "answer": 42}
    server.hello_extra["maxWireVersion"] = 8
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1"))
    reply = client.db.command("newCommand", "c", unknownField={"a": 1}, allowDiskUse=True)
    assert reply["answer"] == 42
    (command,) = server.commands("newCommand")
    assert (command["newCommand"], command["unknownField"], command["allowDiskUse"]) == ("c", {"a": 1}, True)
    server.replies["aggregate"] = cursor_reply([])
    client.db.c.aggregate([], unknownField=5).to_list()
    assert server.commands("aggregate")[0]["unknownField"] == 5


@pytest.mark.requirement("API-25", "API-26", "API-12", "API-13")
def test_unknown_error_code_raises_operation_failure_with_labels(server: ScriptedServer, connect: Any) -> None:
    reply = {"ok": 0, "code": 99999, "codeName": "Odd", "errmsg": "odd", "errorLabels": ["OddError"], "more": 1}
    server.replies["find"] = reply
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1"), retryReads=False)
    with pytest.raises(OperationFailure, match="odd") as caught:
        client.db.c.find_one()
    assert type(caught.value) is OperationFailure
    assert (caught.value.code, caught.value.details["more"]) == (99999, 1)
    assert caught.value.has_error_label("OddError")
    server.replies["find"] = {"ok": 0, "code": 10107, "errmsg": "no primary here", "errorLabels": ["OddError"]}
    with pytest.raises(NotPrimaryError) as other:  # the code 10107 determines the error class
        client.db.c.find_one()
    assert other.value.has_error_label("OddError")


@pytest.mark.requirement("API-28", "API-14")
def test_unknown_stages_and_operators_are_sent_unchanged(server: ScriptedServer, connect: Any) -> None:
    server.replies["aggregate"] = server.replies["find"] = cursor_reply([])
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1", strict=True))
    client.db.c.aggregate([{"$newOperator": {"x": {"$oddly": 1}}}]).to_list()
    client.db.c.find({"a": {"$newOperator": 1}}, {"b": {"$odd": 1}}).to_list()
    assert server.commands("aggregate")[0]["pipeline"] == [{"$newOperator": {"x": {"$oddly": 1}}}]
    assert server.commands("find")[0]["filter"] == {"a": {"$newOperator": 1}}
    server.replies["update"] = {"ok": 1, "n": 1, "nModified": 1}
    client.db.c.update_one({}, {"$newOperator": {"x": 1}})
    assert server.commands("update")[0]["updates"][0]["u"] == {"$newOperator": {"x": 1}}


@pytest.mark.requirement("API-29")
def test_authorization_error_of_server_raises_operation_failure(server: ScriptedServer, connect: Any) -> None:
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1"))
    server.replies["drop"] = {"ok": 0, "code": 13, "errmsg": "not authorized"}
    with pytest.raises(OperationFailure) as caught:
        client.db.c.drop()
    assert caught.value.code == 13
    server.replies["drop"] = {"ok": 1}
    client.db.c.drop()


@pytest.mark.requirement("API-30")
def test_unknown_mechanism_is_ignored_and_missing_mechanism_raises(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Deployment.replica_set(1, users={"ada": "lovelace"}) as deployment:
        answer = Member.answer

        def with_unknown_mechanism(member: Any, call: Any) -> Any:
            reply = answer(member, call)
            if "saslSupportedMechs" in reply:
                reply["saslSupportedMechs"] = ["QUANTUM-1", *reply["saslSupportedMechs"]]
            return reply

        monkeypatch.setattr(Member, "answer", with_unknown_mechanism)
        connect(deployment, server_api=ServerApi("1")).db.c.find_one()
    parameters = {"authenticationMechanisms": ["SCRAM-SHA-256"]}
    with Deployment.replica_set(1, users={"ada": "lovelace"}, parameters=parameters) as deployment:
        uri = deployment.uri + "&authMechanism=SCRAM-SHA-1"
        with pytest.raises(OperationFailure, match="SCRAM-SHA-1"):
            connect(uri, server_api=ServerApi("1")).db.c.find_one()


@pytest.mark.requirement("API-32", "API-18")
def test_server_outside_wire_version_range_raises_configuration_error(server: ScriptedServer, connect: Any) -> None:
    server.hello_extra["maxWireVersion"] = 999
    client = connect(f"mongodb://{server.name}", server_api=ServerApi("1"))
    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    server.hello_extra["minWireVersion"] = 998
    with pytest.raises(ConfigurationError, match=r"(?i)wire version|requires"):
        connect(f"mongodb://{server.name}", server_api=ServerApi("1")).db.c.find_one()


@pytest.mark.requirement("API-46", "API-40")
def test_strict_client_receives_error_for_command_outside_api_version(deployment: Deployment, connect: Any) -> None:
    strict, lenient = (connect(deployment, server_api=ServerApi("1", strict=flag)) for flag in (True, False))
    for client, is_strict in ((strict, True), (lenient, False)):
        for action in (
            lambda client: client.db.c.distinct("a"),
            lambda client: client.db.c.find({}, show_record_id=True).to_list(),
            lambda client: client.db.c.create_index("a", sparse=True, name="s"),
        ):
            if is_strict:
                with pytest.raises(OperationFailure) as caught:
                    action(client)
                assert (caught.value.code, caught.value.details["codeName"]) == (323, "APIStrictError")
            else:
                action(client)


@pytest.mark.requirement("API-47", "API-31", "API-59", "API-42")
def test_deprecated_command_raises_only_with_deprecation_errors(deployment: Deployment, connect: Any) -> None:
    for flag in (None, False):
        client = connect(deployment, server_api=ServerApi("1", deprecation_errors=flag))
        assert client.admin.command("testDeprecation")["ok"] == 1
    client = connect(deployment, server_api=ServerApi("1", deprecation_errors=True))
    with pytest.raises(OperationFailure, match="deprecated in API Version 1") as caught:
        client.admin.command("testDeprecation")
    assert caught.value.code == 324


@pytest.mark.requirement("API-55")
def test_unsupported_api_version_raises_error_of_server(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.server_api._VERSIONS", ("1", "2"))
    with Deployment.load_balanced(1) as deployment:
        client = connect(deployment, server_api=ServerApi("2"))
        with pytest.raises(OperationFailure, match="API version must be") as caught:
            client.db.c.find_one()
        assert caught.value.code == 322
        assert [command.name for command in deployment.commands] == ["hello"]
    with Deployment.replica_set(1) as deployment:
        client = connect(deployment, server_api=ServerApi("2"), serverSelectionTimeoutMS=100)
        with pytest.raises(Exception, match="API version must be"):
            client.db.c.find_one()
