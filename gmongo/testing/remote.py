"""A deployment in another thread or process, with the API of :class:`~gmongo.testing.Deployment`."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gmongo.testing.channel import Channel
from gmongo.testing.deployment import Deployment
from gmongo.testing.simulation.command_log import CommandLog, ReceivedCommand
from gmongo.testing.simulation.control import raise_problem
from gmongo.testing.simulation.fail_points import FailPointHandle
from gmongo.testing.simulation.listener import HOST
from gmongo.testing.simulation.member import Member
from gmongo.testing.simulation.network import Network
from gmongo.testing.simulation.topologies.replica_set import NO_PRIMARY_MESSAGE

_REPLY_TIMEOUT = 60.0  # seconds. Only the request "advance" can run for several seconds

Remote = TypeVar("Remote", bound="RemoteDeployment")
Function = TypeVar("Function", bound=Callable[..., Any])


class ControlLine:
    """A connection that controls a remote deployment. Any thread may use the connection."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._request_number = 0

    def request(self, name: str, *arguments: Any) -> Any:
        """Send one request at a time, and return the result that the reply contains."""
        with self._lock:
            self._request_number += 1
            try:
                self._channel.send({"number": self._request_number, "request": name, "arguments": list(arguments)})
                reply = None
                while reply is None or reply["number"] != self._request_number:  # skip replies to interrupted requests
                    reply = self._channel.receive(_REPLY_TIMEOUT)
                    if reply is None:
                        raise ConnectionResetError("the deployment has ended")
            except OSError as problem:
                raise RuntimeError(f"the deployment does not reply: {problem}") from problem
        raise_problem(reply)
        return reply["result"]


@dataclass
class RemoteConnection:
    """A snapshot of an open connection between a client and a member."""

    number: int  # the connectionId
    app_name: str | None  # the name of the application in the handshake
    peer_port: int  # the TCP port of the client
    busy_with: str | None  # the name of the running command, or None
    operations: Counter[str]  # the number of received commands by command name

    def __post_init__(self) -> None:
        self.operations = Counter(self.operations)


def _create_property(name: str) -> property:
    """Return a property that reads the attribute `name` of the member in the remote deployment."""
    return property(lambda member: member._facts[name], doc=getattr(Member, name, property()).__doc__)


def _create_fault_method(name: str) -> Callable[..., None]:
    """Return a method that calls the method `name` of the member in the remote deployment."""

    def method(self: RemoteMember, *arguments: Any, **kwargs: Any) -> None:
        self._line.request("fault", self.number, name, list(arguments), kwargs)

    method.__name__, method.__doc__ = name, getattr(Member, name).__doc__
    return method


class RemoteMember:
    """A member of a remote deployment. See :class:`~gmongo.testing.simulation.member.Member`."""

    host = HOST
    alive, reachable, uptime = _create_property("alive"), _create_property("reachable"), _create_property("uptime")
    created, traits = _create_property("created"), _create_property("traits")
    # The methods that cause or end faults.
    kill, restart, freeze, thaw, partition, heal, drop_connections = map(
        _create_fault_method, ("kill", "restart", "freeze", "thaw", "partition", "heal", "drop_connections")
    )
    delay, drop_after = _create_fault_method("delay"), _create_fault_method("drop_after")
    garbage, step_down = _create_fault_method("garbage"), _create_fault_method("step_down")

    def __init__(self, line: ControlLine, number: int, port: int) -> None:
        self._line = line
        self.number = number  # the index of the member in the list of members
        self.port = port

    def __repr__(self) -> str:
        return f"<RemoteMember {self.address}>"

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def connections(self) -> dict[int, RemoteConnection]:
        """The open connections by connectionId."""
        return {item["number"]: RemoteConnection(**item) for item in self._facts["connections"]}

    @property
    def _facts(self) -> Mapping[str, Any]:
        facts: Mapping[str, Any] = self._line.request("describe")["members"][self.number]
        return facts


