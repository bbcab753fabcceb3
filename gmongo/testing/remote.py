"""A deployment that runs elsewhere, with all that one in this hub has."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from gmongo.testing.channel import Channel
from gmongo.testing.simulation.command_log import CommandLog, ReceivedCommand
from gmongo.testing.simulation.control import raise_problem
from gmongo.testing.simulation.fail_points import FailPointHandle
from gmongo.testing.simulation.topologies.replica_set import NO_PRIMARY

_HOST = "127.0.0.1"
_PATIENCE = 60.0  # seconds; the answer to an order comes at once, but for a long advance

Remote = TypeVar("Remote", bound="RemoteDeployment")


class Line:
    """Orders to a deployment, one at a time; any thread may give them.

    :param channel: to where it runs.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._number = 0

    def ask(self, order: str, *arguments: Any) -> Any:
        """Give an order; what it results in.

        :raises RuntimeError: the deployment has ended, or does not answer.
        """
        with self._lock:
            self._number += 1
            try:
                self._channel.send({"number": self._number, "order": order, "arguments": list(arguments)})
                answer = self._answer()
            except OSError as problem:  # TimeoutError is one
                raise RuntimeError(f"the deployment does not answer: {problem}") from problem
        raise_problem(answer)
        return answer["result"]

    def _answer(self) -> dict[str, Any]:
        while True:
            answer = self._channel.receive(_PATIENCE)
            if answer is None:
                raise ConnectionResetError("it has ended")
            if answer["number"] == self._number:  # else to an order whose giver was interrupted
                return answer


@dataclass
class RemoteConnection:
    """An open connection of a client to a member, as it was when it was looked at.

    :param number: the connectionId.
    :param app_name: what the handshake told.
    :param peer_port: the client's port.
    :param busy_with: the command in hand.
    :param operations: how many commands of each name it received.
    """

    number: int
    app_name: str | None
    peer_port: int
    busy_with: str | None
    operations: Counter[str] = field(default_factory=Counter)


class RemoteMember:
    """A member of such a deployment; see :class:`~gmongo.testing.simulation.member.Member`.

    :ivar number: its place among the members.
    :ivar port: its port, the same after a restart.
    """

    host = _HOST

    def __init__(self, line: Line, number: int, port: int) -> None:
        self._line = line
        self.number = number
        self.port = port

    def __repr__(self) -> str:
        return f"<RemoteMember {self.address}>"

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether it listens."""
        return bool(self._facts["alive"])

    @property
    def reachable(self) -> bool:
        """Whether the other members hear from it."""
        return bool(self._facts["reachable"])

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return float(self._facts["uptime"])

    @property
    def created(self) -> int:
        """How many connections were made to it."""
        return int(self._facts["created"])

    @property
    def traits(self) -> dict[str, Any]:
        """``arbiter``, ``hidden``, ``priority``, ``tags``, as far as they are set."""
        return dict(self._facts["traits"])

    @property
    def connections(self) -> dict[int, RemoteConnection]:
        """The open connections, by number."""
        known = [RemoteConnection(**each) for each in self._facts["connections"]]
        for each in known:
            each.operations = Counter(each.operations)
        return {each.number: each for each in known}

    @property
    def _facts(self) -> Mapping[str, Any]:
        facts: Mapping[str, Any] = self._line.ask("describe")["members"][self.number]
        return facts

    # Faults

    def kill(self) -> None:
        """Refuse connections and close those that are open, at once, as if the process was killed."""
        self._fault("kill")

    def restart(self) -> None:
        """Start again after :meth:`kill`, or kill and start again: a new process on the same port."""
        self._fault("restart")

    def freeze(self) -> None:
        """Accept connections and requests, but answer nothing until :meth:`thaw`; then all is answered."""
        self._fault("freeze")

    def thaw(self) -> None:
        """Go on after :meth:`freeze`."""
        self._fault("thaw")

    def partition(self) -> None:
        """Cut the member off: whatever clients and the other members send it is lost."""
        self._fault("partition")

    def heal(self) -> None:
        """Go on after :meth:`partition`; the connections from before are reset."""
        self._fault("heal")

    def drop_connections(self) -> None:
        """Close all open connections; new ones are welcome."""
        self._fault("drop_connections")

    def delay(self, seconds: float) -> None:
        """Send every reply `seconds` late; 0 is at once.

        :raises ValueError: `seconds` is no number from 0 up.
        """
        self._fault("delay", seconds)

    def drop_after(self, n_bytes: int, command: str | None = None) -> None:
        """Close the connection after the first `n_bytes` of the next reply (to `command`, if given).

        :raises ValueError: `n_bytes` is no whole number from 0 up, or `command` is no string.
        """
        self._fault("drop_after", n_bytes, command)

    def garbage(self, command: str | None = None) -> None:
        """Send bytes that are no message instead of the next reply (to `command`, if given).

        :raises ValueError: `command` is no string.
        """
        self._fault("garbage", command)

    def step_down(self, seconds: float = 60.0) -> None:
        """Stop being primary, and do not become it again for `seconds` unless no other member can be.

        :raises ValueError: the member is not a primary, or `seconds` is no number from 0 up.
        """
        self._fault("step_down", seconds)

    def _fault(self, name: str, *arguments: Any) -> None:
        self._line.ask("fault", self.number, name, *arguments)


class RemoteMembers(list[RemoteMember]):
    """The members of such a deployment."""

    def __init__(self, line: Line, members: Iterable[RemoteMember]) -> None:
        super().__init__(members)
        self._line = line

    @property
    def has_primary(self) -> bool:
        """True if the deployment is a replica set and has a primary."""
        return self._line.ask("describe")["primary"] is not None

    @property
    def primary(self) -> RemoteMember:
        """The primary of a replica set.

        :raises LookupError: there is no primary.
        """
        number = self._line.ask("describe")["primary"]
        if number is None:
            raise LookupError(NO_PRIMARY)
        return self[int(number)]

    @property
    def secondaries(self) -> list[RemoteMember]:
        """The members of a replica set that have data and are not primary."""
        return [self[number] for number in self._line.ask("describe")["secondaries"]]


class RemoteNetwork:
    """The network of such a deployment; see :class:`~gmongo.testing.simulation.network.Network`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._random: random.Random | None = None

    @property
    def latency(self) -> float:
        """Seconds that each reply is late.

        :raises ValueError: it is set to anything but a number from 0 up.
        """
        return float(self._line.ask("network")["latency"])

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._line.ask("set network", "latency", seconds)

    @property
    def loss(self) -> float:
        """The share of replies that are lost, and their connection with them.

        :raises ValueError: it is set to anything but a number from 0 to 1.
        """
        return float(self._line.ask("network")["loss"])

    @loss.setter
    def loss(self, share: float) -> None:
        self._line.ask("set network", "loss", share)

    @property
    def random(self) -> random.Random | None:
        """What chance was set to; the deployment has a copy of it. None if nothing was set."""
        return self._random

    @random.setter
    def random(self, source: random.Random) -> None:
        self._line.ask("set network", "random", list(source.getstate()))
        self._random = source


