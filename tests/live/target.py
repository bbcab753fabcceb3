"""The deployment that a URI selects: its topology, its servers, and the commands that the run may
send.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gmongo import MongoClient
from gmongo.database import Database
from gmongo.errors import PyMongoError
from gmongo.testing import EmbeddedReplicaSet
from gmongo.uri_parser import parse_uri
from tests.live.report import Skip
from tests.spec.unified.requirements import DeploymentProperties
from tests.support.recorder import Recorder

SYSTEM_DATABASES = frozenset({"admin", "config", "local"})
"""System databases of every deployment."""

# URI options that :meth:`Target.uri_with_hosts` does not copy from the URI of the deployment.
_DEPLOYMENT_OPTIONS = frozenset({"replicaset", "loadbalanced", "directconnection", "authsource"})
_URI_PATTERN = re.compile(r"mongodb(\+srv)?://(?:([^@/]*)@)?[^/?]*(?:/[^?]*)?(?:\?(.*))?$")
_CONNECTION_COUNT = 8
# Authentication mechanism that the run omits, because a token of an identity provider is missing.
_UNUSED_MECHANISM = "MONGODB-OIDC"


class RefusedError(Exception):
    """Raised before the run if the name or the data of the deployment do not permit the run."""


class RestrictedClient(MongoClient[Any]):
    """Client that raises `Skip` if a database name does not start with `permitted_prefix`.

    :ivar permitted_prefix: Prefix of the names of the permitted databases.
    """

    permitted_prefix = ""

    def __getitem__(self, name: str) -> Database[Any]:
        if not name.startswith(self.permitted_prefix):
            raise Skip(f"not without --disposable: the case uses the database {name}")
        return super().__getitem__(name)

    def get_database(self, name: str | None = None, *arguments: Any, **options: Any) -> Any:
        return self[str(name)].with_options(*arguments, **options)


class Target:
    """The deployment of a run, and a client of the deployment.

    :param uri: URI of the deployment.
    :param options: Options of each client of the run, such as `server_api`, in addition to the URI.
    :param one_mongos_uri: URI of a load balancer that has only one mongos, if the load balancer of
        `uri` has several.
    :param replica_set: Replica set that the run has started, whose members the run may kill and
        suspend. None for a deployment that the run has not started.
    """

    def __init__(
        self,
        uri: str,
        options: Mapping[str, Any] | None = None,
        one_mongos_uri: str | None = None,
        replica_set: EmbeddedReplicaSet | None = None,
    ) -> None:
        self.replica_set = replica_set
        self.uri, self.options, self._one_mongos_uri = uri, dict(options or {}), one_mongos_uri
        self.database_prefix = f"gmongo_live_{uuid.uuid4().hex[:8]}"
        self.disposable = False
        self._parsed = parse_uri(uri)
        self._restricted_client: RestrictedClient | None = None
        self._direct_clients: dict[str, MongoClient[Any]] = {}
        self.client: MongoClient[Any] = MongoClient(uri, **self.options)
        hello = self.client.admin.command("hello")
        self.version = re.match(r"[\d.]*\d", self.client.admin.command("buildInfo")["version"])[0]  # type: ignore[index]
        seeds = ["{}:{}".format(*node) for node in self._parsed["nodelist"]]
        self.topology = _topology_kind(hello, self._parsed["options"])
        is_replica_set = self.topology == "replicaset"
        self.hosts: list[str] = [*hello["hosts"], *hello.get("passives", ())] if is_replica_set else seeds
        self.has_tls = bool(self._parsed["options"].get("tls"))
        self.name: str = hello["setName"] if is_replica_set else seeds[0]
        self.has_several_services = self.topology == "load-balanced" and len(self._find_services()) > 1

    def _find_services(self) -> set[Any]:
        """Return the IDs of the services behind the load balancer."""
        recorder = Recorder()
        for _ in range(_CONNECTION_COUNT):
            with MongoClient[Any](self.uri, **{**self.options, "event_listeners": [recorder]}) as client:
                client.admin.command("ping")
        return {event.service_id for event in recorder.events_named("CommandStarted")}

    def uri_of_one_mongos(self) -> str:
        """Return a URI that connects clients to at most one mongos, so that a fail point affects all
        commands.

        :raises Skip: The load balancer has several services, and --one-mongos is missing.
        """
        if self.topology == "sharded":
            return self.uri_with_hosts(self.hosts[0])
        if self.has_several_services and self._one_mongos_uri is None:
            raise Skip("the load balancer has several servers, and --one-mongos is missing")
        return self._one_mongos_uri or self.uri

    def drop_databases(self) -> None:
        """Drop the databases of the run. If the deployment is disposable, drop all user databases."""
        # Abort open transactions, because a transaction delays the drop of a database by a minute.
        if self.disposable and self.topology == "replicaset":
            self.client.admin.command({"killAllSessions": []})
        for name in self.client.list_database_names():
            if name not in SYSTEM_DATABASES and (self.disposable or name.startswith(self.database_prefix)):
                self.client.drop_database(name)

    def close(self) -> None:
        """Call :meth:`drop_databases`, and close all clients."""
        self.drop_databases()
        for client in (*self._direct_clients.values(), *filter(None, [self._restricted_client]), self.client):
            client.close()

    def permit_all_commands(self, name: str) -> None:
        """Permit official tests, prose tests, fail points, step-downs and `killAllSessions`.

        :param name: Name that the user passes to confirm that the deployment
            is disposable.
        :raises RefusedError: `name` is not the name of the deployment, or the deployment contains
            databases of other users.
        """
        if name != self.name:
            raise RefusedError(f"--disposable must name this deployment, {self.name}, and not {name}")
        databases = sorted(set(self.client.list_database_names()) - SYSTEM_DATABASES)
        if databases:
            raise RefusedError(
                f"{name} contains databases that would be lost: {', '.join(databases[:5])}. Drop these databases first"
            )
        self.disposable = True

    def db_name(self, name: str) -> str:
        """Return the name of a database that belongs to the run."""
        return f"{self.database_prefix}_{name}"

    def open_database(self, name: str) -> Database[Any]:
        """Return an object for a database of the run.

        In a sharded cluster, the client connects to only one mongos, because a cursor exists on
        only one mongos. If the deployment is not disposable, the client rejects the use of
        databases of other users.
        """
        if self._restricted_client is None:
            uri = self.uri_with_hosts(self.hosts[0]) if self.topology == "sharded" else self._one_mongos_uri or self.uri
            self._restricted_client = RestrictedClient(uri, **self.options)
            self._restricted_client.permitted_prefix = "" if self.disposable else self.database_prefix
        return self._restricted_client[self.db_name(name)]

    def uri_with_hosts(self, *hosts: str, database: str = "") -> str:
        """Return a URI that has the given hosts, and the user and the options of the target's URI.

        :param hosts: Hosts such as ``"localhost:27017"``. If no host is given, the URI contains all
            hosts of the deployment.
        """
        srv, user, query = _URI_PATTERN.match(self.uri).groups()  # type: ignore[union-attr]
        pairs = [each for each in (query or "").split("&") if each]
        options = [each for each in pairs if each.partition("=")[0].lower() not in _DEPLOYMENT_OPTIONS]
        options += ["tls=true"] * bool(srv)
        if user:
            source = self._parsed["options"].get("authSource", self._parsed["database"])
            options.append(f"authSource={source or 'admin'}")
        if not hosts and self.topology == "replicaset":
            options.append(f"replicaSet={self.name}")
        if self.topology == "load-balanced":
            options.append("loadBalanced=true")
        login = f"{user}@" if user else ""
        return f"mongodb://{login}{','.join(hosts or self.hosts)}/{database}?{'&'.join(options)}"

    def direct_client(self, host: str) -> MongoClient[Any]:
        """Return a client that is connected to only one server, or to the load balancer."""
        if host not in self._direct_clients:
            is_balanced = self.topology == "load-balanced"
            options = self.options if is_balanced else {"directConnection": True, **self.options}
            self._direct_clients[host] = MongoClient(
                self.uri_of_one_mongos() if is_balanced else self.uri_with_hosts(host), **options
            )
        return self._direct_clients[host]

    def set_fail_point(
        self, name: str, mode: Any, data: Mapping[str, Any] | None = None, host: str | None = None
    ) -> None:
        """Configure a fail point on the server `host`, or on all servers if `host` is None."""
        arguments = {"data": dict(data)} if data else {}
        for each in self.hosts if host is None else [host]:
            self.direct_client(each).admin.command("configureFailPoint", name, mode=mode, **arguments)

    def disable_fail_points(self, *names: str) -> None:
        """Disable the fail points `names` on all reachable servers."""
        for host in self.hosts:
            for name in names:
                with suppress(PyMongoError):
                    self.direct_client(host).admin.command("configureFailPoint", name, mode="off")

    def properties(self) -> DeploymentProperties:
        """Return the properties of the deployment to which the requirements of official tests
        refer.
        """
        parameters: Mapping[str, Any] = {}
        with suppress(PyMongoError):
            parameters = self.client.admin.command({"getParameter": "*"})
        has_user = self._parsed["username"] is not None
        mechanisms = set(parameters.get("authenticationMechanisms", ())) - {_UNUSED_MECHANISM} if has_user else ()
        return DeploymentProperties(
            self.topology,
            self.version,
            has_user,
            mechanisms,
            lambda wanted: all(parameters.get(name) == value for name, value in wanted.items()),
        )


def _topology_kind(hello: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    if options.get("loadBalanced"):
        return "load-balanced"
    if hello.get("msg") == "isdbgrid":
        return "sharded"
    return "replicaset" if "setName" in hello else "single"
