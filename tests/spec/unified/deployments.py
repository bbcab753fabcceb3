"""Simulated deployments on which the official cases run.

Cases with equal settings share a deployment, which the first case starts. A case in virtual time has
its own deployment.
"""

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
OIDC_TOKEN = "runner-token"
"""Token for MONGODB-OIDC on deployments with authentication."""

_FACTORIES: Mapping[str, Callable[..., Deployment]] = {
    "single": Deployment.standalone,
    "replicaset": Deployment.replica_set,
    "sharded": Deployment.sharded,
    "load-balanced": Deployment.load_balanced,
}

IGNORED_ERROR_CODES = (11601, 13, 59)
"""Ignored error codes of killAllSessions: Interrupted, Unauthorized, CommandNotFound."""


class RunningDeployment:
    """A running simulated deployment, and the internal client with which the runner accesses this
    deployment.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        access = {"users": {USER: PASSWORD}, "oidc_tokens": {OIDC_TOKEN: USER}} if setting.auth else {}
        parameters = dict(setting.parameters)
        start = _FACTORIES[setting.topology]
        self._deployment = start(version=setting.version, parameters=parameters, log=False, **access)
        self._deployment.start()
        recorder = Observer((), (), False)
        # In a sharded deployment, the internal client connects to only one mongos.
        self.internal_client: MongoClient[Any] = MongoClient(self.uri(False), event_listeners=[recorder])
        self.kill_sessions()
        # Wait until the internal client has discovered its servers, so that all later log messages
        # about discovery belong to clients of cases.
        servers = self.internal_client.topology_description.server_descriptions()
        recorder.wait_until(lambda: recorder.ready_pool_count == len(servers))

    def close(self) -> None:
        self.internal_client.close()
        self._deployment.close()

    def uri(self, multiple: bool | None = None) -> str:
        """Return the URI of the deployment.

        If `multiple` is False, the URI contains only one mongos.
        """
        first_address = self._deployment.members[0].address
        if multiple is False and self.setting.topology == "sharded":
            return self._deployment.uri_of(first_address)
        if multiple is False and self.setting.topology == "load-balanced":
            return self._deployment.uri_of(first_address, loadBalanced="true")
        return self._deployment.uri

    def uri_of_one_server(self) -> str:
        """Return a URI that contains only one server, which accepts writes."""
        members = self._deployment.members
        return self._deployment.uri_of((members.primary if members.has_primary else members[0]).address)

    def configure_fail_point(self, address: str, command: Mapping[str, Any]) -> None:
        """Run ``configureFailPoint`` on the server with the address."""
        member = self._member(address)
        self._deployment.set_fail_point(
            command["configureFailPoint"], command["mode"], command.get("data"), member=member
        )

    def _member(self, address: str) -> Member:
        for member in self._deployment.members:
            if member.address == address:
                return member
        raise FormatError(f"the deployment has no server {address}")

    def disable_fail_points(self, names: set[str]) -> None:
        for name in names:
            self._deployment.set_fail_point(name, "off")

    def synchronize_mongos(self, document: Mapping[str, Any]) -> None:
        """Do nothing here. Subclasses for real servers synchronize the mongos after the writes of
        the initial data.
        """

    def kill_sessions(self) -> None:
        """Kill all sessions on the servers, and abort their transactions."""
        try:
            self.internal_client.admin.command({"killAllSessions": []})
        except OperationFailure as error:
            if error.code not in IGNORED_ERROR_CODES:
                raise


def remove_user(uri: str) -> str:
    """Remove the username and the password of the runner from a URI."""
    return uri.replace(f"{USER}:{PASSWORD}@", "")


class Deployments:
    """Running deployments, keyed by their settings."""

    def __init__(self) -> None:
        self._running: dict[Setting, RunningDeployment] = {}

    def get(self, setting: Setting) -> RunningDeployment:
        """Return the deployment with the given setting. A deployment starts at its first use."""
        if setting not in self._running:
            self._running[setting] = RunningDeployment(setting)
        return self._running[setting]

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()
