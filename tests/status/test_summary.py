"""The summary of the states of all processes lists problems."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo import MongoClient
from gmongo.status import process_state
from gmongo.status.summary import merged_problems, summary
from gmongo.testing import Deployment
from tests.status.states import EVENT, OPERATION, POOL, RETRIES, SERVER, UNKNOWN_SERVER, client, silent_state, state
from tests.support.wait import eventually


def history_event(kind: str, age_ms: float, server: str = "h:1") -> dict[str, Any]:
    return {**EVENT, "what": kind, "server": server, "agoMS": age_ms, "sinceMS": age_ms}


NO_PRIMARY = {"topology": "ReplicaSetNoPrimary", "replicaSet": "rs"}
WAITS = [("server selection", 1000.0), ("server selection", 10.0), ("back-off", 2000.0), ("back-off", 1.0)]
LONG_WAIT, SHORT_WAIT = {"oldestWaitMS": 1000.0}, {"oldestWaitMS": 999.0}
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "no problem": (client(), []),
    "server not checked yet": (client(servers=[{**UNKNOWN_SERVER, "error": ""}]), []),
    "server never available": (client(servers=[UNKNOWN_SERVER]), [("server unknown", "h:1", 1, None, "", "refused")]),
    "lost server with failed check": (
        client(
            servers=[UNKNOWN_SERVER],
            history=[history_event("check failed", 3.0), history_event("primary became unknown", 9.0)],
        ),
        [("server unknown", "h:1", 1, 9.0, "primary became unknown", "refused")],
    ),
    "history with failed checks only": (
        client(
            servers=[UNKNOWN_SERVER],
            history=[history_event("check failed", 3.0), history_event("joined", 9.0, "h:2")],
        ),
        [("server unknown", "h:1", 1, 3.0, "check failed", "refused")],
    ),
    "no primary": (
        client(
            **NO_PRIMARY,
            history=[history_event("joined", 1.0), *(history_event("primary lost", each) for each in (5.0, 9.0))],
        ),
        [("no primary", "rs", 1, 5.0, "primary lost", "")],
    ),
    "no primary since the start": (client(**NO_PRIMARY), [("no primary", "rs", 1, None, "", "")]),
    "long wait for a connection": (
        client(servers=[{**SERVER, "pool": {**POOL, **LONG_WAIT}}]),
        [("waiting for a connection", "h:1", 4, 1000.0, "", "1 of 9 connections in use")],
    ),
    "short wait for a connection": (client(servers=[{**SERVER, "pool": {**POOL, **SHORT_WAIT}}]), []),
    "long wait for a server": (
        client(operations=[{**OPERATION, "phase": "server selection", "sinceMS": each} for each in (2000.0, 10.0)]),
        [("waiting for a server", "", 2, 2000.0, "", "")],
    ),
    "short wait for a server": (client(operations=[{**OPERATION, "phase": "server selection", "sinceMS": 999.0}]), []),
    "overload": (
        client(operations=[{**OPERATION, "phase": "back-off"}], retries={**RETRIES, "tokens": 0.9}),
        [("no tokens for retries", "", 1, None, "", ""), ("backing off", "", 1, 20.0, "", "")],
    ),
    "known server": (client(servers=[{**SERVER, "error": "refused"}], retries={**RETRIES, "tokens": 1}), []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_summary_lists_problems_of_client_state(name: str) -> None:
    client_state, expected = CASES[name]
    problems = merged_problems([state(client_state)])
    assert [(each["what"], each["server"], each["count"], *_problem_details(each)) for each in problems] == expected
    assert all(each["in"] == [12] for each in problems)


def _problem_details(problem: dict[str, Any]) -> tuple[Any, ...]:
    return problem["sinceMS"], problem["event"], problem["error"]


def test_equal_problems_of_processes_are_merged_with_longest_duration() -> None:
    client_states = [
        client(servers=[UNKNOWN_SERVER], history=[history_event(f"lost {each}", each)] if each else [])
        for each in (0.0, 0.25, 0.5, 0.25, 0.0)
    ]
    (problem,) = merged_problems([state(*client_states[:2]), state(*client_states[2:], process=13)])
    assert (problem["in"], problem["count"], problem["sinceMS"]) == ([12, 13], 5, 0.5)
    assert problem["event"] == "lost 0.5"


def test_problems_are_sorted_by_severity() -> None:
    lost_servers = [{**UNKNOWN_SERVER, "address": f"h:{number}"} for number in range(1, 4)]
    lost_events = [history_event("lost", age, f"h:{number}") for number, age in ((2, 0.5), (3, 0.75))]
    overloaded_client = client(
        replicaSet="rs",
        servers=[SERVER, {**SERVER, "address": "h:2", "pool": {**POOL, **LONG_WAIT}}],
        operations=[{**OPERATION, "phase": phase, "sinceMS": age} for phase, age in WAITS],
        retries={**RETRIES, "tokens": 0.9},
    )
    no_primary = client(**NO_PRIMARY, servers=lost_servers, history=lost_events)
    problems = merged_problems([state(overloaded_client), state(no_primary), silent_state("13")])
    assert [(each["what"], each["server"], each["count"], each["sinceMS"]) for each in problems] == [
        ("does not answer", "", 1, None),
        ("no primary", "rs", 1, None),
        *(("server unknown", server, 1, age) for server, age in (("h:3", 0.75), ("h:2", 0.5), ("h:1", None))),
        ("waiting for a server", "rs", 2, 1000.0),
        ("waiting for a connection", "h:2", 4, 1000.0),
        ("no tokens for retries", "rs", 1, None),
        ("backing off", "rs", 2, 2000.0),
    ]


def test_summary_contains_sums_of_numbers_of_all_processes() -> None:
    totals = summary([state(client(), client(servers=[SERVER, UNKNOWN_SERVER])), state(client()), silent_state("13")])
    del totals["wrong"]
    assert totals == {"processes": 3, "clients": 3, "inUse": 3, "total": 18, "waiting": 12, "errors": 21}


def test_lost_primary_is_a_problem_until_its_restart() -> None:
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient(deployment.uri, retryWrites=False) as mongo_client,
    ):
        mongo_client.shop.orders.insert_one({})

        def problems() -> list[dict[str, Any]]:
            clients = [each for each in process_state()["clients"] if each["number"] == mongo_client._executor.number]
            return merged_problems([{"process": 1, "clients": clients}])

        assert problems() == []
        deployment.members[0].kill()
        problems_by_kind = eventually(lambda: {each["what"]: each for each in problems()})
        assert set(problems_by_kind) == {"no primary", "server unknown"}
        assert [each["event"] for each in problems_by_kind.values()] == ["primary became unknown"] * 2
        assert problems_by_kind["server unknown"]["server"] == deployment.members[0].address
        waiting = gevent.spawn(mongo_client.shop.orders.insert_one, {})
        deployment.members[0].restart()
        waiting.get(timeout=20)
        eventually(lambda: problems() == [])


def test_errors_of_client_state_count_failed_attempts() -> None:
    with Deployment.replica_set(members=1) as deployment, MongoClient(deployment.uri) as mongo_client:
        mongo_client.shop.orders.insert_one({"_id": 1})
        deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": ["find"], "errorCode": 89})
        mongo_client.shop.orders.find_one()
        with pytest.raises(Exception, match="duplicate"):
            mongo_client.shop.orders.insert_one({"_id": 1})
        (client_state,) = [
            each for each in process_state()["clients"] if each["number"] == mongo_client._executor.number
        ]
        assert client_state["retries"]["errors"] == 2


def test_requests_of_client_are_counted_for_the_process() -> None:
    with Deployment.standalone() as deployment, MongoClient(deployment.uri) as mongo_client:
        mongo_client.shop.orders.find_one()
        before = process_state()["requests"]
        for _ in range(10):
            mongo_client.shop.orders.find_one()
        assert process_state()["requests"] >= before + 11
