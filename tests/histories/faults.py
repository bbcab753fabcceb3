"""The random faults of a history."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gevent

from gmongo.testing import Deployment, VirtualTime

# Codes of retryable errors: state changes of a member, network errors of a server, an exceeded time
# limit, and an unavailable read concern.
_ERROR_CODES = (91, 189, 10107, 11600, 11602, 13435, 13436, 262, 6, 7, 89, 134)
_COMMANDS = (
    "insert",
    "update",
    "findAndModify",
    "find",
    "getMore",
    "commitTransaction",
    "abortTransaction",
    "aggregate",
)


class Faults:
    """Random faults of a deployment, and their repair.

    :ivar log: for each fault, a line of text with the virtual time and the kind of the fault.
    """

    def __init__(self, deployment: Deployment, time: VirtualTime, rng: random.Random) -> None:
        self.log: list[str] = []
        self._deployment = deployment
        self._time = time
        self._rng = rng
        deployment.network.random = random.Random(rng.random())

    def run(self, count: int, until: float) -> None:
        """Cause `count` faults, which are planned for random virtual times before `until`."""
        moments = sorted(self._rng.uniform(0, until - self._time.monotonic()) for _ in range(count))
        plans = [(moment, self._rng.choice(self._fault_methods())) for moment in moments]
        start = self._time.monotonic()
        fault_greenlets = []
        for moment, kind in plans:
            gevent.sleep(max(0.0, start + moment - self._time.monotonic()))
            fault_greenlets.append(gevent.spawn(kind))
        gevent.joinall(fault_greenlets, raise_error=True)

    def repair(self) -> None:
        """Repair all faults that still exist."""
        network = self._deployment.network
        network.latency = network.loss = 0.0
        self._deployment.rate_limit()
        for member in self._deployment.members:
            self._deployment.set_fail_point(mode="off", member=member)
            member.restart()

    def _fault_methods(self) -> list[Callable[[], None]]:
        kinds = [
            self.kill, self.freeze, self.partition, self.delay_member, self.cut_reply,
            self.send_garbage, self.drop_connections, self.set_fail_point, self.limit_rate,
            self.lose_messages, self.delay_network, self.suspend_process, self.block_commands,
        ]  # fmt: skip
        if self._deployment.members.has_primary:
            kinds += [self.step_down] * 3
        return kinds

    def _record(self, fault: str, *details: Any) -> None:
        self.log.append(f"{self._time.monotonic():.3f} {fault} {' '.join(map(str, details))}".rstrip())

    def _choose_member(self) -> Any:
        """Return the primary with a probability of 0.5 if a primary exists, else a random member."""
        members = self._deployment.members
        use_primary = members.has_primary and self._rng.random() < 0.5
        return members.primary if use_primary else self._rng.choice(members)

    def _member_number(self, member: Any) -> int:
        return self._deployment.members.index(member)

    def _pause(self, max_seconds: float) -> None:
        gevent.sleep(self._rng.choice((0.001, 0.1, 1.0)) * self._rng.uniform(0, max_seconds))

    def kill(self) -> None:
        member = self._choose_member()
        self._record("kill", self._member_number(member))
        member.kill()
        self._pause(12)
        member.restart()

    def freeze(self) -> None:
        member = self._choose_member()
        self._record("freeze", self._member_number(member))
        member.freeze()
        self._pause(12)
        member.thaw()

    def partition(self) -> None:
        member = self._choose_member()
        self._record("partition", self._member_number(member))
        member.partition()
        self._pause(12)
        member.heal()

    def step_down(self) -> None:
        if self._deployment.members.has_primary:
            primary = self._deployment.members.primary
            self._record("step down", self._member_number(primary))
            primary.step_down(self._rng.choice((0.1, 5)))

    def delay_member(self) -> None:
        member, seconds = self._choose_member(), self._rng.choice((0.01, 0.3, 3))
        self._record("delay", self._member_number(member), seconds)
        member.delay(seconds)
        self._pause(6)
        member.delay(0)

    def cut_reply(self) -> None:
        member, command, size = self._choose_member(), self._choose_command(), self._rng.choice((0, 1, 15, 16, 20, 60))
        self._record("cut", self._member_number(member), command, size)
        member.drop_after(size, command)

    def send_garbage(self) -> None:
        member, command = self._choose_member(), self._choose_command()
        self._record("garbage", self._member_number(member), command)
        member.garbage(command)

    def _choose_command(self) -> str | None:
        return self._rng.choice((None, "hello", *_COMMANDS))

    def drop_connections(self) -> None:
        member = self._choose_member()
        self._record("drop", self._member_number(member))
        member.drop_connections()

    def set_fail_point(self) -> None:
        member = self._choose_member()
        data: dict[str, Any] = {"failCommands": self._rng.sample(_COMMANDS, 3)}
        if self._rng.random() < 0.4:
            data["closeConnection"] = True
        else:
            data["errorCode"] = self._rng.choice(_ERROR_CODES)
        mode = {"times": self._rng.choice((1, 1, 2, 5))}
        self._record("fail point", self._member_number(member), mode, data)
        self._deployment.set_fail_point("failCommand", mode, data, member=member)

    def block_commands(self) -> None:
        member, seconds = self._choose_member(), self._rng.choice((0.05, 1, 12))
        data = {
            "failCommands": self._rng.sample(_COMMANDS, 3),
            "blockConnection": True,
            "blockTimeMS": seconds * 1000,
        }
        self._record("block", self._member_number(member), data)
        self._deployment.set_fail_point("failCommand", {"times": self._rng.choice((1, 3))}, data, member=member)

    def limit_rate(self) -> None:
        requests, connections = self._rng.choice((1, 5, 20)), self._rng.choice((None, 1, 5))
        self._record("overload", requests, connections)
        self._deployment.rate_limit(requests, connections, burst=1)
        self._pause(6)
        self._deployment.rate_limit()

    def lose_messages(self) -> None:
        share = self._rng.choice((0.05, 0.3))
        self._record("loss", share)
        self._deployment.network.loss = share
        self._pause(6)
        self._deployment.network.loss = 0.0

    def delay_network(self) -> None:
        seconds = self._rng.choice((0.005, 0.1, 1))
        self._record("latency", seconds)
        self._deployment.network.latency = seconds
        self._pause(6)
        self._deployment.network.latency = 0.0

    def suspend_process(self) -> None:
        seconds = self._rng.choice((0.5, 15, 120, 4000))
        self._record("suspend", seconds)
        self._time.suspend(seconds)
