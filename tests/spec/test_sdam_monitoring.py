"""The official SDAM monitoring tests: which events a topology publishes, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.client_options import ClientOptions
from gmongo.sdam.server_description import ServerDescription, parse_address
from tests.spec.specifications import files
from tests.spec.test_sdam import QuietTopology
from tests.support.listeners import HearsServers, HearsTopology

EVENT_NAMES = {
    "TopologyOpenedEvent": "topology_opening_event",
    "TopologyClosedEvent": "topology_closed_event",
    "TopologyDescriptionChangedEvent": "topology_description_changed_event",
    "ServerOpeningEvent": "server_opening_event",
    "ServerClosedEvent": "server_closed_event",
    "ServerDescriptionChangedEvent": "server_description_changed_event",
}


class Transcript(HearsServers, HearsTopology):
    """All events, as the tests write them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def hear(self, event: Any) -> None:
        fields: dict[str, Any] = {"topologyId": "42"}
        if hasattr(event, "server_address"):
            fields["address"] = "{}:{}".format(*event.server_address)
        show = show_server if hasattr(event, "server_address") else show_topology
        for name, key in (("previous_description", "previousDescription"), ("new_description", "newDescription")):
            if hasattr(event, name):
                fields[key] = show(getattr(event, name))
        self.events.append({EVENT_NAMES[type(event).__name__]: fields})


def show_server(server: ServerDescription) -> dict[str, Any]:
    hello = server._hello
    shown: dict[str, Any] = {"address": "{}:{}".format(*server.address), "type": server.server_type_name}
    shown.update((name, list(hello.get(name, []))) for name in ("arbiters", "hosts", "passives"))
    shown.update((name, hello[name]) for name in ("primary", "setName") if name in hello)
    return shown


def show_topology(topology: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "topologyType": topology.topology_type_name,
        "servers": [show_server(server) for _address, server in sorted(topology.server_descriptions().items())],
    }
    if topology.replica_set_name is not None:
        shown["setName"] = topology.replica_set_name
    return shown


@pytest.mark.parametrize("case", files("sdam monitoring"))
def test_sdam_monitoring(case: dict[str, Any]) -> None:
    transcript = Transcript()
    topology = QuietTopology(ClientOptions(case["uri"], None, {"event_listeners": [transcript]}).topology())
    topology.open()
    try:
        for phase in case["phases"]:
            for text, reply in phase.get("responses", ()):
                topology.server_checked(ServerDescription(parse_address(text), reply or None, 0.001))
            expected = phase["outcome"]["events"]
            for event in expected:
                for fields in event.values():
                    for key in ("previousDescription", "newDescription"):
                        description = fields.get(key, {})
                        for server in description.get("servers", [description]):
                            if server.get("type") == "PossiblePrimary":  # only drivers with one thread tell it apart
                                server["type"] = "Unknown"
            found, transcript.events = transcript.events, []
            assert found == expected
    finally:
        topology.close()
