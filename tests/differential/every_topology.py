"""Comparison of the topology states of gmongo and PyMongo.

The exploration applies all sequences of a limited number of server checks to a topology of each
driver. The result of a check is a hello reply or an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from bson import ObjectId
from pymongo import server_description as their_servers
from pymongo import topology_description as their_topologies
from pymongo.hello import Hello

from gmongo.sdam import transitions
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import initial_description
from gmongo.wire.address import Address

A, B, C = [(f"h{number}", 27017) for number in (1, 2, 3)]
ELECTION_IDS = [ObjectId(f"{number:024x}") for number in (1, 2)]
_BASE = {"ok": 1, "minWireVersion": 0, "maxWireVersion": 25}


class Start(NamedTuple):
    """Options that determine the topology before the first server check."""

    seeds: tuple[Address, ...]
    replica_set_name: str | None = None
    direct: bool = False


STARTS = (
    Start((A,)),
    Start((A,), "rs"),
    Start((A, B)),
    Start((A, B), "rs"),
    Start((A,), "rs", True),
    Start((A,), None, True),
)


def check_results() -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield possible results of a server check: the result's name, and the hello reply or None for an
    error.
    """
    yield "error", None
    yield "standalone", {**_BASE, "isWritablePrimary": True}
    yield "mongos", {**_BASE, "isWritablePrimary": True, "msg": "isdbgrid"}
    yield "ghost", {**_BASE, "isreplicaset": True}
    for hosts in ((A, B), (A, B, C), (B,)):
        member = {**_BASE, "setName": "rs", "hosts": [_address_text(host) for host in hosts]}
        for fields in _election_fields():
            # From wire version 17, drivers compare electionId before setVersion.
            for wire_version in (13, 25):
                election_text = " ".join(map(str, fields.values())) or "without election"
                yield (
                    f"primary of {len(hosts)}, {election_text}, wire version {wire_version}",
                    {**member, **fields, "maxWireVersion": wire_version, "isWritablePrimary": True},
                )
        yield f"secondary of {len(hosts)}", {**member, "secondary": True}
        yield (
            f"secondary of {len(hosts)} with known primary",
            {**member, "secondary": True, "primary": _address_text(B)},
        )
        yield (
            f"secondary of {len(hosts)} with other address",
            {**member, "secondary": True, "me": "x:1"},
        )
    member = {**_BASE, "setName": "rs", "hosts": [_address_text(A), _address_text(B)]}
    yield "arbiter", {**member, "arbiterOnly": True}
    yield "hidden member", {**member, "hidden": True}
    yield "secondary of another set", {**member, "setName": "no", "secondary": True}
    yield (
        "primary of another set",
        {**member, "setName": "no", "isWritablePrimary": True, "setVersion": 1},
    )


def _election_fields() -> Iterator[dict[str, Any]]:
    for version, election_index in ((1, 0), (1, 1), (2, 0)):
        yield {"setVersion": version, "electionId": ELECTION_IDS[election_index]}
    yield {}
    yield {"setVersion": 2}


def _address_text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


class DescriptionPair(NamedTuple):
    """Topology descriptions of gmongo and PyMongo after equal results of server checks."""

    ours: Any
    theirs: Any

    def after_check(self, address: Address, hello: dict[str, Any] | None) -> DescriptionPair:
        """Return both descriptions after a check of one member with the given result."""
        reply = None if hello is None else Hello(dict(hello))
        return DescriptionPair(
            transitions.update_topology(self.ours, ServerDescription(address, hello)),
            their_topologies.updated_topology_description(self.theirs, their_servers.ServerDescription(address, reply)),
        )

    def views(self) -> tuple[Any, Any]:
        """Return a view of each description. Pairs with equal views have equal states."""
        return _comparable_topology(self.ours), _comparable_topology(self.theirs)


def _comparable_topology(description: Any) -> Any:
    servers = description.server_descriptions().items()
    return (
        description.topology_type_name,
        description.replica_set_name,
        description.max_set_version,
        str(description.max_election_id),
        tuple(sorted((address, server.server_type_name) for address, server in servers)),
    )


def initial_descriptions(start: Start) -> DescriptionPair:
    """Return both descriptions before the first server check."""
    ours = initial_description(
        TopologySettings(
            seeds=start.seeds,
            listeners=None,  # type: ignore[arg-type]
            replica_set_name=start.replica_set_name,
            direct_connection=start.direct,
        )
    )
    settings = SimpleNamespace(
        seeds=set(start.seeds),
        direct=start.direct,
        heartbeat_frequency=10,
        _topology_id=None,
        local_threshold_ms=15,
    )
    kind = their_topologies.TOPOLOGY_TYPE.Unknown
    if start.direct:
        kind = their_topologies.TOPOLOGY_TYPE.Single
    elif start.replica_set_name is not None:
        kind = their_topologies.TOPOLOGY_TYPE.ReplicaSetNoPrimary
    servers = {seed: their_servers.ServerDescription(seed) for seed in start.seeds}
    description = their_topologies.TopologyDescription(kind, servers, start.replica_set_name, None, None, settings)
    return DescriptionPair(ours, description)


class Exploration(NamedTuple):
    """Result of an exploration: counts, and the shortest sequence that leads to each violation."""

    state_count: int
    step_count: int
    violations: dict[str, str]


def explore(start: Start, depth: int) -> Exploration:
    """Apply every sequence of at most `depth` checks.

    If several sequences lead to equal states, continue only from the first sequence.
    """
    results = list(check_results())
    seen_states: set[Any] = set()
    violations: dict[str, str] = {}
    step_count = 0
    paths: deque[tuple[DescriptionPair, tuple[str, ...]]] = deque([(initial_descriptions(start), ())])
    while paths:
        before, path = paths.popleft()
        for address in sorted(before.ours.server_descriptions()) if len(path) < depth else ():
            for name, hello in results:
                after = before.after_check(address, hello)
                step_count += 1
                ours, theirs = after.views()
                fault = _difference(ours, theirs)
                if fault is not None:
                    violations.setdefault(fault, " · ".join((*path, f"{address[0]}: {name}")) + f"\n{ours}\n{theirs}")
                elif ours not in seen_states:
                    seen_states.add(ours)
                    paths.append((after, (*path, f"{address[0]}: {name}")))
    return Exploration(len(seen_states), step_count, violations)


def _difference(ours: Any, theirs: Any) -> str | None:
    if ours != theirs:
        return "the drivers differ"
    topology_type, *_, servers = ours
    primary_count = sum(server == "RSPrimary" for _, server in servers)
    if primary_count > 1:
        return "two primaries"
    if topology_type != "Single" and (primary_count == 1) != (topology_type == "ReplicaSetWithPrimary"):
        return "the topology type contradicts the number of primaries"
    return None
