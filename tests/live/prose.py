"""The prose tests that the driver passes on simulated deployments, on the deployment that a connection string names.

It takes the place of each simulated one of its kind. A test that needs another kind, users of its own, or a scripted
server is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gmongo.monitoring import CommandListener
from gmongo.testing import Deployment
from tests.live.official import ATTEMPTS
from tests.live.probes import Probes
from tests.live.report import Outcome, Report
from tests.live.target import Target
from tests.support import clients
from tests.support.server import ScriptedReplicaSet, ScriptedServer

PART = "prose tests"
_TIME_LIMITS = "test_prose_time_limits.py"
_TESTS = Path(__file__).parents[1]
_KINDS = {"standalone": "single", "replica_set": "replicaset", "sharded": "sharded", "load_balanced": "load-balanced"}


_MEMBERS = {"replica_set": 3, "sharded": 2, "load_balanced": 2}  # of a simulated deployment that is not told otherwise


class Commands(CommandListener):
    """What the clients of a test have sent, in the place of what a simulated deployment has received."""

    def __init__(self) -> None:
        self._events: list[Any] = []

    def started(self, event: Any) -> None:
        self._events.append(event)

    def succeeded(self, event: Any) -> None:
        """Nothing is asked of it."""

    failed = succeeded

    def named(self, *names: str) -> list[Any]:
        """The commands with these names."""
        return [SimpleNamespace(body=each.command) for each in self._events if each.command_name in names]

    def clear(self) -> None:
        """Forget them."""
        self._events.clear()


class Borrowed:
    """The deployment, as tests use a simulated one.

    :param one: whether clients know one mongos alone.
    """

    def __init__(self, target: Target, commands: Commands, one: bool) -> None:
        self._target, self.commands = target, commands
        self.uri = target.uri_of_one() if one else target.uri
        primary = target.client.primary
        self.members = SimpleNamespace(primary=SimpleNamespace(address="{}:{}".format(*primary)) if primary else None)
        self._names: set[str] = set()

    def set_fail_point(self, name: str, mode: Any, data: Mapping[str, Any] | None = None, member: Any = None) -> None:
        """Configure a fail point on one server, or on all."""
        self._names.add(name)
        self._target.set_fail_point(name, mode, data, member and member.address)

    def __enter__(self) -> Borrowed:
        self._target.clear()
        self.commands.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._target.fail_points_off(*self._names)


class _Results:
    """Lets the tests run in real time, and notes what comes of them; a plugin of pytest."""

    def __init__(self, report: Report, probes: Probes) -> None:
        self._report, self._probes = report, probes
        self.limited: list[str] = []  # tests to repeat, whose limits of milliseconds a busy machine does not meet
        self.attempts = 1

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        item.add_marker(pytest.mark.real_time)

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.partition("tests/")[2] or report.nodeid
        if report.skipped:
            self._report.add(PART, name, Outcome.SKIPPED, report.longrepr[2].removeprefix("Skipped: "))
        elif report.failed and _TIME_LIMITS in name and self.attempts < ATTEMPTS:
            self.limited.append(str(_TESTS / name))
        elif report.failed:
            lacking = self._probes.lacking(name)
            outcome = Outcome.SKIPPED if lacking else Outcome.FAILED
            self._report.add(PART, name, outcome, lacking or report.longrepr.reprcrash.message)
        elif report.when == "call":
            self._report.add(PART, name, Outcome.PASSED)


def run(target: Target, report: Report, only: str) -> None:
    """Run the tests.

    :param only: a part of the names of tests.
    """
    target.uri_of_one()
    files = sorted(map(str, _TESTS.glob("*/test_prose*.py")))
    options = ["-q", "--no-header", "--tier", "all", "-p", "no:cacheprovider", "--tb=short", "--capture=fd", "-k", only]
    with pytest.MonkeyPatch.context() as patch:
        _borrow(target, patch)
        results = _Results(report, Probes(target))
        pytest.main([*files, *options], plugins=[results])
        while results.limited:
            again, results.limited = results.limited, []
            results.attempts += 1
            pytest.main([*again, *options], plugins=[results])


def _borrow(target: Target, patch: pytest.MonkeyPatch) -> None:
    """Let it take the place of simulated deployments, and the tests' clients tell what they send."""
    commands, make = Commands(), clients.make_client

    def start(kind: str, members: int | None = None, **settings: Any) -> Borrowed:
        members = members or _MEMBERS.get(kind, 1)
        if target.topology != _KINDS[kind]:
            pytest.skip(f"the test is of a deployment of another kind: {_KINDS[kind]}")
        if settings:
            pytest.skip(f"the test sets up its deployment: {', '.join(settings)}")
        if members > len(target.hosts):
            pytest.skip("the test is of more servers than there are")
        return Borrowed(target, commands, members == 1)

    def make_heard(host: Any, recorder: Any, heartbeat: float | None = None, **options: Any) -> Any:
        heard = {"event_listeners": [recorder, commands], **target.options, **options}
        return make(host, recorder, heartbeat, **heard)

    def refuse(self: Any, *arguments: Any, **options: Any) -> None:
        pytest.skip("the test is of a scripted server")

    for kind in _KINDS:
        patch.setattr(Deployment, kind, partial(start, kind))
    patch.setattr(clients, "make_client", make_heard)
    for scripted in (ScriptedServer, ScriptedReplicaSet):
        patch.setattr(scripted, "__init__", refuse)
