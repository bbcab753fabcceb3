"""gevent's own WSGI server, in a process that is not patched."""

from __future__ import annotations

import pytest

from gmongo.testing import Deployment
from tests.support.wait import until

from .hosting import Load, assert_ends_with_requests_under_way, hosted

pytestmark = pytest.mark.long


@pytest.fixture
def deployment():
    with Deployment.replica_set(members=1) as deployment:
        yield deployment


@pytest.mark.parametrize("use", ["request", "import"])
def test_requests_under_load_and_under_way_at_the_end(deployment, tmp_path, use):
    with hosted(deployment, tmp_path / "log", "-m", "tests.apps.application", HOSTED_USE=use) as host:
        port = host.port()
        with Load(port) as load:
            until(load.lately)
        assert set(load.answered_by) == {host.process.pid}
        assert_ends_with_requests_under_way(deployment, host, port)
        assert host.trouble == []
