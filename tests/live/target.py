"""The deployment that a connection string names: what it is, how each of its servers is reached, what may be done."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gmongo import MongoClient
from gmongo.database import Database
from gmongo.errors import PyMongoError
from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from gmongo.testing import EmbeddedReplicaSet
from gmongo.uri_parser import parse_uri
from tests.live.report import Skip
from tests.spec.unified.requirements import Offer

OWN = frozenset({"admin", "config", "local"})
"""The databases that every deployment has."""

# Of these, a connection to one server has none, and that to another deployment has its own.
_OF_THE_WHOLE = frozenset({"replicaset", "loadbalanced", "directconnection", "authsource"})
_URI = re.compile(r"mongodb(\+srv)?://(?:([^@/]*)@)?[^/?]*(?:/[^?]*)?(?:\?(.*))?$")
_CONNECTIONS = 8
_UNTRIED = "MONGODB-OIDC"  # which takes a token of the provider that the deployment trusts


class RefusedError(Exception):
    """What is asked for must not be done to this deployment."""


class Fenced(MongoClient[Any]):
    """A client of the databases of a run, and of no others.

    :ivar fence: how their names begin.
    """

    fence = ""

    def __getitem__(self, name: str) -> Database[Any]:
        if not name.startswith(self.fence):
            raise Skip(f"not without --disposable: the case uses the database {name}")
        return super().__getitem__(name)

    def get_database(self, name: str | None = None, *arguments: Any, **options: Any) -> Any:
        return self[str(name)].with_options(*arguments, **options)


class Services(CommandListener):
    """The servers behind a load balancer that have answered."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def started(self, event: CommandStartedEvent) -> None:
        self.seen.add(event.service_id)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """It is known already."""

    def failed(self, event: CommandFailedEvent) -> None:
        """It is known already."""


