"""A simulated MongoDB deployment for tests. The servers run in this process and use the real wire protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from gmongo.testing.simulation import stalled
from gmongo.testing.simulation.certificates import Tls, certificates, create_server_context
from gmongo.testing.simulation.cluster import Cluster
from gmongo.testing.simulation.command_log import CommandLog
from gmongo.testing.simulation.compression import check_compressors
from gmongo.testing.simulation.dispatch import list_command_names
from gmongo.testing.simulation.fail_points import FailPointHandle, check_commands
from gmongo.testing.simulation.listener import LoadBalancer
from gmongo.testing.simulation.member import Member, check_number
from gmongo.testing.simulation.network import Network
from gmongo.testing.simulation.parameters import MECHANISMS, Parameters
from gmongo.testing.simulation.topologies.base import Topology
from gmongo.testing.simulation.topologies.replica_set import NO_PRIMARY_MESSAGE, ReplicaSet
from gmongo.testing.simulation.topologies.sharded import Sharded
from gmongo.testing.simulation.users import Users
from gmongo.testing.simulation.versions import parse_version
from gmongo.testing.store import Store
from gmongo.testing.virtual_time import advance_hub


class Members(list[Member]):
    """The members of a deployment.

    :param members: the simulated servers.
    :param topology: the topology of the deployment.
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
            raise LookupError(NO_PRIMARY_MESSAGE)
        return primary

    @property
    def secondaries(self) -> list[Member]:
        """The members of a replica set that have data and are not primary."""
        if not isinstance(self._topology, ReplicaSet):
            return []
        primary = self._topology.primary
        return [member for member in self if member is not primary and not member.traits.get("arbiter")]