class RemoteCommandLog(CommandLog):
    """The commands that such a deployment has received, as far as they have been fetched."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line
        self._enabled = True

    def fetch(self) -> None:
        """Fetch what has been received since the last time."""
        news = self._line.ask("commands", self.first + len(self))
        super().__delitem__(slice(0, max(0, news["first"] - self.first)))
        self.extend(ReceivedCommand(**each) for each in news["commands"])
        self.first, self.forgotten, self._enabled = news["first"], news["forgotten"], news["enabled"]

    def clear(self) -> None:
        """Forget all, there too."""
        self._line.ask("clear commands")
        super().clear()
        self.fetch()

    @property
    def enabled(self) -> bool:
        """Whether commands are kept."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._line.ask("log commands", enabled)
        self._enabled = enabled


class RemoteDeployment:
    """What :class:`~gmongo.testing.DeploymentProcess` and :class:`~gmongo.testing.DeploymentThread` have in common.

    Whatever :class:`~gmongo.testing.Deployment` has, it has too, and any thread may use it.

    :ivar members: the members, once it has been started.
    """

    def __init__(self) -> None:
        self._line: Line | None = None
        self._uri: str | None = None
        self._commands: RemoteCommandLog | None = None
        self.members: RemoteMembers = RemoteMembers(Line(Channel(None)), [])

    @classmethod
    def standalone(cls: type[Remote], **settings: Any) -> Remote:
        """One server, without replication.

        :param settings: see :class:`~gmongo.testing.Deployment`.
        :raises ValueError: one of them is not what it must be.
        """
        return cls._planned("standalone", settings)

    @classmethod
    def replica_set(cls: type[Remote], members: int = 3, name: str = "rs0", **settings: Any) -> Remote:
        """A replica set; its first member is primary at first.

        :param members: how many have data, the hidden ones included.
        :param name: of the replica set.
        :param settings: see :meth:`gmongo.testing.Deployment.replica_set`.
        :raises ValueError: one of them is not what it must be.
        """
        return cls._planned("replica_set", {"members": members, "name": name, **settings})

    @classmethod
    def sharded(cls: type[Remote], mongos: int = 2, **settings: Any) -> Remote:
        """A sharded cluster, of which one sees the mongos.

        :param mongos: how many.
        :param settings: see :class:`~gmongo.testing.Deployment`.
        :raises ValueError: one of them is not what it must be.
        """
        return cls._planned("sharded", {"mongos": mongos, **settings})

    @classmethod
    def load_balanced(cls: type[Remote], services: int = 2, **settings: Any) -> Remote:
        """Several mongos behind a load balancer.

        :param services: how many.
        :param settings: see :class:`~gmongo.testing.Deployment`.
        :raises ValueError: one of them is not what it must be.
        """
        return cls._planned("load_balanced", {"services": services, **settings})

    @classmethod
    def _planned(cls: type[Remote], kind: str, settings: dict[str, Any]) -> Remote:
        raise NotImplementedError

    # Life

    def start(self: Remote) -> Remote:
        """Start it and wait until it serves."""
        raise NotImplementedError

    def close(self) -> None:
        """End it, with its data."""
        raise NotImplementedError

    def __enter__(self: Remote) -> Remote:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serves(self, channel: Channel) -> None:
        self._line = line = Line(channel)
        facts = line.ask("describe")
        self._uri = facts["uri"]
        self._commands = RemoteCommandLog(line)
        self.members = RemoteMembers(
            line, [RemoteMember(line, number, each["port"]) for number, each in enumerate(facts["members"])]
        )

    def _ended(self) -> None:
        self._line = self._uri = self._commands = None

    def _ask(self, order: str, *arguments: Any) -> Any:
        if self._line is None:
            raise RuntimeError("the deployment is not running: call start() or use a with")
        return self._line.ask(order, *arguments)

    # What a client needs

    @property
    def uri(self) -> str:
        """The connection string, with the first user and the TLS options if there are such.

        :raises RuntimeError: it is not running.
        """
        if self._uri is None:
            raise RuntimeError("the deployment is not running: call start() or use a with")
        return self._uri

    def uri_of(self, hosts: str, **options: str) -> str:
        """A connection string for some of the hosts, with the same user and TLS.

        :param hosts: such as ``members[1].address``; several with commas between them.
        :param options: options of the URI.
        :raises RuntimeError: it is not running.
        """
        uri: str = self._ask("uri of", hosts, options)
        return uri

    # What a test looks at, and what it lets go wrong

    @property
    def commands(self) -> CommandLog:
        """The commands that all members have received until now, in their order; the last 10,000 of them.

        :raises RuntimeError: it is not running.
        """
        if self._commands is None:
            raise RuntimeError("the deployment is not running: call start() or use a with")
        self._commands.fetch()
        return self._commands

    @property
    def network(self) -> RemoteNetwork:
        """The network between the clients and the members.

        :raises RuntimeError: it is not running.
        """
        self._ask("network")
        assert self._line is not None
        return RemoteNetwork(self._line)

    def set_fail_point(
        self,
        name: str = "failCommand",
        mode: str | Mapping[str, float] = "alwaysOn",
        data: Mapping[str, Any] | None = None,
        *,
        member: RemoteMember | None = None,
    ) -> FailPointHandle:
        """Set a fail point on one member or on all members, and return a handle with its ``count``.

        :param name: ``"failCommand"`` (the default), or another that the simulation has.
        :param mode: ``"alwaysOn"`` (the default), ``"off"``, ``{"times": n}``, ``{"skip": n}`` or
            ``{"activationProbability": p}``.
        :param data: such as ``{'failCommands': ['insert'], 'errorCode': 91}``.
        :param member: one member; None is all.
        :raises CommandError: the simulation has no such fail point or command, or the data are wrong.
        """
        number = self._ask("set fail point", name, mode, data, None if member is None else member.number)
        return FailPointHandle(lambda: int(self._ask("count of fail point", number)))

    def rate_limit(
        self,
        requests: float | None = None,
        connections: float | None = None,
        *,
        burst: float = 1.0,
        member: RemoteMember | None = None,
    ) -> None:
        """Limit what each member takes in; None is no limit.

        :param requests: a second; one above the limit fails with error 462.
        :param connections: a second; one above the limit is closed.
        :param burst: how many seconds' worth may come at once; one by default.
        :param member: one member; None is all.
        """
        self._ask("rate limit", requests, connections, burst, None if member is None else member.number)

    def advance(self, seconds: float) -> None:
        """Let time pass for the deployment: elections, delays, expiry. For its clients it does not pass.

        :param seconds: how much.
        :raises ValueError: `seconds` is no number from 0 up.
        """
        self._ask("advance", seconds)

    def fault(self, member: int, name: str, *arguments: Any) -> None:
        """Let a member fail; the same as a method of ``members[member]``.

        :param member: its number, from 0.
        :param name: of a method of :class:`~gmongo.testing.simulation.member.Member`, such as ``freeze``.
        :param arguments: of the method.
        :raises RuntimeError: the deployment is not running.
        :raises ValueError: there is no such member or fault, or it cannot be done now.
        """
        try:
            self._ask("fault", member, name, *arguments)
        except (TypeError, OSError) as problem:
            raise ValueError(str(problem)) from None
