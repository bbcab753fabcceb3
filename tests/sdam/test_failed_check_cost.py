"""A failed check calls few functions, because checks fail frequently during an outage."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from gevent import getcurrent

from gmongo import MongoClient
from gmongo.sdam.monitor import Monitor
from gmongo.testing import Deployment
from tests.support.wait import eventually

LIMIT = 150


def count_calls_in(check_method: Any, counts: list[Counter[str]]) -> Any:
    """Wrap a method of a monitor so that each call appends a counter of the called gmongo functions
    to `counts`.
    """

    def check_and_count_calls(monitor: Monitor) -> bool:
        greenlet, entered = getcurrent(), Counter[str]()

        def record_call(frame: FrameType, event: str, _argument: Any) -> None:
            module = str(frame.f_globals.get("__name__"))
            driver = module.startswith("gmongo.") and not module.startswith("gmongo.testing.")
            if event == "call" and driver and getcurrent() is greenlet:
                entered[f"{module}.{frame.f_code.co_name}"] += 1

        sys.setprofile(record_call)
        try:
            result: bool = check_method(monitor)
        finally:
            sys.setprofile(None)
        counts.append(entered)
        return result

    return check_and_count_calls


@pytest.mark.skipif(
    sys.getprofile() is not None or sys.version_info >= (3, 12), reason="counted on Python 3.10 and 3.11"
)
@pytest.mark.parametrize("is_primary", [True, False])
def test_failed_check_calls_less_than_150_functions(is_primary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"heartbeatFrequencyMS": 600_000, "serverMonitoringMode": "poll"}
    with Deployment.replica_set(members=3) as deployment, MongoClient[Any](deployment.uri, **options) as client:
        topology = client._topology
        client.admin.command("ping")
        eventually(lambda: len(topology.description.known_servers) == 3)
        member = next(each for each in deployment.members if (each is deployment.members.primary) is is_primary)
        host, _, port = member.address.partition(":")
        server = topology.servers[host, int(port)]
        member.kill()
        counts: list[Counter[str]] = []
        monkeypatch.setattr(Monitor, "_check_and_report", count_calls_in(Monitor._check_and_report, counts))
        server.request_check()
        eventually(lambda: server.address not in {each.address for each in topology.description.known_servers})
        eventually(lambda: bool(counts))
    assert 0 < counts[0].total() < LIMIT, counts[0].most_common(20)
