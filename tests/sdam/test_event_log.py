"""The event log of a topology describes server changes and failed checks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from bson import ObjectId

from gmongo import _clock
from gmongo.sdam.event_log import EventLog
from gmongo.sdam.server_description import ServerDescription

ELECTION_1, ELECTION_2 = ObjectId("0" * 23 + "1"), ObjectId("0" * 23 + "2")
MEMBER_HELLO = {"ok": 1, "setName": "rs", "hosts": ["h:1"], "maxWireVersion": 21}
UNKNOWN: dict[str, Any] = {}
PRIMARY = {**MEMBER_HELLO, "isWritablePrimary": True, "electionId": ELECTION_1, "setVersion": 1}
REELECTED = {**PRIMARY, "electionId": ELECTION_2}
SECONDARY = {**MEMBER_HELLO, "secondary": True}
ARBITER = {**MEMBER_HELLO, "arbiterOnly": True}


def topology_description_of(*hellos: dict[str, Any] | None) -> Any:
    """Return a topology description with one server for each hello reply that is not None."""
    servers = {
        (f"h{number}", 1): ServerDescription((f"h{number}", 1), hello or None)
        for number, hello in enumerate(hellos)
        if hello is not None
    }
    return SimpleNamespace(server_descriptions=lambda: servers)


@pytest.mark.parametrize(
    ("before", "after", "expected_kinds"),
    [
        (UNKNOWN, UNKNOWN, []),
        (UNKNOWN, PRIMARY, ["found: primary"]),
        (UNKNOWN, SECONDARY, ["found: RSSecondary"]),
        (SECONDARY, PRIMARY, ["elected primary"]),
        (PRIMARY, PRIMARY, []),
        (PRIMARY, REELECTED, ["elected again"]),
        (PRIMARY, SECONDARY, ["primary lost"]),
        (PRIMARY, UNKNOWN, ["primary became unknown"]),
        (SECONDARY, SECONDARY, []),
        (SECONDARY, {**SECONDARY, "electionId": ELECTION_1}, []),
        (SECONDARY, ARBITER, ["became RSArbiter"]),
        (SECONDARY, UNKNOWN, ["became Unknown"]),
        (None, UNKNOWN, ["joined"]),
        (None, PRIMARY, ["joined"]),
        (PRIMARY, None, ["left"]),
    ],
)
def test_server_change_adds_event_of_expected_kind(before: Any, after: Any, expected_kinds: list[str]) -> None:
    history = EventLog()
    history.record_changes(
        topology_description_of(before).server_descriptions(),
        topology_description_of(after).server_descriptions(),
    )
    assert [(each.kind, each.address, each.event_count) for each in history.events] == [
        (kind, ("h0", 1), 1) for kind in expected_kinds
    ]


def test_repeated_failure_of_server_increments_count_of_last_event() -> None:
    history = EventLog()
    failures = [ServerDescription(("h0", 1), error=error) for error in (OSError(), OSError(), ValueError(), OSError())]
    other = ServerDescription(("h1", 1), error=OSError())
    for each in (failures[0], other, *failures[1:]):
        history.record_failed_check(each)
    assert [(each.address[0], type(each.error), each.event_count) for each in history.events] == [
        ("h1", OSError, 1),
        ("h0", OSError, 2),
        ("h0", ValueError, 1),
        ("h0", OSError, 1),
    ]


def test_event_of_repeated_failure_has_first_and_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    history = EventLog()
    for moment in (3.0, 5.0, 9.0):
        monkeypatch.setattr(_clock, "monotonic", lambda moment=moment: moment)
        history.record_failed_check(ServerDescription(("h0", 1), error=OSError()))
    (event,) = history.events
    assert (event.first_moment, event.moment) == (3.0, 9.0)


def test_event_about_unknown_server_has_error() -> None:
    history, error = EventLog(), OSError("x")
    before = {("h0", 1): ServerDescription(("h0", 1), PRIMARY)}
    history.record_changes(before, {("h0", 1): ServerDescription(("h0", 1), error=error)})
    assert [(each.kind, each.error) for each in history.events] == [("primary became unknown", error)]


def test_event_log_keeps_last_100_events() -> None:
    history = EventLog()
    for number in range(150):
        history.record_failed_check(ServerDescription((f"h{number}", 1), error=OSError()))
    assert [each.address[0] for each in history.events] == [f"h{number}" for number in range(50, 150)]