class Deployment:
    """A simulated MongoDB deployment on ports of the loopback interface.

    Greenlets serve the clients, in the hub of the thread that calls :meth:`start`.

    Create a deployment with :meth:`standalone`, :meth:`replica_set`, :meth:`sharded` or
    :meth:`load_balanced`. The `settings` of the four methods are the parameters from `version` to
    `log`. Use the deployment in a ``with`` block, or call :meth:`start` and :meth:`close`.

    :param topology: the topology of the deployment, which :meth:`standalone` and similar methods
        create.
    :param traits: one mapping for each member, with the values of ``tags``, ``priority``, ``hidden``
        and ``arbiter`` that differ from the defaults.
    :param load_balanced: True if the members are behind a load balancer.
    :param version: the server version, from ``'4.2'`` to ``'8.2'``. The version determines the
        handshake, the error labels and the supported commands.
    :param users: the passwords by user name. If `users` is not None, clients must authenticate. A
        user with a password belongs to ``admin``. A user whose password is None, such as the subject
        of an X.509 certificate, belongs to ``$external``. The URI contains the credentials of the
        first user if this user has a password.
    :param oidc_tokens: the user names by OIDC token. If `oidc_tokens` is not empty, clients must
        authenticate.
    :param tls: True for a generated certificate (needs ``trustme``), an ``ssl.SSLContext``, or the
        paths ``{'certificate': ..., 'ca': ...}``.
    :param compressors: the compressors that the servers support: any of ``'zlib'``, ``'snappy'`` and
        ``'zstd'``.
    :param parameters: server parameters, such as ``{'requireApiVersion': True}``.
    :param write_concern_modes: the names of custom write concern modes, which are values of ``w``
        besides ``"majority"``.
    :param port: the port of the first member, or of the load balancer. The other servers use the
        following ports. By default each server uses any free port.
    :param log: True if :attr:`commands` keeps the received commands.
    :raises ValueError: a setting is invalid.

    :ivar members: the members; empty before the start.
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
        if not traits:
            raise ValueError("a deployment must have at least one member")
        version_numbers = parse_version(version)
        self._topology = topology
        self._traits = traits
        self._port = port
        self._users = dict(users or {})
        self._ca_file = certificates().ca_file if tls is True else None
        self._is_tls = tls is not False
        is_sharded = isinstance(topology, Sharded)
        self._cluster = Cluster(
            version=version_numbers,
            topology=topology,
            store=Store(version=version_numbers[:2], replicated=topology.has_cluster_time, sharded=is_sharded),
            users=Users(users, oidc_tokens),
            parameters=Parameters({**_create_auth_parameters(users, oidc_tokens), **(parameters or {})}),
            tls=create_server_context(tls),
            compressors=check_compressors(compressors),
            write_concern_modes=frozenset(write_concern_modes),
        )
        self._cluster.log.enabled = log
        self._has_balancer = load_balanced
        self._balancer: LoadBalancer | None = None
        self._was_started = False
        self.members = Members([], topology)

    @classmethod
    def standalone(cls, **settings: Any) -> Deployment:
        """Create a deployment of one server without replication.

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
        """Create a replica set. The first member with the highest priority becomes the first primary.

        :param members: the number of members with data, including hidden members.
        :param name: the name of the replica set.
        :param arbiters: the number of additional members without data.
        :param hidden: the number of hidden members. The last members with data are hidden.
        :param tags: the tag sets of the first members, in order; all other members have no tags.
        :param priorities: the priorities of the first members, in order. The default priority is 1.
        :param election_delay: seconds between the loss of a primary and the next election.
        :param settings: see :class:`Deployment`.
        :raises ValueError: no member can become primary, or a setting is invalid.
        """
        if max(len(tags), len(priorities)) > members or election_delay < 0:
            raise ValueError("tags and priorities have at most one item per member, and election_delay is at least 0")
        traits: list[dict[str, Any]] = [{} for _ in range(members)]
        for item, tag_set in zip(traits, tags, strict=False):
            item["tags"] = dict(tag_set)
        for item, priority in zip(traits, priorities, strict=False):
            item["priority"] = priority
        for item in traits[members - hidden :]:
            item["hidden"] = True
        if not any(item.get("priority", 1) and not item.get("hidden") for item in traits):
            raise ValueError(f"a replica set of {members} members, {hidden} hidden, has no member that can be primary")
        return cls(ReplicaSet(name, election_delay), [*traits, *({"arbiter": True},) * arbiters], **settings)

    @classmethod
    def sharded(cls, mongos: int = 2, **settings: Any) -> Deployment:
        """Create a sharded cluster. Clients connect to the mongos of the cluster.

        :param mongos: the number of mongos.
        :param settings: see :class:`Deployment`.
        """
        return cls(Sharded(), [{}] * mongos, **settings)

    @classmethod
    def load_balanced(cls, services: int = 2, **settings: Any) -> Deployment:
        """Create several mongos behind a load balancer. Each mongos has its own ``serviceId``.

        The URI has the address of the load balancer. The members also accept connections from other
        load balancers that use the PROXY protocol.

        :param services: the number of mongos.
        :param settings: see :class:`Deployment`.
        """
        return cls(Sharded(), [{}] * services, load_balanced=True, **settings)

    def start(self) -> Deployment:
        """Start all members.

        :raises RuntimeError: the deployment was started before.
        :raises OSError: a port is in use.
        """
        if self._was_started:
            raise RuntimeError("the deployment was started before, and a deployment starts only once")
        self._was_started = True
        try:
            for port_offset, traits in enumerate(self._traits, start=int(self._has_balancer)):
                port = self._port and self._port + port_offset
                member = Member(self._cluster, port=port, traits=traits, load_balanced=self._has_balancer)
                self.members.append(member)
                self._topology.members.append(member)
                member.start()
            if self._has_balancer:
                self._balancer = LoadBalancer(self.members, self._port)
        except BaseException:
            self.close()
            raise
        if isinstance(self._topology, ReplicaSet):
            self._topology.elect_now()
        return self

    def close(self) -> None:
        """End all members, and remove their data."""
        self._topology.end()
        if self._balancer is not None:
            self._balancer.close()
        for member in self.members:
            member.stop()
            member.faults.clear()  # wakes the greenlets that wait for the end of a freeze

    def __enter__(self) -> Deployment:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def uri(self) -> str:
        """The connection string, with the first user's credentials, and with TLS options if required.

        :raises RuntimeError: the deployment was not started.
        """
        if not self.members:
            raise RuntimeError("the deployment has not been started: call start() or use a with block")
        stalled.watch_listeners()  # a driver that does not use gevent can block this thread
        if self._balancer is not None:
            return self.uri_of(self._balancer.address)
        hosts = ",".join(member.address for member in self.members if not member.traits.get("hidden"))
        options = {"replicaSet": self._topology.name} if isinstance(self._topology, ReplicaSet) else {}
        return self.uri_of(hosts, **options)

    def uri_of(self, hosts: str, **options: str) -> str:
        """Return a connection string for `hosts`, with the user, TLS and ``loadBalanced`` options of :attr:`uri`.

        :param hosts: the addresses of members, separated by commas, such as ``members[1].address``.
        :param options: further options of the connection string.
        """
        name, password = next(iter(self._users.items()), (None, None))
        login = f"{quote(name, safe='')}:{quote(password, safe='')}@" if name and password else ""
        if self._balancer is not None:
            options.setdefault("loadBalanced", "true")
        if self._is_tls:
            options["tls"] = "true"
        if self._ca_file:
            options["tlsCAFile"] = self._ca_file
        query = urlencode(options, safe="/")
        return f"mongodb://{login}{hosts}/{'?' if query else ''}{query}"

    @property
    def commands(self) -> CommandLog:
        """The last commands that the members received, in the order of arrival: at most 10,000 commands and 32 MiB."""
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
        """Set a fail point on one member or on all members. Return a handle that counts the affected commands.

        :param name: the name of a supported fail point; ``"failCommand"`` by default.
        :param mode: ``"alwaysOn"`` (the default), ``"off"``, ``{"times": n}``, ``{"skip": n}`` or
            ``{"activationProbability": p}``.
        :param data: the data of the fail point, such as
            ``{'failCommands': ['insert'], 'errorCode': 91}``.
        :param member: the member that gets the fail point; None means each member, which counts `mode` for itself.
        :raises CommandError: the fail point is not supported, ``failCommands`` contains an unknown
            command, `mode` is invalid, or `data` is invalid.
        """
        fields = dict(data or {})
        check_commands(fields, list_command_names(self._cluster))
        fail_points = []
        for target in self._select_members(member):
            target.fail_points.configure(name, mode, fields)
            fail_points.append(target.fail_points[name])
        return FailPointHandle(lambda: sum(fail_point.affected_count for fail_point in fail_points))

    def rate_limit(
        self,
        requests: float | None = None,
        connections: float | None = None,
        *,
        burst: float = 1.0,
        member: Member | None = None,
    ) -> None:
        """Limit how many requests and new connections each member accepts per second.

        A request above the limit fails with error code 462 (IngressRequestRateLimitExceeded) and with
        the labels SystemOverloadedError and RetryableError. The member closes each new connection
        above the limit.

        :param requests: the accepted requests per second; None means no limit.
        :param connections: the accepted new connections per second; None means no limit.
        :param burst: the size of a burst in seconds; 1 by default. After idle time, a member
            accepts `burst` times the limit at the same moment.
        :param member: the member that gets the limits; None means all members.
        :raises ValueError: a limit or `burst` is not a nonnegative number.
        """
        for name, value in {"requests": requests, "connections": connections, "burst": burst}.items():
            if value is not None:
                check_number(name, value)
        values = {
            **_create_limit_parameters("ingressRequestAdmission", "ingressRequestRateLimiterEnabled", requests, burst),
            **_create_limit_parameters(
                "ingressConnectionEstablishment", "ingressConnectionEstablishmentRateLimiterEnabled", connections, burst
            ),
        }
        for target in self._select_members(member):
            target.parameters.update(values)
        self._cluster.limits.reset()

    def advance(self, seconds: float) -> None:
        """Advance the virtual clock without a wait, and run all events of the skipped time.

        :param seconds: the time by which the clock advances.
        :raises ValueError: `seconds` is negative or is not a number.
        :raises RuntimeError: the call is outside a :class:`~gmongo.testing.VirtualTime`.
        """
        advance_hub(seconds)

    def _select_members(self, member: Member | None) -> list[Member]:
        return list(self.members) if member is None else [member]


def _create_limit_parameters(prefix: str, enabling_parameter: str, rate: float | None, burst: float) -> dict[str, Any]:
    if rate is None:
        return {enabling_parameter: False}
    return {enabling_parameter: True, f"{prefix}RatePerSec": float(rate), f"{prefix}BurstCapacitySecs": burst}


def _create_auth_parameters(users: Mapping[str, str | None] | None, tokens: Mapping[str, str] | None) -> dict[str, Any]:
    x509_mechanisms = ["MONGODB-X509"] if None in (users or {}).values() else []
    return {"authenticationMechanisms": [*MECHANISMS, *x509_mechanisms, *(["MONGODB-OIDC"] if tokens else [])]}
