"""Official tests of server selection, maximum staleness and average round trip time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.monitoring import EventListeners
from gmongo.read_preferences import make_read_preference, read_pref_mode_from_name
from gmongo.sdam.rtt_monitor import RoundTripTime
from gmongo.sdam.selection import WRITABLE, filter_by_latency, find_suitable_servers
from gmongo.sdam.server_description import ServerDescription, parse_address
from gmongo.sdam.server_selector import choose_less_busy
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.server_type import SERVER_TYPE
from tests.spec.specifications import files

KNOWN_FIELDS = {
    "deprioritized_servers",
    "operation",
    "in_latency_window",
    "suitable_servers",
    "topology_description",
}
KNOWN_FIELDS |= {"error", "heartbeatFrequencyMS", "read_preference", "description"}


def server_from(spec: dict[str, Any]) -> ServerDescription:
    hello: dict[str, Any] = {"ok": 1, "tags": spec.get("tags", {})}
    hello["maxWireVersion"] = spec.get("maxWireVersion", 21)
    if "lastWrite" in spec:
        milliseconds = int(spec["lastWrite"]["lastWriteDate"]["$numberLong"])
        hello["lastWrite"] = {"lastWriteDate": datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)}
    rtt = spec.get("avg_rtt_ms")
    return ServerDescription(
        parse_address(spec["address"]),
        hello,
        None if rtt is None else rtt / 1000,
        server_type=getattr(SERVER_TYPE, spec["type"].replace("PossiblePrimary", "Unknown")),
        last_update_time=spec.get("lastUpdateTime", 0) / 1000,
    )


def topology_from(case: dict[str, Any]) -> TopologyDescription:
    spec = case["topology_description"]
    servers = {server.address: server for server in map(server_from, spec["servers"])}
    settings = TopologySettings(
        seeds=tuple(servers),
        listeners=EventListeners(),
        heartbeat_frequency=case.get("heartbeatFrequencyMS", 10_000) / 1000,
    )
    return TopologyDescription(getattr(TOPOLOGY_TYPE, spec["type"]), servers, "rs", None, None, settings)


def selector_from(case: dict[str, Any]) -> Any:
    if case.get("operation", "read") == "write":
        return WRITABLE
    spec = case.get("read_preference", {})
    mode = spec.get("mode", "Primary")
    tag_sets = spec.get("tag_sets") or None
    if tag_sets == [{}] and mode == "Primary":
        tag_sets = None
    staleness = spec.get("maxStalenessSeconds", -1)
    return make_read_preference(read_pref_mode_from_name(mode[0].lower() + mode[1:]), tag_sets, staleness)


def addresses(servers: list[Any]) -> set[Any]:
    return {server.address if isinstance(server, ServerDescription) else server for server in servers}


@pytest.mark.parametrize("case", files("selection"))
def test_suitable_servers_equal_official_case(case: dict[str, Any]) -> None:
    assert set(case) <= KNOWN_FIELDS
    topology = topology_from(case)
    deprioritized = frozenset(parse_address(each["address"]) for each in case.get("deprioritized_servers", ()))
    if case.get("error"):
        with pytest.raises((ConfigurationError, ValueError)):
            find_suitable_servers(topology, selector_from(case), deprioritized)
        return
    suitable = find_suitable_servers(topology, selector_from(case), deprioritized)
    assert addresses(suitable) == {parse_address(each["address"]) for each in case["suitable_servers"]}
    window = filter_by_latency(suitable, topology.settings.local_threshold)
    assert addresses(window) == {parse_address(each["address"]) for each in case["in_latency_window"]}


@pytest.mark.parametrize("case", files("round trip time"))
def test_average_round_trip_time_equals_official_case(case: dict[str, Any]) -> None:
    round_trip_time = RoundTripTime()
    if case["avg_rtt_ms"] != "NULL":
        round_trip_time.add_sample(case["avg_rtt_ms"])
    round_trip_time.add_sample(case["new_rtt_ms"])
    assert round_trip_time.average == pytest.approx(case["new_avg_rtt"])


class BusyServer:
    """Substitute for a server that executes `operation_count` operations, and for its pool."""

    def __init__(self, address: Any, operation_count: int) -> None:
        self.address = address
        self.pool = self
        self.operation_count = operation_count


@pytest.mark.parametrize("case", files("window"))
def test_selection_frequencies_in_latency_window_equal_official_case(case: dict[str, Any]) -> None:
    operation_counts = {each["address"]: each["operation_count"] for each in case["mocked_topology_state"]}
    window = filter_by_latency([server_from(each) for each in case["topology_description"]["servers"]], 0.015)
    servers: Any = [BusyServer(s.address, operation_counts[f"{s.address[0]}:{s.address[1]}"]) for s in window]
    selection_counts: Counter[str] = Counter()
    for _ in range(case["iterations"]):
        server = servers[0] if len(servers) == 1 else choose_less_busy(servers)
        selection_counts[f"{server.address[0]}:{server.address[1]}"] += 1
    tolerance = case["outcome"]["tolerance"]
    for address, expected in case["outcome"]["expected_frequencies"].items():
        frequency = selection_counts[address] / case["iterations"]
        if expected in (0, 1):
            assert frequency == expected
        else:
            assert frequency == pytest.approx(expected, abs=tolerance)
