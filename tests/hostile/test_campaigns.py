"""Tests that run short campaigns, and tests that the campaigns detect defects of the driver.

``python -m tests.hostile`` runs long campaigns.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gmongo.cmap.connection import Connection
from gmongo.engines.server_cursor import ServerCursor
from gmongo.execution import command
from gmongo.wire import message, transport
from tests.hostile.__main__ import main
from tests.hostile.late_replies import LateReplies
from tests.hostile.malformed_hellos import MalformedHellos, resource_counts
from tests.hostile.malformed_replies import MalformedReplies
from tests.hostile.soak import TOPOLOGIES, Soak, Step

# The tests run in real time, because the soak test forks processes.
pytestmark = [pytest.mark.long, pytest.mark.real_time]

SEED = 19


def test_malformed_replies_raise_documented_errors_and_client_recovers() -> None:
    findings = MalformedReplies(SEED).run(4000)
    assert not findings.violations, findings.report()
    assert findings.outcomes["ProtocolError"] > 1000
    assert findings.outcomes["none"] > 1000


def test_damaged_reply_bytes_raise_documented_errors_and_client_recovers() -> None:
    findings = MalformedReplies(SEED, share_of_damage=0.7).run(600)
    assert not findings.violations, findings.report()
    assert findings.outcomes["ProtocolError"] > 100


def test_client_recovers_from_malformed_hellos() -> None:
    findings = MalformedHellos(SEED).run(600)
    assert not findings.violations, findings.report()
    assert findings.case_count == 600


def test_late_replies_are_not_returned_to_other_operations() -> None:
    findings = LateReplies(SEED, interrupts_per_step=800).run(4000)
    assert not findings.violations, findings.report()
    assert findings.outcomes["late replies read"] > 500
    assert findings.outcomes["late replies given up"] > 20
    assert findings.outcomes["right replies"] > 500


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_soak_without_garbage_collector_violates_no_invariant(topology: str) -> None:
    soak = Soak(topology, SEED, interrupts_per_step=1000)
    findings = soak.run(2000)
    assert not findings.violations, findings.report()
    assert soak.interrupt_count >= 2000
    assert soak.command_count > 500


def test_campaign_with_equal_seed_and_case_number_has_equal_outcomes() -> None:
    first_run, second_run = (MalformedReplies(SEED).run(50, first_number=100) for _ in range(2))
    assert first_run.outcomes == second_run.outcomes


def test_command_line_runs_campaign_and_soak(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replies", "--cases", "30", "--seed", "5", "--first", "7"]) == 0
    assert "replies: 30 cases, seed 5, 0 violations" in capsys.readouterr().out
    assert main(["soak", "--topology", "standalone", "--cases", "1", "--seed", "5"]) == 0
    assert "soak standalone: 1 cases, seed 5, 0 violations" in capsys.readouterr().out


# Each following test adds a defect to the driver or to a step. The campaign must detect the defect.


def test_campaign_detects_unchecked_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "malformed_reply_error", lambda failure, operation: failure)
    monkeypatch.setattr(command, "raise_error_of", lambda reply, *_: reply.get("errmsg", "").lower())
    assert MalformedReplies(SEED).run(500).violations


def test_campaign_detects_unread_late_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    def skip_read(self: Connection, seconds: float, max_bytes: int) -> None:
        self.mid_message, self.error, self.late_reply_handler, self.unanswered_request_id = False, None, None, None

    monkeypatch.setattr(Connection, "read_late_reply", skip_read)
    monkeypatch.setattr(
        transport, "decode_header", lambda view, at, most, *request_ids: message._HEADER.unpack_from(view, at)
    )
    monkeypatch.setattr(transport, "read_beginning", _read_with_wrong_length)
    # Repeat the campaign, because only the timing decides whether a request reads a late reply.
    for attempt in range(10):
        results = LateReplies(SEED + attempt, interrupts_per_step=300).run(300)
        if any("got the reply to" in what for _, what in results.violations):
            return
    pytest.fail(results.report())


def _read_with_wrong_length(view: memoryview) -> tuple[int, ...]:
    # With the wrong message length 0, the driver avoids the fast path, which checks the request ID.
    return (0, *message.read_beginning(view)[1:])


def test_soak_detects_unreleased_pinned_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep_cursor(self: ServerCursor, error: BaseException) -> bool:
        kept_cursors.append(self)
        return False

    kept_cursors: list[ServerCursor] = []
    monkeypatch.setattr(ServerCursor, "_handle_failure", keep_cursor)
    assert Soak("load-balanced", SEED, interrupts_per_step=500).run(500).violations


def test_soak_detects_growth_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    retained_lists: list[list[int]] = []
    monkeypatch.setattr(Step, "run", lambda step: retained_lists.extend([] for _ in range(10_000)))
    monkeypatch.setattr(Step, "_checker", SimpleNamespace(command_count=0), raising=False)
    soak = Soak("standalone", SEED)
    for number in range(20):
        soak._step(number, resource_counts())
    assert any("objects rise" in fault for fault in soak.growth.faults())
