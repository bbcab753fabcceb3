"""Run a campaign of interrupted operations, and the example web application, on the target
deployment.
"""

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
from tests.hostile.invariants import Violation, silent_stderr
from tests.hostile.soak import Step
from tests.live.report import Report, Skip
from tests.live.target import Target
from tests.support.programs import run_python

CAMPAIGN_PART, MAIN_JOB_PART = "campaign", "main job"
_OUTAGE_SECONDS = 3.0  # Seconds for which a member is down. An election takes less time.
_RECOVERY_SECONDS = 60.0  # Seconds in which the deployment must recover after a fault.
_CLEANUP_SECONDS = 10.0  # Seconds in which the servers must end the run's transactions and cursors.
_INTERRUPT_COUNT = 500
_KEY_NOT_FOUND = 211
_TOPOLOGIES = {"single": "standalone", "replicaset": "replica-set"}


class LiveStep(Step):
    """Step of the soak test on the target deployment.

    If the deployment is not disposable, the step causes no server faults.
    """

    def __init__(self, target: Target, seed: int, number: int, interrupt_limit: int) -> None:
        super().__init__(_TOPOLOGIES.get(target.topology, target.topology), seed, number, interrupt_limit)
        self.database, self.options = target.db_name(f"work_{number}"), target.options
        self._target = target
        self._is_restarting = False

    def _start_deployment(self) -> Any:
        network = SimpleNamespace(random=None, latency=0)
        return nullcontext(SimpleNamespace(uri=self._target.uri, network=network, members=[None], close=lambda: None))

    def _fault_kinds(self) -> list[Callable[[Any], Any]]:
        if not self._target.disposable:
            return [lambda member: None]
        faults: list[Callable[[Any], Any]] = [self._fail_command] * 2
        faults += [self._step_down] * (len(self._target.hosts) > 1)
        if self._target.replica_set is not None and len(self._target.hosts) > 1:
            faults += [self._kill_member, self._suspend_member]
        return faults

    def _fork(self, number: int) -> None:
        # A forked child cannot wait for a server process of its parent. Therefore the parent forks
        # only when no member is restarting.
        while self._is_restarting:
            gevent.sleep(0.05)
        super()._fork(number)

    def _kill_member(self, member: Any) -> None:
        with suppress(EmbeddedDatabaseError):  # the process of the member has already ended
            self._random_member().kill()
        gevent.sleep(_OUTAGE_SECONDS)

    def _suspend_member(self, member: Any) -> None:
        with suppress(EmbeddedDatabaseError):
            self._random_member().stop()
        gevent.sleep(_OUTAGE_SECONDS)

    def _random_member(self) -> Server:
        """Return the primary with a probability of 0.67, and otherwise any random member. The loss
        of a primary affects most operations.
        """
        assert self._target.replica_set is not None
        members = self._target.replica_set.members
        return self._target.replica_set.primary if self.rng.random() < 0.67 else self.rng.choice(members)

    def _fail_command(self, member: Any) -> None:
        # For getMore, the fail point must close the connection. With an error code, the cursor
        # would stay open on the server, although a real error of getMore closes the cursor.
        name = self.rng.choice(("find", "insert", "update", "getMore"))
        closes_connection = name == "getMore" or self.rng.random() < 0.3
        data: dict[str, Any] = {"failCommands": [name]}
        data |= {"closeConnection": True} if closes_connection else {"errorCode": self.rng.choice((11600, 91))}
        with suppress(PyMongoError):
            self._target.set_fail_point("failCommand", {"times": self.rng.choice((1, 5))}, data)

    def _step_down(self, member: Any) -> None:
        if self.topology == "replica-set":
            with suppress(PyMongoError):
                self._target.client.admin.command("replSetStepDown", 1, force=True)

    def _end_faults(self) -> None:
        if self._target.replica_set is not None:
            self._restore_members(self._target.replica_set)
        if self._target.disposable:
            self._target.disable_fail_points("failCommand")

    def _restore_members(self, replica_set: EmbeddedReplicaSet) -> None:
        self._is_restarting = True
        try:
            for member in replica_set.members:
                if member.is_stopped:
                    member.resume()
                elif not member.is_running:
                    member.restart()
            replica_set.await_members(_RECOVERY_SECONDS)
            deadline = monotonic() + _RECOVERY_SECONDS
            while not all(map(self._has_keys, self._target.hosts)) and monotonic() < deadline:
                gevent.sleep(0.1)
        finally:
            self._is_restarting = False

    def _has_keys(self, host: str) -> bool:
        """Return False if the member does not have the keys that sign cluster times.

        With access control, a restarted member must first receive these keys.
        """
        try:
            self._target.direct_client(host).admin.command("ping")
        except PyMongoError as error:
            return getattr(error, "code", None) != _KEY_NOT_FOUND
        return True

    def _check(self, client: MongoClient[Any]) -> None:
        """Check the invariants of the client.

        On a disposable standalone or replica set, also check that the servers have no open
        transaction and no cursor of the run.
        """
        deadline = monotonic() + _RECOVERY_SECONDS
        while True:
            try:
                super()._check(client)
                self._check_open_transactions_and_cursors()
                break
            # On a busy machine, missed heartbeats may have caused an election.
            except PyMongoError as error:
                is_transient = isinstance(error, AutoReconnect) or getattr(error, "code", None) == _KEY_NOT_FOUND
                if not is_transient or monotonic() > deadline:
                    raise
                gevent.sleep(0.1)

    def _check_open_transactions_and_cursors(self) -> None:
        if not self._target.disposable or self._target.topology not in _TOPOLOGIES:
            return
        deadline = monotonic() + _CLEANUP_SECONDS
        while open_objects := {
            host: open_on_host
            for host in self._target.hosts
            if any((open_on_host := self._open_transactions_and_cursors(host)).values())
        }:
            if monotonic() > deadline:
                raise Violation(f"on the servers after {_CLEANUP_SECONDS:g} s: {open_objects}")
            gevent.sleep(0.2)

    def _open_transactions_and_cursors(self, host: str) -> dict[str, Any]:
        client = self._target.direct_client(host)
        transactions = client.admin.command("serverStatus").get("transactions", {}).get("currentOpen", 0)
        run_filter = {"cursor": {"$exists": True}, "ns": {"$regex": f"^{self.database}\\."}}
        stages = [{"$currentOp": {"idleCursors": True, "allUsers": True}}, {"$match": run_filter}]
        cursors = [
            {
                "command": str({**each["cursor"].pop("originatingCommand", {}), "$clusterTime": None})[:300],
                "session": each.get("lsid"),
                **each["cursor"],
            }
            for each in client.admin.aggregate(stages)
        ]
        return {"transactions": transactions, "cursors": cursors}


def run(target: Target, report: Report, step_count: int, seed: int) -> None:
    """Run operations in this process and in forked processes.

    Random kills and timeouts interrupt the operations.

    :param step_count: Number of steps. Each step uses a new client.
    """
    for number in range(step_count):
        with report.case(CAMPAIGN_PART, f"step {number}, seed {seed}"), silent_stderr():
            LiveStep(target, seed, number, _INTERRUPT_COUNT).run()


def run_example_application(target: Target, report: Report) -> None:
    """Run the example web application in gunicorn, and send the requests of several visitors."""
    with report.case(MAIN_JOB_PART, "gunicorn with gevent workers"):
        if target.options:
            raise Skip("the client of the main job reads its options from the connection string only")
        uri = target.uri_with_hosts(database=target.db_name("notes"))
        completed = run_python("-m", "examples.main_job", "--requests", "200", uri=uri, timeout=200)
        assert completed.returncode == 0, f"{completed.stdout[-1000:]}{completed.stderr[-1000:]}"
