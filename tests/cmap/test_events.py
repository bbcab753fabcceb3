"""Pool events and their listeners (CMAP-05, CMAP-06, CMAP-180 to CMAP-204)."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.errors import AutoReconnect
from tests.support.recorder import short_pool_event_name
from tests.support.server import cut_reply

EVENT_NAMES = {
    "PoolCreated", "PoolReady", "PoolCleared", "PoolClosed", "Created", "Ready", "Closed", "Started", "Failed",
    "CheckedOut", "CheckedIn",
}  # fmt: skip


def publish_all_events(client: Any, server: Any) -> None:
    """Run operations and cause errors, so that each pool event occurs at least once."""
    client.db.c.find_one()
    server.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect):
        client.db.c.find_one()
    with pytest.raises(AutoReconnect):
        client._topology.pools()[0].check_out()
    client.close()


@pytest.mark.requirement(
    "CMAP-05", "CMAP-48", "CMAP-49", "CMAP-180", "CMAP-181", "CMAP-182", "CMAP-183", "CMAP-184", "CMAP-185",
    "CMAP-186", "CMAP-187", "CMAP-190", "CMAP-195", "CMAP-196", "CMAP-200", "CMAP-202",
)  # fmt: skip
def test_listener_receives_all_pool_events(new_client: Any, server: Any, recorder: Any) -> None:
    publish_all_events(new_client(retryReads=False, maxPoolSize=9), server)
    assert {short_pool_event_name(event) for event in recorder.events} == EVENT_NAMES
    for event in recorder.events:
        assert event.address == server.address
        assert isinstance(getattr(event, "connection_id", 1), int)
        assert getattr(event, "duration", 0.0) >= 0
    assert recorder.events_named("PoolCreated")[0].options == {"maxPoolSize": 9}
    assert (
        recorder.events_named("PoolCleared")[0].service_id,
        recorder.events_named("PoolCleared")[0].interrupt_connections,
    ) == (
        None,
        False,
    )


@pytest.mark.requirement("CMAP-43", "CMAP-96", "CMAP-134", "CMAP-193")
def test_pool_cleared_event_precedes_check_in_of_failed_connection(new_client: Any, server: Any, recorder: Any) -> None:
    client = new_client(retryReads=False)
    client.db.c.find_one()
    recorder.clear()
    server.fail("find", cut_reply(0))
    with pytest.raises(AutoReconnect, match=rf"^{server.name}: connection closed by the server$"):
        client.db.c.find_one()
    assert recorder.event_lines[:5] == ["Started", "CheckedOut 1", "PoolCleared", "CheckedIn 1", "Closed 1 error"]
