"""Work of every kind on a deployment, with interruptions; and the main job of the examples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from time import monotonic
from types import SimpleNamespace
from typing import Any

import gevent

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.testing import EmbeddedDatabaseError, EmbeddedReplicaSet
from gmongo.testing.mongod.server import Server
from tests.hostile.soak import Step
from tests.hostile.witness import Violation, silent_stderr
from tests.live.report import Report, Skip
from tests.live.target import Target
from tests.support.programs import run_python

CAMPAIGN, MAIN_JOB = "campaign", "main job"
_OUTAGE = 3.0  # seconds: longer than an election
_RECOVERY = 60.0  # seconds
_REMAINS_END_WITHIN = 10.0  # seconds
_INTERRUPTS = 500
_KEY_NOT_FOUND = 211
_TOPOLOGIES = {"single": "standalone", "replicaset": "replica-set"}


class LiveStep(Step):
    """A step of the soak, on servers that are left in peace, but for fail points and step-downs if they are disposable.

    :param target: the deployment.
    """

    def __init__(self, target: Target, seed: int, number: int, interrupts: int) -> None:
        super().__init__(_TOPOLOGIES.get(target.topology, target.topology), seed, number, interrupts)
        self.database, self.options = target.database(f"work_{number}"), target.options
        self._target = target
        self._restarts = False

    def _start(self) -> Any:
        network = SimpleNamespace(random=None, latency=0)
        return nullcontext(SimpleNamespace(uri=self._target.uri, network=network, members=[None], close=lambda: None))

    def _fault_kinds(self) -> list[Callable[[Any], Any]]:
        if not self._target.disposable:
            return [lambda member: None]
        troubles: list[Callable[[Any], Any]] = [self._fail_a_command] * 2
        troubles += [self._step_down] * (len(self._target.hosts) > 1)
        if self._target.replica_set is not None and len(self._target.hosts) > 1:
            troubles += [self._kill_a_member, self._stop_a_member]
        return troubles

    def _fork(self, number: int) -> None:
        while self._restarts:  # a child would see no process of its own, and report that the member has ended
            gevent.sleep(0.05)
        super()._fork(number)

    def _kill_a_member(self, member: Any) -> None:
        with suppress(EmbeddedDatabaseError):  # the member has exited
            self._a_member().kill()
        gevent.sleep(_OUTAGE)

    def _stop_a_member(self, member: Any) -> None:
        with suppress(EmbeddedDatabaseError):
            self._a_member().stop()
        gevent.sleep(_OUTAGE)

    def _a_member(self) -> Server:
        """Return the primary in two of three cases. Its loss is the one that clients notice most."""
        assert self._target.replica_set is not None
        members = self._target.replica_set.members
        return self._target.replica_set.primary if self.rng.random() < 0.67 else self.rng.choice(members)

    def _fail_a_command(self, member: Any) -> None:
        # A real error of getMore closes the cursor, but the fail point does not even run the command.
        name = self.rng.choice(("find", "insert", "update", "getMore"))
        is_closed = name == "getMore" or self.rng.random() < 0.3
        data: dict[str, Any] = {"failCommands": [name]}
        data |= {"closeConnection": True} if is_closed else {"errorCode": self.rng.choice((11600, 91))}
        with suppress(PyMongoError):
            self._target.set_fail_point("failCommand", {"times": self.rng.choice((1, 5))}, data)

    def _step_down(self, member: Any) -> None:
        if self.topology == "replica-set":
            with suppress(PyMongoError):
                self._target.client.admin.command("replSetStepDown", 1, force=True)

    def _heal(self) -> None:
        if self._target.replica_set is not None:
            self._restore(self._target.replica_set)
        if self._target.disposable:
            self._target.fail_points_off("failCommand")

    def _restore(self, replica_set: EmbeddedReplicaSet) -> None:
        self._restarts = True
        try:
            for member in replica_set.members:
                if member.is_stopped:
                    member.resume()
                elif not member.is_running:
                    member.restart()
            replica_set.await_members(_RECOVERY)
            deadline = monotonic() + _RECOVERY
            while not all(map(self._knows_keys, self._target.hosts)) and monotonic() < deadline:
                gevent.sleep(0.1)
        finally:
            self._restarts = False

    def _knows_keys(self, host: str) -> bool:
        """Return False while a restarted member with access control has not read the keys of the cluster time."""
        try:
            self._target.direct(host).admin.command("ping")
        except PyMongoError as error:
            return getattr(error, "code", None) != _KEY_NOT_FOUND
        return True

    def _check(self, client: MongoClient[Any]) -> None:
        """Check the client, and the remains on the servers: a transaction or a cursor of the run has ended there."""
        deadline = monotonic() + _RECOVERY
        while True:
            try:
                super()._check(client)
                break
            except AutoReconnect:  # on a busy machine, members that get no processor time hold an election
                if monotonic() > deadline:
                    raise
        if not self._target.disposable or self._target.topology not in _TOPOLOGIES:
            return
        deadline = monotonic() + _REMAINS_END_WITHIN
        while remains := {host: left for host in self._target.hosts if any((left := self._remains(host)).values())}:
            if monotonic() > deadline:
                raise Violation(f"on the servers after {_REMAINS_END_WITHIN:g} s: {remains}")
            gevent.sleep(0.2)

    def _remains(self, host: str) -> dict[str, Any]:
        client = self._target.direct(host)
        transactions = client.admin.command("serverStatus").get("transactions", {}).get("currentOpen", 0)
        of_the_run = {"cursor": {"$exists": True}, "ns": {"$regex": f"^{self.database}\\."}}
        stages = [{"$currentOp": {"idleCursors": True, "allUsers": True}}, {"$match": of_the_run}]
        cursors = [each["cursor"] for each in client.admin.aggregate(stages)]
        return {"transactions": transactions, "cursors": cursors}


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
