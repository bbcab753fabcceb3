"""Official tests of the events that a client publishes during server discovery and
monitoring (SDAM).
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.client_options import ClientOptions
from gmongo.sdam.server_description import ServerDescription, parse_address
from tests.spec.specifications import files
from tests.spec.test_sdam import TopologyWithoutMonitors
from tests.support.listeners import ForwardingServerListener, ForwardingTopologyListener

EVENT_NAMES = {
    "TopologyOpenedEvent": "topology_opening_event",
    "TopologyClosedEvent": "topology_closed_event",
    "TopologyDescriptionChangedEvent": "topology_description_changed_event",
    "ServerOpeningEvent": "server_opening_event",
    "ServerClosedEvent": "server_closed_event",
    "ServerDescriptionChangedEvent": "server_description_changed_event",
}


class EventRecorder(ForwardingServerListener, ForwardingTopologyListener):
    """Listener that records events as documents in the format of the official tests."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def handle(self, event: Any) -> None:
        fields: dict[str, Any] = {"topologyId": "42"}
        if hasattr(event, "server_address"):
            fields["address"] = "{}:{}".format(*event.server_address)
        document_of = server_document if hasattr(event, "server_address") else topology_document
        for name, key in (
            ("previous_description", "previousDescription"),
            ("new_description", "newDescription"),
        ):
            if hasattr(event, name):
                fields[key] = document_of(getattr(event, name))
        self.events.append({EVENT_NAMES[type(event).__name__]: fields})


def server_document(server: ServerDescription) -> dict[str, Any]:
    hello = server._hello
    document: dict[str, Any] = {
        "address": "{}:{}".format(*server.address),
        "type": server.server_type_name,
    }
    document.update((name, list(hello.get(name, []))) for name in ("arbiters", "hosts", "passives"))
    document.update((name, hello[name]) for name in ("primary", "setName") if name in hello)
    return document


def topology_document(topology: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "topologyType": topology.topology_type_name,
        "servers": [server_document(server) for _address, server in sorted(topology.server_descriptions().items())],
    }
    if topology.replica_set_name is not None:
        document["setName"] = topology.replica_set_name
    return document


@pytest.mark.parametrize("case", files("sdam monitoring"))
def test_sdam_events_equal_official_case(case: dict[str, Any]) -> None:
    recorder = EventRecorder()
    topology = TopologyWithoutMonitors(ClientOptions(case["uri"], None, {"event_listeners": [recorder]}).topology())
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
                            # Only single-threaded drivers have the server type PossiblePrimary.
                            # In gmongo, these servers have the type Unknown.
                            if server.get("type") == "PossiblePrimary":
                                server["type"] = "Unknown"
            published, recorder.events = recorder.events, []
            assert published == expected
    finally:
        topology.close()
