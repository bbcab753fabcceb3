"""Official tests of topology changes (SDAM specification).

The tests apply hello replies and errors directly to a topology, without sockets and monitors.
"""

from __future__ import annotations

from typing import Any

import pytest
from bson import json_util

from gmongo.client_options import ClientOptions
from gmongo.cmap.connecting import label_connect_error
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, NetworkTimeout
from gmongo.execution.reply_errors import error_of
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription, parse_address
from gmongo.sdam.topology import Topology
from gmongo.wire.connect import Address
from tests.spec.specifications import files

SERVER_FIELDS = {
    "setName": "replica_set_name",
    "setVersion": "set_version",
    "electionId": "election_id",
    "topologyVersion": "topology_version",
    "logicalSessionTimeoutMinutes": "logical_session_timeout_minutes",
    "minWireVersion": "min_wire_version",
    "maxWireVersion": "max_wire_version",
}


class TopologyWithoutMonitors(Topology):
    """Topology whose servers have no monitors."""

    def _make_server(self, address: Address, pool: Pool) -> Server:
        return Server(address, pool, None)


def error_from(application_error: dict[str, Any]) -> BaseException | None:
    kind = application_error["type"]
    if kind == "network":
        return AutoReconnect("closed")
    if kind == "timeout":
        return NetworkTimeout("timed out")
    assert kind == "command"
    return error_of(application_error["response"])


def apply_error(topology: Topology, application_error: dict[str, Any]) -> None:
    address = parse_address(application_error["address"])
    error = error_from(application_error)
    if error is None:
        return
    pool = topology.servers[address].pool
    connection = Connection(address)
    connection.generation = application_error.get("generation", pool.generation)
    during_handshake = application_error["when"] == "beforeHandshakeCompletes"
    if during_handshake:
        label_connect_error(error)
    if not during_handshake:
        connection.hello = Hello({"ok": 1, "maxWireVersion": application_error["maxWireVersion"]}, 0)
    topology.handle_error(connection, error, during_handshake=during_handshake)


def check_topology(topology: Topology, outcome: dict[str, Any]) -> None:
    description = topology.description
    servers = description.server_descriptions()
    assert set(servers) == {parse_address(text) for text in outcome["servers"]}
    for text, expected in outcome["servers"].items():
        server = servers[parse_address(text)]
        for field, value in expected.items():
            if field == "pool":
                assert topology.servers[server.address].pool.generation == value["generation"]
            elif field == "error":
                assert value in str(server.error)
            elif field == "type":
                # Only single-threaded drivers have the server type PossiblePrimary of the official
                # tests. In gmongo, these servers have the type Unknown.
                assert server.server_type_name == value.replace("PossiblePrimary", "Unknown")
            elif field in ("minWireVersion", "maxWireVersion") and value is None:
                continue
            else:
                assert getattr(server, SERVER_FIELDS[field]) == value, field
    assert description.topology_type_name == outcome["topologyType"]
    assert description.replica_set_name == outcome.get("setName")
    assert description.logical_session_timeout_minutes == outcome.get("logicalSessionTimeoutMinutes")
    if "maxSetVersion" in outcome:
        assert description.max_set_version == outcome["maxSetVersion"]
    if "maxElectionId" in outcome:
        assert description.max_election_id == outcome["maxElectionId"]
    assert (description.compatibility_error is None) == outcome.get("compatible", True)


@pytest.mark.parametrize("case", files("sdam"))
def test_topology_equals_official_case(case: dict[str, Any]) -> None:
    case = json_util.loads(json_util.dumps(case))
    topology = TopologyWithoutMonitors(ClientOptions(case["uri"], None, {}).topology())
    topology.open()
    try:
        for phase in case["phases"]:
            for text, reply in phase.get("responses", ()):
                address = parse_address(text)
                error = None if reply else AutoReconnect("no reply")
                topology.server_checked(ServerDescription(address, reply or None, 0.001, error))
            for application_error in phase.get("applicationErrors", ()):
                apply_error(topology, application_error)
            check_topology(topology, phase["outcome"])
    finally:
        topology.close()
