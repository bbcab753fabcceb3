"""An engine is killed, or stopped, under load: gmongo comes through it no worse than PyMongo does."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gevent
import pymongo
import pytest

from tests.gevent.beside.playing import DRIVERS, Player

from .engine import MissingEngineError, Server

_LIMIT = 100
_AWAY = 2.5  # longer than each limit of the drivers


def _killed(server: Server) -> None:
    server.kill()
    gevent.sleep(_AWAY)
    server.start()


def _stopped(server: Server) -> None:
    server.signal(signal.SIGSTOP)
    gevent.sleep(_AWAY)
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize("outage", [_killed, _stopped])
def test_an_outage_under_load(new_server: Callable[[], Server], outage: Callable[[Server], None]) -> None:
    with gevent.Timeout(_LIMIT), new_server() as server:
        found = _played(server, outage)
        for driver, outcome in found.items():
            stored = {each["_id"] for each in _collection(server, driver)}
            outcome["lost"] = len(set(outcome.pop("acknowledged")) - stored)
            print(f"{driver}: {outcome}")
    ours, theirs = (found[driver] for driver in DRIVERS)
    assert ours["recovered"] or not theirs["recovered"]
    assert set(ours["strange"]) <= set(theirs["strange"])
    assert not ours["lost"] or theirs["lost"]


def _played(server: Server, outage: Callable[[Server], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        players = {driver: stack.enter_context(Player("load", driver, server.uri)) for driver in DRIVERS}
        for player in players.values():
            assert player.line() == "at work", player.complaints
        try:
            outage(server)
        except MissingEngineError as missing:
            pytest.skip(f"once killed, it does not start with its data: {missing}")
        for player in players.values():
            player.go_on()
        return {driver: json.loads(player.line()) for driver, player in players.items()}


def _collection(server: Server, driver: str) -> list[Any]:
    with pymongo.MongoClient(server.uri) as client:
        return list(client.load[driver].find())
