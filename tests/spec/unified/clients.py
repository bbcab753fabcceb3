"""Client entities of the unified test format."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from gmongo import MongoClient
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult
from gmongo.server_api import ServerApi
from tests.spec.unified.deployments import OIDC_TOKEN, RunningDeployment, remove_user
from tests.spec.unified.encryption import auto_encryption_options
from tests.spec.unified.events import EVENTS, Observer
from tests.spec.unified.logs import LogCollector
from tests.spec.unified.matching import Mismatch
from tests.spec.unified.schema import FormatError
from tests.spec.unified.spans import SpanCollector
from tests.spec.unified.values import check_known

_CLIENT_FIELDS = frozenset(
    {
        "id",
        "uriOptions",
        "useMultipleMongoses",
        "observeEvents",
        "ignoreCommandMonitoringEvents",
        "observeSensitiveCommands",
        "storeEventsAsEntities",
        "observeLogMessages",
        "serverApi",
        "awaitMinPoolSizeMS",
        "autoEncryptOpts",
        "observeTracingMessages",
    }
)

_STORABLE_EVENTS = frozenset(f"{name[0].upper()}{name[1:]}" for kind in ("cmap", "command") for name in EVENTS[kind])

_OIDC = "MONGODB-OIDC"


class TokenCallback(OIDCCallback):
    """OIDC callback that returns the token which the simulated deployments accept."""

    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        return OIDCCallbackResult(OIDC_TOKEN)


class ClientEntity:
    """Client of a case, with its recorded events, log messages and spans."""

    def __init__(self, spec: Mapping[str, Any], deployment: RunningDeployment, defaults: Mapping[str, Any]) -> None:
        check_known(spec, _CLIENT_FIELDS, "a client")
        self.name: str = spec["id"]
        self.recorder = Observer(
            spec.get("observeEvents", ()),
            spec.get("ignoreCommandMonitoringEvents", ()),
            spec.get("observeSensitiveCommands", False),
        )
        self.stored_events = self._store(spec.get("storeEventsAsEntities", ()))
        self.logs = LogCollector(spec["observeLogMessages"]) if "observeLogMessages" in spec else None
        self.spans = SpanCollector() if "observeTracingMessages" in spec else None
        uri, options = _uri_and_options(spec, deployment, defaults)
        if self.spans is not None:
            options["tracing"] = self.spans.options(spec["observeTracingMessages"])
        with ExitStack() as undo:
            if self.logs is not None:
                self.logs.install()
                undo.callback(self.logs.remove)
            self.client: MongoClient[Any] = MongoClient(uri, event_listeners=[self.recorder], **options)
            undo.callback(self.client.close)
            if "awaitMinPoolSizeMS" in spec:
                self._await_pools(options.get("minPoolSize", 0), spec["awaitMinPoolSizeMS"] / 1000)
            undo.pop_all()

    def _store(self, definitions: Any) -> dict[str, list[Any]]:
        entities: dict[str, list[Any]] = {}
        for definition in definitions:
            check_known(definition, {"id", "events"}, "stored events")
            check_known(definition["events"], _STORABLE_EVENTS, "stored events")
            self.recorder.store(definition["events"], entities.setdefault(definition["id"], []))
        return entities

    def _await_pools(self, size: int, seconds: float) -> None:
        """Wait until each pool has `size` connections, without recording events, logs and spans."""
        self._set_listening(False)
        filled = self.recorder.wait_until(lambda: self._pools_have_connections(size), seconds)
        self._set_listening(True)
        if not filled:
            raise Mismatch(f"not every pool of {self.name} has {size} connections after {seconds} s")

    def _pools_have_connections(self, size: int) -> bool:
        return self._pools_are_ready() and self.recorder.ready_connection_count >= size * self.recorder.ready_pool_count

    def _pools_are_ready(self) -> bool:
        return self.recorder.ready_pool_count >= len(self.client.topology_description.server_descriptions())

    def wait_for_discovery(self) -> None:
        """Wait until the client has discovered all servers, and has logged the messages of the
        discovery.
        """
        self.recorder.wait_until(self._pools_are_ready)

    def _set_listening(self, listen: bool) -> None:
        self.recorder.listening = listen
        if self.logs is not None:
            self.logs.recording = listen
        if self.spans is not None:
            self.spans.recording = listen

    def stop_listening(self) -> None:
        """Stop the recording of events, log messages and spans."""
        self._set_listening(False)
        if self.logs is not None:
            self.logs.remove()

    def close(self) -> None:
        self.stop_listening()
        self.client.close()


def _uri_and_options(
    spec: Mapping[str, Any], deployment: RunningDeployment, defaults: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the URI and the options for the MongoClient of a client entity."""
    options = _replace_placeholders({**defaults, **spec.get("uriOptions", {})})
    if "serverApi" in spec:
        api = spec["serverApi"]
        check_known(api, {"version", "strict", "deprecationErrors"}, "a server API")
        options["server_api"] = ServerApi(api["version"], api.get("strict"), api.get("deprecationErrors"))
    if "autoEncryptOpts" in spec:
        options["auto_encryption_opts"] = auto_encryption_options(spec["autoEncryptOpts"])
    return _uri(spec, deployment, options), options


def _uri(spec: Mapping[str, Any], deployment: RunningDeployment, options: Mapping[str, Any]) -> str:
    # By default, the URI contains only one mongos, because a fail point affects only one mongos.
    multiple = spec.get("useMultipleMongoses", False)
    uri = deployment.uri_of_one_server() if options.get("directConnection") else deployment.uri(multiple)
    return remove_user(uri) if options.get("authMechanism") == _OIDC else uri


def _replace_placeholders(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _placeholder_value(name, options) if isinstance(value, Mapping) and "$$placeholder" in value else value
        for name, value in options.items()
    }


def _placeholder_value(name: str, options: Mapping[str, Any]) -> Any:
    if name == "authMechanismProperties" and options.get("authMechanism") == _OIDC:
        return {"OIDC_CALLBACK": TokenCallback()}
    raise FormatError(f"the runner has no value for the placeholder of the option {name}")
