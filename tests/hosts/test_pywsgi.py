"""gevent's own WSGI server, in a process that is not patched."""

from __future__ import annotations

import gevent
import pytest

from gmongo.testing import Deployment

from .hosting import Load, connections, get, hosted, until


@pytest.fixture
def deployment():
    with Deployment.replica_set(members=1) as deployment:
        yield deployment


@pytest.mark.parametrize("use", ["request", "import"])
def test_requests_under_load_and_under_way_at_the_end(deployment, tmp_path, use):
    with hosted(deployment, tmp_path / "log", "-m", "tests.hosts.application", HOSTED_USE=use) as host:
        port = host.port()
        with Load(port) as load:
            until(load.lately)
        assert set(load.answered_by) == {host.process.pid}
        deployment.set_fail_point(
            "failCommand",
            {"times": 3},
            {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 300},
        )
        deployment.commands.clear()
        under_way = [gevent.spawn(get, port, f"late-{number}") for number in range(3)]
        until(lambda: len(deployment.commands.named("find")) >= 3)
        assert host.end() == 0
        assert [each.get()[1] for each in under_way] == ["late-0", "late-1", "late-2"]
        until(lambda: not connections(deployment))
        assert host.trouble == []
