"""Summary of all processes: the totals, and for each problem its cause and its start time."""

from __future__ import annotations

from collections.abc import Iterator

from gmongo._documents import DocumentDict

_LONG_WAIT = 1000.0  # a wait of at least this duration in milliseconds is a problem
_PROBLEM_ORDER = (
    "does not answer",
    "no primary",
    "server unknown",
    "waiting for a server",
    "waiting for a connection",
    "no tokens for retries",
    "backing off",
)


def summary(states: list[DocumentDict]) -> DocumentDict:
    """Return the summary of all processes as JSON values.

    The field ``wrong`` is the list of problems, the most serious problem first. The other fields are
    totals of all processes. ``waiting`` is the number of operations that wait for a connection, and
    ``errors`` is the number of failed attempts of operations. A problem has these fields:

    - ``what``: the kind of the problem.
    - ``server``: the address of the server, or the name of the replica set.
    - ``in``: the IDs of the processes that have the problem.
    - ``count``: the number of clients or operations that have the problem.
    - ``sinceMS``: the age of the problem in milliseconds, or None for an unknown age.
    - ``event`` and ``error``: the event that began the problem, and a text about the cause.
    """
    clients = [client for state in states for client in state["clients"]]
    pools = [server["pool"] for client in clients for server in client["servers"] if server["pool"]]
    return {
        "wrong": merged_problems(states),
        "processes": len(states),
        "clients": len(clients),
        "inUse": sum(pool["inUse"] for pool in pools),
        "total": sum(pool["total"] for pool in pools),
        "waiting": sum(pool["waiting"] for pool in pools),
        "errors": sum(client["retries"]["errors"] for client in clients),
    }


def merged_problems(states: list[DocumentDict]) -> list[DocumentDict]:
    """Return the problems, the most serious problem first. Merge equal problems of several clients into one problem."""
    merged: dict[tuple[str, str, str], DocumentDict] = {}
    for state in states:
        for each in _problems(state):
            problem = merged.setdefault((each["what"], each["server"], each["error"]), {**each, "in": [], "count": 0})
            problem["count"] += each["count"]
            if state["process"] not in problem["in"]:
                problem["in"].append(state["process"])
            # A merged problem has the start time of its oldest instance.
            if (each["sinceMS"] or 0) > (problem["sinceMS"] or 0):
                problem.update(sinceMS=each["sinceMS"], event=each["event"])
    return sorted(merged.values(), key=lambda each: (_PROBLEM_ORDER.index(each["what"]), -(each["sinceMS"] or 0)))


def _problems(state: DocumentDict) -> Iterator[DocumentDict]:
    if "error" in state:
        yield _new_problem("does not answer", error=state["error"])
    for client in state["clients"]:
        yield from _primary_problems(client)
        yield from _server_problems(client)
        yield from _wait_problems(client)
        yield from _overload_problems(client)


def _new_problem(
    kind: str, server: str = "", count: int = 1, age: float | None = None, event: str = "", error: str = ""
) -> DocumentDict:
    return {"what": kind, "server": server, "count": count, "sinceMS": age, "event": event, "error": error}


def _primary_problems(client: DocumentDict) -> Iterator[DocumentDict]:
    if client["topology"] == "ReplicaSetNoPrimary":
        losses = [each for each in client["history"] if each["what"] in ("primary lost", "primary became unknown")]
        yield _new_problem("no primary", client["replicaSet"], **_latest_event(losses))


def _server_problems(client: DocumentDict) -> Iterator[DocumentDict]:
    for server in client["servers"]:
        # If an Unknown server has no error, its first heartbeat has not ended.
        if server["type"] == "Unknown" and server["error"]:
            events = [each for each in client["history"] if each["server"] == server["address"]]
            changes = [each for each in events if each["what"] != "check failed"]
            latest = _latest_event(changes or events)
            yield _new_problem("server unknown", server["address"], error=server["error"], **latest)


def _latest_event(events: list[DocumentDict]) -> DocumentDict:
    """Return the age and kind of the latest event, as keyword arguments for :func:`_new_problem`."""
    return {"age": events[0]["sinceMS"], "event": events[0]["what"]} if events else {}


def _wait_problems(client: DocumentDict) -> Iterator[DocumentDict]:
    selection_ages = [each["sinceMS"] for each in client["operations"] if each["phase"] == "server selection"]
    if selection_ages and max(selection_ages) >= _LONG_WAIT:
        yield _new_problem("waiting for a server", client["replicaSet"], len(selection_ages), max(selection_ages))
    for server in client["servers"]:
        pool = server["pool"]
        if pool and (pool["oldestWaitMS"] or 0) >= _LONG_WAIT:
            usage = f"{pool['inUse']} of {pool['maxPoolSize'] or 'any number of'} connections in use"
            age = pool["oldestWaitMS"]
            yield _new_problem("waiting for a connection", server["address"], pool["waiting"], age, error=usage)


def _overload_problems(client: DocumentDict) -> Iterator[DocumentDict]:
    backoff_ages = [each["sinceMS"] for each in client["operations"] if each["phase"] == "back-off"]
    if client["retries"]["tokens"] < 1:
        yield _new_problem("no tokens for retries", client["replicaSet"])
    if backoff_ages:
        yield _new_problem("backing off", client["replicaSet"], len(backoff_ages), max(backoff_ages))
