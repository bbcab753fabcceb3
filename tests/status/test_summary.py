"""What is wrong in all processes together: what is said of it, and that nothing is said of what is well."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.status import process_state
from gmongo.status.summary import summary, wrong
from gmongo.testing import Deployment
from tests.status.states import EVENT, LOST, OPERATION, POOL, RETRIES, SERVER, client, silent, state
from tests.support.wait import eventually


def event(what: str, since: float, server: str = "h:1") -> dict[str, Any]:
    return {**EVENT, "what": what, "server": server, "agoMS": since, "sinceMS": since}


NO_PRIMARY = {"topology": "ReplicaSetNoPrimary", "replicaSet": "rs"}
LONG, SHORT = {"oldestWaitMS": 1000.0}, {"oldestWaitMS": 999.0}
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "nothing": (client(), []),
    "not checked yet": (client(servers=[{**LOST, "error": ""}]), []),
    "never seen": (client(servers=[LOST]), [("server unknown", "h:1", 1, None, "", "refused")]),
    "lost, and checked in vain since": (
        client(servers=[LOST], history=[event("check failed", 3.0), event("primary became unknown", 9.0)]),
        [("server unknown", "h:1", 1, 9.0, "primary became unknown", "refused")],
    ),
    "only failed checks are remembered": (
        client(servers=[LOST], history=[event("check failed", 3.0), event("joined", 9.0, "h:2")]),
        [("server unknown", "h:1", 1, 3.0, "check failed", "refused")],
    ),
    "no primary": (
        client(**NO_PRIMARY, history=[event("joined", 1.0), *(event("primary lost", each) for each in (5.0, 9.0))]),
        [("no primary", "rs", 1, 5.0, "primary lost", "")],
    ),
    "there never was one": (client(**NO_PRIMARY), [("no primary", "rs", 1, None, "", "")]),
    "a wait for a connection": (
        client(servers=[{**SERVER, "pool": {**POOL, **LONG}}]),
        [("waiting for a connection", "h:1", 4, 1000.0, "", "1 of 9 connections in use")],
    ),
    "a short one": (client(servers=[{**SERVER, "pool": {**POOL, **SHORT}}]), []),
    "a wait for a server": (
        client(operations=[{**OPERATION, "phase": "server selection", "sinceMS": each} for each in (2000.0, 10.0)]),
        [("waiting for a server", "", 2, 2000.0, "", "")],
    ),
    "short waits for a server": (client(operations=[{**OPERATION, "phase": "server selection", "sinceMS": 999.0}]), []),
    "overload": (
        client(operations=[{**OPERATION, "phase": "back-off"}], retries={**RETRIES, "tokens": 0.9}),
        [("no tokens for retries", "", 1, None, "", ""), ("backing off", "", 1, 20.0, "", "")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_with_a_client(name: str) -> None:
    shown, expected = CASES[name]
    found = wrong([state(shown)])
    assert [(each["what"], each["server"], each["count"], *_why(each)) for each in found] == expected
    assert all(each["in"] == [12] for each in found)


def _why(found: dict[str, Any]) -> tuple[Any, ...]:
    return found["sinceMS"], found["event"], found["error"]


def test_the_same_in_several_processes_is_one_since_the_first_of_them() -> None:
    lost = [client(servers=[LOST], history=[event("became Unknown", each)]) for each in (3.0, 9.0, 5.0)]
    (found,) = wrong([state(*lost[:2]), state(lost[2], process=13)])
    assert (found["in"], found["count"], found["sinceMS"]) == ([12, 13], 3, 9.0)


def test_the_worst_comes_first() -> None:
    states = [
        state(client(operations=[{**OPERATION, "phase": "back-off"}])),
        state(client(**NO_PRIMARY, servers=[LOST])),
        silent("13"),
    ]
    assert [each["what"] for each in wrong(states)] == [
        "does not answer",
        "no primary",
        "server unknown",
        "backing off",
    ]


def test_the_numbers_of_all_processes() -> None:
    found = summary([state(client(), client(servers=[SERVER, LOST])), state(client()), silent("13")])
    del found["wrong"]
    assert found == {"processes": 3, "clients": 3, "inUse": 3, "total": 18, "waiting": 12, "errors": 21}


def test_a_replica_set_that_loses_its_primary() -> None:
    with Deployment.replica_set(members=1) as deployment, MongoClient(deployment.uri, retryWrites=False) as mine:
        mine.shop.orders.insert_one({})

        def found() -> list[dict[str, Any]]:
            clients = [each for each in process_state()["clients"] if each["number"] == mine._executor.number]
            return wrong([{"process": 1, "clients": clients}])

        assert found() == []
        deployment.members[0].kill()
        kinds = eventually(lambda: {each["what"]: each for each in found()})
        assert set(kinds) == {"no primary", "server unknown"}
        assert [each["event"] for each in kinds.values()] == ["primary became unknown"] * 2
        assert kinds["server unknown"]["server"] == deployment.members[0].address
        waiting = gevent.spawn(mine.shop.orders.insert_one, {})
        deployment.members[0].restart()
        waiting.get(timeout=20)
        eventually(lambda: found() == [])


def test_errors_are_tries_that_failed() -> None:
    with Deployment.replica_set(members=1) as deployment, MongoClient(deployment.uri) as mine:
        mine.shop.orders.insert_one({"_id": 1})
        deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": ["find"], "errorCode": 89})
        mine.shop.orders.find_one()
        with pytest.raises(Exception, match="duplicate"):
            mine.shop.orders.insert_one({"_id": 1})
        (shown,) = [each for each in process_state()["clients"] if each["number"] == mine._executor.number]
        assert shown["retries"]["errors"] == 2


def test_requests_are_counted_for_the_process() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as mine:
        mine.shop.orders.find_one()
        before = process_state()["requests"]
        for _ in range(10):
            mine.shop.orders.find_one()
        assert process_state()["requests"] >= before + 11