class RemoteMembers(list[RemoteMember]):
    """The list of the members of a remote deployment."""

    def __init__(self, line: ControlLine, members: Iterable[RemoteMember]) -> None:
        super().__init__(members)
        self._line = line

    @property
    def has_primary(self) -> bool:
        """True if the deployment is a replica set and has a primary."""
        return self._line.request("describe")["primary"] is not None

    @property
    def primary(self) -> RemoteMember:
        """The primary of a replica set.

        :raises LookupError: there is no primary.
        """
        number = self._line.request("describe")["primary"]
        if number is None:
            raise LookupError(NO_PRIMARY_MESSAGE)
        return self[int(number)]

    @property
    def secondaries(self) -> list[RemoteMember]:
        """The members of a replica set that have data and are not primary."""
        return [self[number] for number in self._line.request("describe")["secondaries"]]


def _create_network_property(name: str) -> property:
    """Return a property that reads and changes a setting of the remote network."""

    def change(network: RemoteNetwork, value: float) -> None:
        network._line.request("set network", name, value)

    return property(lambda network: network._line.request("network")[name], change, doc=getattr(Network, name).__doc__)


class RemoteNetwork:
    """The network of a remote deployment. See :class:`~gmongo.testing.simulation.network.Network`."""

    latency, loss = _create_network_property("latency"), _create_network_property("loss")

    def __init__(self, line: ControlLine) -> None:
        self._line = line
        self._random: random.Random | None = None

    @property
    def random(self) -> random.Random | None:
        """The generator that was set through this object, or None. A copy of the generator selects lost replies."""
        return self._random

    @random.setter
    def random(self, generator: random.Random) -> None:
        self._line.request("set network", "random", list(generator.getstate()))
        self._random = generator


