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
    with new_server() as server:
        try:
            with gevent.Timeout(_LIMIT):
                found = _played(server, outage)
        except gevent.Timeout:
            if server.revive():
                pytest.skip("it hangs, and answers PyMongo nothing but pings until it is started anew")
            raise
        for driver, outcome in found.items():
            stored = {each["_id"] for each in _collection(server, driver)}
            outcome["strange"] = set(outcome["strange"]) - _of_second_tries(server)
            outcome["lost"] = len(set(outcome.pop("acknowledged")) - stored)
            print(f"{driver}: {outcome}")
    ours, theirs = (found[driver] for driver in DRIVERS)
    assert ours["recovered"] or not theirs["recovered"]
    assert ours["strange"] <= theirs["strange"]
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


def _of_second_tries(server: Server) -> set[str]:
    """What a second try of a write may meet where writes are tried again: the first, which a server that was stopped
    runs at the same time. Each document is inserted once, so it is a duplicate of itself.
    """
    with pymongo.MongoClient(server.uri) as client:
        return {"DuplicateKeyError"} if "setName" in client.admin.command("isMaster") else set()


def _collection(server: Server, driver: str) -> list[Any]:
    with pymongo.MongoClient(server.uri) as client:
        return list(client.load[driver].find())
