"""A simulated MongoDB deployment for tests: servers of the real wire protocol in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

from gmongo.testing.simulation import stalled
from gmongo.testing.simulation.certificates import Tls, certificates, server_context
from gmongo.testing.simulation.cluster import Cluster
from gmongo.testing.simulation.command_log import CommandLog
from gmongo.testing.simulation.commands.table import command_names
from gmongo.testing.simulation.compression import check_compressors
from gmongo.testing.simulation.fail_points import FailPointHandle, check_commands
from gmongo.testing.simulation.load_balancer import LoadBalancer
from gmongo.testing.simulation.member import Member
from gmongo.testing.simulation.network import Network
from gmongo.testing.simulation.parameters import MECHANISMS, Parameters
from gmongo.testing.simulation.topologies.base import Topology
from gmongo.testing.simulation.topologies.replica_set import NO_PRIMARY, ReplicaSet
from gmongo.testing.simulation.topologies.sharded import Sharded
from gmongo.testing.simulation.users import Users
from gmongo.testing.simulation.versions import parse_version
from gmongo.testing.store import Store
from gmongo.testing.virtual_time import advance_hub


class Members(list[Member]):
    """The members of a deployment.

    :param members: the members.
    :param topology: knows the primary.
    """

    def __init__(self, members: Iterable[Member], topology: Topology) -> None:
        super().__init__(members)
        self._topology = topology

    @property
    def has_primary(self) -> bool:
        """True if the deployment is a replica set and has a primary."""
        return isinstance(self._topology, ReplicaSet) and self._topology.primary is not None

    @property
    def primary(self) -> Member:
        """The primary of a replica set.

        :raises LookupError: there is no primary.
        """
        primary = self._topology.primary if isinstance(self._topology, ReplicaSet) else None
        if primary is None:
            raise LookupError(NO_PRIMARY)
        return primary

    @property
    def secondaries(self) -> list[Member]:
        """The members of a replica set that have data and are not primary."""
        if not isinstance(self._topology, ReplicaSet):
            return []
        primary = self._topology.primary
        return [member for member in self if member is not primary and not member.traits.get("arbiter")]


class Deployment:
    """A MongoDB deployment on ports of the loopback interface. Greenlets of the hub that starts it serve its clients.

    Create a deployment with :meth:`standalone`, :meth:`replica_set`, :meth:`sharded` or :meth:`load_balanced`. These
    methods accept the parameters from `version` on. Use the deployment in a ``with`` block, or call :meth:`start` and
    :meth:`close`.

    :param topology: the kind of the deployment. The four methods choose it.
    :param traits: of each member: ``tags``, ``priority``, ``hidden`` and ``arbiter``, if they differ from the
        defaults.
    :param load_balanced: True if the members are behind a load balancer.
    :param version: the server version, ``'4.2'`` to ``'8.2'``: selects handshake, error labels and commands.
    :param users: name -> password: access control, with these users in ``admin``. A password of None creates a user of
        ``$external``, such as the subject of an X.509 certificate. The URI has the first user.
    :param oidc_tokens: token -> user: access control that accepts these tokens.
    :param tls: True for a generated certificate (needs ``trustme``), an ``ssl.SSLContext``, or the paths
        ``{'certificate': ..., 'ca': ...}``.
    :param compressors: of ``'zlib'``, ``'snappy'``, ``'zstd'``.
    :param parameters: server parameters, such as ``{'requireApiVersion': True}``.
    :param write_concern_modes: names that ``w`` may have besides ``"majority"``, as in a replica set configuration.
    :param port: the port of the first member. The other members have the next ports. By default any free ports.
    :param log: True if :attr:`commands` keeps the received commands.
    :raises ValueError: a setting is invalid.

    :ivar members: the members, after the start.
    """

    def __init__(
        self,
        topology: Topology,
        traits: Sequence[Mapping[str, Any]],
        *,
        load_balanced: bool = False,
        version: str = "8.0",
        users: Mapping[str, str | None] | None = None,
        oidc_tokens: Mapping[str, str] | None = None,
        tls: Tls = False,
        compressors: Iterable[str] = ("zlib",),
        parameters: Mapping[str, Any] | None = None,
        write_concern_modes: Iterable[str] = (),
        port: int = 0,
        log: bool = True,
    ) -> None:
        release = parse_version(version)
        self._topology = topology
        self._traits = traits
        self._port = port
        self._users = dict(users or {})
        self._ca_file = certificates().ca_file if tls is True else None
        self._is_tls = tls is not False
        sharded = isinstance(topology, Sharded)
        self._cluster = Cluster(
            version=release,
            topology=topology,
            store=Store(version=release[:2], replicated=topology.gossips, sharded=sharded),
            users=Users(users, oidc_tokens),
            parameters=Parameters({**_mechanisms(users, oidc_tokens), **(parameters or {})}),
            tls=server_context(tls),
            compressors=check_compressors(compressors),
            write_concern_modes=frozenset(write_concern_modes),
        )
        self._cluster.log.enabled = log
        self._has_balancer = load_balanced
        self._balancer: LoadBalancer | None = None
        self._running = False
        self.members = Members([], topology)

    @classmethod
    def standalone(cls, **settings: Any) -> Deployment:
        """Create a server without replication.

        :param settings: see :class:`Deployment`.
        """
        return cls(Topology(), [{}], **settings)

    @classmethod
    def replica_set(
        cls,
        members: int = 3,
        name: str = "rs0",
        *,
        arbiters: int = 0,
        hidden: int = 0,
        tags: Sequence[Mapping[str, str]] = (),
        priorities: Sequence[float] = (),
        election_delay: float = 0.1,
        **settings: Any,
    ) -> Deployment:
        """Create a replica set, whose first member becomes the first primary.

        :param members: the number of members with data, including hidden members.
        :param name: the name of the replica set.
        :param arbiters: the number of additional members without data.
        :param hidden: the number of hidden members, at the end of the list.
        :param tags: the tags of the first members.
        :param priorities: the priorities of the first members; 1 by default.
        :param election_delay: seconds between the loss of a primary and the next election.
        :param settings: see :class:`Deployment`.
        :raises ValueError: no member could be elected.
        """
        traits: list[dict[str, Any]] = [{} for _ in range(members)]
        for each, tag_set in zip(traits, tags, strict=False):
            each["tags"] = dict(tag_set)
        for each, priority in zip(traits, priorities, strict=False):
            each["priority"] = priority
        for each in traits[members - hidden :]:
            each["hidden"] = True
        if not any(each.get("priority", 1) and not each.get("hidden") for each in traits):
            raise ValueError(
                f"a replica set of {members} members, {hidden} of them hidden, has no member that can be primary"
            )
        return cls(ReplicaSet(name, election_delay), [*traits, *({"arbiter": True},) * arbiters], **settings)

    @classmethod
    def sharded(cls, mongos: int = 2, **settings: Any) -> Deployment:
        """Create a sharded cluster, of which clients see the mongos.

        :param mongos: the number of mongos.
        :param settings: see :class:`Deployment`.
        """
        return cls(Sharded(), [{}] * mongos, **settings)

    @classmethod
    def load_balanced(cls, services: int = 2, **settings: Any) -> Deployment:
        """Create several mongos behind a load balancer, each with its own ``serviceId``.

        The URI is the URI of the load balancer. The members also listen for other load balancers. They understand the
        PROXY protocol.

        :param services: the number of mongos.
        :param settings: see :class:`Deployment`.
        """
        return cls(Sharded(), [{}] * services, load_balanced=True, **settings)

    def start(self) -> Deployment:
        """Start all members.

        :raises RuntimeError: the deployment was started before.
        :raises OSError: the port is in use.
        """
        if self._running:
            raise RuntimeError("the deployment has been started already, and it is started only once")
        self._running = True
        balancer_ports = int(self._has_balancer)
        try:
            for number, traits in enumerate(self._traits, start=balancer_ports):
                self._add(self._port and self._port + number, traits)
            if self._has_balancer:
                self._balancer = LoadBalancer(self.members, self._port)
        except BaseException:
            self.close()
            raise
        if isinstance(self._topology, ReplicaSet):
            self._topology.elect_now()
        return self

    def _add(self, port: int, traits: Mapping[str, Any]) -> None:
        member = Member(self._cluster, port=port, traits=traits, load_balanced=self._has_balancer)
        self.members.append(member)
        self._topology.members.append(member)
        member.start()

    def close(self) -> None:
        """End all members, and remove their data."""
        self._topology.end()
        if self._balancer is not None:
            self._balancer.close()
        for member in self.members:
            member.stop()
            member.faults.clear()  # ends waits for a frozen member

    def __enter__(self) -> Deployment:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def uri(self) -> str:
        """The connection string, with the first user and the TLS options, if there are any.

        :raises RuntimeError: the deployment was not started.
        """
        if not self.members:
            raise RuntimeError("the deployment has not been started: call start() or use a with block")
        stalled.watch()  # another driver may be imported by now
        hosts = self._balancer.address if self._balancer else ",".join(each.address for each in self._seeds())
        return self.uri_of(hosts, **self._uri_options())

    def uri_of(self, hosts: str, **options: str) -> str:
        """Return a connection string for some hosts, with the same user and TLS options.

        :param hosts: hosts, separated by commas, such as ``members[1].address``.
        :param options: options of the URI.
        """
        name, password = next(iter(self._users.items()), (None, None))
        login = f"{quote(name, safe='')}:{quote(password, safe='')}@" if name and password else ""
        if self._is_tls:
            options["tls"] = "true"
        if self._ca_file:
            options["tlsCAFile"] = self._ca_file
        query = urlencode(options, safe="/")
        return f"mongodb://{login}{hosts}/{'?' if query else ''}{query}"

    def _seeds(self) -> list[Member]:
        return [member for member in self.members if not member.traits.get("hidden")]

    def _uri_options(self) -> dict[str, str]:
        if self._balancer is not None:
            return {"loadBalanced": "true"}
        if isinstance(self._topology, ReplicaSet):
            return {"replicaSet": self._topology.name}
        return {}

    @property
    def commands(self) -> CommandLog:
        """The last 10,000 commands that the members received, in their order."""
        return self._cluster.log

    @property
    def network(self) -> Network:
        """The network between the clients and the members."""
        return self._cluster.network

    def set_fail_point(
        self,
        name: str = "failCommand",
        mode: str | Mapping[str, float] = "alwaysOn",
        data: Mapping[str, Any] | None = None,
        *,
        member: Member | None = None,
    ) -> FailPointHandle:
        """Set a fail point on one member or on all members, and return a handle with its ``count``.

        :param name: ``"failCommand"`` (the default), or another supported fail point.
        :param mode: ``"alwaysOn"`` (the default), ``"off"``, ``{"times": n}``, ``{"skip": n}`` or
            ``{"activationProbability": p}``.
        :param data: such as ``{'failCommands': ['insert'], 'errorCode': 91}``.
        :param member: one member; None is all.
        :raises CommandError: the simulation has no such fail point or command, or the data are wrong.
        """
        fields = dict(data or {})
        check_commands(fields, command_names(self._cluster))
        points = []
        for each in self._chosen(member):
            each.fail_points.configure(name, mode, fields)
            points.append(each.fail_points[name])
        return FailPointHandle(lambda: sum(point.entered for point in points))

    def rate_limit(
        self,
        requests: float | None = None,
        connections: float | None = None,
        *,
        burst: float = 1.0,
        member: Member | None = None,
    ) -> None:
        """Limit the requests and connections of each member.

        A request above the limit fails with error 462 and the labels SystemOverloadedError and RetryableError. A
        connection above the limit is closed.

        :param requests: requests per second; None is no limit.
        :param connections: new connections per second; None is no limit.
        :param burst: the seconds whose requests may arrive together; 1 by default.
        :param member: one member; None is all.
        """
        values = {
            **_limit("ingressRequestAdmission", "ingressRequestRateLimiterEnabled", requests, burst),
            **_limit(
                "ingressConnectionEstablishment", "ingressConnectionEstablishmentRateLimiterEnabled", connections, burst
            ),
        }
        for each in self._chosen(member):
            each.parameters.update(values)
        self._cluster.limits.reset()

    def advance(self, seconds: float) -> None:
        """Advance the clock without a wait, and run all events of this time.

        :param seconds: the duration.
        :raises ValueError: `seconds` is no number from 0 up.
        :raises RuntimeError: the call is outside a :class:`~gmongo.testing.VirtualTime`.
        """
        advance_hub(seconds)

    def _chosen(self, member: Member | None) -> list[Member]:
        return list(self.members) if member is None else [member]


def _limit(prefix: str, switch: str, rate: float | None, burst: float) -> dict[str, Any]:
    if rate is None:
        return {switch: False}
    return {switch: True, f"{prefix}RatePerSec": float(rate), f"{prefix}BurstCapacitySecs": burst}


def _mechanisms(users: Mapping[str, str | None] | None, tokens: Mapping[str, str] | None) -> dict[str, Any]:
    more = ["MONGODB-X509"] if None in (users or {}).values() else []
    return {"authenticationMechanisms": [*MECHANISMS, *more, *(["MONGODB-OIDC"] if tokens else [])]}
