"""gevent's WSGI server serves the application in a process that gevent has not patched."""

from __future__ import annotations

import pytest

from tests.support.wait import until

from .hosting import Load, assert_pending_requests_are_answered_at_end, hosted

pytestmark = pytest.mark.long


@pytest.mark.parametrize("first_use", ["request", "import"])
def test_pywsgi_answers_all_requests_before_end(deployment, tmp_path, first_use):
    with hosted(deployment, tmp_path / "log", "-m", "tests.apps.application", HOSTED_USE=first_use) as host:
        port = host.port()
        with Load(port) as load:
            until(load.recent_process_ids)
        assert set(load.answered_by) == {host.process.pid}
        assert_pending_requests_are_answered_at_end(deployment, host, port)
        assert host.warnings_and_errors == []
