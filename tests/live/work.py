"""Work of every kind on a deployment, with interruptions; and the main job of the examples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

from gmongo.errors import PyMongoError
from tests.hostile.soak import Step
from tests.hostile.witness import silent_stderr
from tests.live.report import Report, Skip
from tests.live.target import Target
from tests.support.programs import run_python

CAMPAIGN, MAIN_JOB = "campaign", "main job"
_INTERRUPTS = 500
_TOPOLOGIES = {"single": "standalone", "replicaset": "replica-set"}


class LiveStep(Step):
    """A step of the soak, on servers that are left in peace, but for fail points and step-downs if they are disposable.

    :param target: the deployment.
    """

    def __init__(self, target: Target, seed: int, number: int, interrupts: int) -> None:
        super().__init__(_TOPOLOGIES.get(target.topology, target.topology), seed, number, interrupts)
        self.database, self.options = target.database(f"work_{number}"), target.options
        self._target = target

    def _start(self) -> Any:
        network = SimpleNamespace(random=None, latency=0)
        return nullcontext(SimpleNamespace(uri=self._target.uri, network=network, members=[None], close=lambda: None))

    def _troubles(self) -> list[Callable[[Any], Any]]:
        if not self._target.disposable:
            return [lambda member: None]
        return [self._fail_a_command] * 2 + [self._step_down] * (len(self._target.hosts) > 1)

    def _fail_a_command(self, member: Any) -> None:
        data: dict[str, Any] = {"failCommands": [self.rng.choice(("find", "insert", "update", "getMore"))]}
        data |= {"closeConnection": True} if self.rng.random() < 0.3 else {"errorCode": self.rng.choice((11600, 91))}
        with suppress(PyMongoError):
            self._target.set_fail_point("failCommand", {"times": self.rng.choice((1, 5))}, data)

    def _step_down(self, member: Any) -> None:
        if self.topology == "replica-set":
            with suppress(PyMongoError):
                self._target.client.admin.command("replSetStepDown", 1, force=True)

    def _heal(self) -> None:
        if self._target.disposable:
            self._target.fail_points_off("failCommand")


def campaign(target: Target, report: Report, steps: int, seed: int) -> None:
    """Work that is killed and timed out at random, in this process and in forked ones.

    :param steps: how many clients, one after the other.
    """
    for number in range(steps):
        with report.case(CAMPAIGN, f"step {number}, seed {seed}"), silent_stderr():
            LiveStep(target, seed, number, _INTERRUPTS).run()


def main_job(target: Target, report: Report) -> None:
    """An application under gunicorn, and its visitors."""
    with report.case(MAIN_JOB, "gunicorn with gevent workers"):
        if target.options:
            raise Skip("its client takes its options from the connection string alone")
        uri = target.uri_of(database=target.database("notes"))
        done = run_python("-m", "examples.main_job", "--requests", "200", uri=uri, timeout=200)
        assert done.returncode == 0, f"{done.stdout[-1000:]}{done.stderr[-1000:]}"
