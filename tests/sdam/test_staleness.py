"""The staleness of a secondary follows the formulas of the specification.

``maxStalenessSeconds`` has a minimum.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.read_preferences import Nearest, PrimaryPreferred, Secondary, SecondaryPreferred
from gmongo.sdam.selection import suitable_servers
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription
from tests.sdam.harness import topology_with

EPOCH = datetime(2020, 1, 1)
LIMIT, HEARTBEAT = 120, 10.0
# Ages of a member's last write in seconds. None means that the hello reply has no `lastWrite`.
AGES = (0, 109, 110, 111, None)
# Seconds between the last check of a member and the newest check of all members.
CHECKED = (0.0, 1.0)


def member_description(
    host: str, role_field: str, last_write_age: int | None, check_age: float = 0.0, zone: Any = None
) -> ServerDescription:
    date = None if last_write_age is None else EPOCH.replace(tzinfo=zone) - timedelta(seconds=last_write_age)
    hello: dict[str, Any] = {"ok": 1, "setName": "rs", "hosts": ["a", "b", "c"], "maxWireVersion": 25, role_field: True}
    if date is not None:
        hello["lastWrite"] = {"lastWriteDate": date}
    return ServerDescription((host, 27017), hello, 0.001, last_update_time=1000.0 - check_age)


def suitable_hosts(topology: TopologyDescription, preference: Any) -> list[str]:
    return [server.address[0] for server in suitable_servers(topology, preference, frozenset())]


@pytest.mark.parametrize("primary_age", [0, 20, None])
@pytest.mark.parametrize("primary_checked", CHECKED)
def test_staleness_in_set_with_primary_is_lag_behind_primary(primary_age: int | None, primary_checked: float) -> None:
    primary = member_description("a", "isWritablePrimary", primary_age, primary_checked)
    for age, checked in product(AGES, CHECKED):
        topology = topology_with(primary, member_description("b", "secondary", age, checked))
        staleness = HEARTBEAT
        if age is not None and primary_age is not None:  # the lag counts as 0 if a server has no `lastWrite`
            staleness += (age - checked) - (primary_age - primary_checked)
        fresh = staleness <= LIMIT
        assert suitable_hosts(topology, Secondary(max_staleness=LIMIT)) == (["b"] if fresh else [])
        assert suitable_hosts(topology, Nearest(max_staleness=LIMIT)) == (["a", "b"] if fresh else ["a"])
        assert suitable_hosts(topology, SecondaryPreferred(max_staleness=LIMIT)) == (["b"] if fresh else ["a"])
        assert suitable_hosts(topology, PrimaryPreferred(max_staleness=LIMIT)) == ["a"]
        assert suitable_hosts(topology, Secondary()) == ["b"]


def test_staleness_in_set_without_primary_is_lag_behind_newest_secondary() -> None:
    for ages in product(AGES, repeat=3):
        topology = topology_with(
            *(member_description(host, "secondary", age) for host, age in zip("abc", ages, strict=True))
        )
        newest = min((age for age in ages if age is not None), default=0)
        expected = [
            host
            for host, age in zip("abc", ages, strict=True)
            if age is None or age - newest + HEARTBEAT <= LIMIT
        ]  # fmt: skip
        for preference in (Secondary, SecondaryPreferred, PrimaryPreferred, Nearest):
            assert suitable_hosts(topology, preference(max_staleness=LIMIT)) == expected


@pytest.mark.parametrize(
    ("limit", "options", "message"),
    [
        (90, "", None),
        (89, "", "maxStalenessSeconds is 89, but must be at least 90"),
        (20, "", "maxStalenessSeconds is 20, but must be at least 90"),
        (19, "", "maxStalenessSeconds is 19, but must be at least heartbeatFrequencyMS (10 s) plus 10 seconds"),
        (130, "&heartbeatFrequencyMS=120000", None),
        (
            129,
            "&heartbeatFrequencyMS=120000",
            "maxStalenessSeconds is 129, but must be at least heartbeatFrequencyMS (120 s) plus 10 seconds",
        ),
    ],
)
@pytest.mark.parametrize("role_field", ["isWritablePrimary", "secondary"])
def test_max_staleness_below_minimum_raises_configuration_error(
    limit: int, options: str, message: str | None, role_field: str
) -> None:
    uri = f"mongodb://a,b,c/?replicaSet=rs{options}"
    topology = topology_with(member_description("a", role_field, 0), uri=uri)
    if message is None:
        assert suitable_hosts(topology, Nearest(max_staleness=limit)) == ["a"]
    else:
        with pytest.raises(ConfigurationError) as caught:
            suitable_hosts(topology, Nearest(max_staleness=limit))
        assert str(caught.value) == message
