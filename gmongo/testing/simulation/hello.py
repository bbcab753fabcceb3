"""The command ``hello``, and its older name ``isMaster``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson import Binary

from gmongo.testing import clock
from gmongo.testing.command import CommandError, error
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.users import EXTERNAL
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS_VERSION, find_wire_version

HELLO_COMMANDS = frozenset({"hello", "isMaster", "ismaster"})
_LIMIT_FIELDS = {"maxBsonObjectSize": 16 * 1024 * 1024, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000}


def reply_to_hello(call: Call) -> dict[str, Any]:
    """Return the reply to ``hello``. If the request has the current topologyVersion, first wait for a change."""
    has_streams = call.cluster.version >= STREAMS_AND_LABELS_VERSION
    if has_streams:
        _await_change(call)
    elif call.name == "hello":
        raise error(59, "no such command: 'hello'")
    if not call.connection.greeted:
        _accept_first_hello(call)
    member = call.member
    role = member.cluster.topology.describe(member)
    if call.name != "hello":
        role = {("ismaster" if name == "isWritablePrimary" else name): value for name, value in role.items()}
    reply = {
        **({"helloOk": True} if has_streams and call.body.get("helloOk") else {}),
        **({"topologyVersion": member.topology_version} if has_streams else {}),
        **role,
        **_LIMIT_FIELDS,
        "localTime": clock.utc_now(),
        "logicalSessionTimeoutMinutes": member.parameters["localLogicalSessionTimeoutMinutes"],
        "connectionId": call.connection.number,
        "minWireVersion": 0,
        "maxWireVersion": find_wire_version(member.cluster.version),
        "readOnly": False,
    }
    return {**reply, **_create_optional_fields(call)}


def record_app_name(call: Call) -> None:
    """Record the application name that the first ``hello`` of a connection contains."""
    client = call.body.get("client")
    if call.name in HELLO_COMMANDS and not call.connection.greeted and isinstance(client, Mapping):
        application = client.get("application")
        call.connection.app_name = application.get("name") if isinstance(application, Mapping) else None


def _await_change(call: Call) -> None:
    version, max_await_ms = call.body.get("topologyVersion"), call.body.get("maxAwaitTimeMS")
    if (version is None) != (max_await_ms is None):
        raise error(31368, "hello has only one of topologyVersion and maxAwaitTimeMS, but must have both or neither")
    if version is None:
        return
    if not isinstance(version, Mapping) or not isinstance(max_await_ms, (int, float)) or max_await_ms < 0:
        raise error(14, f"topologyVersion {version!r} or maxAwaitTimeMS {max_await_ms!r} has a wrong type")
    call.member.await_change(version, max_await_ms / 1000)


def _accept_first_hello(call: Call) -> None:
    connection, body = call.connection, call.body
    if call.member.service_id is not None and not body.get("loadBalanced"):
        message = "The server is being accessed through a load balancer, but this driver does not have load balancing"
        raise error(354, f"{message} enabled")
    client_compressors = body.get("compression") or []
    if not isinstance(client_compressors, list):
        raise error(14, f"compression is {client_compressors!r}, which is not an array")
    connection.greeted = True
    connection.internal = "internalClient" in body
    connection.compressors = [name for name in client_compressors if name in call.cluster.compressors]


def _create_optional_fields(call: Call) -> dict[str, Any]:
    """Return the fields of the reply for load balancing, compression and authentication."""
    fields: dict[str, Any] = {}
    if call.member.service_id is not None:
        fields["serviceId"] = call.member.service_id
    if "compression" in call.body and call.connection.compressors:
        fields["compression"] = call.connection.compressors
    if "saslSupportedMechs" in call.body:
        fields |= _list_mechanisms(call)
    if isinstance(call.body.get("speculativeAuthenticate"), Mapping):
        fields |= _start_authentication(call, call.body["speculativeAuthenticate"])
    return fields


def _list_mechanisms(call: Call) -> dict[str, Any]:
    database, dot, name = call.body["saslSupportedMechs"].partition(".")
    if not dot:
        raise error(2, "UserName must contain a '.' separated database.user pair")
    user = call.cluster.users.get((database, name))
    if user is None or user.database == EXTERNAL:
        return {}
    mechanisms = call.member.parameters["authenticationMechanisms"]
    return {"saslSupportedMechs": [name for name in user.mechanisms if name in mechanisms]}


def _start_authentication(call: Call, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field ``speculativeAuthenticate`` of the reply. Return no field if the authentication fails."""
    authentication, database = call.connection.authentication, str(body.get("db", "admin"))
    mechanisms = call.member.parameters["authenticationMechanisms"]
    try:
        if "authenticate" in body:
            if body.get("mechanism") not in mechanisms:
                return {}
            return {"speculativeAuthenticate": authentication.authenticate(database, body)}
        reply = authentication.sasl_start(database, body, mechanisms)
    except CommandError:
        return {}
    return {"speculativeAuthenticate": {**reply, "payload": Binary(reply["payload"])}}
