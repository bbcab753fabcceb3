"""Tests of outages of an engine while gmongo and PyMongo write to the engine."""

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

_TIME_LIMIT = 100
_OUTAGE_SECONDS = 2.5  # longer than the socket and server selection timeouts of the clients


def _kill_and_restart(server: Server) -> None:
    server.kill()
    gevent.sleep(_OUTAGE_SECONDS)
    server.start()


def _suspend_and_resume(server: Server) -> None:
    server.signal(signal.SIGSTOP)
    gevent.sleep(_OUTAGE_SECONDS)
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize("outage", [_kill_and_restart, _suspend_and_resume])
def test_gmongo_recovers_from_outage_under_load_if_pymongo_recovers(
    new_server: Callable[[], Server], outage: Callable[[Server], None]
) -> None:
    with new_server() as server:
        try:
            with gevent.Timeout(_TIME_LIMIT):
                outcomes = _run_load(server, outage)
        except gevent.Timeout:
            if server.restart_if_hung():
                pytest.skip("the engine hung, and replied to PyMongo only after a restart")
            raise
        for driver, outcome in outcomes.items():
            stored_ids = {each["_id"] for each in _stored_documents(server, driver)}
            outcome["unexpected"] = set(outcome["unexpected"]) - _errors_of_retries(server)
            outcome["lost"] = len(set(outcome.pop("acknowledged")) - stored_ids)
            print(f"{driver}: {outcome}")
    ours, theirs = (outcomes[driver] for driver in DRIVERS)
    assert ours["recovered"] or not theirs["recovered"]
    assert ours["unexpected"] <= theirs["unexpected"]
    assert not ours["lost"] or theirs["lost"]


def _run_load(server: Server, outage: Callable[[Server], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        driver_processes = {
            driver: stack.enter_context(DriverProgram("outage_writes", driver, server.uri)) for driver in DRIVERS
        }
        for driver_process in driver_processes.values():
            assert driver_process.read_line() == "writing", driver_process.stderr
        try:
            outage(server)
        except MissingEngineError as missing:
            pytest.skip(f"the killed engine does not start with its data: {missing}")
        for driver_process in driver_processes.values():
            driver_process.send_line()
        return {driver: json.loads(driver_process.read_line()) for driver, driver_process in driver_processes.items()}


def _errors_of_retries(server: Server) -> set[str]:
    """Return the class names of the errors that a retry can raise on this server, although the driver is
    correct.

    When the suspended server resumes, the first attempt and the retry of an insert may run
    concurrently.
    """
    with pymongo.MongoClient(server.uri) as client:
        return {"DuplicateKeyError"} if "setName" in client.admin.command("isMaster") else set()


def _stored_documents(server: Server, driver: str) -> list[Any]:
    with pymongo.MongoClient(server.uri) as client:
        return list(client.outage[driver].find())
