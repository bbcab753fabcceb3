"""Outages of an engine under load, with gmongo and PyMongo."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import gevent
import pymongo
import pytest

from tests.gevent.comparison.driver_programs import DRIVERS, DriverProgram

from .engine import MissingEngineError, Server

_LIMIT = 100
_OUTAGE = 2.5  # Seconds, longer than each timeout of the drivers.


def _kill_and_restart(server: Server) -> None:
    server.kill()
    gevent.sleep(_OUTAGE)
    server.start()


def _stop_and_continue(server: Server) -> None:
    server.signal(signal.SIGSTOP)
    gevent.sleep(_OUTAGE)
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize("outage", [_kill_and_restart, _stop_and_continue])
def test_gmongo_recovers_from_outage_under_load_if_pymongo_recovers(
    new_server: Callable[[], Server], outage: Callable[[Server], None]
) -> None:
    with new_server() as server:
        try:
            with gevent.Timeout(_LIMIT):
                outcomes = _run_load(server, outage)
        except gevent.Timeout:
            if server.restart_if_hung():
                pytest.skip("the engine hangs, and replies to PyMongo's pings only until its restart")
            raise
        for driver, outcome in outcomes.items():
            stored = {each["_id"] for each in _collection(server, driver)}
            outcome["unexpected"] = set(outcome["unexpected"]) - _errors_of_retries(server)
            outcome["lost"] = len(set(outcome.pop("acknowledged")) - stored)
            print(f"{driver}: {outcome}")
    ours, theirs = (outcomes[driver] for driver in DRIVERS)
    assert ours["recovered"] or not theirs["recovered"]
    assert ours["unexpected"] <= theirs["unexpected"]
    assert not ours["lost"] or theirs["lost"]


def _run_load(server: Server, outage: Callable[[Server], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        players = {
            driver: stack.enter_context(DriverProgram("outage_writes", driver, server.uri)) for driver in DRIVERS
        }
        for player in players.values():
            assert player.line() == "writing", player.stderr
        try:
            outage(server)
        except MissingEngineError as missing:
            pytest.skip(f"the killed engine does not start with its data: {missing}")
        for player in players.values():
            player.send_line()
        return {driver: json.loads(player.line()) for driver, player in players.items()}


def _errors_of_retries(server: Server) -> set[str]:
    """Return the errors of a retry that runs at the same time as the first attempt on a continued server."""
    with pymongo.MongoClient(server.uri) as client:
        return {"DuplicateKeyError"} if "setName" in client.admin.command("isMaster") else set()


def _collection(server: Server, driver: str) -> list[Any]:
    with pymongo.MongoClient(server.uri) as client:
        return list(client.outage[driver].find())
