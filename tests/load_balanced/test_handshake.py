"""Handshakes in load-balanced mode, and the effects of errors of hello commands, authentication and
later operations.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson import ObjectId
from gevent.event import Event

from gmongo.errors import AutoReconnect, ConfigurationError, NetworkTimeout, OperationFailure
from gmongo.testing import Deployment
from tests.load_balanced.harness import SERVICE_ID, load_balanced_uri, service_ids_of_commands
from tests.support.fail_points import fail
from tests.support.faults import hold_reply
from tests.support.pools import checked_out, service_counts
from tests.support.server import ScriptedServer, cut_reply

ERROR_MESSAGE = "Driver attempted to initialize in load balancing mode, but the server does not support this mode."
USER_SETTINGS = {"users": {"ada": "lovelace"}}


def failure_lines(recorder: Any) -> list[str]:
    """Return the event lines of check-outs, closed connections, cleared pools and new descriptions."""
    kinds = ("ConnectionCheckOut", "ConnectionClosed", "PoolCleared", "ServerDescription", "TopologyDescription")
    return recorder.lines_starting_with(*kinds)


@pytest.mark.requirement("LB-38", "LB-39")
def test_hello_of_each_connection_has_load_balanced_true(service: ScriptedServer, connect: Any) -> None:
    client = connect(load_balanced_uri(service), minPoolSize=3)
    client.db.c.find_one()
    service.wait_for("handshake", 3)
    assert [hello["loadBalanced"] for hello in service.commands("handshake")] == [True] * 3
    assert {next(iter(hello)) for hello in service.commands("handshake")} == {"hello"}


@pytest.mark.requirement("LB-42")
@pytest.mark.parametrize("hello_fields", [{}, {"msg": "isdbgrid"}])
def test_server_without_service_id_raises_configuration_error(
    hello_fields: dict[str, Any], service: ScriptedServer, connect: Any, recorder: Any
) -> None:
    service.hello_extra = hello_fields
    client = connect(load_balanced_uri(service))
    with pytest.raises(ConfigurationError) as caught:
        client.db.c.find_one()
    assert str(caught.value) == ERROR_MESSAGE
    # The driver does not retry the operation.
    assert len(service.commands("handshake")) == 1
    assert service.commands("find") == []
    assert failure_lines(recorder)[3:] == ["ConnectionCheckOutStarted", "ConnectionClosed", "ConnectionCheckOutFailed"]
    (closed,), (failed,) = recorder.events_named("ConnectionClosed"), recorder.events_named("ConnectionCheckOutFailed")
    assert (closed.reason, failed.reason) == ("error", "connectionError")


@pytest.mark.requirement("LB-62")
@pytest.mark.parametrize("code", [91, 11600, 18])
def test_command_error_of_hello_does_not_clear_pool(
    code: int, service: ScriptedServer, connect: Any, recorder: Any
) -> None:
    client = connect(load_balanced_uri(service), retryReads=False)
    service.hello_edit = lambda command, reply: {"ok": 0, "code": code, "errmsg": "no"}
    with pytest.raises((OperationFailure, AutoReconnect)) as caught:
        client.db.c.find_one()
    assert getattr(caught.value, "code", code) == code
    assert not recorder.events_named("PoolCleared")
    assert len(recorder.events_named("ServerDescriptionChanged")) == 1
    service.hello_edit = None
    client.db.c.find_one()


@pytest.mark.requirement("LB-40", "LB-64", "LB-65", "LB-66")
@pytest.mark.parametrize("error_kind", ["network", "timeout", "refused"])
def test_authentication_error_clears_only_service_of_connection(error_kind: str, connect: Any, recorder: Any) -> None:
    with Deployment.load_balanced(2, **USER_SETTINGS) as deployment:
        client = connect(deployment, connectTimeoutMS=100, retryReads=False, retryWrites=False)
        client.db.c.insert_one({})
        good_address = deployment.commands.named("insert")[0].member
        bad_member = next(member for member in deployment.members if member.address != good_address)
        for name in ("saslStart", "saslContinue"):
            data: dict[str, Any] = {
                "network": {"closeConnection": True},
                "timeout": {"blockConnection": True, "blockTimeMS": 300},
                "refused": {"errorCode": 18},
            }[error_kind]
            fail(deployment, name, times=None, member=bad_member, **data)
        recorder.clear()
        with pytest.raises((AutoReconnect, OperationFailure, NetworkTimeout)):
            _find_on_new_connection(client)
        assert {event.service_id for event in recorder.events_named("PoolCleared")} == {bad_member.service_id}
        assert not recorder.events_named("ServerDescriptionChanged")
        assert not recorder.events_named("TopologyDescriptionChanged")
        recorder.clear()
        # The operation uses the connection to the service that accepts authentication.
        client.db.c.find_one()
        assert not recorder.events_named("ConnectionCreated")
        assert service_ids_of_commands(recorder, "find") == {_service_id_of(deployment, good_address)}


def _find_on_new_connection(client: Any) -> None:
    """Check out the only connection, and run a `find`, so that the client creates a second
    connection.
    """
    with checked_out(client._topology.pools()[0]):
        client.db.c.find_one()


def _service_id_of(deployment: Any, address: str) -> ObjectId:
    (member,) = [each for each in deployment.members if each.address == address]
    service_id: ObjectId = member.service_id
    return service_id


@pytest.mark.requirement("LB-68", "LB-69", "LB-70", "LB-72")
def test_command_and_pool_events_have_service_id(service: ScriptedServer, connect: Any, recorder: Any) -> None:
    client = connect(load_balanced_uri(service), retryReads=False)
    client.db.c.find_one()
    service.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    for kind, count in (("CommandStarted", 2), ("CommandSucceeded", 1), ("CommandFailed", 1), ("PoolCleared", 1)):
        assert [event.service_id for event in recorder.events_named(kind)] == [SERVICE_ID] * count


@pytest.mark.requirement("LB-63")
def test_failed_authentication_increments_generation_of_service(
    connect: Any, service: ScriptedServer, start_greenlet: Any
) -> None:
    service.replies["saslStart"] = {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
    client = connect(load_balanced_uri(service), username="ann", password="secret", authMechanism="PLAIN")
    gate = Event()
    service.fail("find", hold_reply(gate))
    finder = start_greenlet(client.db.c.find_one)
    service.wait_for("find")
    (pool,) = client._topology.pools()
    assert service_counts(pool) == {SERVICE_ID: (0, 1)}
    service.replies["saslStart"] = {"ok": 0, "code": 18, "errmsg": "no"}
    with pytest.raises(OperationFailure):
        client.db.command("ping")
    assert service_counts(pool) == {SERVICE_ID: (1, 1)}
    gate.set()
    finder.join(timeout=5)
    assert service_counts(pool) == {}
