"""What is wrong in all processes together, since when, and since which event."""

from __future__ import annotations

from collections.abc import Iterator

from gmongo._documents import DocumentDict

_LONG = 1000.0  # milliseconds of waiting that are too many
_WORST_FIRST = (
    "does not answer",
    "no primary",
    "server unknown",
    "waiting for a server",
    "waiting for a connection",
    "no tokens for retries",
    "backing off",
)


def summary(states: list[DocumentDict]) -> DocumentDict:
    """All processes together, as values that JSON has.

    A mapping with ``wrong`` (what is wrong, the worst first) and, of all processes together, ``processes``,
    ``clients``, the connections ``inUse`` and in ``total``, how many are ``waiting`` for one, and ``errors`` (tries
    that failed).

    Of what is wrong, ``what`` and ``server`` (or a replica set) say what and where, ``in`` in which processes, and
    ``count`` how many clients or operations it concerns. ``sinceMS`` (None if it is not known), ``event`` and
    ``error`` say since when, since which event, and why.

    :param states: as :func:`~gmongo.status.worker_states` returns them.
    """
    clients = [client for state in states for client in state["clients"]]
    pools = [server["pool"] for client in clients for server in client["servers"] if server["pool"]]
    return {
        "wrong": wrong(states),
        "processes": len(states),
        "clients": len(clients),
        **{name: sum(pool[name] for pool in pools) for name in ("inUse", "total", "waiting")},
        "errors": sum(client["retries"]["errors"] for client in clients),
    }


def wrong(states: list[DocumentDict]) -> list[DocumentDict]:
    """What is wrong, the worst first. The same thing in several processes and clients is one."""
    merged: dict[tuple[str, str, str], DocumentDict] = {}
    for state in states:
        for each in _of_process(state):
            known = merged.setdefault((each["what"], each["server"], each["error"]), {**each, "in": [], "count": 0})
            known["count"] += each["count"]
            if state["process"] not in known["in"]:
                known["in"].append(state["process"])
            if (each["sinceMS"] or 0) > (known["sinceMS"] or 0):  # it began with the first of them
                known.update(sinceMS=each["sinceMS"], event=each["event"])
    return sorted(merged.values(), key=lambda each: (_WORST_FIRST.index(each["what"]), -(each["sinceMS"] or 0)))


def _of_process(state: DocumentDict) -> Iterator[DocumentDict]:
    if "error" in state:
        yield _finding("does not answer", error=state["error"])
    for client in state["clients"]:
        yield from _without_primary(client)
        yield from _unknown(client)
        yield from _waiting(client)
        yield from _overloaded(client)


def _finding(
    what: str, server: str = "", count: int = 1, since: float | None = None, event: str = "", error: str = ""
) -> DocumentDict:
    return {"what": what, "server": server, "count": count, "sinceMS": since, "event": event, "error": error}


def _without_primary(client: DocumentDict) -> Iterator[DocumentDict]:
    if client["topology"] == "ReplicaSetNoPrimary":
        lost = [each for each in client["history"] if each["what"] in ("primary lost", "primary became unknown")]
        yield _finding("no primary", client["replicaSet"], **_since(lost))


def _unknown(client: DocumentDict) -> Iterator[DocumentDict]:
    for server in client["servers"]:
        if server["type"] == "Unknown" and server["error"]:  # without an error it has not been checked yet
            happened = [each for each in client["history"] if each["server"] == server["address"]]
            changes = [each for each in happened if each["what"] != "check failed"]
            yield _finding("server unknown", server["address"], error=server["error"], **_since(changes or happened))


def _since(happened: list[DocumentDict]) -> DocumentDict:
    """The latest of what has happened, if it is still known."""
    return {"since": happened[0]["sinceMS"], "event": happened[0]["what"]} if happened else {}


def _waiting(client: DocumentDict) -> Iterator[DocumentDict]:
    selecting = [each["sinceMS"] for each in client["operations"] if each["phase"] == "server selection"]
    if selecting and max(selecting) >= _LONG:
        yield _finding("waiting for a server", client["replicaSet"], len(selecting), max(selecting))
    for server in client["servers"]:
        pool = server["pool"]
        if pool and (pool["oldestWaitMS"] or 0) >= _LONG:
            held = f"{pool['inUse']} of {pool['maxPoolSize'] or 'any number of'} connections in use"
            yield _finding(
                "waiting for a connection", server["address"], pool["waiting"], pool["oldestWaitMS"], error=held
            )


def _overloaded(client: DocumentDict) -> Iterator[DocumentDict]:
    backing_off = [each["sinceMS"] for each in client["operations"] if each["phase"] == "back-off"]
    if client["retries"]["tokens"] < 1:
        yield _finding("no tokens for retries", client["replicaSet"])
    if backing_off:
        yield _finding("backing off", client["replicaSet"], len(backing_off), max(backing_off))