class RemoteCommandLog(CommandLog):
    """The commands that a remote deployment had received at the last fetch."""

    def __init__(self, line: ControlLine) -> None:
        super().__init__()
        self._line = line
        self._enabled = True

    def fetch(self) -> None:
        """Fetch the commands that the deployment received since the last fetch."""
        update = self._line.request("commands", self.first + len(self))
        super().__delitem__(slice(0, max(0, update["first"] - self.first)))
        self.extend(ReceivedCommand(**fields) for fields in update["commands"])
        self.first, self.forgotten, self._enabled = update["first"], update["forgotten"], update["enabled"]

    def clear(self) -> None:
        self._line.request("clear commands")
        super().clear()
        self.fetch()

    @property
    def enabled(self) -> bool:
        """True if the log keeps the received commands."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._line.request("log commands", enabled)
        self._enabled = enabled


def _copy_docstring(method: Function) -> Function:
    """Copy the docstring from the method of the same name in :class:`~gmongo.testing.Deployment`."""
    method.__doc__ = getattr(Deployment, method.__name__).__doc__
    return method


class RemoteDeployment:
    """The base of :class:`~gmongo.testing.DeploymentProcess` and :class:`~gmongo.testing.DeploymentThread`.

    The class has the API of :class:`~gmongo.testing.Deployment`. Any thread may use the deployment.

    :ivar members: the members; empty before the start.
    """

    def __init__(self) -> None:
        self._line: ControlLine | None = None
        self._uri = ""
        self.members: RemoteMembers = RemoteMembers(ControlLine(Channel(None)), [])

    @classmethod
    @_copy_docstring
    def standalone(cls: type[Remote], **settings: Any) -> Remote:
        return cls._from_plan("standalone", settings)

    @classmethod
    def replica_set(cls: type[Remote], members: int = 3, name: str = "rs0", **settings: Any) -> Remote:
        """Create a replica set. The first member with the highest priority becomes the first primary.

        :param members: the number of members with data, including hidden members.
        :param name: the name of the replica set.
        :param settings: see :meth:`gmongo.testing.Deployment.replica_set`.
        :raises ValueError: a setting is invalid.
        """
        return cls._from_plan("replica_set", {"members": members, "name": name, **settings})

    @classmethod
    @_copy_docstring
    def sharded(cls: type[Remote], mongos: int = 2, **settings: Any) -> Remote:
        return cls._from_plan("sharded", {"mongos": mongos, **settings})

    @classmethod
    @_copy_docstring
    def load_balanced(cls: type[Remote], services: int = 2, **settings: Any) -> Remote:
        return cls._from_plan("load_balanced", {"services": services, **settings})

    @classmethod
    def _from_plan(cls: type[Remote], kind: str, settings: dict[str, Any]) -> Remote:
        raise NotImplementedError

    def start(self: Remote) -> Remote:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Remote) -> Remote:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, channel: Channel) -> None:
        self._line = line = ControlLine(channel)
        facts = line.request("describe")
        self._uri = facts["uri"]
        self._commands = RemoteCommandLog(line)
        members = [RemoteMember(line, number, fields["port"]) for number, fields in enumerate(facts["members"])]
        self.members = RemoteMembers(line, members)

    def _disconnect(self) -> None:
        self._line = None

    def _require_line(self) -> ControlLine:
        if self._line is None:
            raise RuntimeError("the deployment is not running: call start() or use a with block")
        return self._line

    def _request(self, name: str, *arguments: Any) -> Any:
        return self._require_line().request(name, *arguments)

    @property
    def uri(self) -> str:
        """The connection string, with the first user's credentials, and with TLS options if required.

        :raises RuntimeError: the deployment is not running.
        """
        self._require_line()
        return self._uri

    @_copy_docstring
    def uri_of(self, hosts: str, **options: str) -> str:
        uri: str = self._request("uri of", hosts, options)
        return uri

    @property
    def commands(self) -> CommandLog:
        """The last commands that the members received, in the order of arrival: at most 10,000 commands and 32 MiB.
        Each read of the property fetches the new commands.

        :raises RuntimeError: the deployment is not running.
        """
        self._require_line()
        self._commands.fetch()
        return self._commands

    @property
    def network(self) -> RemoteNetwork:
        """The network between the clients and the members.

        :raises RuntimeError: the deployment is not running.
        """
        return RemoteNetwork(self._require_line())

    @_copy_docstring
    def set_fail_point(
        self,
        name: str = "failCommand",
        mode: str | Mapping[str, float] = "alwaysOn",
        data: Mapping[str, Any] | None = None,
        *,
        member: RemoteMember | None = None,
    ) -> FailPointHandle:
        handle_number = self._request("set fail point", name, mode, data, None if member is None else member.number)
        return FailPointHandle(lambda: int(self._request("count of fail point", handle_number)))

    @_copy_docstring
    def rate_limit(
        self,
        requests: float | None = None,
        connections: float | None = None,
        *,
        burst: float = 1.0,
        member: RemoteMember | None = None,
    ) -> None:
        self._request("rate limit", requests, connections, burst, None if member is None else member.number)

    def advance(self, seconds: float) -> None:
        """Advance the clock of the deployment, which controls elections, delays and expiry.

        The clock of the clients does not change.

        :param seconds: the time by which the clock advances.
        :raises ValueError: `seconds` is negative or is not a number.
        """
        self._request("advance", seconds)

    def fault(self, member: int, name: str, *arguments: Any) -> None:
        """Cause or end a fault: call a method of a member, such as ``freeze`` or ``thaw``.

        :param member: the index of the member in `members`.
        :param name: the name of a method of :class:`~gmongo.testing.simulation.member.Member`.
        :param arguments: the arguments of the method.
        :raises RuntimeError: the deployment is not running.
        :raises ValueError: the member or the method does not exist, an argument is invalid, or the
            state of the member forbids the method.
        """
        try:
            self._request("fault", member, name, list(arguments), {})
        except (TypeError, OSError) as problem:
            raise ValueError(str(problem)) from None
