"""The simulated deployments that cases run on: started when first needed, then shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo import MongoClient
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from gmongo.testing.simulation.member import Member
from tests.spec.unified.events import Observer
from tests.spec.unified.requirements import Setting
from tests.spec.unified.schema import FormatError

USER, PASSWORD = "runner", "secret"
TOKEN = "runner-token"
"""With this one logs in by MONGODB-OIDC, wherever users must log in."""

_STARTS: Mapping[str, Callable[..., Deployment]] = {
    "single": Deployment.standalone,
    "replicaset": Deployment.replica_set,
    "sharded": Deployment.sharded,
    "load-balanced": Deployment.load_balanced,
}

HARMLESS = (11601, 13, 59)
"""What may come of killAllSessions: interrupted itself, not authorised, unknown."""


class Running:
    """A deployment, and the runner's own client of it.

    :param setting: what it is.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        access = {"users": {USER: PASSWORD}, "oidc_tokens": {TOKEN: USER}} if setting.auth else {}
        parameters = dict(setting.parameters)
        start = _STARTS[setting.topology]
        self._deployment = start(version=setting.version, parameters=parameters, log=False, **access)
        self._deployment.start()
        recorder = Observer((), (), False)
        # It knows one mongos only.
        self.internal: MongoClient[Any] = MongoClient(self.uri(False), event_listeners=[recorder])
        self.kill_sessions()
        # It is quiet from here on: what is logged next is of the clients of tests.
        servers = self.internal.topology_description.server_descriptions()
        recorder.wait_until(lambda: recorder.ready_pools == len(servers))

    def close(self) -> None:
        """Close the client and stop the deployment."""
        self.internal.close()
        self._deployment.close()

    def uri(self, multiple: bool | None = None) -> str:
        """The connection string.

        :param multiple: ``useMultipleMongoses``.
        """
        first = self._deployment.members[0].address
        if multiple is False and self.setting.topology == "sharded":
            return self._deployment.uri_of(first)
        if multiple is False and self.setting.topology == "load-balanced":
            return self._deployment.uri_of(first, loadBalanced="true")
        return self._deployment.uri

    def uri_of_one(self) -> str:
        """The connection string for a direct connection to a server that takes writes."""
        return self._deployment.uri_of((self._deployment.members.primary or self._deployment.members[0]).address)

    def configure_fail_point(self, address: str, command: Mapping[str, Any]) -> None:
        """Configure a fail point on one server.

        :param address: such as ``"127.0.0.1:27017"``.
        :param command: ``configureFailPoint``.
        """
        member = self._member(address)
        self._deployment.set_fail_point(
            command["configureFailPoint"], command["mode"], command.get("data"), member=member
        )

    def _member(self, address: str) -> Member:
        found = next((member for member in self._deployment.members if member.address == address), None)
        if found is None:
            raise FormatError(f"the deployment has no server {address}")
        return found

    def disable_fail_points(self, names: set[str]) -> None:
        """Switch fail points off on all servers."""
        for name in names:
            self._deployment.set_fail_point(name, "off")

    def prepared(self, document: Mapping[str, Any]) -> None:
        """Called when the data of a file is there; one simulated mongos knows what another has done."""

    def kill_sessions(self) -> None:
        """End all transactions that are open."""
        try:
            self.internal.admin.command({"killAllSessions": []})
        except OperationFailure as error:
            if error.code not in HARMLESS:
                raise


def without_user(uri: str) -> str:
    """The connection string for a client that logs in with something else than the runner's name and password."""
    return uri.replace(f"{USER}:{PASSWORD}@", "")


class Deployments:
    """The deployments of a test session by their setting."""

    def __init__(self) -> None:
        self._running: dict[Setting, Running] = {}

    def get(self, setting: Setting) -> Running:
        """The deployment of this setting; it is started if it is not there yet."""
        if setting not in self._running:
            self._running[setting] = Running(setting)
        return self._running[setting]

    def close(self) -> None:
        """Stop all."""
        while self._running:
            self._running.popitem()[1].close()
