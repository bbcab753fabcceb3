"""The campaigns in small. ``python -m tests.hostile`` runs them in large."""

from __future__ import annotations

import random

import pytest

from gmongo.cmap.connection import Connection
from gmongo.engines.server_cursor import ServerCursor
from gmongo.execution import command
from tests.hostile.__main__ import main
from tests.hostile.hellos import Hellos
from tests.hostile.replies import Replies
from tests.hostile.soak import TOPOLOGIES, Soak

SEED = 19


def test_wrong_replies_give_documented_errors_and_a_client_that_works_afterwards() -> None:
    findings = Replies(SEED).run(4000)
    assert not findings.violations, findings.report()
    assert findings.outcomes["ProtocolError"] > 1000
    assert findings.outcomes["none"] > 1000


def test_damaged_bytes_do_no_more_harm() -> None:
    findings = Replies(SEED, share_of_damage=0.7).run(600)
    assert not findings.violations, findings.report()
    assert findings.outcomes["ProtocolError"] > 100


def test_a_client_finds_back_from_any_hello() -> None:
    findings = Hellos(SEED).run(600)
    assert not findings.violations, findings.report()
    assert findings.cases == 600


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_soak_with_the_collector_off(topology: str) -> None:
    soak = Soak(topology, SEED, interrupts_per_step=1000)
    findings = soak.run(2000)
    assert not findings.violations, findings.report()
    assert soak.interrupts >= 2000
    assert soak.events > 500


def test_a_case_is_the_same_whenever_it_is_run() -> None:
    one, other = Replies(SEED).run(50, first=100), Replies(SEED).run(50, first=100)
    assert one.outcomes == other.outcomes


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replies", "--cases", "30", "--seed", "5", "--first", "7"]) == 0
    assert "replies: 30 cases, seed 5, 0 violations" in capsys.readouterr().out
    assert main(["soak", "--topology", "standalone", "--cases", "1", "--seed", "5"]) == 0
    assert "soak standalone: 1 cases, seed 5, 0 violations" in capsys.readouterr().out


# The campaigns themselves are tried on drivers with the defects that they have to find.


def test_campaign_finds_an_unchecked_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "misread", lambda failure, operation: failure)
    monkeypatch.setattr(command, "raise_error_of", lambda reply, version: reply.get("errmsg", "").lower())
    assert Replies(SEED).run(500).violations


def test_campaign_finds_an_event_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(1)
    failed = command.CommandEvents.failed

    def forgetful(self: command.CommandEvents, *arguments: object) -> None:
        if choose.random() < 0.9:
            failed(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(command.CommandEvents, "failed", forgetful)
    assert Replies(SEED).run(200).violations


def test_soak_finds_a_pin_that_is_not_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(self: ServerCursor, error: BaseException) -> bool:
        _kept.append(self)
        return False

    _kept: list[ServerCursor] = []
    monkeypatch.setattr(ServerCursor, "_ended_quietly_by", keep)
    assert Soak("load-balanced", SEED, interrupts_per_step=500).run(500).violations


def test_soak_finds_locals_that_live_on(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Connection.exchange

    def cyclic(self: Connection, *arguments: object) -> object:
        kept: BaseException | None = None
        try:
            return exchange(self, *arguments)  # type: ignore[arg-type]
        except BaseException as error:
            kept = error
            raise
        finally:
            assert kept is None or kept.__traceback__

    monkeypatch.setattr(Connection, "exchange", cyclic)
    assert Soak("standalone", SEED, interrupts_per_step=300).run(300).violations
