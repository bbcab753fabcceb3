"""Run the prose tests on the target deployment.

The deployment replaces the simulated deployments of equal topology that the tests start.

The run skips a prose test if the test configures its deployment, uses a scripted server, or needs
another topology or more servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gmongo.testing import Deployment
from tests.live.official import MAX_ATTEMPTS
from tests.live.report import Outcome, Report
from tests.live.target import Target
from tests.support import clients
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer

PART = "prose tests"
_TIME_LIMITS_FILE = "test_prose_time_limits.py"
_TESTS_FOLDER = Path(__file__).parents[1]
_TOPOLOGIES = {
    "standalone": "single",
    "replica_set": "replicaset",
    "sharded": "sharded",
    "load_balanced": "load-balanced",
}
# Default number of members of a simulated deployment, by kind.
_MEMBER_COUNTS = {"replica_set": 3, "sharded": 2, "load_balanced": 2}


class CommandRecorder(Recorder):
    """Recorder of the commands that all clients of the tests have sent.

    The class replaces the command log of a simulated deployment.
    """

    def named(self, *names: str) -> list[Any]:
        """Return the commands whose names are in `names`."""
        events = self.events_named("CommandStarted")
        return [SimpleNamespace(body=each.command) for each in events if each.command_name in names]


class LiveDeployment:
    """The target deployment with the interface of a simulated deployment.

    :param uses_one_mongos: True if clients connect to only one mongos.
    """

    def __init__(self, target: Target, commands: CommandRecorder, uses_one_mongos: bool) -> None:
        self._target, self.commands = target, commands
        self.uri = target.uri_of_one_mongos() if uses_one_mongos else target.uri
        primary = target.client.primary
        self.members = SimpleNamespace(primary=SimpleNamespace(address="{}:{}".format(*primary)) if primary else None)
        self._fail_point_names: set[str] = set()

    def set_fail_point(self, name: str, mode: Any, data: Mapping[str, Any] | None = None, member: Any = None) -> None:
        """Configure a fail point on the server `member`, or on all servers if `member` is None."""
        self._fail_point_names.add(name)
        self._target.set_fail_point(name, mode, data, member and member.address)

    def __enter__(self) -> LiveDeployment:
        self._target.drop_databases()
        self.commands.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._target.disable_fail_points(*self._fail_point_names)


class _ResultPlugin:
    """Pytest plugin that marks each test with ``real_time``, and adds the outcome of the test to the
    report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        # Failed tests that will run again, because the tests have short timeouts.
        self.tests_to_repeat: list[str] = []
        self.attempt_count = 1

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        item.add_marker(pytest.mark.real_time)

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.partition("tests/")[2] or report.nodeid
        if report.skipped:
            self._report.add(PART, name, Outcome.SKIPPED, report.longrepr[2].removeprefix("Skipped: "))
        elif report.failed and _TIME_LIMITS_FILE in name and self.attempt_count < MAX_ATTEMPTS:
            self.tests_to_repeat.append(str(_TESTS_FOLDER / name))
        elif report.failed:
            self._report.add(PART, name, Outcome.FAILED, report.longrepr.reprcrash.message)
        elif report.when == "call":
            self._report.add(PART, name, Outcome.PASSED)


def run(target: Target, report: Report, name_part: str) -> None:
    """Run the prose tests, and add their outcomes to the report.

    :param name_part: Run only the tests whose name contains this text.
    """
    target.uri_of_one_mongos()
    files = sorted(map(str, _TESTS_FOLDER.glob("*/test_prose*.py")))
    options = ["-q", "--no-header", "--tier", "all", "-p", "no:cacheprovider", "--tb=short", "--capture=fd"]
    options += ["-k", name_part]
    with pytest.MonkeyPatch.context() as patch:
        _replace_deployments(target, patch)
        results = _ResultPlugin(report)
        pytest.main([*files, *options], plugins=[results])
        while results.tests_to_repeat:
            tests, results.tests_to_repeat = results.tests_to_repeat, []
            results.attempt_count += 1
            pytest.main([*tests, *options], plugins=[results])


def _replace_deployments(target: Target, patch: pytest.MonkeyPatch) -> None:
    """Make tests use the target instead of simulated deployments.

    Record the commands of all clients.
    """
    commands, original_make_client = CommandRecorder(), clients.make_client

    def start_deployment(kind: str, members: int | None = None, **settings: Any) -> LiveDeployment:
        members = members or _MEMBER_COUNTS.get(kind, 1)
        if target.topology != _TOPOLOGIES[kind]:
            pytest.skip(f"the test needs a deployment of the kind {_TOPOLOGIES[kind]}")
        if settings:
            pytest.skip(f"the test configures its deployment: {', '.join(settings)}")
        if members > len(target.hosts):
            pytest.skip("the test needs more servers")
        return LiveDeployment(target, commands, members == 1)

    def make_recorded_client(host: Any, recorder: Any, heartbeat_interval: float | None = None, **options: Any) -> Any:
        recorded_options = {"event_listeners": [recorder, commands], **target.options, **options}
        return original_make_client(host, recorder, heartbeat_interval, **recorded_options)

    def skip_test(self: Any, *arguments: Any, **options: Any) -> None:
        pytest.skip("the test needs a scripted server")

    for kind in _TOPOLOGIES:
        patch.setattr(Deployment, kind, partial(start_deployment, kind))
    patch.setattr(clients, "make_client", make_recorded_client)
    for scripted in (ScriptedServer, ScriptedReplicaSet):
        patch.setattr(scripted, "__init__", skip_test)