class Target:
    """A deployment, and a client of it.

    :param uri: its connection string.
    :param options: those of every client besides, such as `server_api`.
    :param one_mongos: the connection string of a load balancer in front of one mongos, beside that of several.
    :param replica_set: the replica set that was started for the run, whose members may be killed and stopped.
    """

    def __init__(
        self,
        uri: str,
        options: Mapping[str, Any] | None = None,
        one_mongos: str | None = None,
        replica_set: EmbeddedReplicaSet | None = None,
    ) -> None:
        self.replica_set = replica_set
        self.uri, self.options, self._one_mongos = uri, dict(options or {}), one_mongos
        self.run = f"gmongo_live_{uuid.uuid4().hex[:8]}"
        self.disposable = False
        self._parsed = parse_uri(uri)
        self._fenced: Fenced | None = None
        self._direct: dict[str, MongoClient[Any]] = {}
        self.client: MongoClient[Any] = MongoClient(uri, **self.options)
        hello = self.client.admin.command("hello")
        self.version = re.match(r"[\d.]*\d", self.client.admin.command("buildInfo")["version"])[0]  # type: ignore[index]
        seeds = ["{}:{}".format(*node) for node in self._parsed["nodelist"]]
        self.topology = _topology(hello, self._parsed["options"])
        of_set = self.topology == "replicaset"
        self.hosts: list[str] = [*hello["hosts"], *hello.get("passives", ())] if of_set else seeds
        self.has_tls = bool(self._parsed["options"].get("tls"))
        self.name: str = hello["setName"] if of_set else seeds[0]
        self.has_services = self.topology == "load-balanced" and len(self._services()) > 1

    def _services(self) -> set[Any]:
        """Those behind the load balancer, as a few connections find them."""
        found = Services()
        for _ in range(_CONNECTIONS):
            with MongoClient[Any](self.uri, **{**self.options, "event_listeners": [found]}) as client:
                client.admin.command("ping")
        return found.seen

    def uri_of_one(self) -> str:
        """A connection string that leads to one mongos, where there are several, and so to the fail points set there.

        :raises Skip: there is none.
        """
        if self.topology == "sharded":
            return self.uri_of(self.hosts[0])
        if self.has_services and self._one_mongos is None:
            raise Skip("the load balancer leads to several servers, and --one-mongos does not name one that does not")
        return self._one_mongos or self.uri

    def clear(self) -> None:
        """End the sessions that a part has left, and drop the databases of the run."""
        if self.disposable and self.topology == "replicaset":  # an open transaction delays a drop for a minute
            self.client.admin.command({"killAllSessions": []})
        for name in self.client.list_database_names():
            if name not in OWN and (self.disposable or name.startswith(self.run)):
                self.client.drop_database(name)

    def close(self) -> None:
        """Drop what the run has made, and close all clients."""
        self.clear()
        for client in (*self._direct.values(), *filter(None, [self._fenced]), self.client):
            client.close()

    def allow_all(self, name: str) -> None:
        """Let official tests, fail points, step-downs and `killAllSessions` reach it.

        :param name: of the deployment, by which its owner says so.
        :raises RefusedError: it is another's, or holds databases.
        """
        if name != self.name:
            raise RefusedError(f"--disposable must name this deployment, {self.name}, and not {name}")
        foreign = sorted(set(self.client.list_database_names()) - OWN)
        if foreign:
            raise RefusedError(f"{name} holds databases that would be lost: {', '.join(foreign[:5])}. Drop them first")
        self.disposable = True

    def database(self, name: str) -> str:
        """The name of a database of the run."""
        return f"{self.run}_{name}"

    def opened(self, name: str) -> Database[Any]:
        """A database of the run on one mongos, if there are several: a cursor is known to one alone.

        Its client leads to other databases only if the deployment is disposable.
        """
        if self._fenced is None:
            one = self.uri_of(self.hosts[0]) if self.topology == "sharded" else self._one_mongos or self.uri
            self._fenced = Fenced(one, **self.options)
            self._fenced.fence = "" if self.disposable else self.run
        return self._fenced[self.database(name)]

    def uri_of(self, *hosts: str, database: str = "") -> str:
        """A connection string with the same user and options: for these hosts alone, or for all with a database.

        :param hosts: such as ``"localhost:27017"``; all of its own by default.
        """
        srv, user, query = _URI.match(self.uri).groups()  # type: ignore[union-attr]
        given = [each for each in (query or "").split("&") if each]
        options = [each for each in given if each.partition("=")[0].lower() not in _OF_THE_WHOLE]
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

    def direct(self, host: str) -> MongoClient[Any]:
        """A client of one server; behind a load balancer, of the one that it leads to."""
        if host not in self._direct:
            is_balanced = self.topology == "load-balanced"
            options = self.options if is_balanced else {"directConnection": True, **self.options}
            self._direct[host] = MongoClient(self.uri_of_one() if is_balanced else self.uri_of(host), **options)
        return self._direct[host]

    def set_fail_point(
        self, name: str, mode: Any, data: Mapping[str, Any] | None = None, host: str | None = None
    ) -> None:
        """Configure a fail point on one server, or on all."""
        more = {"data": dict(data)} if data else {}
        for each in self.hosts if host is None else [host]:
            self.direct(each).admin.command("configureFailPoint", name, mode=mode, **more)

    def fail_points_off(self, *names: str) -> None:
        """Switch fail points off on all servers that can be reached."""
        for host in self.hosts:
            for name in names:
                with suppress(PyMongoError):
                    self.direct(host).admin.command("configureFailPoint", name, mode="off")

    def offer(self) -> Offer:
        """What the requirements of official tests are held against."""
        parameters: Mapping[str, Any] = {}
        with suppress(PyMongoError):
            parameters = self.client.admin.command({"getParameter": "*"})
        auth = self._parsed["username"] is not None
        mechanisms = set(parameters.get("authenticationMechanisms", ())) - {_UNTRIED} if auth else ()
        return Offer(
            self.topology,
            self.version,
            auth,
            mechanisms,
            lambda wanted: all(parameters.get(name) == value for name, value in wanted.items()),
        )


def _topology(hello: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    if options.get("loadBalanced"):
        return "load-balanced"
    if hello.get("msg") == "isdbgrid":
        return "sharded"
    return "replicaset" if "setName" in hello else "single"
