"""The staleness of a secondary follows the formulas of the specification.

``maxStalenessSeconds`` has a minimum.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.read_preferences import Nearest
from gmongo.sdam.selection import suitable_servers
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology_description import TopologyDescription
from tests.sdam.harness import topology_with

EPOCH = datetime(2020, 1, 1)


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
